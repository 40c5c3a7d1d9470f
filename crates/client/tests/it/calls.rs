//! Calls through the tool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_client::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ResourceContents,
    ServerRequest,
};
use mcp_proxy_client::rmcp::service::{PeerRequestOptions, RequestContext};
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler};
use mcp_proxy_client::{
    CallOptions, CapabilityType, ClientError, ProxyAction, ProxyClient, ProxyResponseInfo,
    ProxyTool,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::plain_server::{BINARY, PlainServer, clients, connect, legacy, modern, object};

fn text(content: &[ContentBlock]) -> &str {
    &content[0].as_text().unwrap().text
}

#[tokio::test]
async fn a_tool_answers_as_in_a_native_call() {
    for client in clients().await {
        let arguments = Some(object(json!({"a": 5, "b": 3})));
        let result = client.call_tool("add", arguments).await.unwrap();
        assert_eq!(text(&result.content), "8");
        assert_eq!(result.content[0].as_text().unwrap().annotations, None);
        assert_eq!(result.structured_content, Some(json!({"sum": 8.0})));
        let result = client.call_tool("mixed", ()).await.unwrap();
        assert_eq!(result.content[1].as_image().unwrap().data, BINARY);
        assert!(result.content[2].as_resource().is_some());
    }
}

#[tokio::test]
async fn a_tool_that_fails_has_a_result_and_an_error_has_a_code() {
    for client in clients().await {
        let result = client.call_tool("fail", ()).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(text(&result.content), "it failed");
        let error = client.call_tool("refuse", ()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Protocol { code: -32_050, .. }),
            "{error}"
        );
        let error = client.call_tool("nope", ()).await.unwrap_err();
        let ClientError::ToolFailed { code, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(code.as_deref(), Some("not-found"));
    }
}

#[tokio::test]
async fn resources_are_text_json_and_binary() {
    for client in clients().await {
        let plain = client.read_resource("note://0").await.unwrap();
        assert_eq!(
            plain.contents,
            [ResourceContents::text("plain words", "note://0")]
        );
        let json = client.read_resource("note://1").await.unwrap();
        let ResourceContents::TextResourceContents {
            text, mime_type, ..
        } = &json.contents[0]
        else {
            panic!("{json:?}");
        };
        assert_eq!(text, "{\"b\":1,\"a\":[2]}");
        assert_eq!(mime_type.as_deref(), Some("text/plain"));
        let binary = client.read_resource("note://2").await.unwrap();
        assert!(
            matches!(&binary.contents[0], ResourceContents::BlobResourceContents { blob, .. } if blob == BINARY)
        );
        let filled = client.read_resource("greeting://Ada").await.unwrap();
        assert_eq!(
            filled.contents[0],
            ResourceContents::text("Hello Ada", "greeting://Ada")
        );
        let error = client.read_resource("greeting://{name}").await.unwrap_err();
        assert!(
            matches!(&error, ClientError::ToolFailed { code: Some(code), .. } if code == "unfilled-template"),
            "{error}"
        );
        let error = client.read_resource("note://none").await.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
    }
}

#[tokio::test]
async fn prompts_take_arguments() {
    for client in clients().await {
        let arguments = Some(object(json!({"topic": "rain"})));
        let prompt = client.get_prompt("haiku", arguments).await.unwrap();
        assert_eq!(prompt.description.as_deref(), Some("A poem"));
        let ContentBlock::Text(message) = &prompt.messages[0].content else {
            panic!("{prompt:?}");
        };
        assert_eq!(message.text, "A haiku about rain");
        let error = client.get_prompt("haiku", ()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Protocol { code: -32_602, .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn progress_arrives_in_order() {
    for client in clients().await {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        let options = CallOptions::new().progress(move |progress| {
            reports
                .lock()
                .unwrap()
                .push((progress.progress, progress.total, progress.message));
        });
        client
            .with_options(options)
            .call_tool("count", ())
            .await
            .unwrap();
        let step = |step: u8| (f64::from(step), Some(3.0), Some(format!("step {step}")));
        assert_eq!(*seen.lock().unwrap(), [step(1), step(2), step(3)]);
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    for lifecycle in [legacy(), modern()] {
        let server = PlainServer::default();
        let cancelled = Arc::clone(&server.cancelled);
        let builder = ProxyClient::builder()
            .transparent(true)
            .lifecycle(lifecycle);
        let client = connect(ProxyTool::new(server), builder).await;
        let limit = Duration::from_millis(50);
        for options in [
            CallOptions::new().timeout(limit),
            CallOptions::new().max_time(limit),
        ] {
            let error = client
                .with_options(options)
                .call_tool("hang", ())
                .await
                .unwrap_err();
            assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
            cancelled.notified().await;
        }
        // And one that nobody waits for.
        let call = client.call_tool("hang", ());
        assert!(
            tokio::time::timeout(Duration::from_millis(50), call)
                .await
                .is_err()
        );
        cancelled.notified().await;
    }
}

#[tokio::test]
async fn questions_of_the_server_are_answered_in_both_eras() {
    for lifecycle in [legacy(), modern()] {
        let builder = ProxyClient::builder()
            .transparent(true)
            .lifecycle(lifecycle)
            .timeout(Duration::from_millis(300))
            .elicitation(|_question| async {
                // Longer than the timeout, as a person takes.
                tokio::time::sleep(Duration::from_millis(700)).await;
                let answer = ElicitResult::new(ElicitationAction::Accept);
                Ok(answer.with_content(json!({"name": "Ada"})))
            });
        let client = connect(ProxyTool::new(PlainServer::default()), builder).await;
        let result = client.call_tool("ask", ()).await.unwrap();
        assert_eq!(text(&result.content), "Hello Ada");
    }
}

/// A server that asks and does not wait for the answer.
struct Impatient {
    asked: Arc<Notify>,
}

impl ServerHandler for Impatient {
    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params = json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        let params: ElicitRequestParams = serde_json::from_value(params).unwrap();
        let question = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let asking = context.peer.send_cancellable_request(question, options);
        let handle = asking.await.unwrap();
        self.asked.notified().await;
        handle.cancel(None).await.unwrap();
        Ok(CallToolResponse::Complete(CallToolResult::success(
            Vec::new(),
        )))
    }
}

#[tokio::test]
async fn a_question_that_the_server_cancels_is_dropped() {
    let asked = Arc::new(Notify::new());
    let (alive, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
    let hold = Mutex::new(Some(alive));
    let is_asked = Arc::clone(&asked);
    let builder = ProxyClient::builder()
        .lifecycle(legacy())
        .elicitation(move |_question| {
            let alive = hold.lock().unwrap().take();
            is_asked.notify_one();
            async move {
                let _alive = alive;
                std::future::pending().await
            }
        });
    let client = connect(Impatient { asked }, builder).await;
    let call = client.call_tool("any", ());
    call.await.unwrap();
    let gone = tokio::time::timeout(Duration::from_secs(10), dropped.recv()).await;
    assert_eq!(gone, Ok(None));
}

#[tokio::test]
async fn a_closed_client_says_so() {
    let client = connect(PlainServer::default(), ProxyClient::builder()).await;
    client.clone().close().await;
    assert!(client.is_closed());
    assert!(matches!(
        client.list_prompts().await,
        Err(ClientError::Closed)
    ));
}

#[derive(serde::Serialize)]
struct Numbers {
    a: f64,
    b: f64,
}

#[tokio::test]
async fn d8_arguments_are_anything_that_serialises_to_an_object() {
    for client in clients().await {
        let sum = client.call_tool("add", Numbers { a: 5.0, b: 3.0 }).await;
        assert_eq!(sum.unwrap().structured_content.unwrap()["sum"], 8.0);
        let error = client.call_tool("add", [5, 3]).await.unwrap_err();
        let ClientError::InvalidArguments(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.code(), "invalid-arguments");
        let error = client.get_prompt("haiku", "rain").await.unwrap_err();
        assert!(matches!(error, ClientError::InvalidArguments(_)));
    }
}

#[tokio::test]
async fn d8_the_proxy_tool_has_short_forms() {
    let server = ProxyTool::new(PlainServer::default());
    let client = connect(server, ProxyClient::builder()).await;
    let action = |result: &CallToolResult| ProxyResponseInfo::of_result(result)?.proxy_action;
    let page = client.proxy_list(CapabilityType::Prompt).await.unwrap();
    assert_eq!(action(&page), Some(ProxyAction::List));
    let info = client.proxy_info(CapabilityType::Tool, "add").await;
    assert_eq!(action(&info.unwrap()), Some(ProxyAction::Info));
    let call = client.proxy_call(CapabilityType::Tool, "add", json!({"a": 5, "b": 3}));
    assert_eq!(call.await.unwrap().structured_content.unwrap()["sum"], 8.0);
}

#[tokio::test]
async fn d34_the_tool_of_a_single_server_speaks_of_that_server() {
    let tool = ProxyTool::new(PlainServer::default()).tool();
    let description = tool.description.unwrap();
    assert!(!description.contains("servers behind"), "{description}");
}
