//! Results of `call`.

use super::*;

const FACTS: &str = r#""proxyType":"tool","proxyAction":"call","proxyPath":"calc_x""#;

fn tool(result: &'static str) -> String {
    let rendered = render_tool_result(&Bytes::from(result), "calc_x");
    String::from_utf8(rendered.to_vec()).unwrap()
}

fn resource(result: &'static str) -> String {
    let rendered = render_resource_result(&Bytes::from(result), "a://b");
    String::from_utf8(rendered.to_vec()).unwrap()
}

/// What a rendered resource has behind its contents.
const RESOURCE_TAIL: &str =
    r#","annotations":{"proxyType":"resource","proxyAction":"call","proxyPath":"a://b"}}"#;

#[test]
fn items_are_annotated_and_all_else_stays() {
    assert_eq!(
        tool(
            r#"{ "content" : [ {"type":"text","text":"8.0\u00e9"} , { "type":"image" } ],"structuredContent":{"n":12345678901234567890123, "x":1.0},"isError":true, "_meta":{"a":1},"more": [ ] }"#
        ),
        format!(
            r#"{{ "content" : [ {{"type":"text","text":"8.0\u00e9","annotations":{{{FACTS}}}}} , {{ "type":"image" ,"annotations":{{{FACTS}}}}} ],"structuredContent":{{"n":12345678901234567890123, "x":1.0}},"isError":true, "_meta":{{"a":1}},"more": [ ] }}"#
        )
    );
}

#[test]
fn facts_come_after_what_is_there() {
    assert_eq!(
        tool(
            r#"{"content":[{"type":"text","_meta":{"k":[1]},"annotations":{"audience":["user"],"priority":0.50},"text":""}]}"#
        ),
        format!(
            r#"{{"content":[{{"type":"text","_meta":{{"k":[1]}},"annotations":{{"audience":["user"],"priority":0.50,{FACTS}}},"text":""}}],"isError":false}}"#
        )
    );
    assert_eq!(
        tool(r#"{"content":[{"annotations":null,"_meta":{ }}]}"#),
        format!(r#"{{"content":[{{"annotations":{{{FACTS}}},"_meta":{{ }}}}],"isError":false}}"#)
    );
}

#[test]
fn facts_of_a_proxy_behind_this_one_are_replaced() {
    assert_eq!(
        tool(
            r#"{"content":[{"annotations":{"pythonType":"Tool","proxyAction":"info","proxyType":"tool","proxyPath":"add"},"_meta":{"mcp-proxy/proxy":{"pythonType":"Tool"},"k":1}}]}"#
        ),
        format!(
            r#"{{"content":[{{"annotations":{{"pythonType":"Tool","proxyAction":"call","proxyType":"tool","proxyPath":"calc_x"}},"_meta":{{"mcp-proxy/proxy":{{{FACTS}}},"k":1}}}}],"isError":false}}"#
        )
    );
}

#[test]
fn what_is_not_a_finished_result_passes_unchanged() {
    for result in [
        r#"{"content":[],"isError":false}"#,
        r#"{"resultType":"input_required","inputRequests":{},"content":[{}]}"#,
        r#"{"task":{"taskId":"7","status":"working"}}"#,
        r#"{"content":{"type":"text"}}"#,
        r#"{"content":["text",7],"isError":true}"#,
        r#"[{"content":[{}]}]"#,
        "null",
        "not json",
        "",
    ] {
        assert_eq!(tool(result), result);
    }
    for result in [
        r#"{"resultType":"input_required","contents":[{}]}"#,
        r#"{"contents":null}"#,
        "{}",
        "{",
    ] {
        assert_eq!(resource(result), result);
        let prompt = render_prompt_result(&Bytes::from(result), "p");
        assert_eq!(prompt, result);
    }
    assert_ne!(
        tool(r#"{"resultType":"complete","content":[{}]}"#),
        r#"{"resultType":"complete","content":[{}]}"#
    );
}

#[test]
fn json_text_becomes_an_object() {
    assert_eq!(
        resource(
            r#"{"ttlMs":5,"contents":[{"uri":"a://b","mimeType":"text/plain","text":"{ \"b\": 12345678901234567890123,\n\"a\": [1.50, \"\u00e9 \\\" \"] }"}]}"#
        ),
        format!(
            r#"{{"ttlMs":5,"content":[{{"type":"resource","resource":{{"uri":"a://b","mimeType":"application/json","text":"{{\"b\":12345678901234567890123,\"a\":[1.50,\"é \\\" \"]}}","_meta":{{"mcp-proxy/proxy":{{"contentType":"text/plain"}}}},"contentType":"text/plain"}}{RESOURCE_TAIL}],"isError":false}}"#
        )
    );
    // Any JSON value counts, and a missing MIME type leaves nothing to keep.
    assert_eq!(
        resource(r#"{"contents":[{"uri":"a://b","text":" 42 "}]}"#),
        format!(
            r#"{{"content":[{{"type":"resource","resource":{{"uri":"a://b","text":"42","mimeType":"application/json"}}{RESOURCE_TAIL}],"isError":false}}"#
        )
    );
    assert_eq!(
        resource(r#"{"contents":[{"mimeType":null,"text":"[]","_meta":{"k":1}}]}"#),
        format!(
            r#"{{"content":[{{"type":"resource","resource":{{"mimeType":"application/json","text":"[]","_meta":{{"k":1}}}}{RESOURCE_TAIL}],"isError":false}}"#
        )
    );
    assert_eq!(
        resource(r#"{"contents":[{"mimeType":"text/x","text":"[]","_meta":{"k":1}}]}"#),
        format!(
            r#"{{"content":[{{"type":"resource","resource":{{"mimeType":"application/json","text":"[]","_meta":{{"k":1,"mcp-proxy/proxy":{{"contentType":"text/x"}}}},"contentType":"text/x"}}{RESOURCE_TAIL}],"isError":false}}"#
        )
    );
}

#[test]
fn other_contents_stay_as_they_are() {
    for contents in [
        r#"{"uri":"a://b","mimeType":"text/plain","text":"just text"}"#,
        r#"{"uri":"a://b","mimeType":"text/plain","text":""}"#,
        r#"{"uri":"a://b","mimeType":"text/plain","text":"\ud800"}"#,
        r#"{"uri":"a://b","mimeType":"application/json","text":"{\"b\":1,   \"a\":[1,2]}"}"#,
        r#"{"uri":"a://b","mimeType":"image/png","blob":"iVBORw0KGgo="}"#,
        r#"{"uri":"a://b","mimeType":"text/plain","text":7}"#,
        "{}",
    ] {
        let result: &'static str = format!(r#"{{"contents":[{contents}]}}"#).leak();
        assert_eq!(
            resource(result),
            format!(
                r#"{{"content":[{{"type":"resource","resource":{contents}{RESOURCE_TAIL}],"isError":false}}"#
            )
        );
    }
    assert_eq!(
        resource(r#"{"contents":[ ],"_meta":{"k":1}}"#),
        r#"{"content":[ ],"isError":false,"_meta":{"k":1}}"#
    );
}

#[test]
fn a_prompt_is_one_resource() {
    let result = Bytes::from_static(
        b"{\"description\": null, \"messages\": [ {\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": \"Say \\\"hi\\\"\"}} ]}",
    );
    let facts = r#""pythonType":"GetPromptResult","proxyType":"prompt","proxyAction":"call","proxyPath":"calc_greet","dataType":"GetPromptResult""#;
    let text = r#"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Say \\\"hi\\\"\"}}]}"#;
    assert_eq!(
        String::from_utf8_lossy(&render_prompt_result(&result, "calc_greet")),
        format!(
            r#"{{"content":[{{"type":"resource","resource":{{"uri":"proxy:calc_greet","mimeType":"application/json","text":"{text}"}},"annotations":{{{facts}}},"_meta":{{"mcp-proxy/proxy":{{{facts}}}}}}}],"isError":false}}"#
        )
    );
}
