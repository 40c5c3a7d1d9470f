//! Which recorded request each message of the server is played with.
//!
//! An answer and a progress report name their request. For the rest the record has only time and place, so a server is taken
//! to do one thing after the other: what it says belongs with what it says next. Every message is given to one request, and
//! none is left over while there is any request to give it to.

use mcp_proxy_session::ProxyMessage;
use mcp_proxy_wire::{Field, Id, IdKey, Kind, Message};
use rustc_hash::FxHashMap;

/// The requests of a record while it is read from its beginning to its end.
#[derive(Default)]
pub(super) struct RecordedCalls {
    open: Vec<UnansweredCall>,
    unplaced: Vec<UnassignedMessage>,
    /// The request that gave a progress token, by connection.
    tokens: FxHashMap<(u32, Vec<u8>), usize>,
    /// The request that was answered last on a connection.
    answered: FxHashMap<u32, usize>,
    /// For each request the rows of what the server said to it.
    said: Vec<Vec<usize>>,
}

/// A request that has no answer yet.
struct UnansweredCall {
    place: usize,
    connection: u32,
    exchange: u64,
    sequence: u64,
    id: Option<IdKey>,
    /// The client gave it up, so the server owes it nothing.
    cancelled: bool,
}

/// A message that names no request.
struct UnassignedMessage {
    row: usize,
    connection: u32,
    sequence: u64,
    among: CallCandidates,
    /// It asks the client something, and what the server does about the answer is still to come.
    waits: bool,
    /// The request that was answered before it.
    after: Option<usize>,
}

/// The requests that a message may belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallCandidates {
    /// None was open: the next one that the server says something to.
    Any,
    /// Those that were open, all of them before this place.
    Before(usize),
}

impl RecordedCalls {
    /// A request of the client.
    pub(super) fn add_request(&mut self, message: &ProxyMessage, read: &Message) {
        let place = self.said.len();
        self.said.push(Vec::new());
        self.open.push(UnansweredCall {
            place,
            connection: message.connection,
            exchange: message.exchange,
            sequence: message.sequence,
            id: read.id().map(|id| id.key()),
            cancelled: false,
        });
        if let Some(token) = read.span(Field::Meta("progressToken")) {
            let token = read.slice(token).to_vec();
            self.tokens.insert((message.connection, token), place);
        }
    }

    /// Anything else that the client said.
    pub(super) fn add_client_message(&mut self, message: &ProxyMessage, read: &Message) {
        if let Some(answers) = message.answers {
            let unplaced = self.unplaced.iter_mut();
            for settled in unplaced.filter(|unplaced| unplaced.sequence == answers) {
                settled.waits = false;
            }
            return;
        }
        if read.method().as_deref() == Some("notifications/cancelled")
            && let Some(id) = read.span(Field::RequestId)
        {
            let id = Some(Id::from_token(read.slice(id)).key());
            for open in &mut self.open {
                open.cancelled |= open.connection == message.connection && open.id == id;
            }
        }
    }

    /// What the server said, in this row.
    pub(super) fn add_server_message(
        &mut self,
        row: usize,
        message: &ProxyMessage,
        read: &Message,
    ) {
        let connection = message.connection;
        if matches!(read.kind(), Kind::Response | Kind::Error) {
            let mut open = self.open.iter();
            if let Some(which) = open.position(|open| Some(open.sequence) == message.answers) {
                let place = self.open.remove(which).place;
                self.assign(row, place);
                self.named(connection, place);
                self.answered.insert(connection, place);
            }
        } else if let Some(token) = read.span(Field::ProgressToken) {
            let token = (connection, read.slice(token).to_vec());
            if let Some(place) = self.tokens.get(&token).copied() {
                self.assign(row, place);
                if self.open.iter().any(|open| open.place == place) {
                    self.named(connection, place);
                }
            }
        } else {
            self.unnamed(row, message, read);
        }
    }

    /// The rows of each request, in their order.
    pub(super) fn finish(mut self) -> Vec<Vec<usize>> {
        for unplaced in std::mem::take(&mut self.unplaced) {
            // The server went away, or had nothing more to say.
            let open = self.open.iter().filter(|open| unplaced.may_be(open));
            let place = open.map(|open| open.place).max().or(unplaced.after);
            if let Some(place) = place {
                self.assign(unplaced.row, place);
            }
        }
        for rows in &mut self.said {
            rows.sort_unstable();
        }
        self.said
    }

    fn assign(&mut self, row: usize, place: usize) {
        if let Some(rows) = self.said.get_mut(place) {
            rows.push(row);
        }
    }

    /// The server said something to the request at `place`: so it did with what went before.
    fn named(&mut self, connection: u32, place: usize) {
        let mut kept = Vec::new();
        for unplaced in std::mem::take(&mut self.unplaced) {
            let others = |open: &UnansweredCall| open.place != place && unplaced.may_be(open);
            let fits = match unplaced.among {
                _ if unplaced.connection != connection => false,
                CallCandidates::Any => true,
                CallCandidates::Before(limit) => {
                    place < limit && !(unplaced.waits && self.open.iter().any(others))
                }
            };
            match fits {
                true => self.assign(unplaced.row, place),
                false => kept.push(unplaced),
            }
        }
        self.unplaced = kept;
    }

    fn unnamed(&mut self, row: usize, message: &ProxyMessage, read: &Message) {
        let here =
            |open: &&UnansweredCall| !open.cancelled && open.connection == message.connection;
        let near = |open: &&UnansweredCall| here(open) && open.exchange == message.exchange;
        let all = self.open.iter().filter(here).count();
        let same = self.open.iter().filter(near).count();
        let only = match (same, all) {
            (1, _) => self.open.iter().find(near),
            (0, 1) => self.open.iter().find(here),
            _ => None,
        };
        if let Some(place) = only.map(|open| open.place) {
            return self.assign(row, place);
        }
        let among = match (all, read.kind()) {
            // Answers in a batch are none to any of these.
            (_, Kind::Batch) => return,
            (0, Kind::Request | Kind::Notification) => CallCandidates::Any,
            // What is not a message is noise by itself.
            (0, _) => return,
            _ => CallCandidates::Before(self.said.len()),
        };
        self.unplaced.push(UnassignedMessage {
            row,
            connection: message.connection,
            sequence: message.sequence,
            among,
            waits: read.kind() == Kind::Request,
            after: self.answered.get(&message.connection).copied(),
        });
    }
}

impl UnassignedMessage {
    /// Whether it may belong to a request that is still open.
    fn may_be(&self, open: &UnansweredCall) -> bool {
        let was_open = matches!(self.among, CallCandidates::Before(limit) if open.place < limit);
        was_open && !open.cancelled && open.connection == self.connection
    }
}
