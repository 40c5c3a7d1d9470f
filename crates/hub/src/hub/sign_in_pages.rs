//! Sign-ins in the middle of a call: a client that can open pages gets the page, and the call continues when its person has
//! signed in.
//!
//! A legacy client is asked by `elicitation/create` while its call is open. A modern client is answered with
//! `input_required`, and calls again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mcp_proxy_wire::{Era, Field, Kind, Message, json_string};

use super::calls::{AnswerForm, Call};
use super::{Hub, HubAction};
use crate::catalog::ServerIndex;
use crate::json::member_cuts;
use crate::server_link::{CallId, ClientId, cancel_of};
use crate::sign_in_need::SignInNeed;

/// How long a person has to sign in, and the call waits.
const SIGN_IN_PATIENCE: Duration = Duration::from_secs(300);

/// The key of our question in `inputRequests`.
const INPUT_KEY: &str = "mcp-proxy/sign-in";
/// What our questions to legacy clients are called, with a number behind it.
const QUESTION_PREFIX: &str = "sign-in-";

/// A sign-in that clients were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignInId(pub u64);

/// A server's sign-in in progress. There is one at most, for all clients.
#[derive(Debug)]
pub(super) struct PendingSignIn {
    id: SignInId,
    /// The page, once it is known.
    url: Option<String>,
    until: Instant,
    /// What clients are told if nobody signs in.
    need: SignInNeed,
    /// Questions to legacy clients, by their number.
    questions: BTreeMap<u64, PageQuestion>,
    /// A modern client has the page. It is not connected until it calls again.
    is_page_given: bool,
}

#[derive(Clone, Copy, Debug)]
struct PageQuestion {
    client: ClientId,
    /// The client has opened the page.
    is_accepted: bool,
}

/// What a call has to do with signing in.
#[derive(Clone, Debug, Default)]
pub(super) enum CallSignIn {
    #[default]
    None,
    /// It waits for a person. If nobody comes, this is what its client is told.
    Waiting(SignInNeed),
    /// It has waited, and does not wait again.
    Done,
}

/// What the person has said to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageAnswer {
    Accepted,
    Declined,
}

impl PageAnswer {
    fn of(action: Option<&str>) -> PageAnswer {
        match action {
            Some("accept") => PageAnswer::Accepted,
            _ => PageAnswer::Declined,
        }
    }
}

/// A modern client's call without its answer to our question, and that answer.
pub(super) fn take_page_answer(request: Message) -> (Message, Option<PageAnswer>) {
    let responses = request.span(Field::Param("inputResponses"));
    let own = responses.and_then(|span| request.member(span, INPUT_KEY));
    let (Some(own), Some(params)) = (own, request.params()) else {
        return (request, None);
    };
    let action = request.member(own, "action");
    let action = action.and_then(|span| request.text_at(span));
    let answer = PageAnswer::of(action.as_deref());
    // Nothing else was asked together with it.
    let cuts = member_cuts(&request, params, |name| {
        ["inputResponses", "requestState"].contains(&name)
    });
    let edits: Vec<_> = cuts.into_iter().map(|cut| (cut, &b""[..])).collect();
    let rest = request.splice(&edits).unwrap_or(request);
    (rest, Some(answer))
}

impl Hub {
    /// Lets a call wait for its person, if its client can show them the page. `false`: it does not wait.
    pub(super) fn wait_for_sign_in(&mut self, id: CallId, need: &SignInNeed, now: Instant) -> bool {
        let Some(call) = self.calls.get(&id).filter(|call| self.can_ask(call)) else {
            return false;
        };
        let until = self.begin_sign_in(call.server, need, now);
        if let Some(call) = self.calls.get_mut(&id) {
            call.wait_until(until, CallSignIn::Waiting(need.clone()));
        }
        self.ask_for_sign_in(id, now);
        true
    }

    fn can_ask(&self, call: &Call) -> bool {
        let Some(client) = self.clients.get(&call.client) else {
            return false;
        };
        let is_alone = match call.form {
            AnswerForm::Native | AnswerForm::ProxyTool { .. } | AnswerForm::Dispatch(_) => true,
            AnswerForm::Part { .. } => client.era() == Era::Legacy,
            AnswerForm::Plain | AnswerForm::Subscribe { .. } | AnswerForm::TaskPage(_) => false,
        };
        let is_first = matches!(call.sign_in, CallSignIn::None);
        is_alone && is_first && !self.is_stopping && client.can_open_pages()
    }

    /// Begins a sign-in, or gives the one in progress as much time. Returns when it is given up.
    fn begin_sign_in(&mut self, index: ServerIndex, need: &SignInNeed, now: Instant) -> Instant {
        let until = now + SIGN_IN_PATIENCE;
        if let Some(pending) = &mut self.server_mut(index).pending_sign_in {
            pending.until = until;
            return until;
        }
        let id = SignInId(self.next_id());
        self.server_mut(index).pending_sign_in = Some(PendingSignIn {
            id,
            url: None,
            until,
            need: need.clone(),
            questions: BTreeMap::new(),
            is_page_given: false,
        });
        self.actions.push(HubAction::BeginSignIn {
            sign_in: id,
            server: index,
        });
        self.schedule(until);
        until
    }

    /// The page of a sign-in is known.
    pub fn sign_in_begun(&mut self, id: SignInId, url: &str, now: Instant) {
        let Some(index) = self.server_of(id) else {
            return;
        };
        if let Some(pending) = &mut self.server_mut(index).pending_sign_in {
            pending.url = Some(url.to_owned());
        }
        for call in self.waiting_for_sign_in(index) {
            self.ask_for_sign_in(call, now);
        }
    }

    /// A sign-in is over: somebody has signed in, or it failed for this reason.
    pub fn sign_in_ended(&mut self, id: SignInId, outcome: Result<(), String>, now: Instant) {
        let Some(index) = self.server_of(id) else {
            return;
        };
        match outcome {
            Ok(()) => self.resume_signed_in(index, now),
            Err(reason) => {
                let text = format!("server {}: {reason}", self.server(index).name());
                self.actions.push(HubAction::Log(text));
                self.give_up_sign_in(index, now);
            }
        }
    }

    fn server_of(&self, id: SignInId) -> Option<ServerIndex> {
        let is_it = |pending: &PendingSignIn| pending.id == id;
        self.server_indices().find(|index| {
            self.server(*index)
                .pending_sign_in
                .as_ref()
                .is_some_and(is_it)
        })
    }

    /// Shows a waiting call's client the page, once.
    fn ask_for_sign_in(&mut self, id: CallId, now: Instant) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (client, index) = (call.client, call.server);
        let server = self.server(index);
        let pending = server.pending_sign_in.as_ref();
        let Some(url) = pending.and_then(|pending| pending.url.clone()) else {
            return;
        };
        let text = format!(
            "Sign in to {}, so that the call can continue.",
            server.name()
        );
        let era = self.clients.get(&client).map(|client| client.era());
        if era == Some(Era::Modern) {
            let answer = input_required(call, &url, &text);
            if let Some(pending) = &mut self.server_mut(index).pending_sign_in {
                pending.is_page_given = true;
            }
            return self.finish_call(id, answer, now);
        }
        let is_asked = pending.is_some_and(|pending| {
            let mut questions = pending.questions.values();
            questions.any(|question| question.client == client)
        });
        if is_asked {
            return;
        }
        let number = self.next_id();
        if let Some(pending) = &mut self.server_mut(index).pending_sign_in {
            let question = PageQuestion {
                client,
                is_accepted: false,
            };
            pending.questions.insert(number, question);
        }
        self.send_to_client(client, question(number, &url, &text));
    }

    /// A legacy client's answer to one of our questions. `false`: it is none.
    pub(super) fn page_answered(
        &mut self,
        client: ClientId,
        answer: &Message,
        now: Instant,
    ) -> bool {
        let number = answer.text(Field::Id).and_then(|id| {
            let number = id.strip_prefix(QUESTION_PREFIX)?;
            number.parse::<u64>().ok()
        });
        let Some(number) = number.filter(|_| answer.kind() != Kind::Notification) else {
            return false;
        };
        let action = answer.text(Field::ResultField("action"));
        let answer = PageAnswer::of(action.as_deref());
        for index in self.server_indices() {
            let Some(pending) = &mut self.server_mut(index).pending_sign_in else {
                continue;
            };
            let Some(question) = pending.questions.get_mut(&number) else {
                continue;
            };
            if question.client != client {
                continue;
            }
            question.is_accepted = answer == PageAnswer::Accepted;
            if answer == PageAnswer::Declined {
                pending.questions.remove(&number);
                self.decline_sign_in(index, client, now);
            }
        }
        true
    }

    /// The person does not want to sign in now.
    fn decline_sign_in(&mut self, index: ServerIndex, client: ClientId, now: Instant) {
        for id in self.waiting_for_sign_in(index) {
            if self
                .calls
                .get(&id)
                .is_some_and(|call| call.client == client)
            {
                self.fail_waiting(id, now);
            }
        }
        self.drop_unwanted_sign_ins();
    }

    /// A call that was made again after `input_required`.
    pub(super) fn call_again(&mut self, id: CallId, answer: PageAnswer, now: Instant) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.sign_in = CallSignIn::Done;
        let server = &self.servers[usize::from(call.server.0)];
        let pending = server.pending_sign_in.as_ref();
        let need = pending.map(|pending| &pending.need);
        let need = need.or(server.sign_in_need.as_ref()).cloned();
        match (answer, need, pending.map(|pending| pending.until)) {
            (PageAnswer::Declined, Some(need), _) => self.refuse_for_sign_in(id, &need, now),
            (PageAnswer::Accepted, Some(need), Some(until)) => {
                call.wait_until(until, CallSignIn::Waiting(need));
                self.schedule(until);
            }
            // It is over: the server says what it thinks.
            _ => self.send_call(id, now),
        }
    }

    pub(super) fn waiting_for_sign_in(&self, index: ServerIndex) -> Vec<CallId> {
        let calls = self.calls.iter().filter(|(_, call)| call.server == index);
        let waiting = calls.filter(|(_, call)| call.waits_for_sign_in());
        let mut waiting: Vec<CallId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        waiting
    }

    /// Somebody has signed in: calls that waited for that continue.
    pub(super) fn resume_signed_in(&mut self, index: ServerIndex, now: Instant) {
        self.end_pending_sign_in(index);
        let start_by = now + self.settings.start_patience;
        let timeout = self.server(index).settings.call_timeout;
        for id in self.waiting_for_sign_in(index) {
            if let Some(call) = self.calls.get_mut(&id) {
                call.continue_by(start_by, timeout.map(|timeout| now + timeout));
                self.schedule(start_by);
                self.send_call(id, now);
            }
        }
    }

    /// Nobody has signed in: calls that waited for that fail.
    pub(super) fn give_up_sign_in(&mut self, index: ServerIndex, now: Instant) {
        self.end_pending_sign_in(index);
        for id in self.waiting_for_sign_in(index) {
            self.fail_waiting(id, now);
        }
    }

    /// A call has waited for its person in vain.
    pub(super) fn fail_waiting(&mut self, id: CallId, now: Instant) {
        let sign_in = self.calls.get(&id).map(|call| call.sign_in.clone());
        if let Some(CallSignIn::Waiting(need)) = sign_in {
            self.refuse_for_sign_in(id, &need, now);
        }
    }

    /// When the next sign-in is given up.
    pub(super) fn sign_in_deadline(&self) -> Option<Instant> {
        let pending = self.servers.iter().flat_map(|it| &it.pending_sign_in);
        pending.map(|pending| pending.until).min()
    }

    /// Gives sign-ins up that nobody has completed in time.
    pub(super) fn wake_sign_ins(&mut self, now: Instant) {
        for index in self.server_indices() {
            let server = self.server(index);
            let pending = server.pending_sign_in.as_ref();
            if pending.is_some_and(|pending| pending.until <= now) {
                let text = format!("server {}: nobody has signed in in time", server.name());
                self.actions.push(HubAction::Log(text));
                self.give_up_sign_in(index, now);
            }
        }
    }

    /// Ends sign-ins that no call waits for any more, and that nobody has a page of.
    pub(super) fn drop_unwanted_sign_ins(&mut self) {
        for index in self.server_indices() {
            let pending = self.server(index).pending_sign_in.as_ref();
            let is_wanted = |pending: &PendingSignIn| {
                let mut questions = pending.questions.values();
                // Some clients give a call up sooner than their person can sign in.
                let is_open = pending.is_page_given || questions.any(|it| it.is_accepted);
                is_open || !self.waiting_for_sign_in(index).is_empty()
            };
            if pending.is_some_and(|pending| !is_wanted(pending)) {
                self.end_pending_sign_in(index);
            }
        }
    }

    fn end_pending_sign_in(&mut self, index: ServerIndex) {
        let Some(pending) = self.server_mut(index).pending_sign_in.take() else {
            return;
        };
        self.actions.push(HubAction::EndSignIn(pending.id));
        for (number, question) in pending.questions {
            if !self.clients.contains_key(&question.client) {
                continue;
            }
            let id = json_string(&format!("{QUESTION_PREFIX}{number}"));
            let told = match question.is_accepted {
                true => Message::parse(format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":{id}}}}}"#
                )),
                false => cancel_of(id.as_bytes(), "the sign-in is over"),
            };
            self.send_to_client(question.client, told);
        }
    }
}

/// Our question to a legacy client.
fn question(number: u64, url: &str, text: &str) -> Message {
    let id = json_string(&format!("{QUESTION_PREFIX}{number}"));
    let (url, text) = (json_string(url), json_string(text));
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"mode":"url","elicitationId":{id},"url":{url},"message":{text}}}}}"#
    ))
}

/// Our question to a modern client, as the answer to its call.
fn input_required(call: &Call, url: &str, text: &str) -> Message {
    let id = String::from_utf8_lossy(call.id.token()).into_owned();
    let (url, text) = (json_string(url), json_string(text));
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"{INPUT_KEY}":{{"method":"elicitation/create","params":{{"mode":"url","url":{url},"message":{text}}}}}}}}}}}"#
    ))
}
