//! What waits to be written to a socket.

use std::collections::VecDeque;

use bytes::Bytes;

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayClose {
    /// Authentication failed, or the token expired or was revoked.
    Unauthorized(&'static str),
    /// The same client or extension connected again.
    Superseded,
    /// The relay stops and will be back.
    Restart,
    /// It does not read what is sent to it, or too many connect at once.
    TryLater(&'static str),
    /// A message was too large.
    TooLarge,
}

impl RelayClose {
    /// The WebSocket close code.
    pub fn code(self) -> u16 {
        match self {
            RelayClose::Unauthorized(_) => 4401,
            RelayClose::Superseded => 4409,
            RelayClose::Restart => 1012,
            RelayClose::TryLater(_) => 1013,
            RelayClose::TooLarge => 1009,
        }
    }

    /// The text next to the code.
    pub fn reason(self) -> &'static str {
        match self {
            RelayClose::Unauthorized(why) | RelayClose::TryLater(why) => why,
            RelayClose::Superseded => "a newer connection took over",
            RelayClose::Restart => "the relay restarts",
            RelayClose::TooLarge => "the message is too large",
        }
    }
}

/// What to write to a socket next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOutput {
    /// Messages, in order.
    pub messages: Vec<Bytes>,
    /// Then the socket is closed.
    pub close: Option<RelayClose>,
}

impl SocketOutput {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.close.is_none()
    }
}

/// The messages for one socket.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    messages: VecDeque<Bytes>,
    bytes: usize,
    close: Option<RelayClose>,
}

impl Outbox {
    /// Adds a message. One for a socket that is being closed is dropped.
    pub(crate) fn push(&mut self, message: Bytes) {
        if self.close.is_none() {
            self.bytes += message.len();
            self.messages.push_back(message);
        }
    }

    /// Closes the socket after what is waiting. The first reason counts.
    pub(crate) fn close(&mut self, close: RelayClose) {
        self.close.get_or_insert(close);
    }

    /// Closes the socket without writing what is waiting: nobody reads it.
    pub(crate) fn cut(&mut self, close: RelayClose) {
        self.messages.clear();
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
        self.messages.is_empty() && self.close.is_none()
    }

    /// Moves messages of at most `budget` bytes, but at least one, to `output`; with the last one the close.
    pub(crate) fn take(&mut self, budget: usize, output: &mut SocketOutput) {
        let mut taken = 0;
        while let Some(next) = self.messages.front() {
            if taken > 0 && taken + next.len() > budget {
                return;
            }
            taken += next.len();
            self.bytes -= next.len();
            output.messages.extend(self.messages.pop_front());
        }
        output.close = self.close;
    }
}
