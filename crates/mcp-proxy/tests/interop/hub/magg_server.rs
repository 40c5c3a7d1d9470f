//! Our client library with Magg as the server: its `proxy` tool, whose facts are only in annotations.

use mcp_proxy_client::{
    BatchOperation, CallOptions, CapabilityType, ClientError, ClientTarget, ListedResource,
    ProxyClient, ProxyResponseInfo, ServerStderr,
};
use serde_json::{Value, json};

use crate::fixtures;

const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Magg on its standard streams, with the demo server behind it.
fn magg(python: &str, folder: &std::path::Path) -> ClientTarget {
    let config = folder.join("config.json");
    let servers = json!({"servers": {"demo": {"source": "https://example.com/demo", "prefix": "demo",
        "command": PROXY, "args": ["demo-server", "stdio"]}}});
    std::fs::write(&config, servers.to_string()).unwrap();
    let folder = folder.to_str().unwrap();
    let magg = std::path::Path::new(python).with_file_name("magg");
    ClientTarget::command(magg.to_str().unwrap(), ["serve"])
        .env("MAGG_CONFIG_PATH", config.to_str().unwrap())
        .env("MAGG_PATH", folder)
        .env("HOME", folder)
        .current_dir(folder)
        .stderr(ServerStderr::Discard)
}

#[tokio::test]
async fn everything_behind_magg() {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let client = ProxyClient::builder()
        .transparent(true)
        .timeout(std::time::Duration::from_secs(90))
        .connect(magg(&python, folder.path()))
        .await
        .unwrap();
    assert!(client.is_proxied());
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "demo_add"));
    let listed = client.list_resources_and_templates().await.unwrap();
    assert!(
        listed
            .iter()
            .any(|item| matches!(item, ListedResource::Resource(_)))
    );
    assert!(
        listed
            .iter()
            .any(|item| matches!(item, ListedResource::Template(_)))
    );
    let prompts = client.list_prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "demo_haiku"));

    let arguments = Some(object(json!({"a": 5, "b": 3})));
    let sum = client
        .call_tool("demo_add", arguments, CallOptions::new())
        .await
        .unwrap();
    assert!(sum.content[0].as_text().unwrap().text.contains('8'));
    let info = ProxyResponseInfo::of_result(&sum).unwrap();
    assert_eq!(info.proxy_path.as_deref(), Some("demo_add"));
    let definition = client.info(CapabilityType::Tool, "demo_add").await.unwrap();
    assert_eq!(definition["name"], "demo_add");
    let tally = client.read_resource("demo://demo/tally").await.unwrap();
    assert_eq!(tally.contents.len(), 1);
    let arguments = Some(object(json!({"topic": "rain"})));
    let haiku = client.get_prompt("demo_haiku", arguments).await.unwrap();
    assert_eq!(haiku.messages.len(), 1);

    let error = client.info(CapabilityType::Tool, "nope").await.unwrap_err();
    assert!(
        matches!(error, ClientError::ToolFailed { code: None, .. }),
        "{error}"
    );
    // Magg does not know batches.
    let results = client
        .batch(vec![
            BatchOperation::list(CapabilityType::Tool),
            BatchOperation::info(CapabilityType::Tool, "nope"),
        ])
        .await
        .unwrap();
    assert_eq!(results[1].is_error, Some(true));
    let counted = ProxyResponseInfo::of_result(&results[0])
        .unwrap()
        .total_count;
    assert_eq!(counted, Some(tools.len() as u64));
    client.close().await;
}
