//! Calls on their way: sent to a server that is ready or being started, repeated, given up.

use std::time::Instant;

use mcp_proxy_wire::{Era, ErrorCode, Field, Id, Kind, Message, error_response};

use super::answers::{result_message, without_paths};
use super::batches::BatchId;
use super::clients::OpenRequest;
use super::dispatch_calls::DispatchForm;
use super::links::with_name;
use super::lost_calls::next_start;
use super::requests::ClientRequest;
use super::result_cache::CacheUse;
use super::sign_in_pages::{CallSignIn, take_page_answer};
use super::tasks::TaskPage;
use super::unlisted_names::UnlistedName;
use super::{Hub, WrittenUpTo, eras};
use crate::catalog::{Hints, ServerIndex};
use crate::proxy_tool::CapabilityType;
use crate::server_link::{CallId, ClientId, LinkId, cancel_of};

/// A request that was, or will be, sent to a server.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) client: ClientId,
    /// The client's id of the request.
    pub(super) id: Id,
    pub(super) server: ServerIndex,
    /// Where it was sent, or will be when that link is ready.
    pub(super) link: Option<LinkId>,
    pub(super) is_sent: bool,
    /// The number that it was sent under.
    pub(super) number: Option<u64>,
    /// What is sent, with the client's id.
    pub(super) message: Message,
    pub(super) form: AnswerForm,
    pub(super) hints: Hints,
    /// Its name, if it waits for the list of its server.
    pub(super) unlisted: Option<Box<UnlistedName>>,
    pub(super) what: String,
    pub(super) parent: Option<u64>,
    pub(super) started: Instant,
    answer_by: Option<Instant>,
    /// It waits until then for a server that is starting.
    pub(super) start_by: Instant,
    /// It was sent a second time after its server had gone.
    pub(super) repeated: bool,
    pub(super) cache: CacheUse,
    /// It is answered with the result of an earlier call.
    pub(super) is_cached: bool,
    pub(super) sign_in: CallSignIn,
}

impl Call {
    /// It waits for a person until then, however long the server may take afterwards.
    pub(super) fn wait_until(&mut self, until: Instant, sign_in: CallSignIn) {
        (self.link, self.is_sent, self.number) = (None, false, None);
        (self.start_by, self.answer_by) = (until, None);
        self.sign_in = sign_in;
    }

    /// The person has come.
    pub(super) fn continue_by(&mut self, start_by: Instant, answer_by: Option<Instant>) {
        (self.start_by, self.answer_by) = (start_by, answer_by);
        self.sign_in = CallSignIn::Done;
    }

    pub(super) fn waits_for_sign_in(&self) -> bool {
        matches!(self.sign_in, CallSignIn::Waiting(_))
    }

    /// When it is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.is_sent {
            true => self.answer_by,
            false => Some(
                self.answer_by
                    .map_or(self.start_by, |at| at.min(self.start_by)),
            ),
        }
    }
}

/// What the client gets to see of the server's answer.
#[derive(Clone, Debug)]
pub(super) enum AnswerForm {
    /// The answer, with public URIs in it.
    Native,
    /// The answer as it is.
    Plain,
    /// The answer as it is, to a subscription to this resource of the server.
    Subscribe { uri: Box<str> },
    /// As a result of the `proxy` tool.
    ProxyTool { kind: CapabilityType, path: String },
    /// The same, as one of several.
    Part {
        batch: BatchId,
        place: usize,
        kind: CapabilityType,
        path: String,
    },
    /// As a result of the `proxy-dispatch` tool.
    Dispatch(Box<DispatchForm>),
    /// A page of a server's part of `tasks/list`.
    TaskPage(TaskPage),
}

/// What [`Hub::forward`] needs.
pub(super) struct NewCall<'a> {
    /// As the client sent it.
    pub(super) request: ClientRequest<'a>,
    /// As the server gets it, still with the client's id.
    pub(super) sent: Message,
    pub(super) server: ServerIndex,
    pub(super) form: AnswerForm,
    /// The public name or URI.
    pub(super) what: String,
    pub(super) hints: Hints,
    pub(super) unlisted: Option<Box<UnlistedName>>,
}

impl Hub {
    /// Sends a call to its server, or lets it wait until the server has started.
    pub(super) fn forward(&mut self, mut new: NewCall<'_>) {
        let page_answer;
        (new.sent, page_answer) = take_page_answer(new.sent);
        let ClientRequest {
            client,
            message,
            sequence,
            now,
        } = new.request;
        let Some(id) = message.id() else {
            return;
        };
        let settings = &self.server(new.server).settings;
        let timeout = match new.form {
            // One server that does not answer must not keep the tasks of the others back.
            AnswerForm::TaskPage(_) => Some(settings.list_timeout),
            _ => settings.call_timeout,
        };
        let cache = self.cache_use(&new);
        let call_id = CallId(self.next_id());
        let call = Call {
            client,
            id: id.clone(),
            server: new.server,
            link: None,
            is_sent: false,
            number: None,
            message: new.sent,
            form: new.form,
            hints: new.hints,
            unlisted: new.unlisted,
            what: new.what,
            parent: sequence,
            started: now,
            answer_by: timeout.map(|timeout| now + timeout),
            start_by: now + self.settings.start_patience,
            repeated: false,
            cache,
            is_cached: false,
            sign_in: CallSignIn::None,
        };
        if let Some(deadline) = call.deadline() {
            self.schedule(deadline);
        }
        match (&call.form, self.clients.get_mut(&client)) {
            (AnswerForm::Part { batch, .. } | AnswerForm::TaskPage(TaskPage { batch, .. }), _) => {
                if let Some(batch) = self.batches.get_mut(batch) {
                    batch.calls.push(call_id);
                }
            }
            (_, Some(client)) => {
                client.open.insert(id.key(), OpenRequest::Call(call_id));
            }
            (_, None) => return,
        }
        self.calls.insert(call_id, call);
        match page_answer {
            Some(answer) => self.call_again(call_id, answer, now),
            None => self.send_call(call_id, now),
        }
    }

    pub(super) fn send_call(&mut self, id: CallId, now: Instant) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (client, server, parent) = (call.client, call.server, call.parent);
        let Some(link_id) = self.link_for(client, server, now) else {
            let reason = self
                .server(server)
                .unavailable_reason()
                .unwrap_or("it cannot be used");
            let text = format!("server {}: {reason}", self.server(server).name());
            return self.fail_call(id, ErrorCode::SERVER_UNAVAILABLE, &text, now);
        };
        if let Some(call) = self.calls.get_mut(&id) {
            call.link = Some(link_id);
        }
        let is_ready = self
            .links
            .get(&link_id)
            .is_some_and(|link| link.state.is_ready());
        if !is_ready || self.is_gate_closed(link_id, client) || !self.settle_name(id, link_id, now)
        {
            return;
        }
        let asker = self.clients.get(&client);
        let asker = asker.map(|client| (client.era(), client.level));
        let (Some(link), Some((client_era, level))) = (self.links.get_mut(&link_id), asker) else {
            return;
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let era = link.state.era;
        if era == Era::Modern && matches!(call.form, AnswerForm::Subscribe { .. }) {
            // It has no such request: it is told, and answers, in the hub's listen request.
            return self.subscribe_by_listening(id);
        }
        if call.cache == CacheUse::LookUpAndStore
            && let Some(result) = self.cache.find(link_id, &call.message, now)
        {
            call.is_cached = true;
            let answer = result_message(&call.id, &result);
            return self.finish_call(id, answer, now);
        }
        let asked_by = eras::Asker {
            era: client_era,
            level,
            description: link.state.client(),
        };
        let message = eras::request(call.message.clone(), &asked_by, era);
        match link.state.call(id, &message) {
            Ok(number) => {
                call.is_sent = true;
                call.number = number;
                link.users.add(client);
                self.flush_link(link_id, parent);
                self.note_use(server, now);
            }
            Err(error) => {
                let text = with_name(self.server(server).name(), &error.to_string());
                self.fail_call(id, ErrorCode::CANNOT_CARRY, &text, now);
            }
        }
    }

    /// A server that is used is not idle.
    pub(super) fn note_use(&mut self, index: ServerIndex, now: Instant) {
        let server = self.server_mut(index);
        if server.settings.idle_stop.is_none() {
            return;
        }
        server.used_at = Some(now);
        if let Some(idle) = server.idle_deadline() {
            self.schedule(idle);
        }
    }

    /// A server is ready: calls that waited for it are sent.
    pub(super) fn send_waiting_calls(&mut self, server: ServerIndex, now: Instant) {
        let mut waiting: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, call)| call.server == server && !call.is_sent)
            .filter(|(_, call)| !call.waits_for_sign_in())
            .map(|(id, _)| *id)
            .collect();
        waiting.sort_unstable();
        waiting
            .into_iter()
            .for_each(|call| self.send_call(call, now));
    }

    /// An answer to a call, or a notification about it.
    pub(super) fn call_message(
        &mut self,
        link: LinkId,
        id: CallId,
        message: Message,
        now: Instant,
    ) {
        let Some(call) = self.calls.get(&id).filter(|call| call.link == Some(link)) else {
            return;
        };
        if message.kind() == Kind::Notification {
            let (client, form) = (call.client, &call.form);
            return match form {
                AnswerForm::Part { batch, place, .. } if is_progress(&message) => {
                    let (batch, place) = (*batch, *place);
                    self.part_progressed(batch, place, &message);
                }
                _ => self.send_to_client(client, message),
            };
        }
        let code = message.error_code().map(ErrorCode);
        let link_state = self.links.get(&link).map(|link| &link.state);
        if let Some(need) = link_state.and_then(|link| link.sign_in_need(&message)) {
            return self.call_refused_for_sign_in(id, &need, now);
        }
        let lost = code.is_some_and(is_lost);
        let written = match code {
            // The server has refused it together with its session, and so has not run it.
            Some(ErrorCode::SESSION_NOT_FOUND) => Some(WrittenUpTo(0)),
            _ => self.links.get(&link).and_then(|link| link.written),
        };
        if lost && self.may_repeat(id, written) {
            return self.repeat(id, now);
        }
        if let Some(code) = message
            .error_code()
            .map(ErrorCode)
            // Ours was handled above: this one is of a proxy or hub that is the server, with the command for its own server.
            .filter(|code| is_own(*code) && *code != ErrorCode::NEEDS_SIGN_IN)
        {
            let text = self.own_error_text(id, code, &message);
            return self.fail_call(id, code, &text, now);
        }
        let server = call.server;
        self.note_answer(server);
        let ttl = self.server(server).settings.cache_ttl;
        if let (Some(ttl), Some(call)) = (ttl, self.calls.get(&id)) {
            Hub::keep_result(&mut self.cache, call, &message, now + ttl);
        }
        self.finish_call(id, message, now);
    }

    /// What the client reads of an error of the link itself. The server is named, and what to do.
    fn own_error_text(&self, id: CallId, code: ErrorCode, message: &Message) -> String {
        let mut text = error_text(message);
        let server = self.calls.get(&id).map(|call| self.server(call.server));
        if let Some(server) = server.filter(|_| code != ErrorCode::MEMORY_BUDGET) {
            text = with_name(server.name(), &text);
        }
        if code == ErrorCode::SERVER_EXITED {
            text.push_str(self.unknown_outcome(id));
            text.push_str(server.map_or("", next_start));
        }
        text
    }

    /// Calls that take too long are given up, and their servers are told.
    pub(super) fn wake_calls(&mut self, now: Instant) {
        let late: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, call)| call.deadline().is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            if self.stop_waiting_for_list(id) {
                self.send_call(id, now);
                continue;
            }
            let Some(call) = self.calls.get(&id) else {
                continue;
            };
            if call.waits_for_sign_in() {
                self.fail_waiting(id, now);
                continue;
            }
            let waited = now.duration_since(call.started).as_secs();
            let server = self.server(call.server);
            let name = server.name();
            let (code, text) = match call.is_sent {
                true => (
                    ErrorCode::PEER_STALLED,
                    format!(
                        "server {name} did not answer within {waited} s (`call-timeout` in its entry of the config); try again later"
                    ),
                ),
                false => {
                    let reason = format!("it is still starting after {waited} s; try again later");
                    let reason = server.with_last_stderr(&reason);
                    (
                        ErrorCode::SERVER_UNAVAILABLE,
                        format!("server {name}: {reason}"),
                    )
                }
            };
            let cancel = cancel_of(call.id.token(), "the call took too long");
            self.tell_about(id, &cancel);
            self.stop_at_server(id);
            self.fail_call(id, code, &text, now);
        }
        self.drop_unwanted_sign_ins();
    }

    /// The link that a call was sent on.
    fn sent_on(&self, id: CallId) -> Option<LinkId> {
        self.calls.get(&id).filter(|call| call.is_sent)?.link
    }

    /// Passes on a notification about a call, if its server has the call.
    fn tell_about(&mut self, id: CallId, message: &Message) {
        let link_id = self.sent_on(id);
        if let Some((link_id, link)) = link_id.and_then(|id| Some((id, self.links.get_mut(&id)?))) {
            link.state.notify_about(id, message);
            self.flush_link(link_id, None);
        }
    }

    pub(super) fn stop_at_server(&mut self, id: CallId) {
        let link_id = self.sent_on(id);
        if let Some((link_id, link)) = link_id.and_then(|id| Some((id, self.links.get_mut(&id)?))) {
            link.state.abandon(id);
            self.flush_link(link_id, None);
        }
    }

    /// A client's cancel goes to the servers that have its calls. Servers do not answer what was cancelled, so the calls
    /// are over now, and an answer that comes all the same is dropped.
    pub(super) fn cancel(&mut self, client: ClientId, message: &Message, now: Instant) {
        let Some(span) = message.span(Field::RequestId) else {
            return;
        };
        let key = Id::from_token(message.slice(span)).key();
        let session = self.clients.get_mut(&client);
        let Some(open) = session.and_then(|session| session.open.remove(&key)) else {
            return match self.cancel_parked(client, &key) {
                true => self.release(client),
                false => self.end_listen(client, &key),
            };
        };
        for id in self.calls_of(open) {
            self.tell_about(id, message);
        }
        self.audit_cancelled(open, now);
        self.abandon(open);
        self.release(client);
    }

    /// The calls that a client's request became.
    pub(super) fn calls_of(&self, open: OpenRequest) -> Vec<CallId> {
        match open {
            OpenRequest::Call(call) => vec![call],
            OpenRequest::Batch(batch) => {
                let batch = self.batches.get(&batch);
                batch.map_or_else(Vec::new, |batch| batch.calls.clone())
            }
            OpenRequest::Work(_) => Vec::new(),
        }
    }

    /// Nobody waits for this request any more.
    pub(super) fn abandon(&mut self, open: OpenRequest) {
        let calls = self.calls_of(open);
        match open {
            OpenRequest::Call(_) => {}
            OpenRequest::Batch(batch) => drop(self.batches.remove(&batch)),
            OpenRequest::Work(work) => drop(self.works.remove(&work)),
        }
        for id in calls {
            self.stop_at_server(id);
            let Some(call) = self.calls.remove(&id) else {
                continue;
            };
            if let Some(client) = self.clients.get_mut(&call.client) {
                client.open.remove(&call.id.key());
            }
            if let AnswerForm::Subscribe { uri } = &call.form {
                self.subscription_abandoned(&call, uri);
            }
        }
        self.drop_unwanted_sign_ins();
    }

    pub(super) fn fail_call(&mut self, id: CallId, code: ErrorCode, text: &str, now: Instant) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        // What a client reads tells nothing about the machine that the hub runs on.
        let text = without_paths(text);
        let answer = error_response(Some(&call.id), code, &text, None);
        self.finish_call(id, answer, now);
    }
}

pub(super) fn error_text(answer: &Message) -> String {
    let text = answer
        .error()
        .and_then(|error| answer.member(error, "message"));
    let text = text.and_then(|span| answer.text_at(span));
    text.map_or_else(
        || "the server gave no reason".to_owned(),
        |text| text.into_owned(),
    )
}

fn is_progress(message: &Message) -> bool {
    message.method().as_deref() == Some("notifications/progress")
}

/// Whether an error comes from the link and not from the server.
fn is_own(code: ErrorCode) -> bool {
    ErrorCode::OWN.iter().any(|own| own.code == code)
}

/// Errors of the link itself after which the call may not have been answered by anybody.
fn is_lost(code: ErrorCode) -> bool {
    [
        ErrorCode::SERVER_EXITED,
        ErrorCode::SERVER_UNAVAILABLE,
        ErrorCode::SESSION_NOT_FOUND,
    ]
    .contains(&code)
}
