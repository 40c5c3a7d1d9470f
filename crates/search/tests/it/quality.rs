//! How well paraphrased queries find the tools of real servers.

use std::collections::HashMap;

use mcp_proxy_search::testing::{EvaluationPart, EvaluationSet, PlainBm25};

#[test]
fn paraphrases_are_found_where_plain_bm25_misses_them() {
    let set = EvaluationSet::load();
    let index = set.index();
    let plain = PlainBm25::new(&set.servers);
    for (part, _) in EvaluationPart::ALL {
        let ours = set.measure(part, |query| set.best_tools(&index, query));
        let plain = set.measure(part, |query| plain.best_tools(query));
        assert!(ours.recall_at_5 >= 0.80, "{part:?}: {ours:?}");
        assert!(plain.recall_at_5 < 0.72, "{part:?}: {plain:?}");
        assert!(
            ours.recall_at_1 > plain.recall_at_1,
            "{part:?}: {ours:?}, {plain:?}"
        );
    }
}

#[test]
fn mistyped_queries_find_what_they_found_before() {
    let set = EvaluationSet::load();
    let quality = set.measure_slips(&set.index());
    assert_eq!(quality.total, 234);
    assert!(quality.kept() >= 0.95, "{:?}", quality.lost);
}

#[test]
fn slips_in_the_commonest_words_are_corrected() {
    let set = EvaluationSet::load();
    let index = set.index();
    for (query, tool) in [
        ("crete issue", "github/create_issue"),
        ("cerate issue", "github/create_issue"),
        ("craete issue", "github/create_issue"),
        ("search repostory", "github/search_repositories"),
        ("run pipline", "circleci/run_pipeline"),
        ("delte branch", "neon/delete_branch"),
        ("enviroment variables", "cloudflare/env_var_list"),
        ("run databse query", "clickhouse/run_query"),
        ("depoly application", "azure/deploy"),
    ] {
        let found = set.best_tools(&index, query);
        assert!(
            found[..5].iter().any(|found| found == tool),
            "{query}: {found:?}"
        );
    }
}

#[test]
fn the_set_is_large_and_split_by_server() {
    let set = EvaluationSet::load();
    let tools: Vec<String> = set
        .servers
        .iter()
        .flatten()
        .map(|tool| tool.full_name())
        .collect();
    assert!(set.servers.len() >= 30 && tools.len() >= 500);
    assert!(set.queries.len() >= 300);
    let mut parts = HashMap::new();
    for query in &set.queries {
        for tool in &query.tools {
            assert!(tools.contains(tool), "{tool} of {:?}", query.query);
        }
        if matches!(query.part, EvaluationPart::Blind | EvaluationPart::Outside) {
            continue;
        }
        let server = query.tools[0].split('/').next();
        let part = *parts.entry(server).or_insert(query.part);
        assert_eq!(part, query.part, "{server:?} is in both parts");
    }
}
