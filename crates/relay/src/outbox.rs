//! What waits to be written to a socket.

use std::collections::VecDeque;

use bytes::Bytes;
use mcp_proxy_wire::Message;

use crate::fault::{Delivered, RelayFault};

/// A long answer crosses the relay in parts of about this size: this much waits for its client, and this much is written at once.
/// A client that does not take one part within the stall deadline is cut off.
pub(crate) const ANSWER_PART: usize = 64 * 1024;

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayClose {
    /// Authentication failed, or the token expired or was revoked.
    Unauthorized(&'static str),
    /// The same client or extension connected again.
    Superseded,
    /// The relay stops and will be back.
    Restart,
    /// Too many connect at once, or the user has too many sockets.
    TryLater(&'static str),
    /// It does not read what is sent to it, or there is no memory for that.
    NotRead(&'static str),
    /// An answer that the peer has the beginning of will never be complete.
    CutAnswer,
}

impl RelayClose {
    /// Of a socket that comes with too many others.
    pub(crate) const OVERLOAD: RelayClose = RelayClose::TryLater("too many connect at once");

    /// The WebSocket close code.
    pub fn code(self) -> u16 {
        match self {
            RelayClose::Unauthorized(_) => 4401,
            RelayClose::Superseded => 4409,
            RelayClose::Restart => 1012,
            RelayClose::TryLater(_) | RelayClose::NotRead(_) => 1013,
            RelayClose::CutAnswer => 1011,
        }
    }

    /// The text next to the code.
    pub fn reason(self) -> &'static str {
        match self {
            RelayClose::Unauthorized(why)
            | RelayClose::TryLater(why)
            | RelayClose::NotRead(why) => why,
            RelayClose::Superseded => "a newer connection took over",
            RelayClose::Restart => "the relay restarts",
            RelayClose::CutAnswer => "the rest of an answer is lost",
        }
    }

    /// What a client is told about requests that have no answer when its socket is closed for this.
    pub(crate) fn fault_of_unanswered(self, is_inside_answer: bool) -> RelayFault {
        // Where the rest is written before the close, all that the relay had taken is answered: it has not taken these.
        self.fault(match self {
            RelayClose::NotRead(_) | RelayClose::CutAnswer => Delivered::Unknown,
            _ if is_inside_answer => Delivered::Unknown,
            _ => Delivered::No,
        })
    }

    /// What a client is told about a request that is not answered because of this.
    pub(crate) fn fault(self, delivered: Delivered) -> RelayFault {
        match self {
            RelayClose::Superseded => RelayFault::Superseded("client", delivered),
            _ => RelayFault::Closed(self.reason(), delivered),
        }
    }
}

/// What to write to a socket next.
#[derive(Clone, Debug, Default)]
pub struct SocketOutput {
    /// Messages, in order.
    pub messages: Vec<Message>,
    /// Then pieces of one message. Nothing else may be written before its last piece.
    pub pieces: Vec<AnswerPiece>,
    /// Then the socket is closed.
    pub close: Option<RelayClose>,
}

impl SocketOutput {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.pieces.is_empty() && self.close.is_none()
    }
}

/// A piece of a long answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPiece {
    /// Its bytes.
    pub bytes: Bytes,
    /// Where in the answer it belongs.
    pub part: AnswerPart,
}

/// Which part of an answer a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// The beginning.
    First,
    /// Neither the beginning nor the end.
    Middle,
    /// The end.
    Last,
}

/// The messages for one socket.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    messages: VecDeque<Message>,
    /// A message in pieces, which follows `messages`.
    long: LongOutput,
    /// What follows that.
    later: VecDeque<Message>,
    bytes: usize,
    close: Option<RelayClose>,
}

/// A message that waits in pieces.
#[derive(Debug, Default)]
struct LongOutput {
    pieces: VecDeque<AnswerPiece>,
    /// Its first piece is here or gone, and its last one was not taken yet.
    is_open: bool,
    /// Its first piece was taken, so it cannot be unsaid.
    is_begun: bool,
}

impl Outbox {
    /// Adds a message. One for a socket that is being closed is dropped.
    pub(crate) fn push(&mut self, message: Message) {
        if self.close.is_none() {
            self.bytes += message.len();
            match self.long.is_open {
                true => self.later.push_back(message),
                false => self.messages.push_back(message),
            }
        }
    }

    /// Adds a piece of the one long message that may be there.
    pub(crate) fn push_piece(&mut self, bytes: Bytes, part: AnswerPart) {
        if self.close.is_none() {
            self.bytes += bytes.len();
            self.long.is_open = true;
            self.long.pieces.push_back(AnswerPiece { bytes, part });
        }
    }

    /// Takes a long message back, if nothing of it was taken to be written.
    pub(crate) fn unsay_long(&mut self) -> bool {
        if self.long.is_begun {
            return false;
        }
        let unsaid: usize = self.long.pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.bytes -= unsaid;
        self.long = LongOutput::default();
        self.messages.append(&mut self.later);
        true
    }

    /// Closes the socket after what is waiting. The first reason counts.
    pub(crate) fn close(&mut self, close: RelayClose) {
        self.close.get_or_insert(close);
    }

    /// Closes the socket without writing what is waiting: nobody reads it.
    pub(crate) fn cut(&mut self, close: RelayClose) {
        self.messages.clear();
        self.long.pieces.clear();
        self.later.clear();
        self.bytes = 0;
        self.close(close);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.close.is_some()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_nothing_long = self.long.pieces.is_empty() && self.later.is_empty();
        self.messages.is_empty() && is_nothing_long && self.close.is_none()
    }

    /// Whether a long message is here that was not taken to its end.
    pub(crate) fn has_long(&self) -> bool {
        self.long.is_open
    }

    /// Moves messages and pieces of at most `budget` bytes, but at least one, to `output`; with the last one the close.
    pub(crate) fn take(&mut self, budget: usize, output: &mut SocketOutput) {
        let mut taken = 0;
        if output.messages.is_empty() && self.bytes <= budget && !self.long.is_open {
            taken = std::mem::take(&mut self.bytes);
            output.messages = std::mem::take(&mut self.messages).into();
        }
        while let Some(next) = self.messages.front() {
            if taken > 0 && taken + next.len() > budget {
                return;
            }
            taken += next.len();
            self.bytes -= next.len();
            output.messages.extend(self.messages.pop_front());
        }
        let budget = budget.min(taken + ANSWER_PART);
        while let Some(next) = self.long.pieces.front() {
            if taken > 0 && taken + next.bytes.len() > budget {
                return;
            }
            taken += next.bytes.len();
            self.bytes -= next.bytes.len();
            self.long.is_begun = true;
            let is_last = next.part == AnswerPart::Last;
            output.pieces.extend(self.long.pieces.pop_front());
            if is_last {
                self.long = LongOutput::default();
                // Written next time, so that they come behind it.
                self.messages.append(&mut self.later);
                if !self.messages.is_empty() {
                    return;
                }
            }
        }
        output.close = self.close;
    }
}
