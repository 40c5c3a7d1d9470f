//! Calls of the `proxy` tool: each becomes a native request, and its answer a result of the tool.

use bytes::Bytes;
use mcp_proxy_spill::is_handle;
use mcp_proxy_wire::{ErrorCode, Field, Message, Span, json_string};

use super::Hub;
use super::batches::{Batch, BatchId, BatchProgress, BatchPurpose};
use super::calls::{AnswerForm, NewCall, error_text};
use super::clients::OpenRequest;
use super::requests::{ClientRequest, method_of};
use super::work::WorkTask;
use crate::catalog::{Hints, ItemKind};
use crate::dispatch_tool::DispatchAction;
use crate::json;
use crate::proxy_tool::{
    self, ArgumentError, CapabilityType, ProxyOperation, ProxyToolError, ToolWord,
};
use crate::read_tool::READ_TOOL_NAME;
use crate::resolve::LookupError;
use crate::settings::OwnToolUse;

impl Hub {
    pub(super) fn call_proxy_tool(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let Some(id) = message.id() else {
            return;
        };
        let arguments = arguments_of(message);
        let more_actions: &[_] = match self.is_read_tool(request) {
            true => &[DispatchAction::ReadResult.as_str()],
            false => &[],
        };
        match proxy_tool::parse_arguments(arguments.as_ref(), &self.proxy_tool, more_actions) {
            Err(error) => {
                self.send_result(client, &id, &proxy_tool::render_error(&error.into()));
            }
            Ok(ProxyOperation::Batch(operations)) => {
                let batch = BatchId(self.next_id());
                let results = vec![None; operations.len()];
                let state = Batch {
                    purpose: BatchPurpose::ProxyTool,
                    client,
                    id: id.clone(),
                    progress: BatchProgress::of(message, results.len()),
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
            Ok(ProxyOperation::Call {
                kind: CapabilityType::Resource,
                path: uri,
                ..
            }) if is_handle(&uri) => match self.files_of(client) {
                Some(files) => self.begin_work(request, WorkTask::ProxyResource { files, uri }),
                None => {
                    let error = ProxyToolError::NotFound {
                        kind: CapabilityType::Resource,
                        path: uri,
                        near: Vec::new(),
                    };
                    self.send_result(client, &id, &proxy_tool::render_error(&error));
                }
            },
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
        let native = match item {
            ItemKind::Tool => tool_request(message, &path, arguments.as_deref()),
            _ => {
                let meta = message.span(Field::Param("_meta"));
                let meta = meta.map(|span| message.slice(span));
                server_request(message, item, &path, arguments.as_deref(), meta)
            }
        };
        let (target, sent) = match self.route(client, item, &path, &native) {
            Ok(routed) => routed,
            Err(error) => {
                self.audit_refused(request, item, &path);
                return Some(self.proxy_tool_refusal(kind, &path, &error));
            }
        };
        if let Some(error) = self.refused_by_read_tool(request, kind, &path, target.hints) {
            self.audit_refused(request, item, &path);
            return Some(proxy_tool::render_error(&error));
        }
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
            unlisted: target.unlisted,
        });
        None
    }

    /// Whether this is a call of the `proxy-read` tool.
    pub(super) fn is_read_tool(&self, request: ClientRequest<'_>) -> bool {
        self.profile(request.client).read_tool == OwnToolUse::Offered
            && request.message.text(Field::Name).as_deref() == Some(READ_TOOL_NAME)
    }

    /// Why the `proxy-read` tool does not call this, if so.
    fn refused_by_read_tool(
        &self,
        request: ClientRequest<'_>,
        kind: CapabilityType,
        path: &str,
        hints: Hints,
    ) -> Option<ProxyToolError> {
        if !self.is_read_tool(request) || kind != CapabilityType::Tool || hints.read_only {
            return None;
        }
        let profile = self.profile(request.client);
        let other = match (profile.proxy_tool, profile.dispatch_tool) {
            (OwnToolUse::Offered, _) => Some(self.proxy_tool.name.clone()),
            (_, OwnToolUse::Offered) => Some(self.settings.dispatch_tool.name.clone()),
            _ => None,
        };
        Some(ProxyToolError::NotReadOnly {
            path: path.to_owned(),
            other,
        })
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
            LookupError::ArgumentsNotAnObject { .. } => ArgumentError::not_an_object().into(),
        })
    }
}

/// Whether a call of the `proxy-read` tool says that it is about a stored result.
pub(super) fn is_read_result(message: &Message) -> bool {
    let arguments = message.span(Field::Param("arguments"));
    let action = arguments.and_then(|span| message.member(span, "action"));
    action.and_then(|span| message.text_at(span)).as_deref()
        == Some(DispatchAction::ReadResult.as_str())
}

/// The `arguments` of a call. `null` counts as not given.
pub(super) fn arguments_of(message: &Message) -> Option<Bytes> {
    let span = message.span(Field::Param("arguments"))?;
    let given = message.raw().slice(span.range());
    (&*given != b"null").then_some(given)
}

/// A call of one of the hub's own tools as a call of the tool `name`: everything else in it is for that tool too, such as
/// `_meta`, the wish for a task, and what answers its server's `input_required`.
pub(super) fn tool_request(message: &Message, name: &str, arguments: Option<&[u8]>) -> Message {
    let rebuilt = || {
        let meta = message.span(Field::Param("_meta"));
        let meta = meta.map(|span| message.slice(span));
        server_request(message, ItemKind::Tool, name, arguments, meta)
    };
    let Some([own_name, own_arguments]) = called_tool(message) else {
        return rebuilt();
    };
    let name = json_string(name);
    let mut edits = [
        (own_name, name.as_bytes()),
        (own_arguments, arguments.unwrap_or(b"{}")),
    ];
    edits.sort_unstable_by_key(|(span, _)| span.start);
    message.splice(&edits).unwrap_or_else(|_| rebuilt())
}

/// Where the name and the arguments of a call stand. Nothing if they do not stand there once each, so that a server could read
/// another name than the hub.
fn called_tool(message: &Message) -> Option<[Span; 2]> {
    let mut found = [None; 2];
    for (key, value) in json::members(message, message.params()?) {
        let place = match message.slice(key) {
            br#""name""# => 0,
            br#""arguments""# => 1,
            key if key.contains(&b'\\') => return None,
            _ => continue,
        };
        if found[place].replace(value).is_some() {
            return None;
        }
    }
    let [name, arguments] = found;
    Some([name?, arguments?])
}

/// A native request for what a call of one of the hub's own tools names, with the id and the `_meta` of that call.
pub(super) fn server_request(
    message: &Message,
    kind: ItemKind,
    path: &str,
    arguments: Option<&[u8]>,
    meta: Option<&[u8]>,
) -> Message {
    let method = method_of(kind);
    let member = match kind {
        ItemKind::Tool | ItemKind::Prompt => "name",
        ItemKind::Resource | ItemKind::Template => "uri",
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
    // What answers a server's `input_required` belongs to the call inside, and so does the wish for a task.
    for member in ["inputResponses", "requestState", "task"] {
        let applies = member != "task" || kind == ItemKind::Tool;
        if let Some(span) = message.span(Field::Param(member)).filter(|_| applies) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_an_own_tool_becomes_one_of_the_tool_that_it_names() {
        let sent = |text: &str, arguments| {
            let sent = tool_request(&Message::parse(text.to_owned()), "add", arguments);
            String::from_utf8(sent.into_raw().to_vec()).unwrap()
        };
        let call = r#"{"id":"a","method":"tools/call","params":{"task":{},"arguments":{"tool":"add"},"name":"own","_meta":{"x":1}}}"#;
        assert_eq!(
            sent(call, Some(br#"{"a":1}"#)),
            r#"{"id":"a","method":"tools/call","params":{"task":{},"arguments":{"a":1},"name":"add","_meta":{"x":1}}}"#
        );
        assert_eq!(
            sent(call, None),
            r#"{"id":"a","method":"tools/call","params":{"task":{},"arguments":{},"name":"add","_meta":{"x":1}}}"#
        );
    }

    #[test]
    fn no_other_name_reaches_the_server() {
        for name in [
            r#""name":"secret","name":"own""#,
            r#""\u006eame":"secret","name":"own""#,
        ] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{name},"arguments":{{}}}}}}"#
            );
            let sent = tool_request(&Message::parse(call), "add", None);
            assert_eq!(
                sent.raw(),
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}"#
            );
        }
    }
}
