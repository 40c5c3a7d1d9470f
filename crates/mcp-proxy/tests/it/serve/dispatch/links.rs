//! Large results of tools that are called by their own names or through `proxy`: a preview with a handle.

use serde_json::{Value, json};

use super::super::test_hub::{TestHub, demo};
use super::text;

const META: &str = "mcp-proxy/spill";

fn start() -> TestHub {
    let config = json!({"mcpServers": {"demo": demo()}});
    TestHub::start(
        &config,
        &["--expose", "all,proxy", "--spill-threshold", "60"],
    )
}

/// The handle in a result.
#[track_caller]
fn link(result: &Value) -> String {
    let handle = result["_meta"][META]["resultFile"].as_str().unwrap();
    assert!(text(result).contains(handle), "{result}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    handle.to_owned()
}

impl TestHub {
    /// Calls a tool by its own name.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The text that a link leads to.
    fn linked_text(&self, uri: &str) -> String {
        let read = self.ask("resources/read", &json!({"uri": uri}));
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The JSON that a link leads to.
    fn linked(&self, uri: &str) -> Value {
        serde_json::from_str(&self.linked_text(uri)).unwrap()
    }
}

#[test]
fn g5_a_large_result_is_a_preview_with_a_handle() {
    let hub = start();
    let message = "many words ".repeat(1000);
    let result = hub.call("demo_echo", &json!({"message": message}));
    let uri = link(&result);
    assert!(text(&result).len() < 700, "{result}");
    assert!(text(&result).contains("many words many words"));
    assert!(uri.ends_with(".txt"), "{uri}");
    assert_eq!(hub.linked_text(&uri), message);
    assert!(result["_meta"][META]["byteSize"].is_u64(), "{result}");
}

#[test]
fn a_small_result_stays_as_it_is() {
    let hub = start();
    let result = hub.call("demo_echo", &json!({"message": "hi"}));
    assert_eq!(result["content"], json!([{"type": "text", "text": "hi"}]));
    assert!(result.get("_meta").is_none(), "{result}");
}

#[test]
fn declared_structured_content_is_kept() {
    let hub = start();
    let unit = "u".repeat(5000);
    let result = hub.call("demo_add", &json!({"a": 1, "b": 2, "unit": unit}));
    let whole = hub.linked(&link(&result));
    assert_eq!(
        result["structuredContent"],
        json!({"sum": 3.0, "unit": unit})
    );
    assert_eq!(whole, result["structuredContent"]);
}

#[test]
fn undeclared_structured_content_is_left_out_with_the_reason() {
    let hub = start();
    let result = hub.call("demo_roll_dice", &json!({"count": 20}));
    assert!(result.get("structuredContent").is_none(), "{result}");
    let reason = result["_meta"][META]["structuredContent"].as_str();
    assert!(
        reason.is_some_and(|reason| reason.contains("left out")),
        "{result}"
    );
    let rolls = hub.linked(&link(&result));
    assert_eq!(rolls["rolls"].as_array().unwrap().len(), 20);
}

#[test]
fn the_proxy_tool_shortens_too_and_reads_links() {
    let hub = start();
    let message = "many words ".repeat(1000);
    let call = json!({"action": "call", "type": "tool", "path": "demo_echo", "args": {"message": message}});
    let result = hub.proxy(&call);
    let uri = link(&result);
    assert_eq!(
        result["content"][0]["annotations"]["proxyPath"],
        "demo_echo"
    );
    assert_eq!(hub.linked_text(&uri), message);
    let read = hub.proxy(&json!({"action": "call", "type": "resource", "path": uri}));
    assert!(read.to_string().len() > message.len(), "{read}");
    let unknown = "spill:00000000000000000000000000.json";
    let read = hub.proxy(&json!({"action": "call", "type": "resource", "path": unknown}));
    assert_eq!(
        read["_meta"]["mcp-proxy/proxy"]["error"], "not-found",
        "{read}"
    );
}

#[test]
fn each_result_of_a_batch_is_shortened() {
    let hub = start();
    let message = "many words ".repeat(1000);
    let one = json!({"action": "call", "type": "tool", "path": "demo_echo", "args": {"message": message}});
    let result = hub.proxy(&json!({"action": "batch", "operations": [one, one]}));
    let text = result["content"][0]["resource"]["text"].as_str().unwrap();
    let parts: Vec<Value> = serde_json::from_str(text).unwrap();
    let links: Vec<String> = parts.iter().map(link).collect();
    assert_ne!(links[0], links[1]);
    for uri in links {
        assert_eq!(hub.linked_text(&uri), message);
    }
}
