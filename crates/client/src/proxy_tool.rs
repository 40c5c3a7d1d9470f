//! The `proxy` tool for any rmcp server: its own tools, resources and prompts through one tool.
//!
//! The server is asked as a client would ask it: all pages of its lists, its calls, in the context of the request that
//! came for the tool. So the client's progress token, its cancellation and the server's questions work as in a call of
//! the server itself.

mod forwarding;
#[cfg(feature = "http")]
mod http_answers;
mod introspection;
mod operations;
mod served_item;

use std::borrow::Cow;
use std::sync::Arc;

use mcp_proxy_tool::{ProxyToolOptions, definition_of_one_server};
use rmcp::model::{
    ClientNotification, ClientRequest, CustomResult, ErrorData, ListToolsResult, ProtocolVersion,
    ServerCapabilities, ServerConfig, ServerResult, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, Service};
use serde_json::Value;

pub use forwarding::ProxyToolHandler;
#[cfg(feature = "http")]
pub use http_answers::{AnnotatedBody, write_annotations};

/// A server with the `proxy` tool.
///
/// It is a [`Service`], which is served on any transport as the server itself would be. rmcp's HTTP service wants a
/// `ServerHandler`: that is [`ProxyTool::into_handler`].
///
/// ```no_run
/// use mcp_proxy_client::ProxyTool;
/// use mcp_proxy_client::rmcp::{ServerHandler, ServiceExt};
///
/// struct MyServer;
/// impl ServerHandler for MyServer {}
///
/// # async fn example(stdin: tokio::io::Stdin, stdout: tokio::io::Stdout) {
/// let server = ProxyTool::new(MyServer).serve((stdin, stdout)).await;
/// # }
/// ```
#[derive(Debug)]
pub struct ProxyTool<S> {
    server: Arc<S>,
    options: ProxyToolOptions,
    is_alone: bool,
}

/// The answer to a call of the tool.
pub(super) enum ToolAnswer {
    /// A result of the tool, as bytes of JSON.
    Result(bytes::Bytes),
    /// What is not a finished result, such as the server's question to the user.
    AsItIs(Box<ServerResult>),
}

impl<S: Service<RoleServer>> ProxyTool<S> {
    /// Adds the tool to `server`, under the name `proxy`.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let server = ProxyTool::new(MyServer);
    /// assert_eq!(server.tool().name, "proxy");
    /// ```
    pub fn new(server: S) -> ProxyTool<S> {
        ProxyTool {
            server: Arc::new(server),
            options: ProxyToolOptions::default(),
            is_alone: false,
        }
    }

    /// Gives the tool another name, such as `mcp:proxy`. A tool of the server that has this name is not listed.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let server = ProxyTool::new(MyServer).name("mcp:proxy");
    /// assert_eq!(server.tool().name, "mcp:proxy");
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> ProxyTool<S> {
        self.options.name = name.into();
        self
    }

    /// How many items `list` returns when the call does not say, from 1 to 1000.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let server = ProxyTool::new(MyServer).default_limit(20);
    /// # let _ = server;
    /// ```
    pub fn default_limit(mut self, limit: u32) -> ProxyTool<S> {
        self.options.default_limit = limit;
        self
    }

    /// Lists only the `proxy` tool. The server's own tools are found with it, and cost no context until then.
    ///
    /// They can still be called by name.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let server = ProxyTool::new(MyServer).hide_other_tools();
    /// # let _ = server;
    /// ```
    pub fn hide_other_tools(mut self) -> ProxyTool<S> {
        self.is_alone = true;
        self
    }

    /// The server that has the tool.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let server = ProxyTool::new(MyServer);
    /// let _: &MyServer = server.server();
    /// ```
    pub fn server(&self) -> &S {
        &self.server
    }

    /// The definition of the tool.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyTool;
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let definition = ProxyTool::new(MyServer).tool();
    /// assert!(definition.input_schema.contains_key("properties"));
    /// ```
    pub fn tool(&self) -> Tool {
        // The definition is ours, and always a tool.
        serde_json::from_slice(&definition_of_one_server(&self.options)).unwrap_or_default()
    }

    fn is_call_of_tool(&self, request: &ClientRequest) -> bool {
        matches!(request, ClientRequest::CallToolRequest(call) if call.params.name == self.options.name)
    }

    /// Adds the tool to the first page of the server's own.
    fn add_tool(&self, list: &mut ListToolsResult, is_first: bool) {
        if self.is_alone {
            list.tools.clear();
            list.next_cursor = None;
        }
        list.tools.retain(|tool| tool.name != self.options.name);
        if is_first {
            list.tools.insert(0, self.tool());
        }
    }
}

impl<S> Clone for ProxyTool<S> {
    fn clone(&self) -> ProxyTool<S> {
        ProxyTool {
            server: Arc::clone(&self.server),
            options: self.options.clone(),
            is_alone: self.is_alone,
        }
    }
}

impl<S: Service<RoleServer>> Service<RoleServer> for ProxyTool<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if self.is_call_of_tool(&request)
            && let ClientRequest::CallToolRequest(call) = request
        {
            let is_modern = is_modern(&context);
            return Ok(match self.answer(call.params, context).await {
                ToolAnswer::Result(json) => raw_result(&json, is_modern),
                ToolAnswer::AsItIs(result) => *result,
            });
        }
        let is_first = match &request {
            ClientRequest::ListToolsRequest(list) => list
                .params
                .as_ref()
                .is_none_or(|page| page.cursor.is_none()),
            _ => false,
        };
        let mut result = self.server.handle_request(request, context).await?;
        match &mut result {
            ServerResult::ListToolsResult(list) => self.add_tool(list, is_first),
            ServerResult::InitializeResult(info) => add_capability(&mut info.capabilities),
            ServerResult::DiscoverResult(info) => add_capability(&mut info.capabilities),
            _ => {}
        }
        Ok(result)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        add_capability(&mut info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }
}

/// A server with this tool has tools.
fn add_capability(capabilities: &mut ServerCapabilities) {
    capabilities.tools.get_or_insert_default();
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A result that keeps annotations which rmcp's types do not have.
fn raw_result(json: &[u8], is_modern: bool) -> ServerResult {
    let mut result: Value = serde_json::from_slice(json).unwrap_or_default();
    if is_modern && let Value::Object(result) = &mut result {
        result
            .entry("resultType")
            .or_insert_with(|| "complete".into());
    }
    ServerResult::CustomResult(CustomResult::new(result))
}
