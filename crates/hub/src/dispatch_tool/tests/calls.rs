//! Results of servers, sent or stored.

use std::time::Duration;

use mcp_proxy_spill::{PREVIEW_CHARS, ResultShape, SpillFormat, SpilledResult};
use serde_json::json;

use super::*;

fn called(arguments: &DispatchArguments) -> DispatchedCall<'_> {
    DispatchedCall {
        alias: "c1",
        connection: "calc",
        tool: "add",
        arguments,
        not_stored: None,
    }
}

fn render(result: &str, arguments: &DispatchArguments) -> String {
    let result = Bytes::copy_from_slice(result.as_bytes());
    let rendered = render_call(&result, &called(arguments));
    String::from_utf8(rendered.to_vec()).unwrap()
}

fn inline(arguments: &str) -> DispatchArguments {
    DispatchArguments::Inline(Bytes::copy_from_slice(arguments.as_bytes()))
}

fn spilled() -> SpilledResult {
    SpilledResult {
        handle: "spill:01ABC.json".to_owned(),
        format: SpillFormat::Json,
        byte_size: 83421,
        line_count: 1204,
        kept_for: Duration::from_secs(3600),
        shape: ResultShape::Other,
        preview: r#"{"files":[{"name":"foo.txt"}]}"#.to_owned(),
    }
}

fn requested(result: SpilledResult) -> DispatchSpilledCall {
    DispatchSpilledCall {
        result,
        reason: DispatchSpillReason::Requested,
    }
}

#[test]
fn a_stored_result_is_described_in_few_bytes_whatever_it_looks_like() {
    let keys = |key: &dyn Fn(u64) -> String, count: u64| ResultShape::Object {
        keys: (0..count.min(20)).map(key).collect(),
        key_count: count,
    };
    let shapes = [
        keys(&|number| format!("customer_{number}"), 11),
        keys(
            &|number| format!("7f3c9d5e-0000-4000-8000-{number:012}"),
            50_000,
        ),
        keys(&|number| format!("\"\\\u{1}{number}").repeat(40), 20),
        keys(&|_| "鍵".repeat(500), 3),
        keys(&|_| String::new(), 20),
    ];
    for shape in shapes {
        for preview in [
            "\"\\".repeat(60),
            "鍵".repeat(120),
            "\u{1}".repeat(120),
            "x".repeat(120),
        ] {
            for byte_size in [52_428_800, 36_677] {
                let result = SpilledResult {
                    handle: "spill:754gg28xfyk10dc31e4tvhjxv3.json".to_owned(),
                    byte_size,
                    shape: shape.clone(),
                    preview: preview.clone(),
                    ..spilled()
                };
                let sent = byte_size + 14_523;
                let bytes = 51_199;
                let stored = DispatchSpilledCall {
                    result,
                    reason: DispatchSpillReason::Exceeded { bytes, sent },
                };
                let empty = Bytes::from_static(br#"{"content":[]}"#);
                let call = called(&DispatchArguments::None);
                let rendered = render_spilled_call(&empty, &call, &stored);
                // With arguments of up to 110 bytes, three of them are less than 2 KB.
                let content = value(&rendered)["content"].to_string();
                assert!(content.len() <= 572, "{} bytes: {content}", content.len());
                let says_both = content.contains(&format!("{sent} bytes as sent"));
                assert_eq!(says_both, byte_size <= bytes, "{content}");
            }
        }
    }
}

#[test]
fn the_result_of_the_server_keeps_its_bytes() {
    let result = "{ \"content\": [ {\"type\":\"text\", \"text\":\"3\\u002e0\"} ],\n \"_meta\":{\"n\":1.50}, \"isError\":false }";
    let facts = r#"{"action":"call","connection":{"alias":"c1","name":"calc"},"tool":"add","arguments":{"a":1,"b":2},"estimatedTokens":10}"#;
    let expected = result.replace("{\"n\"", &format!("{{\"mcp-proxy/dispatch\":{facts},\"n\""));
    assert_eq!(render(result, &inline(r#"{"a": 1, "b": 2}"#)), expected);
}

#[test]
fn arguments_are_echoed_unless_they_are_bulky() {
    let of = |arguments: &DispatchArguments| {
        let rendered = render(r#"{"content":[]}"#, arguments);
        value(rendered.as_bytes())["_meta"]["mcp-proxy/dispatch"].clone()
    };
    assert_eq!(of(&DispatchArguments::None)["arguments"], json!({}));
    let file = DispatchArguments::File("spill:X.json".to_owned());
    assert_eq!(of(&file)["arguments"], json!({"_fromFile": "spill:X.json"}));
    let bulky = of(&inline(&format!(r#"{{"a":"{}"}}"#, "x".repeat(2000))));
    assert!(bulky.get("arguments").is_none());
    assert_eq!(bulky["argumentsOmitted"], 2008);
}

#[test]
fn g1_s1_the_data_stays_where_the_server_put_it() {
    for own in [
        "",
        r#","structuredContent":{"result": "3"}"#,
        r#","structuredContent":null"#,
    ] {
        let result = format!(r#"{{"content":[{{"type":"text","text":"3"}}]{own}}}"#);
        let rendered = value(render(&result, &DispatchArguments::None).as_bytes());
        let result = value(result.as_bytes());
        assert_eq!(rendered["content"], result["content"]);
        assert_eq!(
            rendered.get("structuredContent"),
            result.get("structuredContent")
        );
        assert_eq!(rendered["_meta"]["mcp-proxy/dispatch"]["action"], "call");
    }
}

#[test]
fn facts_stand_next_to_what_the_server_says_in_meta() {
    for (meta, others) in [
        ("{}", json!({})),
        ("null", json!({})),
        (r#"{ "k":1 }"#, json!({"k": 1})),
        (r#"{"mcp-proxy/dispatch":{"tool":"inner"}}"#, json!({})),
        (
            r#"{"a":1,"mcp-proxy/dispatch":{"tool":"inner"},"b":2}"#,
            json!({"a": 1, "b": 2}),
        ),
    ] {
        let result = format!(r#"{{"_meta":{meta},"content":[]}}"#);
        let mut rendered = value(render(&result, &DispatchArguments::None).as_bytes());
        let own = rendered["_meta"]
            .as_object_mut()
            .unwrap()
            .remove("mcp-proxy/dispatch");
        assert_eq!(own.unwrap()["tool"], "add", "{meta}");
        assert_eq!(rendered["_meta"], others, "{meta}");
    }
}

#[test]
fn errors_of_tools_stay_errors() {
    let result = r#"{"content":[{"type":"text","text":"division by zero"}],"isError":true}"#;
    let rendered = value(render(result, &DispatchArguments::None).as_bytes());
    assert_eq!(rendered["isError"], true);
    assert_eq!(rendered["content"][0]["text"], "division by zero");
    let stored = render_spilled_call(
        &Bytes::from(result),
        &called(&DispatchArguments::None),
        &requested(spilled()),
    );
    assert_eq!(value(&stored)["isError"], true);
}

#[test]
fn what_is_not_a_tool_result_passes_unchanged() {
    for other in [
        r#"{"resultType":"input_required","inputRequests":{},"content":[]}"#,
        r#"{"resultType":"task","taskId":"1"}"#,
        r#"{"content":"text"}"#,
        "[]",
        "not JSON",
    ] {
        let bytes = Bytes::copy_from_slice(other.as_bytes());
        let call = called(&DispatchArguments::None);
        assert_eq!(render_call(&bytes, &call), bytes);
        assert_eq!(
            render_spilled_call(&bytes, &call, &requested(spilled())),
            bytes
        );
    }
}

#[test]
fn g5_a_stored_result_is_described_in_one_text() {
    let result = Bytes::from_static(
        br#"{"_meta":{"k":1},"content":[{"type":"text","text":"{\"files\":[]}"}],"structuredContent":{"files":[]}}"#,
    );
    let keys = vec!["files".to_owned(), "summary".to_owned()];
    let cases = [
        requested(SpilledResult {
            shape: ResultShape::Object { keys, key_count: 2 },
            ..spilled()
        }),
        DispatchSpilledCall {
            reason: DispatchSpillReason::Exceeded {
                bytes: 51_200,
                sent: 90_000,
            },
            result: SpilledResult {
                shape: ResultShape::Array { length: 12 },
                preview: "é".repeat(PREVIEW_CHARS),
                ..spilled()
            },
        },
        requested(SpilledResult {
            handle: "spill:01ABC.toon".to_owned(),
            format: SpillFormat::Toon,
            ..spilled()
        }),
        requested(SpilledResult {
            handle: "spill:01ABC.txt".to_owned(),
            format: SpillFormat::Text,
            kept_for: Duration::from_secs(90),
            preview: "first line\nsecond line\n".to_owned(),
            ..spilled()
        }),
    ];
    let arguments = inline(r#"{"path":"/data"}"#);
    let mut shown = String::new();
    for case in &cases {
        let rendered = render_spilled_call(&result, &called(&arguments), case);
        let rendered = value(&rendered);
        assert_eq!(rendered["_meta"]["k"], 1);
        let facts = &rendered["_meta"]["mcp-proxy/dispatch"];
        assert!(rendered.get("structuredContent").is_none());
        assert_eq!(facts["resultFile"], case.result.handle);
        assert_eq!(facts["byteSize"], 83421);
        let is_automatic = matches!(case.reason, DispatchSpillReason::Exceeded { .. });
        assert_eq!(facts.get("autoSpilled").is_some(), is_automatic);
        for absent in ["estimatedTokens", "preview"] {
            assert!(facts.get(absent).is_none());
        }
        assert_eq!(rendered["content"].as_array().unwrap().len(), 1);
        shown.push_str(&serde_json::to_string_pretty(&rendered).unwrap());
        shown.push_str(&format!(
            "\n\n{}\n\n",
            text(rendered.to_string().as_bytes())
        ));
    }
    insta::assert_snapshot!("dispatch_tool_stored_results", shown);
}
