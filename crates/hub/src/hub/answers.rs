//! Answers on their way back to clients.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Field, Id, Kind, Message, Span};

use super::calls::{AnswerForm, Call};
use super::proxy_calls::proxy_tool_result;
use super::{AuditRecord, CallOutcome, Hub, HubAction};
use crate::catalog::ServerIndex;
use crate::server_link::{CallId, ClientId};

impl Hub {
    /// Gives the client its answer.
    pub(super) fn finish_call(&mut self, id: CallId, answer: Message, now: Instant) {
        let Some(mut call) = self.calls.remove(&id) else {
            return;
        };
        self.note_use(call.server, now);
        self.note_task(call.server, &answer);
        self.audit(&call, &answer, now);
        if matches!(call.form, AnswerForm::TaskPage(_))
            && let AnswerForm::TaskPage(page) = std::mem::replace(&mut call.form, AnswerForm::Plain)
        {
            return self.task_page_answered(&call, page, &answer, now);
        }
        let result = match &call.form {
            AnswerForm::Native => {
                let answer = self.with_public_uris(call.server, answer);
                return self.answer_client(&call, answer);
            }
            AnswerForm::Plain | AnswerForm::TaskPage(_) => {
                return self.answer_client(&call, answer);
            }
            AnswerForm::Subscribe { uri } => {
                self.subscription_answered(&call, uri, &answer);
                return self.answer_client(&call, answer);
            }
            AnswerForm::ProxyTool { kind, path } | AnswerForm::Part { kind, path, .. } => {
                let answer = self.with_public_uris(call.server, answer);
                proxy_tool_result(&answer, *kind, path)
            }
        };
        match call.form {
            AnswerForm::Part { batch, place, .. } => self.part_done(batch, place, result),
            _ => {
                if let Some(client) = self.clients.get_mut(&call.client) {
                    client.open.remove(&call.id.key());
                }
                self.send_result(call.client, &call.id, &result);
                self.release(call.client);
            }
        }
    }

    pub(super) fn answer_client(&mut self, call: &Call, answer: Message) {
        if let Some(client) = self.clients.get_mut(&call.client) {
            client.open.remove(&call.id.key());
        }
        self.send_to_client(call.client, answer);
        self.release(call.client);
    }

    /// Sends a result of the hub's own.
    pub(super) fn send_result(&mut self, client: ClientId, id: &Id, result: &Bytes) {
        let result = String::from_utf8_lossy(result);
        self.complete_result(client, id, &result);
    }

    pub(super) fn audit(&mut self, call: &Call, answer: &Message, now: Instant) {
        let failed = answer.span(Field::ResultField("isError"));
        let outcome = match answer.kind() {
            _ if call.is_cached => CallOutcome::Cached,
            Kind::Error => CallOutcome::Failed,
            _ if failed.is_some_and(|span| answer.slice(span) == b"true") => {
                CallOutcome::ToolFailed
            }
            _ => CallOutcome::Succeeded,
        };
        let client = self.clients.get(&call.client);
        let method = call.message.method().unwrap_or_default();
        let record = AuditRecord {
            client: client.map_or_else(String::new, |client| client.name.clone()),
            what: format!("{method} {}", call.what),
            server: self.server(call.server).name().to_owned(),
            outcome,
            latency: now.saturating_duration_since(call.started),
            sizes: (call.message.len(), answer.len()),
        };
        self.actions.push(HubAction::Audit(record));
    }

    /// A server's answer in which clients can read back the URIs.
    pub(super) fn with_public_uris(&self, server: ServerIndex, answer: Message) -> Message {
        let Some(result) = answer.result() else {
            return answer;
        };
        let edits = self.catalog.result_edits(server, &answer, result);
        if edits.is_empty() {
            return answer;
        }
        let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
        answer.splice(&edits).unwrap_or(answer)
    }
}

/// A text in which absolute paths are cut down to their last part.
pub(super) fn without_paths(text: &str) -> String {
    let is_border = |c: char| c.is_whitespace() || "\"'`()<>[]{}=,;|".contains(c);
    let mut shortened = String::with_capacity(text.len());
    for word in text.split_inclusive(is_border) {
        let (path, border) = match word.char_indices().next_back() {
            Some((at, last)) if is_border(last) => word.split_at(at),
            _ => (word, ""),
        };
        let name = match path.strip_prefix('/') {
            Some(rest) => rest
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or(path),
            None => path,
        };
        shortened.push_str(name);
        shortened.push_str(border);
    }
    shortened
}
