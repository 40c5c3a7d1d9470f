//! A server made from a recording: it answers requests as the recorded server did.
//!
//! [`MockRecording`] knows which recorded request was answered how; it keeps places in the file, not messages. What was said to
//! which request when several were open is found out by `calls`. A [`MockServer`] is one conversation with it: which answers were
//! given already, and which wait for the client. It does no I/O of its own but reading the record; [`link()`] puts it at the
//! end of a link.

mod calls;
mod link;
mod recording;

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use mcp_proxy_wire::{ErrorCode, Field, Id, IdKey, Kind, Message, error_response};
use rustc_hash::FxHashMap;

pub use link::link;
pub(crate) use recording::params_key;
pub use recording::{MockRecording, RecordedReply};

/// How a request finds the recorded one whose answer it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MatchMode {
    /// The same method and the same parameters, `_meta` aside. Equal requests get their answers in turn, then the last.
    #[default]
    Params,
    /// The next recorded request of the same method, whatever its parameters.
    Sequential,
    /// The next recorded request, which must have the same method and parameters.
    Strict,
}

/// What becomes of answers in which values were redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RedactedAnswers {
    /// They are not given: what stands in them is not what the server said.
    #[default]
    Refuse,
    /// They are given with the marks in them.
    Play,
}

/// What a mock does with a client's message.
#[derive(Debug)]
pub enum MockReply {
    /// These go to the client, in order; often none.
    Messages(Vec<Message>),
    /// The recording has no answer to this request that could be given.
    Unmatched(UnmatchedReason),
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmatchedReason {
    /// There is no answer.
    NotRecorded,
    /// Values were redacted in what the server said, first in the message with this number.
    Redacted(u64),
}

/// One conversation with a recording.
pub struct MockServer {
    recording: Arc<MockRecording>,
    matching: MatchMode,
    redacted: RedactedAnswers,
    /// How often each key was asked.
    asked: FxHashMap<u64, usize>,
    /// The next request, for [`MatchMode::Strict`].
    next: usize,
    /// What follows once the client has answered the server's own request of this id; one played twice waits twice.
    waiting: FxHashMap<IdKey, VecDeque<VecDeque<Message>>>,
}

impl MockServer {
    /// A conversation that begins.
    pub fn new(
        recording: Arc<MockRecording>,
        matching: MatchMode,
        redacted: RedactedAnswers,
    ) -> MockServer {
        MockServer {
            recording,
            matching,
            redacted,
            asked: FxHashMap::default(),
            next: 0,
            waiting: FxHashMap::default(),
        }
    }

    /// What the recorded server says to a client's message.
    pub fn answer_message(&mut self, message: &Message) -> MockReply {
        match message.kind() {
            Kind::Request => self.request(message),
            Kind::Response | Kind::Error => {
                let id = message.id().map(|id| id.key());
                let follows = id.and_then(|id| self.answered(id));
                MockReply::Messages(self.play_until_request(follows.unwrap_or_default()))
            }
            Kind::Batch => self.batch(message),
            Kind::Notification => MockReply::Messages(Vec::new()),
            Kind::Other | Kind::Malformed => MockReply::Messages(vec![error_response(
                None,
                ErrorCode::PARSE_ERROR,
                "the message is not JSON-RPC",
                None,
            )]),
        }
    }

    /// Whether a message is for the recording, when a real server stands behind it as well.
    pub fn can_answer(&self, message: &Message) -> bool {
        match message.kind() {
            Kind::Request => !opens(&message.method().unwrap_or_default()),
            Kind::Response | Kind::Error => message
                .id()
                .is_some_and(|id| self.waiting.contains_key(&id.key())),
            _ => false,
        }
    }

    /// What the recording cannot answer is answered so. A ping must be answered, whether the recorded client pinged or not;
    /// where each request must be the recorded one, it is one too many.
    pub fn unmatched(&self, message: &Message, lack: UnmatchedReason) -> Message {
        let method = message.method().unwrap_or_default();
        if method == "ping"
            && lack == UnmatchedReason::NotRecorded
            && self.matching != MatchMode::Strict
        {
            return pong(message);
        }
        let text = match lack {
            UnmatchedReason::NotRecorded => {
                format!("the recording has no answer to this {method} request")
            }
            UnmatchedReason::Redacted(sequence) => format!(
                "the recorded answer to this {method} request was redacted (message #{sequence}), so it is not played"
            ),
        };
        error_response(message.id().as_ref(), ErrorCode::NOT_RECORDED, &text, None)
    }

    fn batch(&mut self, batch: &Message) -> MockReply {
        let mut said = Vec::new();
        for part in batch.parts().unwrap_or_default() {
            match self.answer_message(&part) {
                MockReply::Messages(messages) => said.extend(messages),
                MockReply::Unmatched(lack) => said.push(self.unmatched(&part, lack)),
            }
        }
        MockReply::Messages(said)
    }

    fn request(&mut self, request: &Message) -> MockReply {
        let place = self.find(request);
        let Some(played) = place.and_then(|place| self.recording.played(place)) else {
            return MockReply::Unmatched(UnmatchedReason::NotRecorded);
        };
        if let (Some(sequence), RedactedAnswers::Refuse) = (played.redacted, self.redacted) {
            return MockReply::Unmatched(UnmatchedReason::Redacted(sequence));
        }
        let said = played
            .said
            .iter()
            .filter_map(|said| with_request_ids(said, request));
        let said = said.collect();
        MockReply::Messages(self.play_until_request(said))
    }

    /// The recorded request that this one stands for.
    fn find(&mut self, request: &Message) -> Option<usize> {
        let method = request.method()?;
        // Who the client is differs between clients, and the answer is the server's one and only.
        let opens = opens(&method);
        let key = match self.matching {
            MatchMode::Sequential => recording::method_key(request),
            _ if opens => recording::method_key(request),
            MatchMode::Params | MatchMode::Strict => recording::params_key(request),
        };
        if self.matching == MatchMode::Strict {
            let fits = self.recording.is_at(self.next, key, opens);
            let place = fits.then_some(self.next)?;
            self.next += 1;
            return Some(place);
        }
        let places = match self.matching == MatchMode::Sequential || opens {
            true => self.recording.of_method(key),
            false => self.recording.of_params(key),
        };
        let turn = self.asked.entry(key).or_default();
        let place = places
            .get((*turn).min(places.len().checked_sub(1)?))
            .copied();
        *turn += 1;
        place
    }

    /// What waited for the client's answer to the server's own request.
    fn answered(&mut self, id: IdKey) -> Option<VecDeque<Message>> {
        let Entry::Occupied(mut waiting) = self.waiting.entry(id) else {
            return None;
        };
        let follows = waiting.get_mut().pop_front();
        if waiting.get().is_empty() {
            waiting.remove();
        }
        follows
    }

    /// Up to the server's first own request; the rest waits for the client's answer to it.
    fn play_until_request(&mut self, mut messages: VecDeque<Message>) -> Vec<Message> {
        let mut said = Vec::new();
        while let Some(message) = messages.pop_front() {
            let asks = message.kind() == Kind::Request;
            let id = message.id().map(|id| id.key());
            said.push(message);
            if let (true, Some(id)) = (asks, id) {
                self.waiting.entry(id).or_default().push_back(messages);
                break;
            }
        }
        said
    }
}

/// Whether a request begins a conversation.
fn opens(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover")
}

/// The answer to a ping.
fn pong(ping: &Message) -> Message {
    let id = ping.id();
    let id = id.as_ref().map_or(&b"null"[..], Id::token);
    Message::parse([br#"{"jsonrpc":"2.0","id":"#, id, br#","result":{}}"#].concat())
}

/// A recorded message with the ids of the request that it is played for. `None`: it belongs to nothing now.
fn with_request_ids(said: &Message, request: &Message) -> Option<Message> {
    let edit = match said.kind() {
        Kind::Response | Kind::Error => Some((
            said.span(Field::Id)?,
            request.slice(request.span(Field::Id)?),
        )),
        Kind::Notification => match said.span(Field::ProgressToken) {
            Some(span) => {
                let token = request.span(Field::Meta("progressToken"))?;
                Some((span, request.slice(token)))
            }
            None => None,
        },
        _ => None,
    };
    match edit {
        Some(edit) => said.splice(&[edit]).ok(),
        None => Some(said.clone()),
    }
}
