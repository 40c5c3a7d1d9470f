//! What a call of the tool does.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::join_all;
use mcp_proxy_tool::{
    ArgumentError, CapabilityType, ItemKind, ListDetail, ListQuery, ListedItem, ProxyOperation,
    ProxyToolError, SearchWords, item_line, page_of, parse_arguments, render_batch, render_error,
    render_info, render_lines, render_list, render_prompt_result, render_resource_result,
    render_search, render_tool_result,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, GetPromptRequest,
    GetPromptRequestParams, InputResponses, JsonObject, ProgressNotificationParam, ProgressToken,
    ReadResourceRequest, ReadResourceRequestParams, RequestMetaObject, ServerResult,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer, Service};

use super::served_item::{ServedItem, find};
use super::{ProxyTool, ToolAnswer};

/// Answers to the server's questions, which the client sends with its call.
#[derive(Default)]
struct Answers {
    responses: Option<InputResponses>,
    state: Option<String>,
}

/// Counts the finished operations of a batch for the client.
struct BatchProgress {
    peer: Peer<RoleServer>,
    /// `None` if the client does not want to know.
    token: Option<ProgressToken>,
    total: usize,
    done: AtomicUsize,
}

impl<S: Service<RoleServer>> ProxyTool<S> {
    /// The answer to a call of the tool.
    pub(super) async fn answer(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> ToolAnswer {
        let arguments = params
            .arguments
            .and_then(|arguments| serde_json::to_vec(&arguments).ok());
        let arguments = arguments.map(Bytes::from);
        let answers = Answers {
            responses: params.input_responses,
            state: params.request_state,
        };
        match parse_arguments(arguments.as_ref(), &self.options, &[]) {
            Err(error) => ToolAnswer::Result(render_error(&error.into())),
            Ok(ProxyOperation::Batch(operations)) => {
                ToolAnswer::Result(self.run_batch(operations, context).await)
            }
            Ok(operation) => self.run(operation, answers, context).await,
        }
    }

    async fn run(
        &self,
        operation: ProxyOperation,
        answers: Answers,
        context: RequestContext<RoleServer>,
    ) -> ToolAnswer {
        let answer = match operation {
            ProxyOperation::Search(query) => self
                .items(query.kind, &context)
                .await
                .map(|items| ToolAnswer::Result(search(&items, &query))),
            ProxyOperation::List(query) => self
                .items(query.kind, &context)
                .await
                .map(|items| ToolAnswer::Result(list(&items, &query))),
            ProxyOperation::Info { kind, path } => self.items(kind, &context).await.map(|items| {
                ToolAnswer::Result(match find(&items, kind, &path) {
                    Ok(item) => render_info(item, &path),
                    Err(error) => render_error(&error),
                })
            }),
            ProxyOperation::Call {
                kind,
                path,
                arguments,
            } => self.call(kind, path, arguments, answers, context).await,
            ProxyOperation::Batch(_) => Ok(ToolAnswer::Result(render_error(
                &ArgumentError::not_an_object().into(),
            ))),
        };
        answer.unwrap_or_else(|error| ToolAnswer::Result(render_error(&server_error(error))))
    }

    /// Runs operations at the same time. A part reports no progress of its own: the client has one token for all.
    async fn run_batch(
        &self,
        operations: Vec<Result<ProxyOperation, ProxyToolError>>,
        mut context: RequestContext<RoleServer>,
    ) -> Bytes {
        let progress = BatchProgress {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            total: operations.len(),
            done: AtomicUsize::new(0),
        };
        context.meta.remove("progressToken");
        let parts = operations.into_iter().map(|operation| {
            let (context, progress) = (context.clone(), &progress);
            async move {
                let result = match operation {
                    Ok(operation) => self.run_part(operation, context).await,
                    Err(error) => render_error(&error),
                };
                progress.report_one().await;
                result
            }
        });
        render_batch(&join_all(parts).await)
    }

    async fn run_part(
        &self,
        operation: ProxyOperation,
        context: RequestContext<RoleServer>,
    ) -> Bytes {
        match self.run(operation, Answers::default(), context).await {
            ToolAnswer::Result(result) => result,
            ToolAnswer::AsItIs(_) => {
                let message = "it asks for input or time, which a batch cannot give";
                render_error(&server_error(ErrorData::invalid_request(message, None)))
            }
        }
    }

    async fn call(
        &self,
        kind: CapabilityType,
        path: String,
        arguments: Option<Bytes>,
        answers: Answers,
        context: RequestContext<RoleServer>,
    ) -> Result<ToolAnswer, ErrorData> {
        // Only a path with braces can be a template, and a server may take even that for a URI.
        if kind == CapabilityType::Resource && path.contains('{') {
            let items = self.items(kind, &context).await?;
            let is_it =
                |item: &ServedItem| item.kind() == ItemKind::Template && item.public() == path;
            if items.iter().any(is_it) {
                let error = ProxyToolError::UnfilledTemplate { path };
                return Ok(ToolAnswer::Result(render_error(&error)));
            }
        }
        let arguments = arguments.and_then(|json| serde_json::from_slice::<JsonObject>(&json).ok());
        let call = |name: String| {
            let request = native_request(kind, name, arguments.clone(), &answers, &context.meta);
            self.server.handle_request(request, context.clone())
        };
        let result = match call(path.clone()).await {
            Ok(result) => result,
            // What a name stands for is only looked up if the server does not know it: its lists may be long.
            Err(error) => {
                let items = self.items(kind, &context).await?;
                match find(&items, kind, &path) {
                    Ok(item) if item.public() != path && item.kind() != ItemKind::Template => {
                        call(item.public().to_owned()).await?
                    }
                    // A resource need not be listed to be read.
                    Err(refusal) if kind != CapabilityType::Resource => {
                        return Ok(ToolAnswer::Result(render_error(&refusal)));
                    }
                    _ => return Err(error),
                }
            }
        };
        render_called(kind, &path, result)
    }
}

/// The result of a call in the form of the tool.
fn render_called(
    kind: CapabilityType,
    path: &str,
    mut result: ServerResult,
) -> Result<ToolAnswer, ErrorData> {
    // The outermost result says this, and the embedded one is for clients of any era.
    result.strip_result_type_for_legacy_peer();
    if let ServerResult::ReadResourceResult(read) = &mut result {
        read.ttl_ms = None;
        read.cache_scope = None;
    }
    let json = match &result {
        ServerResult::CallToolResult(_)
        | ServerResult::ReadResourceResult(_)
        | ServerResult::GetPromptResult(_)
        | ServerResult::CustomResult(_) => serde_json::to_vec(&result).map(Bytes::from),
        _ => return Ok(ToolAnswer::AsItIs(Box::new(result))),
    };
    let json = json.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ToolAnswer::Result(match kind {
        CapabilityType::Tool => render_tool_result(&json, path),
        CapabilityType::Resource => render_resource_result(&json, path),
        CapabilityType::Prompt => render_prompt_result(&json, path),
    }))
}

impl BatchProgress {
    async fn report_one(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(token) = &self.token {
            let report = ProgressNotificationParam::new(token.clone(), done as f64)
                .with_total(self.total as f64);
            // A client that has gone does not need it.
            let _ = self.peer.notify_progress(report).await;
        }
    }
}

fn native_request(
    kind: CapabilityType,
    name: String,
    arguments: Option<JsonObject>,
    answers: &Answers,
    meta: &RequestMetaObject,
) -> ClientRequest {
    let meta = Some(meta.clone());
    match kind {
        CapabilityType::Tool => {
            let mut params = CallToolRequestParams::new(name);
            params.arguments = arguments;
            params.input_responses = answers.responses.clone();
            params.request_state = answers.state.clone();
            params.meta = meta;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        }
        CapabilityType::Resource => {
            let mut params = ReadResourceRequestParams::new(name);
            params.input_responses = answers.responses.clone();
            params.request_state = answers.state.clone();
            params.meta = meta;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        }
        CapabilityType::Prompt => {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = arguments;
            params.input_responses = answers.responses.clone();
            params.request_state = answers.state.clone();
            params.meta = meta;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        }
    }
}

fn server_error(error: ErrorData) -> ProxyToolError {
    ProxyToolError::ServerError {
        code: i64::from(error.code.0),
        message: error.message.into_owned(),
    }
}

fn list(items: &[ServedItem], query: &ListQuery) -> Bytes {
    let is_of_it: Option<&dyn Fn(&ServedItem) -> bool> = None;
    match query.detail {
        ListDetail::Full => render_list(items.iter(), query, is_of_it, &[]),
        ListDetail::Brief => {
            let (page, total) = page_of(items.iter(), query, is_of_it);
            render_lines(query, total, page.into_iter().map(line).collect(), &[])
        }
    }
}

/// The items with the most words of the query, for a server with few of them: the hub has a real index.
fn search(items: &[ServedItem], query: &SearchWords) -> Bytes {
    let words: Vec<String> = query
        .query
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let count = |item: &ServedItem| {
        let line = line(item).to_lowercase();
        words.iter().filter(|word| line.contains(&**word)).count()
    };
    let mut found: Vec<_> = items.iter().map(|item| (count(item), item)).collect();
    found.retain(|(count, _)| *count > 0);
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let best = found.iter().take(limit).map(|(_, item)| line(item));
    render_search(query, found.len() as u64, true, best.collect(), &[])
}

fn line(item: &ServedItem) -> String {
    item_line(None, item.kind(), item.public(), item.definition())
}
