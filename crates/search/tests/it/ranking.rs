//! The rules of the ranking, on a few tools.

use std::sync::Arc;

use mcp_proxy_search::{
    SearchDocument, SearchField, SearchHit, SearchIndex, SearchQuery, SearchResults, SearchSegment,
};

const GIT: &[(&str, &str)] = &[
    (
        "list_pull_requests",
        "Lists the proposed changes of a repository",
    ),
    ("create_issue", "Opens an entry in the tracker"),
    ("delete_branch", "Removes a branch"),
    ("get_file_contents", "Returns the text at a path"),
];
const CHAT: &[(&str, &str)] = &[
    ("sendMessage", "Delivers a text to a channel"),
    ("list_channels", "All rooms of the workspace"),
    ("HTTPServer2", "Starts something that listens"),
];

fn segment(server: &str, tools: &[(&str, &str)]) -> Arc<SearchSegment> {
    let documents = tools.iter().map(|(name, description)| SearchDocument {
        name,
        server,
        description,
        ..SearchDocument::default()
    });
    Arc::new(SearchSegment::new(documents))
}

fn index() -> SearchIndex {
    SearchIndex::new(vec![segment("forge", GIT), segment("chat", CHAT)])
}

fn search(text: &str) -> SearchResults {
    index().search(&SearchQuery { text, limit: 10 }, &|_, _| true)
}

fn name(hit: &SearchHit) -> &'static str {
    [GIT, CHAT][hit.segment][hit.document].0
}

fn first(text: &str) -> &'static str {
    search(text).hits.first().map_or("nothing", name)
}

#[test]
fn a_name_is_found_whatever_its_case_and_separators() {
    for text in [
        "create_issue",
        "CREATE_ISSUE",
        "create issue",
        "createIssue",
        "ate_iss",
    ] {
        let results = search(text);
        assert_eq!(name(&results.hits[0]), "create_issue", "{text}");
        assert!(
            results.hits[0].matched.contains(&SearchField::Name),
            "{text}"
        );
    }
}

#[test]
fn identifiers_are_found_by_their_parts() {
    assert_eq!(first("message"), "sendMessage");
    assert_eq!(first("http"), "HTTPServer2");
    assert_eq!(first("pull"), "list_pull_requests");
}

#[test]
fn other_words_for_the_same_thing_are_found() {
    assert_eq!(first("file a bug"), "create_issue");
    assert_eq!(first("MRs of the project"), "list_pull_requests");
    assert_eq!(first("erase a branch"), "delete_branch");
    assert_eq!(first("read a document"), "get_file_contents");
}

#[test]
fn typos_are_corrected_unless_the_word_is_known() {
    assert_eq!(first("chanels"), "list_channels");
    assert_eq!(first("brnach"), "delete_branch");
    assert_eq!(first("contnets"), "get_file_contents");
    assert_eq!(first("workspcae"), "list_channels");
    assert_eq!(search("zpxq").total, 0);
}

#[test]
fn unrelated_text_finds_nothing() {
    for text in ["zz-no-such-zz", "", "   ", "!?", "\u{1}"] {
        assert_eq!(search(text), SearchResults::default(), "{text:?}");
    }
}

#[test]
fn one_letter_finds_all_names_that_contain_it() {
    let with_e = |tools: &[(&str, &str)]| {
        let names = tools.iter().map(|tool| tool.0.to_lowercase());
        names.filter(|name| name.contains('e')).count()
    };
    let results = index().search(
        &SearchQuery {
            text: "e",
            limit: 2,
        },
        &|_, _| true,
    );
    assert_eq!(results.total, with_e(GIT) + with_e(CHAT));
    assert_eq!(results.hits.len(), 2);
}

#[test]
fn hits_name_the_fields_that_matched() {
    let hit = &search("rooms").hits[0];
    assert_eq!(name(hit), "list_channels");
    assert_eq!(hit.matched, [SearchField::Name, SearchField::Description]);
    let hit = &search("forge tracker").hits[0];
    assert_eq!(name(hit), "create_issue");
    assert_eq!(hit.matched, [SearchField::Server, SearchField::Description]);
}

#[test]
fn hidden_documents_are_neither_returned_nor_counted() {
    let query = SearchQuery {
        text: "list",
        limit: 10,
    };
    let all = index().search(&query, &|_, _| true);
    let chat = index().search(&query, &|segment, _| segment == 1);
    assert!(chat.total < all.total);
    assert!(chat.hits.iter().all(|hit| hit.segment == 1));
    assert_eq!(index().search(&query, &|_, _| false).total, 0);
}

#[test]
fn equal_scores_keep_the_order_of_the_index() {
    let twice = SearchIndex::new(vec![segment("a", GIT), segment("a", GIT)]);
    let query = SearchQuery {
        text: "branch",
        limit: 2,
    };
    let hits = twice.search(&query, &|_, _| true).hits;
    assert_eq!(hits[0].score, hits[1].score);
    assert_eq!([hits[0].segment, hits[1].segment], [0, 1]);
}

#[test]
fn an_updated_index_is_like_a_new_one() {
    let (git, chat) = (segment("forge", GIT), segment("chat", CHAT));
    let changed = segment("forge", &GIT[..2]);
    let old = SearchIndex::new(vec![Arc::clone(&git), Arc::clone(&chat)]);
    let segments = vec![changed, chat];
    let updated = old.updated(segments.clone());
    let new = SearchIndex::new(segments);
    assert_eq!(updated.len(), 5);
    for text in ["delete branch", "list", "issue", "brnach", "chanels"] {
        let query = SearchQuery { text, limit: 10 };
        let everything = |_, _| true;
        assert_eq!(
            updated.search(&query, &everything),
            new.search(&query, &everything),
            "{text}"
        );
    }
}

#[test]
fn an_index_that_is_updated_again_and_again_does_not_grow() {
    let mut index = index();
    let mut sizes = Vec::new();
    for round in 0..200 {
        let names: Vec<String> = (0..50).map(|tool| format!("word{round}x{tool}y")).collect();
        let tools: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
        index = index.updated(vec![segment("changing", &tools)]);
        sizes.push(index.memory_bytes());
    }
    assert!(
        sizes[199] <= 2 * sizes[1],
        "{} and {}",
        sizes[1],
        sizes[199]
    );
}

#[test]
fn a_question_prefers_tools_that_read_and_finds_no_others() {
    let tools = [
        ("add_label", "Puts a label on it"),
        ("list_labels", "All labels"),
        ("get_weather", "The weather"),
    ];
    let index = SearchIndex::new(vec![segment("forge", &tools)]);
    let query = SearchQuery {
        text: "which labels are there",
        limit: 10,
    };
    let results = index.search(&query, &|_, _| true);
    assert_eq!((results.total, results.hits[0].document), (2, 1));
}

#[test]
fn huge_texts_are_bounded() {
    let long = "words and more words ".repeat(100_000);
    let document = SearchDocument {
        name: &long,
        description: &long,
        parameters: vec![(&long, &long); 1000],
        ..SearchDocument::default()
    };
    let index = SearchIndex::new(vec![Arc::new(SearchSegment::new([document].into_iter()))]);
    let query = SearchQuery {
        text: &long,
        limit: 1,
    };
    assert_eq!(index.search(&query, &|_, _| true).total, 1);
}

#[test]
fn d37_a_search_knows_whether_something_fits() {
    let tools: &[(&str, &str)] = &[
        (
            "delete_observations",
            "Deletes observations from the knowledge graph",
        ),
        ("read_file", "Reads a file as text"),
        ("write_file", "Creates a file or overwrites it"),
        ("list_files", "Lists the files of a folder"),
        ("get_current_time", "Tells the current time in a time zone"),
    ];
    let index = SearchIndex::new(vec![segment("s", tools)]);
    let fits = |text: &str| {
        let results = index.search(&SearchQuery { text, limit: 10 }, &|_, _| true);
        assert!(!results.hits.is_empty(), "{text}");
        results.fits
    };
    for text in [
        "read a file",
        "what time is it in Tokyo",
        "read_file",
        "list",
    ] {
        assert!(fits(text), "{text}");
    }
    // What fits need not be the best one, nor one that is shown.
    for text in [
        "read a file",
        "what time is it in Tokyo",
        "a list of a file",
    ] {
        let results = index.search(&SearchQuery { text, limit: 1 }, &|_, _| true);
        assert_eq!(
            (results.fits, results.hits.len()),
            (fits(text), 1),
            "{text}"
        );
    }
    assert!(!fits("delete a folder of the team"));
    assert!(!search("").fits);
}

#[test]
fn scripts_without_spaces_are_found_by_pairs_of_characters() {
    let tools = [
        ("a", "東京の天気を調べる"),
        ("b", "京都の地図を見る"),
        ("c", "天の川を見る"),
    ];
    let index = SearchIndex::new(vec![segment("s", &tools)]);
    for (text, best) in [
        ("天気", 0),
        ("東京", 0),
        ("京都", 1),
        ("地図", 1),
        ("川", 2),
    ] {
        let results = index.search(&SearchQuery { text, limit: 10 }, &|_, _| true);
        let found: Vec<usize> = results.hits.iter().map(|hit| hit.document).collect();
        assert_eq!(found.first(), Some(&best), "{text}");
        assert!(text == "川" || found.len() == 1, "{text}: {found:?}");
    }
}

#[test]
fn s_output_names_are_found() {
    let forecast = SearchDocument {
        name: "get_forecast",
        description: "Returns the outlook for a place",
        other: vec!["precipitation_mm", "windSpeed"],
        ..SearchDocument::default()
    };
    let gauge = SearchDocument {
        name: "read_gauge",
        description: "Measures precipitation",
        ..SearchDocument::default()
    };
    let segment = SearchSegment::new([forecast, gauge].into_iter());
    let index = SearchIndex::new(vec![Arc::new(segment)]);
    let found = |text: &str| {
        let results = index.search(&SearchQuery { text, limit: 10 }, &|_, _| true);
        let hits = results.hits.into_iter();
        hits.map(|hit| (hit.document, hit.matched))
            .collect::<Vec<_>>()
    };
    let by_output = || (0, vec![SearchField::Annotations]);
    assert_eq!(found("wind speed"), [by_output()]);
    // What a description says counts more.
    let described = (1, vec![SearchField::Description]);
    assert_eq!(found("precipitation"), [described, by_output()]);
}
