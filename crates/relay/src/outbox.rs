//! What waits to be written to a socket.

use std::collections::VecDeque;

use mcp_proxy_wire::Message;

use crate::fault::{Delivered, RelayFault};

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
        }
    }

    /// What a client is told about requests that have no answer when its socket is closed for this.
    pub(crate) fn fault_of_unanswered(self) -> RelayFault {
        let delivered = match self {
            RelayClose::NotRead(_) => Delivered::Unknown,
            // Everything that the relay had taken is answered before the close: it has not taken these.
            _ => Delivered::No,
        };
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
    messages: VecDeque<Message>,
    bytes: usize,
    close: Option<RelayClose>,
}

impl Outbox {
    /// Adds a message. One for a socket that is being closed is dropped.
    pub(crate) fn push(&mut self, message: Message) {
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

    /// Takes messages of at most `budget` bytes, but at least one, and with the last one the close.
    pub(crate) fn take(&mut self, budget: usize) -> SocketOutput {
        let mut output = SocketOutput::default();
        let mut taken = 0;
        while let Some(next) = self.messages.front() {
            if taken > 0 && taken + next.len() > budget {
                return output;
            }
            taken += next.len();
            self.bytes -= next.len();
            output.messages.extend(self.messages.pop_front());
        }
        output.close = self.close;
        output
    }
}
