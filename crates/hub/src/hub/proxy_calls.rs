//! Calls of the `proxy` tool: each becomes a native request, and its answer a result of the tool.

use bytes::Bytes;
use mcp_proxy_wire::{ErrorCode, Field, Message, json_string};

use super::Hub;
use super::calls::{AnswerForm, Batch, BatchId, BatchPurpose, NewCall, error_text};
use super::clients::OpenRequest;
use super::requests::ClientRequest;
use super::tasks::task_list;
use crate::catalog::ItemKind;
use crate::proxy_tool::{self, CapabilityType, ProxyOperation, ProxyToolError};
use crate::resolve::LookupError;

impl Hub {
    pub(super) fn call_proxy_tool(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let Some(id) = message.id() else {
            return;
        };
        let arguments = message.span(Field::Param("arguments"));
        let arguments = arguments.map(|span| message.raw().slice(span.range()));
        match proxy_tool::parse_arguments(arguments.as_ref(), &self.proxy_tool) {
            Err(error) => self.send_result(client, &id, &proxy_tool::render_error(&error)),
            Ok(ProxyOperation::Batch(operations)) => {
                let batch = BatchId(self.next_id());
                let results = vec![None; operations.len()];
                let state = Batch {
                    purpose: BatchPurpose::ProxyTool,
                    client,
                    id: id.clone(),
                    results,
                    calls: Vec::new(),
                };
                self.batches.insert(batch, state);
                if let Some(client) = self.clients.get_mut(&client) {
                    client.open.insert(id.key(), OpenRequest::Batch(batch));
                }
                for (place, operation) in operations.into_iter().enumerate() {
                    let done = match operation {
                        Ok(operation) => {
                            let part = Some((batch, place));
                            self.run_operation(request, operation, part)
                        }
                        Err(error) => Some(proxy_tool::render_error(&error)),
                    };
                    if let Some(result) = done {
                        self.part_done(batch, place, result);
                    }
                }
            }
            Ok(operation) => {
                if let Some(result) = self.run_operation(request, operation, None) {
                    self.send_result(client, &id, &result);
                }
            }
        }
    }

    /// Runs one operation of the `proxy` tool. A result that is known at once is returned.
    pub(super) fn run_operation(
        &mut self,
        request: ClientRequest<'_>,
        operation: ProxyOperation,
        part: Option<(BatchId, usize)>,
    ) -> Option<Bytes> {
        let ClientRequest {
            client, message, ..
        } = request;
        let (kind, path, arguments) = match operation {
            ProxyOperation::Call {
                kind,
                path,
                arguments,
            } => (kind, path, arguments),
            other => return Some(self.query(client, &other)),
        };
        let item = match kind {
            CapabilityType::Tool => ItemKind::Tool,
            CapabilityType::Resource => ItemKind::Resource,
            CapabilityType::Prompt => ItemKind::Prompt,
        };
        if kind == CapabilityType::Resource && self.is_template(client, &path) {
            return Some(proxy_tool::render_error(
                &ProxyToolError::UnfilledTemplate { path },
            ));
        }
        // Several calls cannot report their progress under one token.
        let meta = message
            .span(Field::Param("_meta"))
            .filter(|_| part.is_none());
        let meta = meta.map(|span| message.slice(span));
        let native = server_request(message, item, &path, arguments.as_deref(), meta);
        let (target, sent) = match self.route(client, item, &path, &native) {
            Ok(routed) => routed,
            Err(error) => return Some(self.proxy_tool_refusal(kind, &path, &error)),
        };
        let form = match part {
            None => AnswerForm::ProxyTool {
                kind,
                path: path.clone(),
            },
            Some((batch, place)) => AnswerForm::Part {
                batch,
                place,
                kind,
                path: path.clone(),
            },
        };
        self.forward(NewCall {
            request,
            sent,
            server: target.server,
            form,
            what: path,
            hints: target.hints,
        });
        None
    }

    pub(super) fn part_done(&mut self, id: BatchId, place: usize, result: Bytes) {
        let Some(batch) = self.batches.get_mut(&id) else {
            return;
        };
        if let Some(slot) = batch.results.get_mut(place) {
            *slot = Some(result);
        }
        if batch.results.iter().any(Option::is_none) {
            return;
        }
        let Some(batch) = self.batches.remove(&id) else {
            return;
        };
        if let Some(client) = self.clients.get_mut(&batch.client) {
            client.open.remove(&batch.id.key());
        }
        let results: Vec<Bytes> = batch.results.into_iter().flatten().collect();
        match batch.purpose {
            BatchPurpose::ProxyTool => {
                let result = proxy_tool::render_batch(&results);
                self.send_result(batch.client, &batch.id, &result);
            }
            BatchPurpose::TaskList => {
                self.send_result(batch.client, &batch.id, &task_list(&results));
            }
        }
        self.release(batch.client);
    }

    pub(super) fn proxy_tool_refusal(
        &self,
        kind: CapabilityType,
        path: &str,
        error: &LookupError,
    ) -> Bytes {
        let path = path.to_owned();
        proxy_tool::render_error(&match error {
            LookupError::Ambiguous { candidates, .. } => ProxyToolError::Ambiguous {
                kind,
                path,
                candidates: candidates.clone(),
            },
            LookupError::NotFound { near, .. } | LookupError::UnknownServer { near, .. } => {
                ProxyToolError::NotFound {
                    kind,
                    path,
                    near: near.clone(),
                }
            }
        })
    }
}

/// A native request for what a call of the `proxy` tool names, with the id and the `_meta` of that call.
fn server_request(
    message: &Message,
    kind: ItemKind,
    path: &str,
    arguments: Option<&[u8]>,
    meta: Option<&[u8]>,
) -> Message {
    let (method, member) = match kind {
        ItemKind::Tool => ("tools/call", "name"),
        ItemKind::Prompt => ("prompts/get", "name"),
        ItemKind::Resource | ItemKind::Template => ("resources/read", "uri"),
    };
    let takes_arguments = matches!(kind, ItemKind::Tool | ItemKind::Prompt);
    let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    text.extend_from_slice(message.id_token().unwrap_or(b"null"));
    let name = json_string(path);
    text.extend_from_slice(
        format!(r#","method":"{method}","params":{{"{member}":{name}"#).as_bytes(),
    );
    if let Some(arguments) = arguments.filter(|_| takes_arguments) {
        text.extend_from_slice(br#","arguments":"#);
        text.extend_from_slice(arguments);
    } else if kind == ItemKind::Tool {
        text.extend_from_slice(br#","arguments":{}"#);
    }
    // What answers a server's `input_required` belongs to the call inside.
    for member in ["inputResponses", "requestState"] {
        if let Some(span) = message.span(Field::Param(member)) {
            text.extend_from_slice(format!(",\"{member}\":").as_bytes());
            text.extend_from_slice(message.slice(span));
        }
    }
    if let Some(meta) = meta {
        text.extend_from_slice(br#","_meta":"#);
        text.extend_from_slice(meta);
    }
    text.extend_from_slice(b"}}");
    Message::parse(text)
}

/// A server's answer as a result of the `proxy` tool.
pub(super) fn proxy_tool_result(answer: &Message, kind: CapabilityType, path: &str) -> Bytes {
    let Some(span) = answer.result() else {
        return proxy_tool::render_error(&ProxyToolError::ServerError {
            code: answer.error_code().unwrap_or(ErrorCode::INTERNAL.get()),
            message: error_text(answer),
        });
    };
    let result = answer.raw().slice(span.range());
    match kind {
        CapabilityType::Tool => proxy_tool::render_tool_result(&result, path),
        CapabilityType::Resource => proxy_tool::render_resource_result(&result, path),
        CapabilityType::Prompt => proxy_tool::render_prompt_result(&result, path),
    }
}
