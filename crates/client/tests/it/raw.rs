//! What the tool writes on the wire, without a client's types in between.

use mcp_proxy_client::ProxyTool;
use mcp_proxy_client::rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::plain_server::{FILLERS, PlainServer};

async fn answer(arguments: Value) -> Value {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = ProxyTool::new(PlainServer::default());
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    let (reader, mut writer) = tokio::io::split(ours);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "proxy", "arguments": arguments}});
    for message in [initialize, initialized, call] {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    let mut lines = BufReader::new(reader).lines();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 2 {
            return message["result"].clone();
        }
    }
}

#[tokio::test]
async fn a_list_has_its_facts_in_annotations_and_in_meta() {
    let result = answer(json!({"action": "list", "type": "tool", "limit": 2})).await;
    let item = &result["content"][0];
    let facts = json!({"pythonType": "Tool", "many": true, "proxyAction": "list", "proxyType": "tool",
        "totalCount": FILLERS + 7, "offset": 0, "limit": 2, "dataType": "Tool", "isArray": true});
    assert_eq!(item["annotations"], facts);
    assert_eq!(item["_meta"]["mcp-proxy/proxy"]["nextOffset"], 2);
    assert_eq!(item["resource"]["uri"], "proxy:list/tool");
    assert_eq!(result.get("resultType"), None);
}

#[tokio::test]
async fn a_call_has_the_bytes_of_the_shared_renderer() {
    let result = answer(
        json!({"action": "call", "type": "tool", "path": "add", "args": "{\"a\":1,\"b\":2}"}),
    )
    .await;
    let native = br#"{"content":[{"type":"text","text":"3"}],"structuredContent":{"sum":3.0},"isError":false}"#;
    let expected = mcp_proxy_tool::render_tool_result(&bytes::Bytes::from_static(native), "add");
    assert_eq!(result.to_string().as_bytes(), &expected[..]);
}

#[tokio::test]
async fn an_error_names_its_code_and_parameter() {
    let result = answer(json!({"action": "info", "type": "tool"})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["_meta"]["mcp-proxy/proxy"],
        json!({"error": "missing-parameter", "parameter": "path"})
    );
    let result = answer(json!({"action": "call", "type": "tool", "path": "refuse"})).await;
    assert_eq!(
        result["_meta"]["mcp-proxy/proxy"],
        json!({"error": "server-error", "serverCode": -32_050})
    );
}
