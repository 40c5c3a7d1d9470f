//! Answers on their way back to clients.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proxy_spill::SpillOwner;
use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, Id, Message};

use super::calls::{AnswerForm, Call};
use super::clients::OpenRequest;
pub(super) use super::hidden_paths::without_paths;
use super::rendering::{AnswerRendering, RenderedAnswer, RenderedContent};
use super::requests::{ClientRequest, method_of};
use super::{AuditRecord, CallOutcome, Hub, HubAction};
use crate::catalog::{ItemKind, ServerIndex};
use crate::edit::{Place, with_member};
use crate::names::ServerNaming;
use crate::server_link::{CallId, ClientId};

impl Hub {
    /// Gives the client its answer. One that takes long is made ready apart from the hub.
    pub(super) fn finish_call(&mut self, id: CallId, answer: Message, now: Instant) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let link = call.link.and_then(|link| self.links.get(&link));
        let client = self.clients.get(&call.client);
        let client_era = client.map_or(Era::Legacy, |client| client.era());
        let rendering = AnswerRendering {
            spill: self.plan_spill(&call, &answer),
            naming: Arc::clone(&self.server(call.server).settings.naming),
            server_era: link.map_or(client_era, |link| link.state.era),
            client_era,
            call,
            answer,
            catalog: Arc::clone(&self.catalog),
            server_info: self.settings.server_info.clone(),
        };
        if rendering.takes_long() {
            self.actions.push(HubAction::Render(Box::new(rendering)));
        } else {
            self.answer_rendered(rendering.run(), now);
        }
    }

    /// An answer is ready for its client.
    pub fn answer_rendered(&mut self, rendered: RenderedAnswer, now: Instant) {
        if self.audits {
            self.audit(&rendered, now);
        }
        let RenderedAnswer {
            mut call,
            mut content,
            task,
            naming,
            spill_failure,
            ..
        } = rendered;
        if let Some(reason) = spill_failure {
            self.report_spill_failure(reason);
        }
        if !self.clients.contains_key(&call.client) && self.settings.spill.store.is_some() {
            // Its files were removed when it left, but this one may be new.
            let owner = SpillOwner(call.client.0);
            self.actions.push(HubAction::ForgetFiles(owner));
        }
        // A new configuration may have come while a large answer was made ready.
        if let Some(server) = self.current_place(call.server, &naming) {
            call.server = server;
            self.note_use(server, now);
            content = self.publish_task(&call, task, content);
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
        let answer = result_message(id, result);
        let answer = completed(era, answer, &self.settings.server_info);
        self.send_to_client(client, answer);
    }

    /// Where a server is now, if it is still there.
    fn current_place(&self, index: ServerIndex, naming: &Arc<ServerNaming>) -> Option<ServerIndex> {
        let is_it = |index: &ServerIndex| {
            let server = self.servers.get(usize::from(index.0));
            server.is_some_and(|server| Arc::ptr_eq(&server.settings.naming, naming))
        };
        Some(index)
            .filter(is_it)
            .or_else(|| self.server_indices().find(is_it))
    }

    /// Tells the operator why results are not in files, once for each reason.
    fn report_spill_failure(&mut self, reason: String) {
        if self.spill_failure.as_ref() != Some(&reason) {
            let text = format!("a large result could not be kept in a file: {reason}");
            self.actions.push(HubAction::Log(text));
            self.spill_failure = Some(reason);
        }
    }

    fn audit(&mut self, rendered: &RenderedAnswer, now: Instant) {
        let (call, server) = (&rendered.call, &rendered.naming.name);
        let record = self.audit_record(call, server, rendered.outcome, rendered.size, now);
        self.actions.push(HubAction::Audit(record));
    }

    /// Its client cancels a request, or leaves: the calls that it became are over.
    pub(super) fn audit_cancelled(&mut self, open: OpenRequest, now: Instant) {
        for id in self.calls_of(open) {
            if let Some(call) = self.calls.get(&id) {
                let server = self.server(call.server).name();
                let record = self.audit_record(call, server, CallOutcome::Cancelled, 0, now);
                self.actions.push(HubAction::Audit(record));
            }
        }
    }

    /// A call of something that its client does not have, or that it did not name clearly.
    pub(super) fn audit_refused(&mut self, request: ClientRequest<'_>, kind: ItemKind, name: &str) {
        self.audit_refusal(request, format!("{} {name}", method_of(kind)));
    }

    /// A request that can be read in more than one way, so that it is not said what it names.
    pub(super) fn audit_ambiguous(&mut self, request: ClientRequest<'_>) {
        self.audit_refusal(request, "an ambiguous request".to_owned());
    }

    fn audit_refusal(&mut self, request: ClientRequest<'_>, what: String) {
        if !self.audits {
            return;
        }
        let client = self.clients.get(&request.client);
        let record = AuditRecord {
            client: client.map_or_else(String::new, |client| client.name.clone()),
            what,
            server: None,
            outcome: CallOutcome::Refused,
            latency: Duration::ZERO,
            sizes: (request.message.len(), 0),
        };
        self.actions.push(HubAction::Audit(record));
    }

    fn audit_record(
        &self,
        call: &Call,
        server: &str,
        outcome: CallOutcome,
        size: usize,
        now: Instant,
    ) -> AuditRecord {
        let client = self.clients.get(&call.client);
        let method = call.message.method().unwrap_or_default();
        AuditRecord {
            client: client.map_or_else(String::new, |client| client.name.clone()),
            what: format!("{method} {}", call.what),
            server: Some(server.to_owned()),
            outcome,
            latency: now.saturating_duration_since(call.started),
            sizes: (call.message.len(), size),
        }
    }
}

/// An answer with a result of the hub's own, an object that is not empty, as the client's era wants it.
pub(super) fn completed(era: Era, answer: Message, server_info: &[u8]) -> Message {
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
