//! A held message as the engine keeps it: what it takes to let it go, in whatever way.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::Act;
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, Field, Frame, Id, IdKey, Kind, Message, StreamId, flatten,
};

use super::hold::{HeldBy, HeldMessage, HoldId, InterceptAction};
use super::mailbox::{Mailbox, Released};
use super::parts::{Refusal, ids, parts, refusal};
use crate::connection::Connection;
use crate::connections::server_name;
use crate::lane::Telling;
use crate::link::Outgoing;

/// What a lane hands in.
pub(crate) struct NewHold {
    pub connection: Arc<Connection>,
    pub direction: Direction,
    pub frame: Frame,
    pub message: Message,
    pub now: Duration,
    pub by: HeldBy,
    pub telling: Telling,
    pub mailbox: Arc<Mailbox>,
}

/// A held message as the engine keeps it.
pub(crate) struct Entry {
    pub connection: Arc<Connection>,
    pub direction: Direction,
    frame: Frame,
    pub message: Message,
    since: Duration,
    pub deadline: Option<Duration>,
    pub by: HeldBy,
    telling: Telling,
    pub mailbox: Arc<Mailbox>,
    /// Decided, but another one has to go first.
    pub decided: Option<Released>,
}

impl Entry {
    pub fn new(new: NewHold) -> Entry {
        Entry {
            connection: new.connection,
            direction: new.direction,
            frame: new.frame,
            message: new.message,
            since: new.now,
            deadline: None,
            by: new.by,
            telling: new.telling,
            mailbox: new.mailbox,
            decided: None,
        }
    }

    /// Messages on the same way keep their order.
    pub fn way(&self) -> (u32, Direction) {
        (self.connection.id, self.direction)
    }

    /// Whether it came on this stream.
    pub fn came_by(&self, stream: StreamId) -> bool {
        self.frame.stream == stream
    }

    /// Whether it is the request of this id.
    pub fn asks(&self, id: &IdKey) -> bool {
        let own = self.message.id().filter(|_| self.message.asks());
        own.is_some_and(|own| own.key() == *id)
    }

    /// Whether it is a request that its sender has given up meanwhile.
    pub fn is_given_up(&self) -> bool {
        let id = self.message.id().filter(|_| self.message.asks());
        let awaits = |id: Id| self.connection.awaits(self.direction, &id, self.number());
        !id.is_none_or(awaits)
    }

    /// It goes no further, because its sender has given it up.
    pub fn left(&self) -> Released {
        let why = "its sender gave it up while it waited";
        self.connection.act_on(self.act("drop", "proxy", why));
        self.withheld("proxy")
    }

    /// Nothing, once it is decided.
    pub fn shown(&self, hold: HoldId) -> Option<HeldMessage> {
        self.decided.is_none().then(|| HeldMessage {
            hold,
            sequence: self.number(),
            connection: self.connection.id,
            server: server_name(&self.connection),
            direction: self.direction,
            message: self.message.clone(),
            since: self.since,
            deadline: self.deadline,
            by: self.by,
        })
    }

    /// A verdict on it.
    pub fn act(&self, kind: &'static str, by: &str, why: &str) -> Act {
        let pipeline = &self.connection.pipeline;
        Act {
            time: pipeline.wall(pipeline.now()),
            sequence: self.frame.sequence,
            message: None,
            kind,
            by: by.to_owned(),
            why: why.to_owned(),
            original_raw: None,
            raw: None,
        }
    }

    /// Progress for a client that asked for some with the request that is held; `None` if it did not, or if there is no
    /// way to tell it.
    pub fn progress(&self) -> Option<Released> {
        let connection = &self.connection;
        let cannot = self.telling == Telling::No || self.decided.is_some();
        if self.direction == Direction::ServerToClient || cannot {
            return None;
        }
        let token = self.message.span(Field::Meta("progressToken"))?;
        let token = String::from_utf8_lossy(self.message.slice(token)).into_owned();
        let now = connection.pipeline.now();
        // Progress must grow with every notification.
        let seconds = now.saturating_sub(self.since).as_millis() as f64 / 1000.0;
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{seconds},"message":"held at the proxy"}}}}"#
        );
        let direction = Direction::ServerToClient;
        let message = Message::parse(text);
        let back = connection.author(direction, self.frame.stream, message, now);
        Some(Released {
            on: None,
            back: back.ok().map(Outgoing::Frame),
        })
    }

    /// Records a decision, and gives what it lets go.
    pub fn decide(&self, action: InterceptAction, by: &str, why: &str) -> Released {
        let mut act = self.act(action.name(), by, why);
        let released = match action {
            InterceptAction::Forward => self.on(self.frame.clone()),
            InterceptAction::Modify(bytes, _) => {
                act.original_raw = Some(self.message.raw().clone());
                act.raw = Some(bytes.clone());
                self.instead(Message::parse(bytes))
            }
            InterceptAction::Error { code, message } => {
                match refusal(&self.message, ErrorCode(code), &message) {
                    Refusal::Answer(error) => {
                        self.connection.act_on(act);
                        return self.answered(error);
                    }
                    Refusal::Instead(error) => {
                        act.kind = "modify";
                        act.original_raw = Some(self.message.raw().clone());
                        act.raw = Some(error.raw().clone());
                        self.on(with_message(self.frame.clone(), error))
                    }
                    // Nobody waits for an answer to it.
                    Refusal::Nothing => {
                        act.kind = "drop";
                        self.withheld(by)
                    }
                }
            }
            InterceptAction::Drop => self.withheld(by),
        };
        self.connection.act_on(act);
        released
    }

    /// It goes on, or another message in its place. Who decided that writes it down.
    pub fn pass(&self, instead: Option<&Message>) -> Released {
        match instead {
            Some(message) => self.instead(message.clone()),
            None => self.on(self.frame.clone()),
        }
    }

    /// Waits for `what`; `None` if the lane went away before. Then it can go nowhere, and the record says so.
    pub async fn unless_abandoned<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = what => Some(done),
            () = self.mailbox.closed() => {
                let why = "its connection ended while it waited";
                self.connection.act_on(self.act("drop", "proxy", why));
                None
            }
        }
    }

    /// What was decided goes back to the lane. If that has ended, it can go nowhere, and the record says so.
    pub fn give_back(&self, released: Released) {
        if let Some(undelivered) = self.mailbox.put(released) {
            undelivered.note(&self.connection);
        }
    }

    /// The message's number.
    pub fn number(&self) -> u64 {
        self.frame.sequence.unwrap_or_default()
    }

    fn on(&self, frame: impl Into<Outgoing>) -> Released {
        Released {
            on: Some(frame.into()),
            back: None,
        }
    }

    /// Another message is forwarded in its place. The peer that waits for it is still found.
    fn instead(&self, now: Message) -> Released {
        let frame = with_message(self.frame.clone(), now.clone());
        let original = self.message.clone();
        self.connection
            .change(self.direction, frame.stream, &original, &now);
        if !self.connection.finds_by_id() || ids(&original) == ids(&now) {
            return self.on(frame);
        }
        match self.direction {
            Direction::ClientToServer => {
                let notice = Frame::message(frame.stream, frame.origin, now);
                Released {
                    back: Some(Outgoing::RequestReplaced {
                        original,
                        frame: notice,
                    }),
                    ..self.on(frame)
                }
            }
            Direction::ServerToClient => self.on(Outgoing::Replacement { original, frame }),
        }
    }

    /// It is not forwarded; its sender gets this answer.
    pub fn answered(&self, answer: Message) -> Released {
        self.give_up();
        let now = self.connection.pipeline.now();
        let back = self
            .connection
            .author(self.direction.reverse(), self.frame.stream, answer, now);
        Released {
            on: None,
            back: back.ok().map(Outgoing::Frame),
        }
    }

    /// Nothing is forwarded. A client that waits over HTTP is told that nothing will come, and a replay who decided that.
    pub fn withheld(&self, by: &str) -> Released {
        self.give_up();
        if self.direction == Direction::ServerToClient {
            self.connection.dropped(&self.message, self.number(), by);
        }
        let dropped = Outgoing::Dropped(Frame::message(
            self.frame.stream,
            self.frame.origin,
            self.message.clone(),
        ));
        let (on, back) = match self.direction {
            Direction::ClientToServer => (None, Some(dropped)),
            Direction::ServerToClient => (Some(dropped), None),
        };
        Released { on, back }
    }

    /// A request that goes no further is not open: nobody will answer it.
    fn give_up(&self) {
        for part in parts(&self.message) {
            if let (Kind::Request, Some(id)) = (part.kind(), part.id()) {
                self.connection
                    .give_up(self.direction, self.frame.stream, &id);
            }
        }
    }
}

/// The same frame with another message. An event keeps all its other lines.
pub(crate) fn with_message(mut frame: Frame, message: Message) -> Frame {
    match &mut frame.carriage {
        Carriage::Event(event) => **event = event.with_data(message.raw().clone()),
        Carriage::Response(parts) => {
            parts.headers.remove(http::header::CONTENT_LENGTH);
        }
        Carriage::Request(parts) => {
            parts.headers.remove(http::header::CONTENT_LENGTH);
        }
        Carriage::Line(_) => {
            // A line is one line; what is no JSON goes as it was meant.
            let flat = flatten(&message).unwrap_or(message);
            frame.body = Body::Whole(flat);
            return frame;
        }
        Carriage::Message => {}
    }
    frame.body = Body::Whole(message);
    frame
}
