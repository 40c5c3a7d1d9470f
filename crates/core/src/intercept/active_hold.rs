//! A held message as the engine keeps it: what it takes to forward, replace, answer or drop it.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use mcp_proxy_session::NewVerdict;
use mcp_proxy_wire::headers::{HeaderEdits, remove_in_order};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, Field, Frame, Id, IdKey, Kind, Message, StreamId,
    TransportEnvelope, flatten,
};
use tokio::time::Instant;

use super::batch_messages::{ErrorEffect, ids, parts, refusal};
use super::hold::{HeldMessage, HoldId, HoldReason, InterceptAction};
use super::hold_timer::{HoldTimeout, HoldTimer};
use super::release_queue::{HoldOutcome, ReleaseQueue};
use crate::connection::Connection;
use crate::link::OutgoingFrame;
use crate::message_pipeline::ProgressSupport;

/// What a pipeline hands in.
pub(crate) struct NewHold {
    pub connection: Arc<Connection>,
    pub direction: Direction,
    pub frame: Frame,
    pub message: Message,
    pub now: Duration,
    pub by: HoldReason,
    pub progress_support: ProgressSupport,
    pub release_queue: Arc<ReleaseQueue>,
}

/// A held message as the engine keeps it.
pub(crate) struct ActiveHold {
    pub connection: Arc<Connection>,
    pub direction: Direction,
    frame: Frame,
    pub message: Message,
    since: Duration,
    pub(super) timer: HoldTimer,
    /// When its client is told again that it waits.
    pub(super) next_progress: Option<Instant>,
    pub by: HoldReason,
    progress_support: ProgressSupport,
    pub release_queue: Arc<ReleaseQueue>,
    /// Decided, but another one has to go first.
    pub decided: Option<HoldOutcome>,
}

impl ActiveHold {
    pub(crate) fn new(new: NewHold, timeout: HoldTimeout) -> ActiveHold {
        ActiveHold {
            connection: new.connection,
            direction: new.direction,
            frame: new.frame,
            message: new.message,
            since: new.now,
            timer: HoldTimer::new(timeout),
            next_progress: None,
            by: new.by,
            progress_support: new.progress_support,
            release_queue: new.release_queue,
            decided: None,
        }
    }

    /// Messages on the same way keep their order.
    pub(crate) fn ordering_key(&self) -> (u32, Direction) {
        (self.connection.id, self.direction)
    }

    /// Whether it came on this stream.
    pub(crate) fn came_by(&self, stream: StreamId) -> bool {
        self.frame.stream == stream
    }

    /// Whether it is the request of this id.
    pub(crate) fn asks(&self, id: &IdKey) -> bool {
        let own = self.message.id().filter(|_| self.message.expects_answer());
        own.is_some_and(|own| own.key() == *id)
    }

    /// Whether it is a request that its sender has given up meanwhile.
    pub(crate) fn is_given_up(&self) -> bool {
        let id = self.message.id().filter(|_| self.message.expects_answer());
        let awaits = |id: Id| {
            self.connection
                .is_request_open(self.direction, &id, self.number())
        };
        !id.is_none_or(awaits)
    }

    /// Whether its sender, on another task, has given it up since it was recorded. Under intercept a cancel is held
    /// behind its request, so there only a sender that has left counts.
    pub(crate) fn came_too_late(&self) -> bool {
        match self.by {
            HoldReason::Intercept => self.connection.has_left(self.number()),
            HoldReason::Breakpoint(_) | HoldReason::Rules => self.is_given_up(),
        }
    }

    /// Why it is dropped when its sender has given it up.
    pub(super) fn abandoned_reason(&self) -> &'static str {
        match self.direction {
            Direction::ClientToServer => "its client cancelled it or left",
            Direction::ServerToClient => "its server cancelled it or left",
        }
    }

    /// It goes no further, because its sender has given it up.
    pub(crate) fn resolve_abandoned(&self) -> HoldOutcome {
        let why = self.abandoned_reason();
        self.connection
            .record_verdict(self.verdict("drop", "proxy", why));
        self.resolve_dropped("proxy")
    }

    /// When something has to be done about it, if nobody decides.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timer
            .until()
            .into_iter()
            .chain(self.next_progress)
            .min()
    }

    /// Nothing, once it is decided.
    pub(super) fn held_message(&self, hold: HoldId, now: Instant) -> Option<HeldMessage> {
        self.decided.is_none().then(|| HeldMessage {
            hold,
            sequence: self.number(),
            connection: self.connection.id,
            server: Arc::clone(self.connection.server_name()),
            direction: self.direction,
            message: self.message.clone(),
            since: self.since,
            clock: self.timer.clock(),
            left: self.timer.left(now),
            editors: self.timer.editors(),
            by: self.by,
            has_head: self.has_head(),
            makes_head: self.connection.makes_heads(self.direction),
        })
    }

    /// Whether an HTTP head is forwarded with it.
    pub(super) fn has_head(&self) -> bool {
        has_head(&self.frame) && self.connection.forwards_heads()
    }

    /// Whether its HTTP headers can be changed: those that came with it, or those that the proxy makes for it.
    pub(super) fn takes_header_edits(&self) -> bool {
        self.has_head() || self.connection.makes_heads(self.direction)
    }

    fn edit_head(&self, frame: &mut Frame, edits: &HeaderEdits) {
        if !edits.is_empty() && self.connection.makes_heads(self.direction) {
            frame.header_edits.get_or_insert_default().extend(edits);
            return;
        }
        match &mut frame.envelope {
            TransportEnvelope::Request(parts) => edits.apply(&mut parts.headers),
            TransportEnvelope::Response(parts) => edits.apply(&mut parts.headers),
            TransportEnvelope::Event(_) | TransportEnvelope::Line(_) | TransportEnvelope::Bare => {}
        }
    }

    /// A verdict on it.
    pub(crate) fn verdict(&self, kind: &'static str, by: &str, why: &str) -> NewVerdict {
        let run = &self.connection.run;
        NewVerdict {
            time: run.wall(run.now()),
            sequence: self.frame.sequence,
            message: None,
            kind,
            by: by.to_owned(),
            why: why.to_owned(),
            delay: None,
            replay_of: None,
            original_raw: None,
            raw: None,
        }
    }

    /// Progress for a client that asked for some with the request that is held; `None` if it did not, or if there is no
    /// way to tell it.
    pub(crate) fn progress(&self) -> Option<HoldOutcome> {
        let connection = &self.connection;
        let cannot = self.progress_support == ProgressSupport::No || self.decided.is_some();
        if self.direction == Direction::ServerToClient || cannot {
            return None;
        }
        let token = self.message.span(Field::Meta("progressToken"))?;
        let token = String::from_utf8_lossy(self.message.slice(token)).into_owned();
        let now = connection.run.now();
        // Progress must grow with every notification.
        let seconds = now.saturating_sub(self.since).as_millis() as f64 / 1000.0;
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{seconds},"message":"held at the proxy"}}}}"#
        );
        let direction = Direction::ServerToClient;
        let message = Message::parse(text);
        let back = connection.author(direction, self.frame.stream, message, now);
        Some(HoldOutcome {
            forward: None,
            reply: back.ok().map(OutgoingFrame::Frame),
        })
    }

    /// Records a decision, and gives what it lets go.
    pub(crate) fn decide(&self, action: InterceptAction, by: &str, why: &str) -> HoldOutcome {
        let mut act = self.verdict(action.name(), by, why);
        let released = match action {
            InterceptAction::Forward => self.forward_frame(self.frame.clone()),
            InterceptAction::Modify(edit) => {
                act.why = edit.headers.to_string();
                let mut frame = self.frame.clone();
                self.edit_head(&mut frame, &edit.headers);
                match edit.body {
                    None => self.forward_frame(frame),
                    Some(body) => {
                        act.original_raw = Some(self.message.raw().clone());
                        act.raw = Some(body.shown.unwrap_or_else(|| body.bytes.clone()));
                        self.forward_replacement(frame, Message::parse(body.bytes))
                    }
                }
            }
            InterceptAction::Error { code, message } => {
                match refusal(&self.message, ErrorCode(code), &message) {
                    ErrorEffect::Answer(error) => {
                        self.connection.record_verdict(act);
                        self.note_released();
                        return self.resolve_with_answer(error);
                    }
                    ErrorEffect::Replacement(error) => {
                        act.kind = "modify";
                        act.original_raw = Some(self.message.raw().clone());
                        act.raw = Some(error.raw().clone());
                        self.forward_frame(with_message(self.frame.clone(), error))
                    }
                    // Nobody waits for an answer to it.
                    ErrorEffect::Nothing => {
                        act.kind = "drop";
                        self.resolve_dropped(by)
                    }
                }
            }
            InterceptAction::Drop => self.resolve_dropped(by),
        };
        self.connection.record_verdict(act);
        released
    }

    /// Forwards it, or another message in its place, with changes to its head. The caller records the decision.
    pub(crate) fn resolve_forward(
        &self,
        instead: Option<&Message>,
        headers: &HeaderEdits,
    ) -> HoldOutcome {
        let mut frame = self.frame.clone();
        self.edit_head(&mut frame, headers);
        match instead {
            Some(message) => self.forward_replacement(frame, message.clone()),
            None => self.forward_frame(frame),
        }
    }

    /// Waits for `what`; `None` if the pipeline went away before. Then it can go nowhere, and the record says so.
    pub(crate) async fn unless_abandoned<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = what => Some(done),
            () = self.release_queue.closed() => {
                let why = "its connection ended while it waited";
                self.connection.record_verdict(self.verdict("drop", "proxy", why));
                None
            }
        }
    }

    /// What was decided goes back to the pipeline. If that has ended, it can go nowhere, and the record says so.
    pub(crate) fn give_back(&self, released: HoldOutcome) {
        if let Some(undelivered) = self.release_queue.put(released) {
            undelivered.note(&self.connection);
        }
    }

    /// The message's number.
    pub(crate) fn number(&self) -> u64 {
        self.frame.sequence.unwrap_or_default()
    }

    fn forward_frame(&self, frame: impl Into<OutgoingFrame>) -> HoldOutcome {
        HoldOutcome {
            forward: Some(frame.into()),
            reply: None,
        }
    }

    /// Another message is forwarded in its frame. The peer that waits for it is still found.
    fn forward_replacement(&self, frame: Frame, now: Message) -> HoldOutcome {
        let frame = with_message(frame, now.clone());
        let original = self.message.clone();
        self.connection
            .replace_request(self.direction, frame.stream, &original, &now);
        if !self.connection.finds_by_id() || ids(&original) == ids(&now) {
            return self.forward_frame(frame);
        }
        match self.direction {
            Direction::ClientToServer => {
                let notice = Frame::message(frame.stream, frame.origin, now);
                HoldOutcome {
                    reply: Some(OutgoingFrame::RequestReplaced(notice)),
                    ..self.forward_frame(frame)
                }
            }
            Direction::ServerToClient => {
                let original = Box::new(original);
                self.forward_frame(OutgoingFrame::Replacement { original, frame })
            }
        }
    }

    /// It waits here no longer, and is not forwarded either.
    pub(crate) fn note_released(&self) {
        self.connection
            .note_released(self.direction, &self.message, self.number());
    }

    /// It is not forwarded; its sender gets this answer.
    pub(crate) fn resolve_with_answer(&self, answer: Message) -> HoldOutcome {
        self.give_up();
        let now = self.connection.run.now();
        let back = self
            .connection
            .author(self.direction.reverse(), self.frame.stream, answer, now);
        HoldOutcome {
            forward: None,
            reply: back.ok().map(OutgoingFrame::Frame),
        }
    }

    /// Nothing is forwarded. A client that waits over HTTP is told that nothing will come, and a replay who decided that.
    pub(crate) fn resolve_dropped(&self, by: &str) -> HoldOutcome {
        let is_cancelled = self.is_given_up();
        self.give_up();
        if self.direction == Direction::ServerToClient {
            self.connection.dropped(&self.message, self.number(), by);
        }
        let frame = Frame::message(self.frame.stream, self.frame.origin, self.message.clone());
        let (on, back) = match self.direction {
            Direction::ClientToServer if is_cancelled => {
                (None, Some(OutgoingFrame::Cancelled(frame)))
            }
            Direction::ClientToServer => (None, Some(OutgoingFrame::Dropped(frame))),
            Direction::ServerToClient => (Some(OutgoingFrame::Dropped(frame)), None),
        };
        HoldOutcome {
            forward: on,
            reply: back,
        }
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

/// Whether a frame is an HTTP request or response.
fn has_head(frame: &Frame) -> bool {
    matches!(
        frame.envelope,
        TransportEnvelope::Request(_) | TransportEnvelope::Response(_)
    )
}

/// The same frame with another message. An event keeps all its other lines.
pub(crate) fn with_message(mut frame: Frame, message: Message) -> Frame {
    match &mut frame.envelope {
        TransportEnvelope::Event(event) => **event = event.with_data(message.raw().clone()),
        TransportEnvelope::Response(parts) => {
            remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
        }
        TransportEnvelope::Request(parts) => {
            remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
        }
        TransportEnvelope::Line(_) => {
            // A message on stdio must be one line; only JSON can be flattened, anything else is sent as it is.
            let flat = flatten(&message).unwrap_or(message);
            frame.body = Body::Message(flat);
            return frame;
        }
        TransportEnvelope::Bare => {}
    }
    frame.body = Body::Message(message);
    frame
}
