//! Subscriptions at modern servers, which are told about all of them together in the hub's own listen request, and agree or
//! refuse on its stream.

use std::collections::BTreeSet;
use std::time::Instant;

use mcp_proxy_wire::{Era, ErrorCode, Message, error_response};

use super::answers::{result_message, without_paths};
use super::calls::{AnswerForm, Call};
use super::listening::SubscriptionVerdict;
use super::servers::LinkOwner;
use super::{Hub, HubAction};
use crate::catalog::ServerIndex;
use crate::server_link::{CallId, LinkId};

/// Why a server does not tell what it was asked for.
#[derive(Debug)]
pub(super) struct ListenRefusal {
    pub(super) code: ErrorCode,
    pub(super) reason: String,
}

impl Hub {
    /// Tells modern servers what has changed, all at once: each change is a new listen request.
    pub(super) fn update_all_listening(&mut self) {
        for server in std::mem::take(&mut self.subscriptions.changed) {
            self.update_listening(server);
        }
    }

    /// Tells a modern server what its clients want to know.
    pub(super) fn update_listening(&mut self, server: ServerIndex) {
        let owner = LinkOwner::Everyone;
        let Some(id) = self.link_of(server, owner) else {
            return;
        };
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.state.era != Era::Modern {
            return;
        }
        link.state
            .listen_to(self.subscriptions.of_link(server, owner));
        self.flush_link(id, None);
    }

    /// A legacy client's `resources/subscribe`. It is answered when the server has taken up the listen request with it.
    pub(super) fn subscribe_by_listening(&mut self, id: CallId) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let AnswerForm::Subscribe { uri } = &call.form else {
            return;
        };
        let (client, server) = (call.client, call.server);
        let key = call.link.and_then(|link| self.key_on_link(link, uri));
        if let Some(key) = key {
            self.subscriptions.add(key, client);
            self.subscriptions.changed.insert(server);
        }
    }

    /// A server has taken up a listen request: it tells about some of the resources in it, or all.
    pub(super) fn listen_agreed(
        &mut self,
        id: LinkId,
        agreed: BTreeSet<Box<str>>,
        refused: BTreeSet<Box<str>>,
        now: Instant,
    ) {
        for uri in &agreed {
            let key = self.key_on_link(id, uri);
            let Some(key) = key else {
                continue;
            };
            if let Some(found) = self.subscriptions.table.get_mut(&key) {
                found.agreed = Some(id);
            }
            self.settle_listens(&key, SubscriptionVerdict::Agreed);
        }
        self.answer_subscribes(id, &agreed, |call| result_message(&call.id, b"{}"), now);
        if !refused.is_empty() {
            let refusal = ListenRefusal {
                code: ErrorCode::INVALID_PARAMS,
                reason: "it left the resource out of what it acknowledged".to_owned(),
            };
            self.listen_refused(id, refused, &refusal, now);
        }
    }

    /// A server does not tell about these resources, or about anything if there are none.
    pub(super) fn listen_refused(
        &mut self,
        id: LinkId,
        uris: BTreeSet<Box<str>>,
        refusal: &ListenRefusal,
        now: Instant,
    ) {
        let Some(server) = self.links.get(&id).map(|link| link.server) else {
            return;
        };
        let ListenRefusal { code, reason } = refusal;
        let what = match uris.len() {
            0 => "it refused to tell about its changes".to_owned(),
            1 => "it refused a subscription to a resource".to_owned(),
            count => format!("it refused subscriptions to {count} resources"),
        };
        let text = format!("{what}: {reason}");
        let name = self.server(server).name();
        let told = format!("server {name}: {text}");
        self.actions.push(HubAction::Log(told.clone()));
        self.server_mut(server).last_error = Some(text);
        for uri in &uris {
            if let Some(key) = self.key_on_link(id, uri) {
                self.subscriptions.table.remove(&key);
                self.settle_listens(&key, SubscriptionVerdict::Refused);
            }
        }
        self.subscriptions.changed.insert(server);
        let shown = without_paths(&told);
        let answer = |call: &Call| error_response(Some(&call.id), *code, &shown, None);
        self.answer_subscribes(id, &uris, answer, now);
    }

    /// Answers the clients that wait for these subscriptions.
    fn answer_subscribes(
        &mut self,
        link: LinkId,
        uris: &BTreeSet<Box<str>>,
        answer: impl Fn(&Call) -> Message,
        now: Instant,
    ) {
        let waits = |call: &Call| match &call.form {
            AnswerForm::Subscribe { uri } => call.link == Some(link) && uris.contains(uri),
            _ => false,
        };
        let waiting = self.calls.iter().filter(|(_, call)| waits(call));
        let mut answers: Vec<(CallId, Message)> =
            waiting.map(|(id, call)| (*id, answer(call))).collect();
        answers.sort_unstable_by_key(|(id, _)| *id);
        for (id, answer) in answers {
            self.finish_call(id, answer, now);
        }
    }
}
