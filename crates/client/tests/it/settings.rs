//! How the tool is found, and what happens if it is not.

use mcp_proxy_client::rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ServerNotification,
};
use mcp_proxy_client::rmcp::service::RequestContext;
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler};
use mcp_proxy_client::{
    CallOptions, CapabilityType, ClientError, ProxyAction, ProxyClient, ProxyTool, SearchOptions,
};
use std::sync::{Arc, Mutex};

use crate::plain_server::{PlainServer, connect, legacy, try_connect};

/// A server that offers nothing and answers every call with an error.
struct Nothing;
impl ServerHandler for Nothing {
    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        panic!("nothing may be sent");
    }
}

#[tokio::test]
async fn a_server_without_the_tool_is_refused_unless_there_is_a_fall_back() {
    let builder = || ProxyClient::builder().transparent(true);
    let error = try_connect(PlainServer::default(), builder())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::NoProxyTool { .. }), "{error}");
    let client = connect(PlainServer::default(), builder().fall_back_to_native(true)).await;
    assert!(!client.is_proxied());
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    let raw = client.proxy(
        CapabilityType::Tool,
        ProxyAction::List,
        None,
        None,
        CallOptions::new(),
    );
    assert!(matches!(raw.await, Err(ClientError::NoProxyTool { .. })));
    let search = client.search("anything", SearchOptions::new()).await;
    assert!(matches!(search, Err(ClientError::NoDispatchTool)));
}

#[tokio::test]
async fn the_tool_may_have_another_name() {
    for name in ["mcp:proxy", "everything"] {
        let server = ProxyTool::new(PlainServer::default()).name(name);
        let client = connect(server, ProxyClient::builder().transparent(true)).await;
        assert_eq!(client.proxy_tool().unwrap().name, name);
        assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    }
    let server = ProxyTool::new(PlainServer::default());
    let builder = ProxyClient::builder()
        .transparent(true)
        .proxy_tool_name("other");
    let error = try_connect(server, builder).await.unwrap_err();
    assert!(matches!(error, ClientError::NoProxyTool { name } if name == "'other'"));
}

#[tokio::test]
async fn a_call_that_is_not_valid_is_not_sent() {
    let client = connect(ProxyTool::new(Nothing), ProxyClient::builder()).await;
    let error = client
        .proxy(
            CapabilityType::Tool,
            ProxyAction::Info,
            None,
            None,
            CallOptions::new(),
        )
        .await
        .unwrap_err();
    let ClientError::InvalidArguments(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.code(), "missing-parameter");
}

#[tokio::test]
async fn a_server_that_has_nothing_has_empty_lists() {
    for transparent in [false, true] {
        let builder = ProxyClient::builder().transparent(transparent);
        let client = connect(ProxyTool::new(Nothing), builder).await;
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools.len(), usize::from(!transparent));
        assert!(
            client
                .list_resources_and_templates()
                .await
                .unwrap()
                .is_empty()
        );
        assert!(client.list_prompts().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn notifications_of_the_server_are_heard() {
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let builder = ProxyClient::builder()
        .lifecycle(legacy())
        .on_notification(move |notification| {
            if matches!(notification, ServerNotification::ProgressNotification(_)) {
                *count.lock().unwrap() += 1;
            }
        });
    let client = connect(PlainServer::default(), builder).await;
    client
        .call_tool("count", None, CallOptions::new())
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), 3);
}
