//! Figures of small catalogs and records.

use bytes::Bytes;

use super::*;

fn tool(name: &str, description: &str) -> Bytes {
    let text = format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}}}}}}}}"#
    );
    text.into()
}

fn measured(count: usize, pinned: &[&str]) -> MeasuredCatalog {
    let mut naming = ServerNaming::new("files", "c1");
    naming.pinned = pinned.iter().map(|glob| (*glob).to_owned()).collect();
    let tools = (0..count).map(|number| {
        let name = format!("tool{number}");
        tool(&name, &format!("Does the thing number {number} to a file"))
    });
    let listing = ServerListing {
        tools: tools.collect(),
        ..ServerListing::default()
    };
    MeasuredCatalog {
        servers: vec![(Arc::new(naming), Arc::new(listing))],
        filter: ViewFilter::default(),
        proxy_tool: ProxyToolOptions::default(),
        dispatch_tool: DispatchToolOptions::default(),
    }
}

#[test]
fn tokens_are_a_quarter_of_the_characters_rounded_up() {
    let size = TextSize::of("äöüß!".as_bytes());
    assert_eq!((size.bytes, size.chars, size.tokens()), (9, 5, 2));
    assert_eq!(TextSize::default().tokens(), 0);
}

#[test]
fn few_tools_are_cheaper_listed_directly_and_many_are_not() {
    let few = ExposureReport::measure(&measured(2, &[]));
    assert_eq!(few.tools, 2);
    assert!(few.break_evens().iter().all(|even| even.saved().is_none()));
    let many = ExposureReport::measure(&measured(300, &[]));
    assert_eq!((few.page_tools, many.page_tools), (2, 100));
    for even in many.break_evens() {
        let from = even.pays_from_tools.unwrap();
        assert!(
            even.saved().is_some() && (2..300).contains(&from),
            "{even:?}"
        );
        // The number is right: one tool less does not pay.
        let around = |count: u64| {
            let report = ExposureReport::measure(&measured(count as usize, &[]));
            report.cost_of(ExposeMode::All).tokens()
        };
        assert!(
            around(from + 1) > even.own && around(from - 2) < even.own,
            "{even:?}"
        );
    }
}

#[test]
fn lists_have_what_a_client_gets() {
    let report = ExposureReport::measure(&measured(3, &[]));
    let counts: Vec<_> = report.exposures.iter().map(|cost| cost.tools).collect();
    assert_eq!(counts, [3, 1, 1, 2, 2, 2, 4, 4, 5]);
    let tool = OwnTool::Proxy(ProxyToolOptions::default());
    let definition = tool.definition("Servers: files.");
    // The brackets of the list come on top.
    let expected = definition.len() as u64 + 2;
    assert_eq!(report.cost_of(ExposeMode::Proxy).bytes, expected);
    let samples: Vec<_> = report.lookups.iter().map(|cost| cost.samples).collect();
    assert_eq!(samples, [3, 1, 3, 1, 3]);
}

#[test]
fn pinned_tools_have_rows_of_their_own() {
    let report = ExposureReport::measure(&measured(3, &["tool1"]));
    let pinned: Vec<_> = report
        .exposures
        .iter()
        .map(|cost| (cost.pinned, cost.tools))
        .collect();
    let plain = [3, 1, 1, 2, 2, 2, 4, 4, 5].map(|tools| (0, tools));
    assert_eq!(pinned[..9], plain);
    assert_eq!(pinned[9..], [(1, 2), (1, 2)]);
}

#[test]
fn counts_are_of_tools_that_are_seen() {
    let mut measured = measured(5, &[]);
    let mut naming = ServerNaming::clone(&measured.servers[0].0);
    naming.tools.deny = vec!["tool1".to_owned(), "tool2".to_owned()];
    measured.servers[0].0 = Arc::new(naming);
    assert_eq!(measured.tool_counts()["files"], 3);
}

#[test]
fn a_call_through_our_own_tools_is_a_little_longer() {
    let mut naming = ServerNaming::new("files", "c1");
    naming.prefix = Some("files".to_owned());
    let call = MeasuredCall {
        server: &naming,
        tool: "read",
        arguments: br#"{"path":"a"}"#,
        result: Bytes::from_static(br#"{"content":[{"type":"text","text":"hello"}]}"#),
    };
    let direct = call.size(ExposeMode::All);
    let expected = r#"{"name":"files_read","arguments":{"path":"a"}}"#.len() + call.result.len();
    assert_eq!(direct.bytes, expected as u64);
    for mode in [ExposeMode::Proxy, ExposeMode::Dispatch] {
        let more = call.size(mode).bytes - direct.bytes;
        assert!((50..400).contains(&more), "{mode:?}: {more}");
    }
}

#[test]
fn pages_are_added_up() {
    let mut paged = measured(5, &[]);
    paged.filter.page_size = 2;
    let (paged, whole) = (
        ExposureReport::measure(&paged),
        ExposureReport::measure(&measured(5, &[])),
    );
    // Two more pairs of brackets, and two commas less.
    let bytes = |report: &ExposureReport| report.cost_of(ExposeMode::All).bytes;
    assert_eq!(bytes(&paged), bytes(&whole) + 2);
}

#[test]
fn nothing_is_found_without_tools() {
    let report = ExposureReport::measure(&measured(0, &[]));
    assert_eq!((report.tools, report.lookups.len()), (0, 0));
    assert!(
        report
            .break_evens()
            .iter()
            .all(|even| even.pays_from_tools.is_none())
    );
}

#[test]
fn a_spilled_result_is_a_preview() {
    let text = "x".repeat(20_000);
    let answer = |rest: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]{rest}}}}}"#
        );
        Message::parse(text)
    };
    let size = |rest: &str, declared| spilled_size(&answer(rest), 10_240, declared);
    let plain = size("", DeclaredOutput::Nothing).unwrap();
    assert!((300..2_000).contains(&plain.bytes), "{plain:?}");
    assert_eq!(
        spilled_size(&answer(""), 50_000, DeclaredOutput::Nothing),
        None
    );
    // Clients refuse a result without what its tool declares, so that part stays.
    let structured = format!(r#","structuredContent":{{"x":"{text}"}}"#);
    let kept = size(&structured, DeclaredOutput::Schema).unwrap();
    assert!(kept.bytes > 20_000, "{kept:?}");
    let left_out = size(&structured, DeclaredOutput::Nothing).unwrap();
    assert!(left_out.bytes < 2_000, "{left_out:?}");
}

/// Nine servers as people have them, with the tools that matter here spelled out.
fn nine_servers() -> MeasuredCatalog {
    let servers = [
        (
            "time",
            "Tells the time.",
            "get_current_time:Get current time in a specific timezone,convert_time:Convert time between timezones",
        ),
        (
            "git",
            "Works with Git repositories.",
            "git_log:Shows the commit logs,git_diff:Shows differences between branches or commits,git_commit:Records changes to the repository,git_status:Shows the working tree status",
        ),
        (
            "files",
            "Secure access to the files of some folders.",
            "read_text_file:Read the complete contents of a file as text,write_file:Create a new file or overwrite an existing one,list_directory:Get a listing of all files and directories in a path,search_files:Search for files and directories that match a pattern",
        ),
        (
            "fetch",
            "Fetches web pages.",
            "fetch:Fetches a URL from the internet and extracts its contents as markdown",
        ),
        (
            "memory",
            "A knowledge graph.",
            "create_entities:Create new entities in the knowledge graph,search_nodes:Search for nodes in the knowledge graph,delete_observations:Delete observations from entities",
        ),
        (
            "github",
            "The GitHub API.",
            "create_issue:Create a new issue in a repository,list_pull_requests:List pull requests of a repository,search_code:Search for code across repositories",
        ),
        (
            "slack",
            "Messages and channels of a workspace.",
            "slack_post_message:Post a new message to a channel,slack_get_users:Get a list of all users with their profiles and time zones",
        ),
        (
            "postgres",
            "Read-only queries.",
            "query:Run a read-only SQL query",
        ),
        (
            "everything",
            "A server that has everything once.",
            "echo:Echoes back the input,get-sum:Returns the sum of two numbers,long-running:Demonstrates progress over a long running time",
        ),
    ];
    let mounted = servers
        .iter()
        .enumerate()
        .map(|(at, (name, about, tools))| {
            let mut naming = ServerNaming::new(*name, format!("c{}", at + 1));
            naming.prefix = Some((*name).to_owned());
            let tools = tools.split(',').map(|text| {
                let (name, description) = text.split_once(':').unwrap();
                tool(name, description)
            });
            let listing = ServerListing {
                tools: tools.collect(),
                about: Some((*about).to_owned()),
                ..ServerListing::default()
            };
            (Arc::new(naming), Arc::new(listing))
        });
    MeasuredCatalog {
        servers: mounted.collect(),
        ..measured(0, &[])
    }
}

#[test]
fn d1_the_time_in_tokyo_costs_at_most_1500_tokens_with_nine_servers() {
    let report = ExposureReport::measure(&nine_servers());
    let answer = r#"{"timezone":"Asia/Tokyo","datetime":"2026-11-18T13:00:00+09:00","day_of_week":"Wednesday","is_dst":false}"#;
    let answer = TextSize::of(answer.as_bytes()).tokens();
    let tokens = report.example.unwrap().tokens() + answer;
    assert!(tokens <= 1500, "{tokens}");
}

#[test]
fn m4_definitions_name_the_servers_behind_them() {
    let measured = nine_servers();
    let view = measured.view(
        &measured.catalog(),
        &[ExposeMode::Proxy, ExposeMode::Dispatch],
    );
    let tools = view.page(ItemKind::Tool, None).unwrap().items();
    let tools: serde_json::Value = serde_json::from_slice(&tools).unwrap();
    for tool in tools.as_array().unwrap() {
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.contains("git (Works with Git repositories), files ("),
            "{description}"
        );
    }
}
