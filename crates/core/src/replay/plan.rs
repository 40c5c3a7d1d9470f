//! What a recorded client said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::redact::{self, MissingFills};
use mcp_proxy_session::{Error, Filter, ProxyMessage, Row, SessionRecord};
use mcp_proxy_wire::{Direction, Field, Kind, Message};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::AnswerComparison;
use super::client_replies::{ClientReplies, ServerRequest};
use super::diff::{IgnoredPath, diff};
use super::server_handles::{self, ServerHandles};

/// A record that is played. Its messages are read when their time has come, so that the length of a record does not count.
pub struct ReplayScript {
    session: SessionRecord,
    fills: RedactionFills,
    ignored: Vec<IgnoredPath>,
}

/// A client's messages, in order, and what it answered to the server.
#[derive(Default)]
pub struct ReplayPlan {
    /// The connection on which it was said.
    pub connection: u32,
    /// What is said.
    pub messages: Vec<PlannedMessage>,
    /// The recorded client's answers to the server's requests.
    pub replies: ClientReplies,
    /// Lines that were left out because their bytes are not in the record.
    pub missing: usize,
    /// Lines that cannot be said because values in them were redacted and not given: their numbers, and those of the values.
    pub redacted: Vec<(u64, Vec<u32>)>,
}

/// Values to put back where the record has marks: by the number of the message, and of the mark in it.
pub type RedactionFills = BTreeMap<u64, BTreeMap<u32, Value>>;

/// One message of the client.
#[derive(Clone, Copy, Debug)]
pub struct PlannedMessage {
    /// Its number in the record.
    pub sequence: u64,
    /// When it was said, since the session began.
    pub at: Duration,
    /// Its row in the record.
    pub row: usize,
    /// That of what the server answered.
    pub answer: Option<usize>,
    /// What it is for.
    pub purpose: MessagePurpose,
    /// The request whose answer gave a value that it hands back.
    pub after: Option<u64>,
}

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePurpose {
    /// `initialize`: nothing is said before its answer.
    Initialize,
    /// Any other request.
    Request,
    /// A cancel, which waits for nothing.
    Cancel,
    /// What has no answer.
    OneWay,
}

impl PlannedMessage {
    /// Whether it has an answer.
    pub fn expects_answer(&self) -> bool {
        matches!(
            self.purpose,
            MessagePurpose::Initialize | MessagePurpose::Request
        )
    }
}

impl ReplayScript {
    /// A record, with values for its marks, and what does not count when answers are compared.
    pub fn new(
        session: SessionRecord,
        fills: RedactionFills,
        ignored: Vec<IgnoredPath>,
    ) -> Arc<ReplayScript> {
        Arc::new(ReplayScript {
            session,
            fills,
            ignored,
        })
    }

    /// The record.
    pub fn session(&self) -> &SessionRecord {
        &self.session
    }

    /// The client's message in this row, with its redacted values put back.
    pub(super) fn client_message(&self, row: usize) -> Option<Message> {
        let recorded = self.session.message(row).ok()?;
        self.filled(&recorded, bytes_of(&recorded)?).ok()
    }

    /// What the server answered in this row.
    pub(super) fn server_answer(&self, row: usize) -> Option<Message> {
        bytes_of(&self.session.message(row).ok()?)
    }

    /// What was answered then and what is answered now.
    pub(super) fn compare(&self, then: Option<usize>, now: Option<&Message>) -> AnswerComparison {
        match (then.and_then(|row| self.server_answer(row)), now) {
            (None, None) => AnswerComparison::Same,
            (_, None) => AnswerComparison::Unanswered,
            (None, Some(_)) => AnswerComparison::New,
            (Some(then), Some(now)) => match diff(&then, now, &self.ignored) {
                none if none.is_empty() => AnswerComparison::Same,
                differences => AnswerComparison::Different(differences),
            },
        }
    }

    fn filled(&self, recorded: &ProxyMessage, message: Message) -> Result<Message, MissingFills> {
        let redaction = self.session.redaction();
        let Some(facts) = redaction.filter(|_| recorded.redacted > 0) else {
            return Ok(message);
        };
        let none = BTreeMap::new();
        let values = self.fills.get(&recorded.sequence).unwrap_or(&none);
        redact::fill_redactions(&message, facts, values)
    }
}

impl ReplayPlan {
    /// For each of the connections: the messages that `filter` lets through, and always those that open it. A connection of
    /// which the filter wants nothing has no plan. They come in the order in which they begin.
    pub fn read(
        script: &ReplayScript,
        connections: &[u32],
        filter: &Filter,
    ) -> Result<Vec<ReplayPlan>, Error> {
        let session = &script.session;
        let connections: FxHashSet<u32> = connections.iter().copied().collect();
        let mut drafts: FxHashMap<u32, PlanDraft> = FxHashMap::default();
        for (index, recorded) in session.messages(0).enumerate() {
            let recorded = recorded?;
            if !recorded.is_from_peer() || !connections.contains(&recorded.connection) {
                continue;
            }
            let draft = drafts.entry(recorded.connection).or_default();
            draft.plan.connection = recorded.connection;
            let Some(message) = bytes_of(&recorded) else {
                draft.plan.missing += 1;
                continue;
            };
            let row = session.row(index);
            let chosen = || {
                let fits = |row| filter.matches(session, row).unwrap_or(false);
                filter.is_empty() || row.is_some_and(fits)
            };
            draft.add(script, (index, &recorded), message, chosen);
        }
        let mut plans: Vec<ReplayPlan> = drafts.into_values().filter_map(PlanDraft::end).collect();
        plans.sort_by_key(|plan| plan.messages.first().map(|line| line.sequence));
        Ok(plans)
    }

    /// Whether a message can be said; if values in it are redacted and not known, that is noted.
    fn can_say(
        &mut self,
        script: &ReplayScript,
        recorded: &ProxyMessage,
        message: Message,
    ) -> bool {
        match script.filled(recorded, message) {
            Ok(_) => true,
            Err(MissingFills(numbers)) => {
                self.redacted.push((recorded.sequence, numbers));
                false
            }
        }
    }

    /// The connections of a record on which a client said something.
    pub fn connections(session: &SessionRecord) -> Vec<u32> {
        let mut seen = FxHashSet::default();
        let of_clients = session
            .rows()
            .iter()
            .filter(|row| row.direction() == Direction::ClientToServer && row.is_from_peer());
        let connections = of_clients.map(Row::connection);
        connections.filter(|number| seen.insert(*number)).collect()
    }

    /// How many requests it has.
    pub fn requests(&self) -> usize {
        self.messages
            .iter()
            .filter(|line| line.expects_answer())
            .count()
    }
}

/// A plan while the record is read.
#[derive(Default)]
struct PlanDraft {
    plan: ReplayPlan,
    /// Where the line with a number stands.
    places: FxHashMap<u64, usize>,
    /// The server's own requests, by number.
    asked: FxHashMap<u64, ServerRequest>,
    /// Values that the client may hand back, and the requests whose answers gave them.
    given: FxHashMap<Vec<u8>, u64>,
    /// The filter wants something of it.
    wanted: bool,
}

impl PlanDraft {
    fn add(
        &mut self,
        script: &ReplayScript,
        (row, recorded): (usize, &ProxyMessage),
        message: Message,
        chosen: impl FnOnce() -> bool,
    ) {
        let plan = &mut self.plan;
        match (recorded.direction, message.kind()) {
            (Direction::ServerToClient, Kind::Response | Kind::Error) => {
                if let Some(asked) = recorded.answers {
                    let given = server_handles::issued_handles(&message)
                        .map(|value| (value.to_vec(), asked));
                    self.given.extend(given);
                }
                let place = recorded.answers.and_then(|asked| self.places.get(&asked));
                if let Some(line) = place.and_then(|place| plan.messages.get_mut(*place)) {
                    line.answer = Some(row);
                }
            }
            (Direction::ServerToClient, Kind::Request) => {
                let question = ServerRequest::of(recorded.sequence, &message);
                self.asked.insert(recorded.sequence, question);
            }
            (Direction::ServerToClient, _) => {}
            (Direction::ClientToServer, Kind::Response | Kind::Error) => {
                let question = recorded.answers.and_then(|it| self.asked.get(&it));
                if let Some(question) = question
                    && plan.can_say(script, recorded, message)
                {
                    plan.replies.add(question, row);
                }
            }
            (Direction::ClientToServer, _) => {
                let chosen = chosen();
                self.wanted |= chosen;
                let says = MessagePurpose::classify(&message);
                let mut values = server_handles::returned_handles(&message);
                let after = values.find_map(|value| self.given.get(value).copied());
                drop(values);
                if !chosen && !opens(&message) {
                    return;
                }
                if plan.can_say(script, recorded, message) {
                    self.places.insert(recorded.sequence, plan.messages.len());
                    plan.messages.push(PlannedMessage {
                        sequence: recorded.sequence,
                        at: recorded.mono,
                        row,
                        answer: None,
                        purpose: says,
                        after,
                    });
                }
            }
        }
    }

    fn end(mut self) -> Option<ReplayPlan> {
        // The players take turns by number. A record that somebody put together may have its lines in another order.
        self.plan.messages.sort_by_key(|line| line.sequence);
        self.wanted.then_some(self.plan)
    }
}

impl MessagePurpose {
    fn classify(message: &Message) -> MessagePurpose {
        match (message.kind(), message.method().as_deref()) {
            (Kind::Request, Some("initialize")) => MessagePurpose::Initialize,
            (Kind::Request, _) => MessagePurpose::Request,
            (_, Some("notifications/cancelled")) => MessagePurpose::Cancel,
            _ => MessagePurpose::OneWay,
        }
    }
}

/// Without these the server does not listen.
fn opens(message: &Message) -> bool {
    matches!(
        message.method().as_deref(),
        Some("initialize" | "notifications/initialized")
    )
}

fn bytes_of(recorded: &ProxyMessage) -> Option<Message> {
    // The client's own words, where somebody changed them on the way.
    let raw = recorded.original_raw.as_ref().unwrap_or(&recorded.raw);
    let bytes = raw.to_bytes();
    (!bytes.is_empty()).then(|| Message::parse(bytes))
}

/// A message with ids of our own (its id, its progress token, the request that a cancel names), and what the server gave now
/// where it hands something back.
pub(super) fn with_replay_ids(
    message: &Message,
    number: u64,
    numbers: &FxHashMap<Vec<u8>, u64>,
    handles: &ServerHandles,
) -> Message {
    let ours = number.to_string().into_bytes();
    let mut edits = handles.edits(message);
    if message.kind() == Kind::Request {
        edits.extend(message.span(Field::Id).map(|span| (span, ours.clone())));
        let token = message.span(Field::Meta("progressToken"));
        edits.extend(token.map(|span| (span, ours)));
    } else if let Some(span) = message.span(Field::RequestId)
        && let Some(known) = numbers.get(message.slice(span))
    {
        edits.push((span, known.to_string().into_bytes()));
    }
    edits.sort_by_key(|(span, _)| span.start);
    let edits: Vec<_> = edits
        .iter()
        .map(|(span, token)| (*span, &token[..]))
        .collect();
    message.splice(&edits).unwrap_or_else(|_| message.clone())
}
