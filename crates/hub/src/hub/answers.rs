//! Answers on their way back to clients.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, Id, Message};

use super::calls::{AnswerForm, Call};
use super::rendering::{AnswerRendering, RenderedAnswer, RenderedContent};
use super::{AuditRecord, Hub, HubAction};
use crate::edit::{Place, with_member};
use crate::server_link::{CallId, ClientId};

impl Hub {
    /// Gives the client its answer. A large one is made ready apart from the hub.
    pub(super) fn finish_call(&mut self, id: CallId, answer: Message, now: Instant) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let link = call.link.and_then(|link| self.links.get(&link));
        let client = self.clients.get(&call.client);
        let client_era = client.map_or(Era::Legacy, |client| client.era());
        let rendering = AnswerRendering {
            server_era: link.map_or(client_era, |link| link.state.era),
            client_era,
            call,
            answer,
            catalog: Arc::clone(&self.catalog),
            server_info: self.settings.server_info.clone(),
        };
        if rendering.is_large() {
            self.actions.push(HubAction::Render(Box::new(rendering)));
        } else {
            self.answer_rendered(rendering.run(), now);
        }
    }

    /// An answer is ready for its client.
    pub fn answer_rendered(&mut self, rendered: RenderedAnswer, now: Instant) {
        self.audit(&rendered, now);
        let RenderedAnswer {
            mut call,
            content,
            task,
            ..
        } = rendered;
        self.note_use(call.server, now);
        if let Some(task) = task {
            self.note_task(call.server, &task);
        }
        let form = std::mem::replace(&mut call.form, AnswerForm::Plain);
        match (form, content) {
            (AnswerForm::Part { batch, place, .. }, RenderedContent::Part(result)) => {
                self.part_done(batch, place, result);
            }
            (_, RenderedContent::Part(_)) => {}
            (AnswerForm::TaskPage(page), RenderedContent::Answer(answer)) => {
                self.task_page_answered(&call, page, &answer, now);
            }
            (form, RenderedContent::Answer(answer)) => {
                if let AnswerForm::Subscribe { uri } = &form {
                    self.subscription_answered(&call, uri, &answer);
                }
                self.answer_client(&call, answer);
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

    /// Sends a result of the hub's own, an object that is not empty, as the client's era wants it.
    pub(super) fn send_result(&mut self, client: ClientId, id: &Id, result: &Bytes) {
        let era = self.clients.get(&client).map(|client| client.era());
        let era = era.unwrap_or(Era::Legacy);
        let answer = completed(era, id, result, &self.settings.server_info);
        self.send_to_client(client, answer);
    }

    fn audit(&mut self, rendered: &RenderedAnswer, now: Instant) {
        let call = &rendered.call;
        let client = self.clients.get(&call.client);
        let method = call.message.method().unwrap_or_default();
        let record = AuditRecord {
            client: client.map_or_else(String::new, |client| client.name.clone()),
            what: format!("{method} {}", call.what),
            server: self.server(call.server).name().to_owned(),
            outcome: rendered.outcome,
            latency: now.saturating_duration_since(call.started),
            sizes: (call.message.len(), rendered.size),
        };
        self.actions.push(HubAction::Audit(record));
    }
}

/// An answer with a result of the hub's own, an object that is not empty.
pub(super) fn completed(era: Era, id: &Id, result: &[u8], server_info: &[u8]) -> Message {
    let answer = result_message(id, result);
    if era == Era::Legacy {
        return answer;
    }
    let answer = with_member(&answer, Place::Result, "resultType", "\"complete\"");
    let info = String::from_utf8_lossy(server_info);
    with_member(&answer, Place::ResultMeta, meta::SERVER_INFO, &info)
}

/// An answer with this result, which is JSON.
pub(super) fn result_message(id: &Id, result: &[u8]) -> Message {
    let mut text = Vec::with_capacity(result.len() + 64);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.token());
    text.extend_from_slice(br#","result":"#);
    text.extend_from_slice(result);
    text.push(b'}');
    Message::parse(text)
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
