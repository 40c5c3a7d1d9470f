//! Parts of stored results, and errors.

use serde_json::json;

use super::*;

fn render(text: &str, facts: ReadResultFacts<'_>, truncated: bool) -> Value {
    value(&render_read_result(&ReadResultView {
        file: "spill:X.json",
        text,
        facts,
        truncated,
    }))
}

#[test]
fn stat_is_json_without_content() {
    let facts = ReadResultFacts::Stat {
        byte_size: 235,
        line_count: 4,
    };
    let result = render("", facts, false);
    assert_eq!(
        result["_meta"]["mcp-proxy/dispatch"],
        json!({"action": "readresult", "op": "stat", "resultFile": "spill:X.json",
            "byteSize": 235, "lineCount": 4, "estimatedTokens": 59})
    );
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": r#"{"byteSize":235,"lineCount":4,"estimatedTokens":59}"#}])
    );
}

#[test]
fn every_operation_has_the_facts_that_its_clients_know() {
    let cases = [
        (
            ReadResultFacts::Head {
                lines: 2,
                total_lines: 9,
            },
            "op lines totalLines",
        ),
        (
            ReadResultFacts::Tail {
                lines: 2,
                total_lines: 9,
            },
            "op lines totalLines",
        ),
        (
            ReadResultFacts::Slice {
                from_line: 1,
                to_line: 2,
                total_lines: 9,
            },
            "op fromLine toLine totalLines",
        ),
        (
            ReadResultFacts::Grep {
                pattern: "x",
                match_count: 3,
                occurrence_count: 5,
                returned_matches: 2,
                total_lines: 9,
                reading: mcp_proxy_spill::PatternReading::Regex,
            },
            "op pattern matchCount occurrenceCount returnedMatches totalLines",
        ),
        (
            ReadResultFacts::Read {
                byte_size: 400,
                total_lines: 9,
            },
            "op byteSize totalLines",
        ),
        (
            ReadResultFacts::Jq {
                filter: ".",
                output_count: 1,
                byte_size: 400,
            },
            "op filter outputCount byteSize",
        ),
    ];
    for (facts, names) in cases {
        let result = render("some \"text\"\n", facts, true);
        assert_eq!(result["isError"], false);
        assert_eq!(result["content"][0]["text"], "some \"text\"\n");
        let facts = result["_meta"]["mcp-proxy/dispatch"].as_object().unwrap();
        let expected =
            format!("action {names} estimatedTokens truncated").replace("op", "op resultFile");
        let shown: Vec<_> = facts.keys().map(String::as_str).collect();
        assert_eq!(shown.join(" "), expected);
        assert_eq!(facts["truncated"], true);
        assert_eq!(facts["estimatedTokens"], 3);
    }
}

#[test]
fn errors_are_tool_results_with_a_code() {
    let name = || "x".to_owned();
    let errors = [
        DispatchToolError::UnknownConnection {
            connection: "nope".to_owned(),
            near: vec!["c1".to_owned(), "notes".to_owned()],
        },
        DispatchToolError::UnknownConnection {
            connection: format!("a\n{}", "long".repeat(100)),
            near: Vec::new(),
        },
        DispatchToolError::ToolNotFound {
            tool: name(),
            connection: None,
            near: vec!["xy".to_owned()],
            missing: vec![MissingConnection {
                alias: "c1".to_owned(),
                name: "notes".to_owned(),
                problem: ConnectionProblem::Starting,
            }],
        },
        DispatchToolError::ToolNotFound {
            tool: name(),
            connection: Some("c1".to_owned()),
            near: Vec::new(),
            missing: Vec::new(),
        },
        DispatchToolError::AmbiguousTool {
            tool: name(),
            candidates: vec!["c1".to_owned(), "c3".to_owned()],
        },
        DispatchToolError::ConnectionUnavailable {
            connection: "c2".to_owned(),
            reason: "it did not start".to_owned(),
        },
        DispatchToolError::ServerError {
            code: -32602,
            message: "the \"server's\" text".to_owned(),
        },
        DispatchToolError::FileRefused {
            parameter: DispatchParameter::ResultFile,
            reason: "No such result file.".to_owned(),
        },
        DispatchToolError::ArgumentsFileNotAnObject {
            file: "spill:X.txt".to_owned(),
        },
        parse(r#"{"action":"lst"}"#).unwrap_err(),
        parse(r#"{"action":"search","query":7}"#).unwrap_err(),
        parse(r#"{"action":"call","tool":"add","a":1}"#).unwrap_err(),
    ];
    let mut lines = Vec::new();
    for error in &errors {
        let result = render_error(error, None);
        let parsed = value(&result);
        assert_eq!(parsed["isError"], true);
        assert_eq!(parsed["_meta"]["mcp-proxy/dispatch"]["code"], error.code());
        assert_eq!(
            parsed["_meta"]["mcp-proxy/dispatch"]["error"],
            text(&result)
        );
        lines.push(String::from_utf8(result.to_vec()).unwrap());
    }
    insta::assert_snapshot!("dispatch_tool_error_results", lines.join("\n"));
    let known = render_error(&errors[0], Some(DispatchAction::List));
    assert_eq!(
        value(&known)["_meta"]["mcp-proxy/dispatch"]["action"],
        "list"
    );
}
