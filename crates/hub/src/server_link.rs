//! One conversation with a server: the opening, the lists, and the requests of all who use it.
//!
//! Pure state. Messages and time come in; messages to the server and [news](LinkNews) for the hub come out. A link
//! belongs to all clients or to one, and speaks the revision of one era.

mod listening;
mod listing;
mod opening;
mod subscribing;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proxy_core::{Delivery, MultiplexerError, RequestMultiplexer};
use mcp_proxy_wire::{Era, ErrorCode, Field, Kind, Message, Origin, error_response, json_string};

use crate::catalog::ServerListing;
use crate::sign_in_need::SignInNeed;
pub(crate) use listening::ListenNumber;
use listening::Listening;
use listing::ListProgress;
pub(crate) use listing::{FailedList, ListKind};
pub(crate) use opening::{ClientDescription, ServerDescription, TASK_EXTENSION};
use subscribing::OpenSubscribes;
pub(crate) use subscribing::SubscribeNumber;

/// A conversation with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// A client session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A request that the hub sent to a server for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallId(pub(crate) u64);

/// Whose request it is, for the multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Requester {
    /// The hub's own.
    Hub(HubRequest),
    /// One that a client made.
    Call(CallId),
    /// A request of the server to this client.
    Client(ClientId),
}

/// Requests that the hub makes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HubRequest {
    Initialize,
    Discover,
    List(ListKind),
    Listen(ListenNumber),
    SetLevel,
    /// A subscription that no client waits for, such as one restored after a restart.
    Subscribe(SubscribeNumber),
    Unsubscribe,
}

/// How long the parts of an opening may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkDeadlines {
    pub(crate) start: Duration,
    pub(crate) list: Duration,
}

/// What a message from the server means to the hub.
#[derive(Debug)]
pub(crate) enum LinkNews {
    /// The opening is done, and calls can be sent.
    Ready,
    /// The lists have been read, for the first time or again. Those that failed are as they were, on this link.
    Listed {
        listing: Arc<ServerListing>,
        failed: Vec<FailedList>,
    },
    /// The answer to a call, still under the server's id, or progress of it.
    ForCall(CallId, Message),
    /// A request of the server to some client.
    Asks(Message),
    /// A notification to a client that the server asked something: a cancel.
    ForClient(ClientId, Message),
    /// A notification that names no request.
    Notifies(Message),
    /// It agreed to a subscription that the hub asked for by itself.
    Subscribed(Box<str>),
    /// It refused one, for this reason.
    SubscriptionRefused(Box<str>, String),
    /// It has taken up a listen request, which is about these resources.
    ListenAgreed {
        agreed: BTreeSet<Box<str>>,
        refused: BTreeSet<Box<str>>,
    },
    /// It refused a listen request, and so to tell about these resources, or about anything if there are none.
    ListenRefused {
        uris: BTreeSet<Box<str>>,
        code: ErrorCode,
        reason: String,
    },
    /// The server refused the opening: it wants to know who asks.
    NeedsSignIn(SignInNeed),
    /// The server refused the opening.
    Failed(String),
    /// The server does not know this era. The other one can be tried.
    WrongEra,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The link is being opened: nothing can be sent.
    Dialling,
    /// The opening was sent.
    Opening,
    Ready,
}

/// State of one conversation.
#[derive(Debug)]
pub(crate) struct ServerLink {
    pub(crate) era: Era,
    /// Who wrote the message that came last.
    pub(crate) origin: Origin,
    pub(crate) description: ServerDescription,
    phase: Phase,
    deadlines: LinkDeadlines,
    deadline: Option<Instant>,
    multiplexer: RequestMultiplexer<Requester>,
    lists: ListProgress,
    listening: Listening,
    subscribing: OpenSubscribes,
    client: ClientDescription,
    to_server: VecDeque<Message>,
}

impl ServerLink {
    pub(crate) fn new(
        id: LinkId,
        era: Era,
        client: ClientDescription,
        deadlines: LinkDeadlines,
        now: Instant,
    ) -> ServerLink {
        ServerLink {
            era,
            origin: Origin::Proxy,
            description: ServerDescription::default(),
            phase: Phase::Dialling,
            deadlines,
            deadline: Some(now + deadlines.start),
            multiplexer: RequestMultiplexer::default().with_asked_prefix(&format!("s{}", id.0)),
            lists: ListProgress::default(),
            listening: Listening::default(),
            subscribing: OpenSubscribes::default(),
            client,
            to_server: VecDeque::new(),
        }
    }

    /// When something has to happen, if nothing comes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadlines = [self.deadline, self.listening.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Who the server thinks its client is.
    pub(crate) fn client(&self) -> &ClientDescription {
        &self.client
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The transport is there: the opening is sent.
    pub(crate) fn opened(&mut self) {
        self.phase = Phase::Opening;
        let request = match self.era {
            Era::Legacy => HubRequest::Initialize,
            Era::Modern => HubRequest::Discover,
        };
        self.request(request, &opening::request(self.era, &self.client));
    }

    /// Messages for the server, in order.
    pub(crate) fn take_output(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.to_server.drain(..)
    }

    /// Sends a client's request. Its answer comes back as [`LinkNews::ForCall`].
    /// Returns the number that the server knows it by. Later requests have higher ones.
    pub(crate) fn call(
        &mut self,
        call: CallId,
        message: &Message,
    ) -> Result<Option<u64>, MultiplexerError> {
        let message = self
            .multiplexer
            .to_server(&Requester::Call(call), message)?;
        let number = request_number(&message);
        self.to_server.push_back(message);
        Ok(number)
    }

    /// Sends a notification about a call, such as a cancel, which names the call by its own id.
    pub(crate) fn notify_about(&mut self, call: CallId, message: &Message) {
        if let Ok(message) = self.multiplexer.to_server(&Requester::Call(call), message) {
            self.to_server.push_back(message);
        }
    }

    /// Nobody waits for this call any more: the server is told to stop.
    pub(crate) fn abandon(&mut self, call: CallId) {
        let told = self.multiplexer.close(&Requester::Call(call));
        self.to_server.extend(told);
    }

    /// A client's session is over: the server's questions to it are answered with an error.
    pub(crate) fn client_gone(&mut self, client: ClientId) {
        let told = self.multiplexer.close(&Requester::Client(client));
        self.to_server.extend(told);
    }

    /// A request of the server as this client shall see it.
    pub(crate) fn ask(&mut self, client: ClientId, message: &Message) -> Option<Message> {
        self.multiplexer
            .ask_client(&Requester::Client(client), message)
            .ok()
    }

    /// A client's answer or notification to what the server asked it. `false`: this link asked no such thing.
    pub(crate) fn answer(&mut self, client: ClientId, message: &Message) -> bool {
        let requester = Requester::Client(client);
        match self.multiplexer.to_server(&requester, message) {
            Ok(message) => {
                self.to_server.push_back(message);
                true
            }
            Err(_) => false,
        }
    }

    /// Sends something as it is: an answer of the hub's own, or a notification.
    pub(crate) fn send(&mut self, message: Message) {
        self.to_server.push_back(message);
    }

    /// Sends a request of the hub's own.
    pub(crate) fn request(&mut self, request: HubRequest, message: &Message) {
        let requester = Requester::Hub(request);
        if let Ok(message) = self.multiplexer.to_server(&requester, message) {
            self.to_server.push_back(message);
        }
    }

    /// A message from the server.
    pub(crate) fn received(&mut self, message: &Message, now: Instant) -> Vec<LinkNews> {
        if matches!(message.kind(), Kind::Response | Kind::Error) {
            return self.received_answer(message, now);
        }
        if let Some(failed) = unreadable_answer(message) {
            return self.received_answer(&failed, now);
        }
        match self.multiplexer.to_client(message) {
            // What a modern server tells us comes on our listen request.
            Delivery::To(Requester::Hub(HubRequest::Listen(number)), message)
                if message.kind() == Kind::Notification =>
            {
                let (message, mut news) = self.told_on_listen(number, message, now);
                news.extend(self.notified(message, now));
                news
            }
            Delivery::To(Requester::Call(call), message) => vec![LinkNews::ForCall(call, message)],
            Delivery::To(Requester::Client(client), message) => {
                vec![LinkNews::ForClient(client, message)]
            }
            Delivery::ToAny(message) => vec![LinkNews::Asks(message)],
            Delivery::Everyone(message) => self.notified(message, now),
            Delivery::To(Requester::Hub(_), _) | Delivery::Nobody => Vec::new(),
        }
    }

    fn received_answer(&mut self, answer: &Message, now: Instant) -> Vec<LinkNews> {
        match self.multiplexer.take_answered(answer) {
            Some((Requester::Hub(request), _)) => self.answered(request, answer, now),
            // Its id is changed when it is made ready for its client: here others wait.
            Some((Requester::Call(call), _)) => vec![LinkNews::ForCall(call, answer.clone())],
            Some((Requester::Client(_), _)) | None => Vec::new(),
        }
    }

    fn notified(&mut self, message: Message, now: Instant) -> Vec<LinkNews> {
        if let Some(kinds) = changed_lists(&message) {
            self.relist(kinds, now);
            return Vec::new();
        }
        vec![LinkNews::Notifies(message)]
    }

    /// What a person has to do, if the answer that came last says that in our own words. A server could write anything there.
    pub(crate) fn sign_in_need(&self, answer: &Message) -> Option<SignInNeed> {
        match self.origin {
            Origin::Proxy => SignInNeed::of_answer(answer),
            Origin::Client | Origin::Server | Origin::Replay => None,
        }
    }

    fn answered(&mut self, request: HubRequest, answer: &Message, now: Instant) -> Vec<LinkNews> {
        match request {
            HubRequest::Initialize | HubRequest::Discover => self.opening_answered(answer, now),
            HubRequest::List(kind) => self.list_answered(kind, answer, now),
            HubRequest::Subscribe(number) => self.subscribe_answered(number, answer),
            HubRequest::Listen(number) => self.listen_ended(number, answer, now),
            HubRequest::SetLevel | HubRequest::Unsubscribe => Vec::new(),
        }
    }

    /// The deadline has passed.
    pub(crate) fn timed_out(&mut self, now: Instant) -> Vec<LinkNews> {
        self.reopen_listening(now);
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return Vec::new();
        }
        self.deadline = None;
        match self.phase {
            Phase::Dialling | Phase::Opening => {
                let seconds = self.deadlines.start.as_secs_f32();
                let opening = match self.era {
                    Era::Legacy => "initialize",
                    Era::Modern => "server/discover",
                };
                vec![LinkNews::Failed(format!(
                    "it did not answer `{opening}` within {seconds} s"
                ))]
            }
            Phase::Ready => self.lists_timed_out(now),
        }
    }
}

/// The error that stands for an answer that cannot be read: one with neither a result nor an error, or with broken JSON behind
/// its id. Whoever asked would wait in vain.
fn unreadable_answer(message: &Message) -> Option<Message> {
    let contains = |word: &str| memchr::memmem::find(message.raw(), word.as_bytes()).is_some();
    let is_answer = match message.kind() {
        Kind::Other => true,
        Kind::Malformed => contains("\"result\"") || contains("\"error\""),
        _ => false,
    };
    // A line for people may be an object with an id too.
    let is_answer = is_answer && !message.has_id_and_method() && contains("\"jsonrpc\"");
    let id = message.id().filter(|_| is_answer)?;
    let text = "the server's answer cannot be read";
    Some(error_response(Some(&id), ErrorCode::INTERNAL, text, None))
}

/// A cancel of the request that its sender knows by this id.
pub(crate) fn cancel_of(id: &[u8], reason: &str) -> Message {
    let (id, reason) = (String::from_utf8_lossy(id), json_string(reason));
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
    ))
}

/// The number under which a request goes to the server.
pub(crate) fn request_number(message: &Message) -> Option<u64> {
    if message.kind() != Kind::Request {
        return None;
    }
    std::str::from_utf8(message.id_token()?).ok()?.parse().ok()
}

/// The lists that a notification says have changed.
fn changed_lists(message: &Message) -> Option<&'static [ListKind]> {
    match message.text(Field::Method)?.as_ref() {
        "notifications/tools/list_changed" => Some(&[ListKind::Tools]),
        "notifications/resources/list_changed" => Some(&[ListKind::Resources, ListKind::Templates]),
        "notifications/prompts/list_changed" => Some(&[ListKind::Prompts]),
        _ => None,
    }
}
