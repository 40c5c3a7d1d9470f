//! How the tool is found, and what happens if it is not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_client::rmcp::model::*;
use mcp_proxy_client::rmcp::service::RequestContext;
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler};
use mcp_proxy_client::{
    CallOptions, CapabilityType, ClientError, ProxyAction, ProxyClient, ProxyTool, SearchOptions,
};
use serde_json::json;

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

/// A server whose `proxy` tool has a schema that says little, or is another kind of tool.
struct VagueServer {
    schema: serde_json::Value,
    is_proxy: bool,
}

impl ServerHandler for VagueServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = json!({"name": "proxy", "inputSchema": self.schema});
        Ok(ListToolsResult {
            tools: vec![serde_json::from_value(tool).unwrap()],
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        assert_eq!(arguments["action"], "list");
        let content = match self.is_proxy {
            true => json!({"type": "resource", "resource": {"uri": "proxy:list/tool",
                "text": "[{\"name\":\"t\",\"inputSchema\":{}}]"}}),
            false => json!({"type": "text", "text": "the network proxy is off"}),
        };
        let result = serde_json::from_value(json!({"content": [content]})).unwrap();
        Ok(CallToolResponse::Complete(result))
    }
}

#[tokio::test]
async fn a_tool_whose_schema_says_little_is_tried() {
    let server = |schema, is_proxy| VagueServer { schema, is_proxy };
    let builder = || ProxyClient::builder().transparent(true);
    let vague = json!({"type": "object"});
    let client = connect(server(vague.clone(), true), builder()).await;
    assert_eq!(client.list_tools().await.unwrap()[0].name, "t");
    let short = json!({"type": "object", "properties": {"action": {}, "type": {}}});
    assert!(connect(server(short, true), builder()).await.is_proxied());
    let error = try_connect(server(vague, false), builder()).await;
    assert!(matches!(error, Err(ClientError::NoProxyTool { .. })));
    let other = json!({"type": "object", "properties": {"host": {}, "port": {}}});
    let error = try_connect(server(other, true), builder()).await;
    assert!(matches!(error, Err(ClientError::NoProxyTool { .. })));
}

/// Counts what is asked for, and answers nothing but lists of tools.
#[derive(Clone, Default)]
struct CountingServer {
    lists: Arc<AtomicUsize>,
}

impl ServerHandler for CountingServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        ServerConfig::new(
            capabilities
                .enable_tools()
                .enable_tool_list_changed()
                .enable_resources()
                .enable_prompts()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        Ok(ListToolsResult::default())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let report = ProgressNotificationParam::new(token, 1.0);
            context.peer.notify_progress(report).await.unwrap();
        }
        context.ct.cancelled().await;
        Ok(ListPromptsResult::default())
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        context.ct.cancelled().await;
        Err(ErrorData::internal_error("cancelled", None))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        context.peer.notify_tool_list_changed().await.unwrap();
        Ok(CallToolResponse::Complete(CallToolResult::success(
            Vec::new(),
        )))
    }
}

#[tokio::test]
async fn the_tools_are_read_once_to_connect_and_to_list_them() {
    let server = CountingServer::default();
    let client = connect(server.clone(), ProxyClient::builder().lifecycle(legacy())).await;
    client.list_tools().await.unwrap();
    assert_eq!(server.lists.load(Ordering::SeqCst), 1);
    client.list_tools().await.unwrap();
    assert_eq!(server.lists.load(Ordering::SeqCst), 2);

    let server = CountingServer::default();
    let client = connect(server.clone(), ProxyClient::builder().lifecycle(legacy())).await;
    client.call_tool("t", ()).await.unwrap();
    client.list_tools().await.unwrap();
    assert_eq!(server.lists.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn options_hold_for_every_operation() {
    let server = CountingServer::default();
    let client = connect(server, ProxyClient::builder().lifecycle(legacy())).await;
    let reports = Arc::new(Mutex::new(0));
    let count = Arc::clone(&reports);
    let second = Duration::from_secs(1);
    let hurried = client.with_options(
        CallOptions::new()
            .timeout(second)
            .progress(move |_| *count.lock().unwrap() += 1),
    );
    let error = hurried.list_prompts().await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { after } if after == second));
    assert_eq!(*reports.lock().unwrap(), 1);
    let error = hurried.read_resource("a://b").await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { after } if after == second));
    let limited = hurried.with_options(CallOptions::new().max_time(second / 2));
    let error = limited.list_prompts().await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { after } if after == second / 2));
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
    client.call_tool("count", ()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), 3);
}
