//! The client: its connection, and the raw way to the tools.

// Logging is deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject,
    LoggingLevel, ServerPeerInfo, ServerResult, Tool,
};
use rmcp::service::RunningService;
use rmcp::{Peer, RoleClient};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::builder::ProxyClientBuilder;
use crate::call_options::CallOptions;
use crate::discovery::{PROXY_TOOL_NAMES, find_dispatch_tool, find_proxy_tool};
use crate::error::ClientError;
use crate::operation::{call_arguments, operation_arguments, validate_operation};
use crate::server_requests::ServerRequests;
use crate::target::ClientTarget;
use crate::warning::WarningHandler;

/// A connection to an MCP server.
///
/// It is cheap to clone. The conversation ends, and with it a server that was started for it, when the last clone is
/// dropped or one is [closed](ProxyClient::close).
///
/// The typed methods go through the `proxy` tool if the client is [transparent](ProxyClientBuilder::transparent), and
/// are the server's own methods otherwise.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::{CallOptions, ProxyClient};
///
/// let other = client.clone();
/// let (tools, prompts) = (client.list_tools().await?, other.list_prompts().await?);
/// println!("{} tools, {} prompts", tools.len(), prompts.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ProxyClient {
    pub(crate) inner: Arc<ClientInner>,
    /// What holds for each call that says nothing else.
    pub(crate) options: CallOptions,
}

/// How the typed methods reach what they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The server's own methods.
    Native,
    /// The `proxy` tool.
    ProxyTool,
    /// The `proxy-dispatch` tool for tools, and the server's own methods for everything else.
    DispatchTool,
}

pub(crate) struct ClientInner {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) server_requests: Arc<ServerRequests>,
    pub(crate) settings: ClientSettings,
    pub(crate) on_warning: Option<WarningHandler>,
    /// Set before anybody else has the client.
    tools: OnceLock<FoundTools>,
    /// The answer to the first `tools/list`, until it is asked for.
    listed_tools: std::sync::Mutex<Option<FirstToolList>>,
    tools_changed: Arc<AtomicBool>,
    /// `None` after `close`.
    service: Mutex<Option<RunningService<RoleClient, Arc<ServerRequests>>>>,
}

/// The list that was read to find the tools that are called for others.
struct FirstToolList {
    read: Instant,
    /// The tools, or why there is no list.
    outcome: Result<Vec<Tool>, ClientError>,
}

/// The tools that are called for others, as the server lists them.
#[derive(Debug, Default)]
struct FoundTools {
    proxy: Option<Tool>,
    dispatch: Option<Tool>,
    /// The server lists nothing but the dispatch tool.
    only_dispatch: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSettings {
    pub(crate) transparent: bool,
    pub(crate) fall_back_to_native: bool,
    pub(crate) proxy_tool_name: Option<String>,
    pub(crate) dispatch_tool_name: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) log_level: Option<LoggingLevel>,
}

impl ProxyClient {
    /// Connects with default settings: the typed methods are the server's own.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::{CapabilityType, CallOptions, ProxyAction, ProxyClient};
    ///
    /// let client = ProxyClient::connect("npx -y @modelcontextprotocol/server-everything").await?;
    /// println!("{} tools", client.list_tools().await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(target: impl Into<ClientTarget>) -> Result<ProxyClient, ClientError> {
        ProxyClient::builder().connect(target).await
    }

    /// Settings for a connection.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().transparent(true);
    /// # let _ = builder;
    /// ```
    pub fn builder() -> ProxyClientBuilder {
        ProxyClientBuilder::default()
    }

    /// Looks for the tools of an open conversation.
    pub(crate) async fn new(
        service: RunningService<RoleClient, Arc<ServerRequests>>,
        server_requests: Arc<ServerRequests>,
        settings: ClientSettings,
        on_warning: Option<WarningHandler>,
        tools_changed: Arc<AtomicBool>,
    ) -> Result<ProxyClient, ClientError> {
        let client = ProxyClient {
            inner: Arc::new(ClientInner {
                peer: service.peer().clone(),
                server_requests,
                settings,
                on_warning,
                tools: OnceLock::new(),
                listed_tools: std::sync::Mutex::default(),
                tools_changed,
                service: Mutex::new(Some(service)),
            }),
            options: CallOptions::default(),
        };
        let settings = &client.inner.settings;
        let needs_tool = settings.transparent && !settings.fall_back_to_native;
        let listed = match client.read_tools().await {
            // Whether it has the tool matters only to those who need it. The others are told when they ask for the list.
            Err(error @ (ClientError::Protocol { .. } | ClientError::Decode { .. }))
                if !needs_tool =>
            {
                Err(error)
            }
            listed => Ok(listed?),
        };
        let tools = listed.as_deref().unwrap_or_default();
        let dispatch = find_dispatch_tool(tools, settings.dispatch_tool_name.as_deref()).cloned();
        let mut proxy = find_proxy_tool(tools, settings.proxy_tool_name.as_deref()).cloned();
        if settings.transparent && proxy.is_none() && settings.proxy_tool_name.is_none() {
            proxy = client.try_proxy_tools(tools).await;
        }
        if needs_tool && proxy.is_none() && dispatch.is_none() {
            return Err(client.no_proxy_tool());
        }
        client.inner.tools.get_or_init(|| FoundTools {
            proxy,
            only_dispatch: dispatch.is_some() && tools.len() == 1,
            dispatch,
        });
        client.inner.keep_listed_tools(listed);
        Ok(client)
    }

    /// This client with options for each call that says nothing else. It shares the connection.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use std::time::Duration;
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let patient = client.with_options(CallOptions::new().timeout(Duration::from_secs(300)));
    /// let tools = patient.list_tools().await?;
    /// let report = patient.read_resource("report://year").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_options(&self, options: CallOptions) -> ProxyClient {
        ProxyClient {
            inner: Arc::clone(&self.inner),
            options: options.or(&self.options),
        }
    }

    /// Lists through the `proxy` tool and returns the tool's result as it is: one page.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CapabilityType::Tool;
    /// use mcp_proxy_client::ProxyResponseInfo;
    ///
    /// let result = client.proxy_list(Tool).await?;
    /// let info = ProxyResponseInfo::of_result(&result).unwrap_or_default();
    /// println!("{:?} tools", info.total_count);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proxy_list(&self, kind: CapabilityType) -> Result<CallToolResult, ClientError> {
        let options = CallOptions::default();
        self.proxy(kind, ProxyAction::List, None, None, options)
            .await
    }

    /// Gets a definition through the `proxy` tool and returns the tool's result as it is.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CapabilityType::Tool;
    ///
    /// println!("{:?}", client.proxy_info(Tool, "calculator_add").await?.content);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proxy_info(
        &self,
        kind: CapabilityType,
        path: &str,
    ) -> Result<CallToolResult, ClientError> {
        let options = CallOptions::default();
        self.proxy(kind, ProxyAction::Info, Some(path), None, options)
            .await
    }

    /// Calls a tool, reads a resource or gets a prompt through the `proxy` tool, and returns the tool's result as it is.
    /// `arguments` is anything that serialises to an object, or `()`.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CapabilityType::{Resource, Tool};
    /// use serde_json::json;
    ///
    /// let sum = client.proxy_call(Tool, "calculator_add", json!({"a": 5, "b": 3})).await?;
    /// let settings = client.proxy_call(Resource, "config://settings.json", ()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proxy_call(
        &self,
        kind: CapabilityType,
        path: &str,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, ClientError> {
        let arguments = call_arguments(arguments)?;
        let options = CallOptions::default();
        self.proxy(kind, ProxyAction::Call, Some(path), arguments, options)
            .await
    }

    /// Calls the `proxy` tool and returns its result as it is, also one with `isError`. [`proxy_list`](Self::proxy_list),
    /// [`proxy_info`](Self::proxy_info) and [`proxy_call`](Self::proxy_call) are short forms of it.
    ///
    /// The call is checked first: what is not allowed is [`ClientError::InvalidArguments`], and nothing is sent.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::{CallOptions, CapabilityType, ProxyAction, ProxyResponseInfo};
    ///
    /// let result = client
    ///     .proxy(CapabilityType::Tool, ProxyAction::List, None, None, CallOptions::new())
    ///     .await?;
    /// let info = ProxyResponseInfo::of_result(&result).unwrap_or_default();
    /// println!("{:?} tools", info.total_count);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proxy(
        &self,
        kind: CapabilityType,
        action: ProxyAction,
        path: Option<&str>,
        arguments: Option<JsonObject>,
        options: CallOptions,
    ) -> Result<CallToolResult, ClientError> {
        let arguments = operation_arguments(kind, action, path, arguments);
        self.proxy_with(arguments, options).await
    }

    /// Calls the `proxy` tool with any of its arguments, such as `limit` and `filter_server`.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let arguments = serde_json::json!({"action": "list", "type": "tool", "filter_server": "git", "limit": 20});
    /// let arguments = arguments.as_object().cloned().unwrap_or_default();
    /// let result = client.proxy_with(arguments, CallOptions::new()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proxy_with(
        &self,
        arguments: JsonObject,
        options: CallOptions,
    ) -> Result<CallToolResult, ClientError> {
        validate_operation(&arguments)?;
        let tool = self.proxy_tool();
        let name = &tool.ok_or_else(|| self.no_proxy_tool())?.name;
        self.call_native_tool(name, Some(arguments), &options).await
    }

    /// Calls a tool of the server itself.
    pub(crate) async fn call_native_tool(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        options: &CallOptions,
    ) -> Result<CallToolResult, ClientError> {
        let build = |responses, state| {
            let mut params = CallToolRequestParams::new(name.to_owned());
            params.arguments = arguments.clone();
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        match self.exchange(build, options).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::CreateTaskResult(_) => Err(ClientError::decode(
                "the result of the tool",
                "it is a task, which this client does not follow",
            )),
            _ => Err(ClientError::decode(
                "the result of the tool",
                "it has no content",
            )),
        }
    }

    /// Whether the server offers a `proxy` tool.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("a proxy tool: {}", client.offers_proxy_tool());
    /// # Ok(())
    /// # }
    /// ```
    pub fn offers_proxy_tool(&self) -> bool {
        self.proxy_tool().is_some()
    }

    /// Whether the server offers a `proxy-dispatch` tool.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("search: {}", client.offers_dispatch_tool());
    /// # Ok(())
    /// # }
    /// ```
    pub fn offers_dispatch_tool(&self) -> bool {
        self.dispatch_tool().is_some()
    }

    /// Whether the typed methods reach what is behind the server: through its `proxy` tool, or, for tools,
    /// `proxy-dispatch`.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("behind the server: {}", client.is_proxied());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_proxied(&self) -> bool {
        self.route() != Route::Native
    }

    pub(crate) fn route(&self) -> Route {
        let settings = &self.inner.settings;
        match self.inner.tools.get() {
            Some(tools) if settings.transparent => match (&tools.proxy, &tools.dispatch) {
                (Some(_), _) => Route::ProxyTool,
                // A server that lists its tools next to the dispatch tool is better asked itself, with all of their
                // definitions.
                (None, Some(_)) if tools.only_dispatch || !settings.fall_back_to_native => {
                    Route::DispatchTool
                }
                _ => Route::Native,
            },
            _ => Route::Native,
        }
    }

    /// The definition of the `proxy` tool, as the server lists it.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("{:?}", client.proxy_tool().map(|tool| &tool.name));
    /// # Ok(())
    /// # }
    /// ```
    pub fn proxy_tool(&self) -> Option<&Tool> {
        self.inner.tools.get()?.proxy.as_ref()
    }

    /// The definition of the `proxy-dispatch` tool, as the server lists it.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("{:?}", client.dispatch_tool().map(|tool| &tool.name));
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch_tool(&self) -> Option<&Tool> {
        self.inner.tools.get()?.dispatch.as_ref()
    }

    /// What the server said about itself when the conversation opened.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// let name = client.server_info().and_then(|info| Some(info.server_info.clone()?.name));
    /// println!("{}", name.unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub fn server_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.inner.peer.peer_info()
    }

    /// The server's own methods.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// let tools = client.native().list_all_tools().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn native(&self) -> &Peer<RoleClient> {
        &self.inner.peer
    }

    /// Whether the conversation has ended.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// assert!(!client.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.inner.peer.is_transport_closed()
    }

    /// Ends the conversation, also for the clones of this client, and waits until a server that was started for it has
    /// ended.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(self) {
        let service = self.inner.service.lock().await.take();
        if let Some(service) = service {
            let _ = service.cancel().await;
        }
    }

    pub(crate) fn no_proxy_tool(&self) -> ClientError {
        let name = match &self.inner.settings.proxy_tool_name {
            Some(name) => format!("'{name}'"),
            None => format!("'{}'", PROXY_TOOL_NAMES.join("', '")),
        };
        ClientError::NoProxyTool { name }
    }
}

impl ClientInner {
    fn keep_listed_tools(&self, tools: Result<Vec<Tool>, ClientError>) {
        let mut listed = self
            .listed_tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *listed = Some(FirstToolList {
            read: Instant::now(),
            outcome: tools,
        });
    }

    /// The list that was read while connecting, the first time, if it is not older than `max_age`.
    pub(crate) fn take_listed_tools(
        &self,
        max_age: Duration,
    ) -> Option<Result<Vec<Tool>, ClientError>> {
        let mut listed = self
            .listed_tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let FirstToolList { read, outcome } = listed.take()?;
        let is_fresh = read.elapsed() <= max_age && !self.tools_changed.load(Ordering::Relaxed);
        is_fresh.then_some(outcome)
    }
}

impl fmt::Debug for ProxyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyClient")
            .field(
                "server",
                &self.server_info().and_then(|info| info.server_info.clone()),
            )
            .field("proxy_tool", &self.proxy_tool().map(|tool| &tool.name))
            .field(
                "dispatch_tool",
                &self.dispatch_tool().map(|tool| &tool.name),
            )
            .field("settings", &self.inner.settings)
            .finish()
    }
}
