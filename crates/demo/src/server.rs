//! The server itself: which part of the content answers which MCP request.

#![expect(
    deprecated,
    reason = "rmcp marks logging and resources/subscribe as deprecated by 2026-07-28; legacy clients use them"
)]

use std::sync::{Arc, atomic::Ordering};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::tool::ToolCallContext,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CompletionInfo, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::{
    prompts,
    reporter::is_modern,
    resources,
    state::{ClientSession, ContentChange, ServerState},
};

/// One connection's view of the server.
#[derive(Clone)]
pub struct DemoServer {
    state: Arc<ServerState>,
    session: Arc<ClientSession>,
}

impl DemoServer {
    /// A new server and its first session, whose client is gone when `ended` is cancelled.
    pub fn new(ended: CancellationToken) -> DemoServer {
        DemoServer {
            state: Arc::new(ServerState::new()),
            session: Arc::new(ClientSession::new(ended)),
        }
    }

    /// Another session of the same server.
    #[must_use]
    pub fn with_session(&self, ended: CancellationToken) -> DemoServer {
        DemoServer {
            state: Arc::clone(&self.state),
            session: Arc::new(ClientSession::new(ended)),
        }
    }

    pub(crate) fn session(&self) -> &ClientSession {
        &self.session
    }

    /// Counts an answered tool call in the tally, which clients may watch.
    pub async fn count_call(&self, context: &RequestContext<RoleServer>) {
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        self.announce(ContentChange::Resource(resources::TALLY), context)
            .await;
    }

    /// Tells everybody who asked that something has changed: open `subscriptions/listen` streams of any
    /// client, and the legacy session in which it happened.
    pub async fn announce(&self, change: ContentChange, context: &RequestContext<RoleServer>) {
        // There is no receiver while nobody listens, which is fine.
        let _ = self.state.changes.send(change);
        if is_modern(context) {
            return;
        }
        let peer = &context.peer;
        let _ = match change {
            ContentChange::Tools => peer.notify_tool_list_changed().await,
            ContentChange::Prompts => peer.notify_prompt_list_changed().await,
            ContentChange::Resource(uri) if self.session.watches(uri) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                    .await
            }
            ContentChange::Resource(_) => Ok(()),
        };
    }
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed();
        let name = Implementation::new("mcp-proxy-demo", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities.build())
            .with_server_info(name)
            .with_instructions("A small server to look at MCP with. Nothing it does has an effect.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.state.tools.list_all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.state.tools.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.state.tools.has_route(&request.name) {
            let message = format!("no tool is named {:?}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let call = ToolCallContext::new(self, request, context.clone());
        let answer = self.state.tools.call(call).await;
        self.count_call(&context).await;
        answer
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = resources::list();
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let listed = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(listed))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        match resources::read(&uri, self.state.calls.load(Ordering::Relaxed)) {
            Some(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            None => Err(ErrorData::resource_not_found(
                "Resource not found",
                Some(json!({ "uri": uri })),
            )),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.watch(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.unwatch(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.session
            .prepare_listener(self.state.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let prepared = self.session.take_listener();
        let mut changes = prepared.unwrap_or_else(|| self.state.changes.subscribe());
        let sink = subscription.sink();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
                () = self.session.ended() => return Ok(()),
            };
            // The sink drops what this client did not ask for; that is not an error of ours.
            let _ = match change {
                Ok(ContentChange::Tools) => sink.notify_tool_list_changed().await,
                Ok(ContentChange::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(ContentChange::Resource(uri)) => sink.notify_resource_updated(uri).await,
                Err(RecvError::Lagged(_)) => Ok(()),
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listed = prompts::list();
        Ok(ListPromptsResult::with_all_items(listed))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(prompt) = prompts::get(&request.name, request.arguments.as_ref()) {
            return prompt.map(Into::into);
        }
        let message = format!("no prompt is named {:?}", request.name);
        Err(ErrorData::invalid_params(message, None))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = prompts::complete(&request.r#ref, &request.argument);
        let completion = CompletionInfo::with_all_values(values)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            // 2026-07-28 has no such method: each request brings its own level.
            return Err(ErrorData::method_not_found::<
                rmcp::model::SetLevelRequestMethod,
            >());
        }
        self.session.set_log_level(request.level);
        Ok(())
    }
}
