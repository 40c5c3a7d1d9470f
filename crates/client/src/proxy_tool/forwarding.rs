//! The tool as a `ServerHandler`: everything but lists and calls of tools goes to the server as it is.

// `logging/setLevel`, `resources/subscribe` and others are deprecated in the newest revision only.
#![allow(deprecated)]

use std::borrow::Cow;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::{ProxyTool, ToolAnswer, add_capability};

/// A server with the `proxy` tool, as a `ServerHandler`.
///
/// rmcp's types carry its answers, and they have no room for the annotations of the proxy tool. Clients find the same
/// facts in `_meta` under `mcp-proxy/proxy`, as those of this crate do. For other clients, `write_annotations` puts them
/// into the answers of rmcp's HTTP service.
///
/// ```
/// use mcp_proxy_client::ProxyTool;
/// use mcp_proxy_client::rmcp::ServerHandler;
///
/// struct MyServer;
/// impl ServerHandler for MyServer {}
///
/// let handler = ProxyTool::new(MyServer).into_handler();
/// assert!(handler.get_info().capabilities.tools.is_some());
/// ```
#[derive(Debug)]
pub struct ProxyToolHandler<S>(ProxyTool<S>);

impl<S: ServerHandler> ProxyTool<S> {
    /// For places that want a `ServerHandler`, such as rmcp's HTTP service.
    ///
    /// ```
    /// use mcp_proxy_client::{ProxyTool, ProxyToolHandler};
    /// use mcp_proxy_client::rmcp::ServerHandler;
    ///
    /// struct MyServer;
    /// impl ServerHandler for MyServer {}
    ///
    /// let handler: ProxyToolHandler<MyServer> = ProxyTool::new(MyServer).into_handler();
    /// # let _ = handler;
    /// ```
    pub fn into_handler(self) -> ProxyToolHandler<S> {
        ProxyToolHandler(self)
    }
}

impl<S> Clone for ProxyToolHandler<S> {
    fn clone(&self) -> ProxyToolHandler<S> {
        ProxyToolHandler(self.0.clone())
    }
}

impl<S: ServerHandler> ServerHandler for ProxyToolHandler<S> {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != self.0.options.name {
            return self.0.server.call_tool(request, context).await;
        }
        let unexpected = |error: String| ErrorData::internal_error(error, None);
        match self.0.answer(request, context).await {
            ToolAnswer::Result(json) => {
                let mut result: CallToolResult =
                    serde_json::from_slice(&json).map_err(|error| unexpected(error.to_string()))?;
                // rmcp removes it again for legacy clients.
                result.result_type = Some(ResultType::COMPLETE);
                Ok(CallToolResponse::Complete(result))
            }
            ToolAnswer::AsItIs(result) => match *result {
                ServerResult::InputRequiredResult(result) => {
                    Ok(CallToolResponse::InputRequired(result))
                }
                ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
                _ => Err(unexpected(
                    "the server's answer is not the result of a call".to_owned(),
                )),
            },
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let is_first = request.as_ref().is_none_or(|page| page.cursor.is_none());
        let mut list = self.0.server.list_tools(request, context).await?;
        self.0.add_tool(&mut list, is_first);
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        if name == self.0.options.name {
            return Some(self.0.tool());
        }
        self.0.server.get_tool(name)
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.server.get_info();
        add_capability(&mut info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.server.supported_protocol_versions()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.server.accepted_subscription_filter(requested)
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.0.server.negotiate_initialize(request)?;
        add_capability(&mut result.capabilities);
        Ok(result)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.0.server.initialize(request, context).await?;
        add_capability(&mut result.capabilities);
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.0.server.discover(context).await?;
        add_capability(&mut result.capabilities);
        Ok(result)
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.server.ping(context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.0.server.complete(request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.server.set_level(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.0.server.get_prompt(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.0.server.list_prompts(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.0.server.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.0
            .server
            .list_resource_templates(request, context)
            .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.0.server.read_resource(request, context).await
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.server.listen(context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.server.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.server.unsubscribe(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.0.server.on_custom_request(request, context).await
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.0.server.on_cancelled(notification, context).await
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.0.server.on_progress(notification, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.server.on_initialized(context).await
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.0.server.on_roots_list_changed(context).await
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.0
            .server
            .on_custom_notification(notification, context)
            .await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.server.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.server.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.server.cancel_task(request, context).await
    }
}
