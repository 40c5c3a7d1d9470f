//! The server's own methods, with their pages followed to the end.

use std::collections::HashSet;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, GetPromptResult, JsonObject,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, Prompt, ReadResourceRequest, ReadResourceRequestParams,
    ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, ServerResult, Tool,
};

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::error::ClientError;

/// The most pages of one list. A server that has more does not end its list.
const MAX_PAGES: usize = 10_000;

impl ProxyClient {
    pub(crate) async fn native_tools(&self) -> Result<Vec<Tool>, ClientError> {
        let build = |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        let page = |result| match result {
            ServerResult::ListToolsResult(page) => Some((page.tools, page.next_cursor)),
            _ => None,
        };
        self.native_list("tools", |offers| offers.tools.is_some(), build, page)
            .await
    }

    pub(crate) async fn native_resources(&self) -> Result<Vec<Resource>, ClientError> {
        let build =
            |page| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
        let page = |result| match result {
            ServerResult::ListResourcesResult(page) => Some((page.resources, page.next_cursor)),
            _ => None,
        };
        self.native_list(
            "resources",
            |offers| offers.resources.is_some(),
            build,
            page,
        )
        .await
    }

    pub(crate) async fn native_resource_templates(
        &self,
    ) -> Result<Vec<ResourceTemplate>, ClientError> {
        let build = |page| {
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(
                page,
            ))
        };
        let page = |result| match result {
            ServerResult::ListResourceTemplatesResult(page) => {
                Some((page.resource_templates, page.next_cursor))
            }
            _ => None,
        };
        self.native_list(
            "resource templates",
            |offers| offers.resources.is_some(),
            build,
            page,
        )
        .await
    }

    pub(crate) async fn native_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        let build = |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
        let page = |result| match result {
            ServerResult::ListPromptsResult(page) => Some((page.prompts, page.next_cursor)),
            _ => None,
        };
        self.native_list("prompts", |offers| offers.prompts.is_some(), build, page)
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
        what: &str,
        is_offered: impl Fn(&ServerCapabilities) -> bool,
        build: impl Fn(PaginatedRequestParams) -> ClientRequest,
        page: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, ClientError> {
        let info = self.server_info();
        if info.is_some_and(|info| !is_offered(&info.capabilities)) {
            return Ok(Vec::new());
        }
        let mut items = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let result = self.request(build(params), &CallOptions::default()).await?;
            let (more, next) = page(result)
                .ok_or_else(|| ClientError::decode(what, "the result is not a list of them"))?;
            items.extend(more);
            match next {
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                Some(_) => return Err(ClientError::decode(what, "the list repeats a page")),
                None => return Ok(items),
            }
        }
        Err(ClientError::decode(what, "the list does not end"))
    }
}
