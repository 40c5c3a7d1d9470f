//! The client library with the real hub: over HTTP in both eras, and as a server that the client starts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_client::rmcp::model::{ElicitResult, ElicitationAction, ProtocolVersion};
use mcp_proxy_client::rmcp::service::ClientLifecycleMode;
use mcp_proxy_client::{
    BatchOperation, CallOptions, CapabilityType, ClientError, ClientTarget, KeptResultPart,
    ListedResource, ProxyClient, ProxyClientBuilder, ProxyResponseInfo, SearchOptions,
    ServerStderr,
};
use serde_json::{Value, json};

use crate::control::test_home::TestHome;
use crate::programs::PROXY;
use crate::serve::test_hub::{TestHub, demo, time};

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn hub(flags: &[&str]) -> TestHub {
    let config = json!({"mcpServers": {"demo": demo(), "clock": time()}});
    TestHub::start(&config, &[&["--no-record"], flags].concat())
}

/// A transparent client for each way to open a conversation.
fn builders() -> [ProxyClientBuilder; 3] {
    let builder = || ProxyClient::builder().transparent(true);
    [
        builder(),
        builder().lifecycle(ClientLifecycleMode::Initialize),
        builder().lifecycle(modern()),
    ]
}

async fn use_everything(client: &ProxyClient) {
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "demo_add"));
    assert!(
        tools
            .iter()
            .any(|tool| tool.name == "clock_get_current_time")
    );
    let listed = client.list_resources_and_templates().await.unwrap();
    assert!(
        listed
            .iter()
            .any(|item| matches!(item, ListedResource::Template(_)))
    );
    assert!(!client.list_prompts().await.unwrap().is_empty());

    let arguments = Some(object(json!({"a": 5, "b": 3})));
    let sum = client.call_tool("demo_add", arguments).await.unwrap();
    assert_eq!(sum.structured_content.as_ref().unwrap()["sum"], 8.0);
    let info = ProxyResponseInfo::of_result(&sum).unwrap();
    assert_eq!(info.proxy_path.as_deref(), Some("demo_add"));
    let definition = client.info(CapabilityType::Tool, "demo_add").await.unwrap();
    assert_eq!(definition["name"], "demo_add");
    let tally = client.read_resource("demo://demo/tally").await.unwrap();
    assert_eq!(tally.contents.len(), 1);
    let arguments = Some(object(json!({"topic": "rain"})));
    let haiku = client.get_prompt("demo_haiku", arguments).await.unwrap();
    assert!(!haiku.messages.is_empty());

    let error = client.call_tool("demo_ad", ()).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::ToolFailed { code: Some(code), .. } if code == "not-found"),
        "{error}"
    );
    let results = client
        .batch(vec![
            BatchOperation::call(
                CapabilityType::Tool,
                "clock_get_current_time",
                Some(object(json!({"timezone": "UTC"}))),
            ),
            BatchOperation::info(CapabilityType::Prompt, "nope"),
        ])
        .await
        .unwrap();
    assert_eq!(results[0].is_error, Some(false));
    assert_eq!(results[1].is_error, Some(true));
}

#[tokio::test]
async fn everything_behind_a_hub_over_http() {
    let hub = hub(&[]);
    for builder in builders() {
        let client = builder.connect(hub.program.url()).await.unwrap();
        assert!(client.is_proxied());
        use_everything(&client).await;
        client.close().await;
    }
}

#[tokio::test]
async fn everything_behind_a_hub_that_the_client_starts() {
    let home = TestHome::new();
    let config = home.path("config.json");
    let servers = json!({"mcpServers": {"demo": demo(), "clock": time()}});
    std::fs::write(&config, servers.to_string()).unwrap();
    for builder in builders() {
        let words = ["serve", "--listen", "stdio", "--no-record", "--config"];
        let words = words.into_iter().chain([config.to_str().unwrap()]);
        let mut target = ClientTarget::command(PROXY, words).stderr(ServerStderr::Discard);
        for (name, value) in home.env() {
            target = target.env(name, value.to_str().unwrap());
        }
        let client = builder.connect(target).await.unwrap();
        use_everything(&client).await;
        client.close().await;
    }
}

#[tokio::test]
async fn progress_and_questions_pass_the_hub() {
    let hub = hub(&[]);
    for builder in builders() {
        let client = builder
            .elicitation(|_question| async {
                let answer = ElicitResult::new(ElicitationAction::Accept);
                Ok(answer.with_content(json!({"name": "Ada"})))
            })
            .connect(hub.program.url())
            .await
            .unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        let options = CallOptions::new().progress(move |progress| {
            reports
                .lock()
                .unwrap()
                .push((progress.progress, progress.total));
        });
        let arguments = Some(object(json!({"from": 3})));
        client
            .with_options(options)
            .call_tool("demo_count_down", arguments)
            .await
            .unwrap();
        let steps = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0)));
        assert_eq!(*seen.lock().unwrap(), steps);
        let greeting = client.call_tool("demo_ask_name", ()).await.unwrap();
        assert_eq!(greeting.content[0].as_text().unwrap().text, "Hello, Ada!");
        client.close().await;
    }
}

#[tokio::test]
async fn a_search_and_a_kept_result() {
    let hub = hub(&["--expose", "all,dispatch"]);
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let builder = ProxyClient::builder().lifecycle(lifecycle);
        let client = builder.connect(hub.program.url()).await.unwrap();
        assert!(client.offers_dispatch_tool() && !client.offers_proxy_tool());
        let options = SearchOptions::new().limit(1).include_input_schema();
        let found = client.search("add two numbers", options).await.unwrap();
        assert_eq!(found.results[0].name, "add");
        assert!(found.total_matches >= 1);
        let call = object(
            json!({"action": "call", "tool": "add", "arguments": {"a": 1, "b": 2}, "resultToFile": true}),
        );
        let kept = client.dispatch(call, CallOptions::new()).await.unwrap();
        let file = kept.meta.unwrap()["mcp-proxy/dispatch"]["resultFile"]
            .as_str()
            .unwrap()
            .to_owned();
        let sizes = client
            .read_result(&file, KeptResultPart::Stat)
            .await
            .unwrap();
        assert!(sizes.facts["byteSize"].as_u64().unwrap() > 0);
        let filter = KeptResultPart::Jq {
            filter: "type".to_owned(),
        };
        let text = client.read_result(&file, filter).await.unwrap().text;
        assert!(text.contains("object"), "{text}");
        let error = client
            .read_result("spill:nope.json", KeptResultPart::Stat)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, ClientError::ToolFailed { code: Some(code), .. } if code == "file-refused"),
            "{error}"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn a_hub_with_the_dispatch_tool_alone_is_used_through_it() {
    let hub = hub(&["--expose", "dispatch"]);
    for builder in builders() {
        let client = builder.connect(hub.program.url()).await.unwrap();
        assert!(client.is_proxied() && !client.offers_proxy_tool());
        let tools = client.list_tools().await.unwrap();
        let add = tools.iter().find(|tool| tool.name == "add").unwrap();
        assert!(add.input_schema.contains_key("properties"));
        assert!(tools.iter().any(|tool| tool.name == "convert_time"));
        let arguments = Some(object(json!({"a": 5, "b": 3})));
        let sum = client.call_tool("add", arguments).await.unwrap();
        let text = &sum.content[0].as_text().unwrap().text;
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["sum"], 8.0);
        assert_eq!(sum.structured_content.unwrap()["sum"], 8.0);
        let definition = client.info(CapabilityType::Tool, "add").await.unwrap();
        assert_eq!(definition["name"], "add");
        let error = client.call_tool("ad", ()).await.unwrap_err();
        assert!(
            matches!(&error, ClientError::ToolFailed { code: Some(code), .. } if code == "not-found"),
            "{error}"
        );
        assert!(!client.list_prompts().await.unwrap().is_empty());
        let tally = client.read_resource("demo://demo/tally").await.unwrap();
        assert_eq!(tally.contents.len(), 1);
        client.close().await;
    }
}

#[tokio::test]
async fn a_started_hub_ends_with_its_client() {
    let home = TestHome::new();
    let words = ["serve", "--listen", "stdio", "--no-record", "--builtins"];
    let mut target = ClientTarget::command(PROXY, words).stderr(ServerStderr::Discard);
    let pid_file = home.path("pid");
    let script = format!("echo $$ >{}; exec \"$0\" \"$@\"", pid_file.display());
    if let ClientTarget::Command { program, args, .. } = target {
        let args = [vec!["-c".to_owned(), script, program], args].concat();
        target = ClientTarget::command("sh", args).stderr(ServerStderr::Discard);
    }
    for (name, value) in home.env() {
        target = target.env(name, value.to_str().unwrap());
    }
    let client = ProxyClient::connect(target).await.unwrap();
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    drop(client);
    // The connection ends in a task of this runtime.
    let gone = async {
        while process.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone)
        .await
        .unwrap();
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}
