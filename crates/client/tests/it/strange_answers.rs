//! Answers that rmcp's types do not take: each arrives, or fails at once and says why.

use std::sync::{Arc, Mutex};

use mcp_proxy_client::{
    ClientError, ClientWarning, ProxyClient, ProxyClientBuilder, UNKNOWN_CONTENT_KEY,
};
use serde_json::{Value, json};

use crate::scripted_server::{CARRIERS, Carrier, Script, always, connect};

/// Answers calls with `answer`, and lists of tools with one.
fn calls(answer: impl Into<String>) -> Script {
    let answer = answer.into();
    Arc::new(move |message| match message["method"].as_str() {
        Some("tools/list") => Some(
            r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"t","inputSchema":{}}]}}"#
                .to_owned(),
        ),
        _ => Some(answer.clone()),
    })
}

async fn call(
    carrier: Carrier,
    answer: &str,
) -> Result<mcp_proxy_client::rmcp::model::CallToolResult, ClientError> {
    let client = connect(carrier, calls(answer), ProxyClient::builder()).await;
    client.call_tool("t", ()).await
}

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#)
}

#[tokio::test]
async fn an_answer_that_cannot_be_decoded_fails_at_once_and_says_why() {
    let deep = format!(
        r#"{{"content":[],"structuredContent":{}1{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let answers = [
        (result(&deep), "128"),
        (r#"{"jsonrpc":"2.0","id":ID}"#.to_owned(), "neither"),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}"#.to_owned(),
            "and an error",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"EPERM","message":"not allowed"}}"#
                .to_owned(),
            "EPERM",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-1.5,"message":"half"}}"#.to_owned(),
            "-1.5",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"error":{"message":"why"}}"#.to_owned(),
            "why",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"error":"no"}"#.to_owned(),
            "error",
        ),
        (result(r#"{"content":[],"isError":"yes"}"#), "boolean"),
        (
            result(r#"{"content":[],"structuredContent":{"n":1e999}}"#),
            "number",
        ),
        // Python writes this.
        (
            result(r#"{"content":[],"structuredContent":{"n":NaN}}"#),
            "JSON",
        ),
        (result("{}"), "content"),
    ];
    for carrier in CARRIERS {
        for (answer, word) in &answers {
            let error = call(carrier, answer).await.unwrap_err();
            let ClientError::Decode { reason, .. } = &error else {
                panic!("{carrier:?} {answer}: {error}");
            };
            assert!(reason.contains(word), "{carrier:?} {answer}: {reason}");
        }
    }
}

#[tokio::test]
async fn an_error_keeps_a_code_of_any_size() {
    for carrier in CARRIERS {
        for (code, expected) in [("5000000000", 5_000_000_000), ("-32050.0", -32_050)] {
            let answer = format!(
                r#"{{"jsonrpc":"2.0","id":ID,"error":{{"code":{code},"message":"no","data":{{"a":1}}}}}}"#
            );
            let error = call(carrier, &answer).await.unwrap_err();
            let ClientError::Protocol {
                code,
                message,
                data,
                ..
            } = error
            else {
                panic!("{carrier:?} {error}");
            };
            assert_eq!((code, message.as_str()), (expected, "no"));
            assert_eq!(data, Some(json!({"a": 1})));
        }
        let both = r#"{"jsonrpc":"2.0","id":ID,"result":null,"error":{"code":-5,"message":"no"}}"#;
        let error = call(carrier, both).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Protocol { code: -5, .. }),
            "{carrier:?} {error}"
        );
        let both = r#"{"jsonrpc":"2.0","id":ID,"error":null,"result":{"content":[]}}"#;
        assert!(call(carrier, both).await.is_ok(), "{carrier:?}");
    }
}

#[tokio::test]
async fn content_of_an_unknown_type_is_carried_as_text() {
    let video = json!({"type": "video", "data": "AAEC", "mimeType": "video/mp4"});
    let items = json!({"content": [{"type": "text", "text": "first"}, video, {"type": "image"}],
        "structuredContent": {"large": 1}});
    let items = items
        .to_string()
        .replace("1}", "123456789012345678901234567890}");
    for carrier in CARRIERS {
        let received = call(carrier, &result(&items)).await.unwrap();
        assert_eq!(received.content.len(), 3);
        assert_eq!(received.content[0].as_text().unwrap().text, "first");
        let unknown = received.content[1].as_text().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&unknown.text).unwrap(), video);
        let mark = &unknown.meta.as_ref().unwrap()[UNKNOWN_CONTENT_KEY];
        assert_eq!(mark["type"], "video");
        let broken = received.content[2].as_text().unwrap();
        assert_eq!(
            broken.meta.as_ref().unwrap()[UNKNOWN_CONTENT_KEY]["type"],
            "image"
        );
        // More digits than a number has here: the documented limit.
        assert!(received.structured_content.unwrap()["large"].is_f64());
    }
    let prompt = json!({"messages": [{"role": "user", "content": video}]}).to_string();
    for carrier in CARRIERS {
        let client = connect(carrier, calls(result(&prompt)), ProxyClient::builder()).await;
        let prompt = client.get_prompt("p", ()).await.unwrap();
        let text = serde_json::to_value(&prompt.messages[0].content).unwrap();
        assert_eq!(text["_meta"][UNKNOWN_CONTENT_KEY]["type"], "video");
    }
}

#[tokio::test]
async fn one_broken_definition_does_not_hide_the_others() {
    let lists = json!({
        "tools": [{"name": "a", "inputSchema": {}}, {"name": "broken"}, {"inputSchema": 5}, {"name": "b", "inputSchema": {}}],
        "_meta": {"kept": true}, "resultType": "complete"});
    for carrier in CARRIERS {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&warnings);
        let builder =
            ProxyClient::builder().on_warning(move |warning| seen.lock().unwrap().push(warning));
        let client = connect(carrier, always(result(&lists.to_string())), builder).await;
        let tools = client.list_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b"], "{carrier:?}");
        let warnings = warnings.lock().unwrap();
        let skipped: Vec<_> = warnings
            .iter()
            .map(|warning| match warning {
                ClientWarning::SkippedDefinition { name, .. } => name.as_deref(),
                warning => panic!("{warning}"),
            })
            .collect();
        assert_eq!(skipped, [Some("broken"), None], "{carrier:?}");
    }
}

#[tokio::test]
async fn a_list_of_something_else_is_an_error() {
    for carrier in CARRIERS {
        let answer = result(r#"{"prompts":{"a":1}}"#);
        let client = connect(carrier, calls(answer), ProxyClient::builder()).await;
        let error = client.list_prompts().await.unwrap_err();
        assert!(matches!(error, ClientError::Decode { .. }), "{error}");
    }
}

#[tokio::test]
async fn an_answer_of_20_mb_arrives() {
    const TEXT: usize = 19 << 20;
    const NUMBERS: usize = (1 << 20) / 8;
    let (text, numbers) = ("x".repeat(TEXT), vec!["1234567"; NUMBERS].join(","));
    let answer = result(&format!(
        r#"{{"content":[{{"type":"text","text":"{text}"}}],"structuredContent":{{"n":[{numbers}]}}}}"#
    ));
    for carrier in CARRIERS {
        let received = call(carrier, &answer).await.unwrap();
        assert_eq!(received.content[0].as_text().unwrap().text.len(), TEXT);
        let numbers = &received.structured_content.unwrap()["n"];
        assert_eq!(numbers.as_array().unwrap().len(), NUMBERS);
    }
}

#[tokio::test]
async fn a6_a_list_that_fails_is_an_error_and_not_an_empty_list() {
    let refused =
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"database is down"}}"#;
    let same_cursor = result(r#"{"tools":[{"name":"t","inputSchema":{}}],"nextCursor":"1"}"#);
    for carrier in CARRIERS {
        for transparent in [false, true] {
            let builder = || {
                ProxyClient::builder()
                    .transparent(transparent)
                    .fall_back_to_native(true)
            };
            let client = connect(carrier, always(refused), builder()).await;
            for _ in 0..2 {
                let error = client.list_tools().await.unwrap_err();
                assert!(
                    matches!(error, ClientError::Protocol { code: -32603, .. }),
                    "{error}"
                );
            }
            let client = connect(carrier, always(same_cursor.clone()), builder()).await;
            let error = client.list_tools().await.unwrap_err();
            assert!(matches!(error, ClientError::Decode { .. }), "{error}");
        }
    }
}

/// A schema with this many objects one in the other.
fn deep_schema(levels: usize) -> String {
    "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)
}

fn warnings() -> (ProxyClientBuilder, Arc<Mutex<Vec<ClientWarning>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let builder =
        ProxyClient::builder().on_warning(move |warning| hears.lock().unwrap().push(warning));
    (builder, heard)
}

#[tokio::test]
async fn a7_a_definition_that_is_nested_too_deeply_costs_only_itself() {
    let tools = |levels| {
        format!(
            r#"{{"tools":[{{"inputSchema":{},"name":"deep"}},{{"name":"t","inputSchema":{{}}}}]}}"#,
            deep_schema(levels)
        )
    };
    for carrier in CARRIERS {
        for (levels, expected) in [(119, 2), (126, 1), (140, 1), (900, 1), (100_000, 1)] {
            let (builder, heard) = warnings();
            let client = connect(carrier, always(result(&tools(levels))), builder).await;
            let found = client.list_tools().await.unwrap();
            assert_eq!(found.len(), expected, "{carrier:?} {levels}");
            let heard = heard.lock().unwrap();
            assert_eq!(heard.len(), 2 - expected);
            for warning in heard.iter() {
                assert!(
                    matches!(warning, ClientWarning::SkippedDefinition { name: Some(name), .. }
                    if name == "deep")
                );
            }
        }
    }
}

#[tokio::test]
async fn a7_a_deep_definition_behind_a_proxy_tool_costs_only_itself() {
    let schema = json!({"properties": {"action": {}, "type": {}, "path": {}, "args": {}}});
    let own = json!({"tools": [{"name": "proxy", "inputSchema": schema}]});
    let text = format!(
        r#"[{{"name":"deep","inputSchema":{}}},{{"name":"t","inputSchema":{{}}}}]"#,
        deep_schema(140)
    );
    let list = json!({"content": [{"type": "resource", "resource":
        {"uri": "proxy:list/tool", "mimeType": "application/json", "text": text}}]});
    let script: Script = Arc::new(move |message| match message["method"].as_str() {
        Some("tools/list") => Some(result(&own.to_string())),
        _ => Some(result(&list.to_string())),
    });
    let (builder, heard) = warnings();
    let client = connect(Carrier::Lines, script, builder.transparent(true)).await;
    let found = client.list_tools().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "t");
    assert_eq!(heard.lock().unwrap().len(), 1);
}
