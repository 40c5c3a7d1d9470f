//! Our client library with Magg as the server: its `proxy` tool, whose facts are only in annotations.

use std::time::Duration;

use mcp_proxy_client::{
    BatchOperation, CapabilityType, ClientError, ClientTarget, ListedResource, ProxyClient,
    ProxyClientBuilder, ProxyResponseInfo, ServerStderr,
};
use serde_json::{Value, json};

use crate::fixtures;
use crate::process::RunningProgram;

const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Magg with the demo server behind it; without further words it speaks on its standard streams.
fn magg(python: &str, folder: &std::path::Path, words: &[&str]) -> ClientTarget {
    let config = folder.join("config.json");
    let servers = json!({"servers": {"demo": {"source": "https://example.com/demo", "prefix": "demo",
        "command": PROXY, "args": ["demo-server", "stdio"]}}});
    std::fs::write(&config, servers.to_string()).unwrap();
    let folder = folder.to_str().unwrap();
    let magg = std::path::Path::new(python).with_file_name("magg");
    ClientTarget::command(magg.to_str().unwrap(), [&["serve"], words].concat())
        .env("MAGG_CONFIG_PATH", config.to_str().unwrap())
        .env("MAGG_PATH", folder)
        .env("HOME", folder)
        .current_dir(folder)
        .stderr(ServerStderr::Discard)
}

fn builder() -> ProxyClientBuilder {
    ProxyClient::builder()
        .transparent(true)
        .timeout(Duration::from_secs(90))
}

#[tokio::test]
async fn everything_behind_magg() {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let client = builder()
        .connect(magg(&python, folder.path(), &[]))
        .await
        .unwrap();
    use_everything(client).await;
}

#[tokio::test]
async fn everything_behind_magg_over_http() {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let target = magg(
        &python,
        folder.path(),
        &["--http", "--port", &address.port().to_string()],
    );
    let ClientTarget::Command {
        program, args, env, ..
    } = target
    else {
        unreachable!();
    };
    let mut command = std::process::Command::new(program);
    let _magg = RunningProgram::start(command.args(args).envs(env));
    let listens = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), listens)
        .await
        .unwrap();
    let client = builder()
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap();
    use_everything(client).await;
}

async fn use_everything(client: ProxyClient) {
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
    let sum = client.call_tool("demo_add", arguments).await.unwrap();
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
