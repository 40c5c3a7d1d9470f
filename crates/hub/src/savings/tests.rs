//! Figures of small catalogs and records.

use bytes::Bytes;
use mcp_proxy_wire::json_string;
use serde_json::Value;

use super::*;
use crate::hub::search_result;
use crate::proxy_tool::{self, ProxyOperation};

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
    let costs = |tools| {
        let report = ExposureReport::measure(&measured(tools, &[]));
        [ExposeMode::All, ExposeMode::Proxy, ExposeMode::Dispatch]
            .map(|mode| report.cost_of(mode).tokens())
    };
    let [all, proxy, dispatch] = costs(2);
    assert!(all < proxy && all < dispatch);
    let [all, proxy, dispatch] = costs(300);
    assert!(all > proxy && all > dispatch);
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

/// What a model reads and writes to answer a question with the `proxy` tool: the list, a search and a call.
fn tokens_with_proxy(measured: &MeasuredCatalog, question: &str, arguments: &str) -> u64 {
    let list = ExposureReport::measure(measured).cost_of(ExposeMode::Proxy);
    let view = measured.view(&measured.catalog(), &[ExposeMode::All]);
    let search = format!(r#"{{"action":"search","query":{}}}"#, json_string(question));
    let parsed = proxy_tool::parse_arguments(
        Some(&Bytes::copy_from_slice(search.as_bytes())),
        &measured.proxy_tool,
        &[],
    );
    let Ok(ProxyOperation::Search(query)) = parsed else {
        panic!("{search} is a search");
    };
    let answer: Value = serde_json::from_slice(&search_result(&view, &query, None, &[])).unwrap();
    let lines = answer["content"][0]["text"].as_str().unwrap();
    let found = view.search(question, &[ItemKind::Tool], None, 1);
    let call = format!(
        r#"{{"action":"call","type":"tool","path":{},"args":{arguments}}}"#,
        json_string(&found.best[0].entry.public)
    );
    let texts = [&search, lines, &call].map(|text| TextSize::of(text.as_bytes()).tokens());
    texts.iter().sum::<u64>() + list.tokens()
}

#[test]
fn d1_the_time_in_tokyo_costs_at_most_1500_tokens_with_nine_servers() {
    let answer = r#"{"timezone":"Asia/Tokyo","datetime":"2026-11-18T13:00:00+09:00","day_of_week":"Wednesday","is_dst":false}"#;
    let tokens = tokens_with_proxy(
        &nine_servers(),
        "what time is it in Tokyo",
        r#"{"timezone":"Asia/Tokyo"}"#,
    ) + TextSize::of(answer.as_bytes()).tokens();
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
    let tools: Value = serde_json::from_slice(&tools).unwrap();
    for tool in tools.as_array().unwrap() {
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.contains("git (Works with Git repositories), files ("),
            "{description}"
        );
    }
}
