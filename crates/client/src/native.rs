//! The server's own methods, with their pages followed to the end.

use std::time::Duration;

use mcp_proxy_tool::{CapabilityType, ItemKind};
use rmcp::model::{
    ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams, GetPromptResult,
    JsonObject, MetaObject, Prompt, ReadResourceRequest, ReadResourceRequestParams,
    ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, ServerResult, Tool,
};

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::error::ClientError;
use crate::list_pages::{PageCursors, list_request};
use crate::requests::within;
use crate::transport::skipped_definitions;

/// How long the list that was read to find the proxy tool stands for the first one that is asked for.
const FRESH: Duration = Duration::from_secs(5);

/// A page of a list.
struct ListPage<T> {
    items: Vec<T>,
    next: Option<String>,
    meta: Option<MetaObject>,
}

impl ProxyClient {
    /// All tools. The list that was read when the client connected is used once, if nothing has changed since.
    pub(crate) async fn native_tools(&self) -> Result<Vec<Tool>, ClientError> {
        match self.inner.take_listed_tools(FRESH) {
            Some(listed) => listed,
            None => self.read_tools().await,
        }
    }

    pub(crate) async fn read_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.native_list(ItemKind::Tool, |result| match result {
            ServerResult::ListToolsResult(page) => Some(ListPage {
                items: page.tools,
                next: page.next_cursor,
                meta: page.meta,
            }),
            _ => None,
        })
        .await
    }

    pub(crate) async fn native_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.native_list(ItemKind::Resource, |result| match result {
            ServerResult::ListResourcesResult(page) => Some(ListPage {
                items: page.resources,
                next: page.next_cursor,
                meta: page.meta,
            }),
            _ => None,
        })
        .await
    }

    pub(crate) async fn native_resource_templates(
        &self,
    ) -> Result<Vec<ResourceTemplate>, ClientError> {
        let templates = self
            .native_list(ItemKind::Template, |result| match result {
                ServerResult::ListResourceTemplatesResult(page) => Some(ListPage {
                    items: page.resource_templates,
                    next: page.next_cursor,
                    meta: page.meta,
                }),
                _ => None,
            })
            .await;
        match templates {
            // A server with resources need not have templates, and cannot say so beforehand.
            Err(ClientError::Protocol { code, .. })
                if code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) =>
            {
                Ok(Vec::new())
            }
            templates => templates,
        }
    }

    pub(crate) async fn native_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.native_list(ItemKind::Prompt, |result| match result {
            ServerResult::ListPromptsResult(page) => Some(ListPage {
                items: page.prompts,
                next: page.next_cursor,
                meta: page.meta,
            }),
            _ => None,
        })
        .await
    }

    pub(crate) async fn native_resource(
        &self,
        uri: &str,
    ) -> Result<ReadResourceResult, ClientError> {
        let build = |responses, state| {
            let mut params = ReadResourceRequestParams::new(uri);
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        match self.exchange(build, &CallOptions::default()).await? {
            ServerResult::ReadResourceResult(result) => Ok(result),
            _ => Err(ClientError::decode(
                "the resource",
                "the result has no contents",
            )),
        }
    }

    pub(crate) async fn native_prompt(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
    ) -> Result<GetPromptResult, ClientError> {
        let build = |responses, state| {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = arguments.clone();
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        match self.exchange(build, &CallOptions::default()).await? {
            ServerResult::GetPromptResult(result) => Ok(result),
            _ => Err(ClientError::decode(
                "the prompt",
                "the result has no messages",
            )),
        }
    }

    /// All pages of a list. What the server does not offer is empty.
    async fn native_list<T>(
        &self,
        kind: ItemKind,
        page: impl Fn(ServerResult) -> Option<ListPage<T>>,
    ) -> Result<Vec<T>, ClientError> {
        let info = self.server_info();
        if info.is_some_and(|info| !offers(&info.capabilities, kind)) {
            return Ok(Vec::new());
        }
        let what = || format!("the list of {}s", kind.word());
        let all_pages = async {
            let mut items = Vec::new();
            let mut cursors = PageCursors::default();
            let mut cursor = None;
            loop {
                let request = list_request(kind, cursor);
                let result = self.request(request, &CallOptions::default()).await?;
                let page = page(result)
                    .ok_or_else(|| ClientError::decode(what(), "the result is not a list"))?;
                items.extend(page.items);
                for skipped in skipped_definitions(page.meta.as_ref()) {
                    self.warn_of_skipped(CapabilityType::from(kind), skipped);
                }
                cursor = cursors
                    .follow(page.next)
                    .map_err(|reason| ClientError::decode(what(), reason))?;
                if cursor.is_none() {
                    return Ok(items);
                }
            }
        };
        within(self.options.max_time, Box::pin(all_pages)).await
    }
}

fn offers(capabilities: &ServerCapabilities, kind: ItemKind) -> bool {
    match kind {
        ItemKind::Tool => capabilities.tools.is_some(),
        ItemKind::Resource | ItemKind::Template => capabilities.resources.is_some(),
        ItemKind::Prompt => capabilities.prompts.is_some(),
    }
}
