//! What `list`, `status` and `search` show.

use serde_json::json;

use super::*;
use crate::{ItemKind, PublicDefinition};

const ADD: &str = r#"{"name":"calc_add","description":"Add two numbers. The result is exact.","annotations":{"title":"Add", "readOnlyHint":true},"inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]},"outputSchema":null}"#;

const BARE: &str = r#"{"name":"calc_nothing","description":null}"#;

fn definition(text: &'static str) -> PublicDefinition {
    Bytes::from(text).into()
}

fn with_connections<T>(use_them: impl FnOnce(&[DispatchConnection<'_>]) -> T) -> T {
    let (add, bare) = (definition(ADD), definition(BARE));
    let calc = DispatchConnection {
        alias: "c1",
        name: "calc",
        problem: None,
        server_info: Some(Bytes::from_static(
            br#"{"name": "Calculator", "version": "1"}"#,
        )),
        last_refreshed_ms: Some(1_794_769_838_203),
        tools: vec![
            DispatchTool {
                name: "add",
                public: Some("calc_add"),
                line_name: "calc_add",
                definition: &add,
            },
            DispatchTool {
                name: "nothing",
                public: None,
                line_name: "calc_nothing",
                definition: &bare,
            },
        ],
    };
    let problem = ConnectionProblem::Failed("it did not start".to_owned());
    let broken = DispatchConnection {
        alias: "c2",
        name: "broken",
        problem: Some(&problem),
        server_info: None,
        last_refreshed_ms: None,
        tools: Vec::new(),
    };
    use_them(&[calc, broken])
}

fn list(arguments: &str) -> Value {
    let Ok(DispatchOperation::List(mut query)) = parse(arguments) else {
        panic!("{arguments}");
    };
    if query.format == DispatchFormat::Text {
        query.format = DispatchFormat::Compact;
    }
    answer(&with_connections(|connections| {
        render_list(connections, &query)
    }))
}

#[test]
fn a_compact_list_has_what_is_needed_to_choose() {
    assert_eq!(
        list(r#"{"action":"list"}"#),
        json!({"action": "list", "totalConnections": 2, "connections": [
            {"alias": "c1", "name": "calc", "tools": [
                {"name": "add", "public": "calc_add", "description": "Add two numbers.",
                    "annotations": {"readOnlyHint": true}},
                {"name": "nothing"},
            ]},
            {"alias": "c2", "name": "broken", "lastError": "it did not start", "tools": [], "toolCount": 0},
        ]})
    );
}

#[test]
fn a_detailed_list_has_everything_that_was_asked_for() {
    let list = list(r#"{"action":"list","format":"detail","includeInputSchema":true}"#);
    let first = &list["connections"][0];
    assert_eq!(first["serverInfo"]["name"], "Calculator");
    assert_eq!(first["toolCount"], 2);
    assert_eq!(first["lastRefreshed"], 1_794_769_838_203_u64);
    let definition: Value = serde_json::from_str(ADD).unwrap();
    let add = &first["tools"][0];
    for member in ["description", "annotations", "inputSchema"] {
        assert_eq!(add[member], definition[member]);
    }
    assert!(add.get("outputSchema").is_none());
    assert_eq!(first["tools"][1], json!({"name": "nothing"}));
}

#[test]
fn options_of_a_list_count_in_both_formats() {
    let counted = list(r#"{"action":"list","includeTools":false}"#);
    assert_eq!(
        counted["connections"][0],
        json!({"alias": "c1", "name": "calc", "toolCount": 2})
    );
    let compact = list(r#"{"action":"list","includeInputSchema":true,"includeAnnotations":true}"#);
    let add = &compact["connections"][0]["tools"][0];
    assert_eq!(add["description"], "Add two numbers.");
    assert_eq!(add["annotations"]["title"], "Add");
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    let detail = list(r#"{"action":"list","format":"detail","includeAnnotations":false}"#);
    let add = &detail["connections"][0]["tools"][0];
    assert!(add.get("annotations").is_none() && add.get("inputSchema").is_none());
}

#[test]
fn a_compact_form_has_only_annotations_that_say_something() {
    for (annotations, expected) in [
        (
            r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}"#,
            json!(null),
        ),
        (r#"{"title":"Read file","readOnlyHint":null}"#, json!(null)),
        (
            r#"{"title":"Show it","destructiveHint":false}"#,
            json!({"title": "Show it", "destructiveHint": false}),
        ),
        (
            r#"{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"x":[1, 2]}"#,
            json!({"readOnlyHint": true, "x": [1, 2]}),
        ),
        ("null", json!(null)),
    ] {
        let definition = PublicDefinition::from(Bytes::from(format!(
            r#"{{"name":"p_read_file","annotations":{annotations}}}"#
        )));
        let shown = search(
            r#"{"action":"search","query":"x"}"#,
            1,
            &[hit(ItemKind::Tool, "read_file", &definition)],
        );
        assert_eq!(
            shown["results"][0]["annotations"], expected,
            "{annotations}"
        );
    }
}

#[test]
fn status_counts() {
    let status = DispatchStatus {
        catalog_hash: "5efa",
        last_updated_ms: 1_794_769_838_203,
    };
    let result = with_connections(|connections| render_status(connections, status));
    assert_eq!(
        answer(&result),
        json!({"action": "status", "totalConnections": 2, "totalTools": 2, "catalogHash": "5efa",
        "lastUpdated": 1_794_769_838_203_u64, "connections": [
            {"alias": "c1", "name": "calc", "toolCount": 2},
            {"alias": "c2", "name": "broken", "lastError": "it did not start", "toolCount": 0},
        ]})
    );
}

fn search(arguments: &str, total: u64, hits: &[DispatchHit<'_>]) -> Value {
    let Ok(DispatchOperation::Search(mut query)) = parse(arguments) else {
        panic!("{arguments}");
    };
    if query.format == DispatchFormat::Text {
        query.format = DispatchFormat::Compact;
    }
    answer(&render_search(&query, total, true, hits, &[]))
}

fn hit<'a>(kind: ItemKind, name: &'a str, definition: &'a PublicDefinition) -> DispatchHit<'a> {
    DispatchHit {
        line: String::new(),
        alias: "c1",
        connection: "calc",
        kind,
        name,
        public: None,
        definition,
        matched_fields: vec!["name", "description"],
    }
}

#[test]
fn a_compact_hit_says_how_the_tool_is_called() {
    let add = definition(ADD);
    let hits = [hit(ItemKind::Tool, "add", &add)];
    assert_eq!(
        search(r#"{"action":"search","query":"ADD"}"#, 3, &hits),
        json!({"action": "search", "query": "ADD", "totalMatches": 3, "returned": 1, "results": [
            {"alias": "c1", "name": "add", "description": "Add two numbers.",
                "signature": "add(a: number, b: number)", "annotations": {"readOnlyHint": true}, "matchedFields": ["name", "description"]},
        ]})
    );
    assert_eq!(
        search(r#"{"action":"search","query":"zz"}"#, 0, &[]),
        json!({"action": "search", "query": "zz", "totalMatches": 0, "results": []})
    );
}

#[test]
fn a_detailed_hit_has_the_connection_and_the_tool() {
    let add = definition(ADD);
    let hits = [hit(ItemKind::Tool, "add", &add)];
    let found = search(
        r#"{"action":"search","query":"add","format":"detail","includeInputSchema":true}"#,
        1,
        &hits,
    );
    let definition: Value = serde_json::from_str(ADD).unwrap();
    assert!(found.get("returned").is_none());
    assert_eq!(
        found["results"][0],
        json!({
            "connection": {"alias": "c1", "name": "calc"},
            "tool": {"name": "add", "description": definition["description"],
                "annotations": definition["annotations"], "inputSchema": definition["inputSchema"]},
            "matchedFields": ["name", "description"],
        })
    );
}

#[test]
fn resources_and_prompts_have_their_kind() {
    let notes = definition(
        r#"{"uri":"x://notes","name":"Notes","mimeType":"text/plain","annotations":null}"#,
    );
    let user = definition(r#"{"uriTemplate":"x://user/{id}","name":"User"}"#);
    let greet = definition(
        r#"{"name":"greet","title":"Greeting","description":" ","arguments":[{"name":"who","required":true}]}"#,
    );
    let hits = [
        hit(ItemKind::Resource, "x://notes", &notes),
        hit(ItemKind::Template, "x://user/{id}", &user),
        hit(ItemKind::Prompt, "greet", &greet),
    ];
    let compact = search(
        r#"{"action":"search","query":"x","type":"prompt"}"#,
        3,
        &hits,
    );
    let fields = json!(["name", "description"]);
    assert_eq!(
        compact["results"],
        json!([
            {"alias": "c1", "kind": "resource", "uri": "x://notes", "name": "Notes", "mimeType": "text/plain", "matchedFields": fields},
            {"alias": "c1", "kind": "template", "uriTemplate": "x://user/{id}", "name": "User", "matchedFields": fields},
            {"alias": "c1", "kind": "prompt", "name": "greet", "description": "Greeting", "signature": "greet(who)", "matchedFields": fields},
        ])
    );
    let detail = search(
        r#"{"action":"search","query":"x","type":"prompt","format":"detail"}"#,
        3,
        &hits,
    );
    assert_eq!(detail["results"][0]["resource"]["uri"], "x://notes");
    assert_eq!(
        detail["results"][2]["prompt"]["arguments"][0]["name"],
        "who"
    );
}

#[test]
fn s4_s5_a_list_is_lines_and_has_pages() {
    let text = |arguments: &str| {
        let Ok(DispatchOperation::List(query)) = parse(arguments) else {
            panic!("{arguments}");
        };
        let result = value(&with_connections(|connections| {
            render_list(connections, &query)
        }));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        let facts = &result["_meta"]["mcp-proxy/dispatch"];
        (
            text,
            facts["nextOffset"].clone(),
            facts["totalTools"].clone(),
        )
    };
    let (all, next, total) = text(r#"{"action":"list"}"#);
    assert_eq!((next, total), (json!(null), json!(2)));
    let lines: Vec<&str> = all.lines().collect();
    assert!(lines[0].starts_with("calc  calc_add("), "{all}");
    assert!(lines[1].starts_with("calc  calc_nothing()"), "{all}");
    assert!(lines[2].contains("broken"), "{all}");
    let (first, next, _) = text(r#"{"action":"list","limit":1}"#);
    assert_eq!(next, 1);
    assert!(
        first.lines().last().unwrap().contains("\"offset\":1"),
        "{first}"
    );
    let (last, next, _) = text(r#"{"action":"list","limit":1,"offset":1}"#);
    assert_eq!((last.lines().count(), next), (1, json!(null)));
}

#[test]
fn d37_a_search_without_a_good_match_says_so() {
    let add = definition(ADD);
    let line = "calc  calc_add()".to_owned();
    let hits = vec![
        DispatchHit {
            line,
            ..hit(ItemKind::Tool, "add", &add)
        };
        10
    ];
    let Ok(DispatchOperation::Search(query)) = parse(r#"{"action":"search","query":"x"}"#) else {
        panic!();
    };
    let lines = |fits: bool, hits: &[DispatchHit<'_>]| {
        let result = value(&render_search(&query, hits.len() as u64, fits, hits, &[]));
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(lines(true, &hits), 10);
    assert_eq!(lines(false, &hits), 4);
    assert_eq!(lines(false, &[]), 1);
}
