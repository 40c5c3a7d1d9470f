//! Where what the server sends goes: the stream of the client that waits for it.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_core::{COUNTED_FROM, OutgoingFrame};
use mcp_proxy_wire::{
    Body, ErrorCode, ExchangeId, Frame, Kind, Message, Origin, StreamId, Transport,
    TransportEnvelope, error_response,
};

use super::{HttpSession, HttpSessionState, OpenStream};
use crate::http::event_stream::{StreamItem, StreamMessage};
use crate::http::stream_queue::{StreamReceiver, StreamSender, stream_channel};
use crate::http::stream_router::{PostExpectation, StreamRoute, WaitingMessage};
use crate::inbox::InboxItem;

/// A server's message with its place.
pub(super) struct RoutedMessage {
    pub(super) stream: StreamId,
    /// Nobody reads that stream at present: none.
    pub(super) open: Option<OpenStream>,
    pub(super) item: StreamItem,
}

impl HttpSession {
    /// Finds the stream for a frame from the server, and what to put on it.
    pub(super) fn route_frame(&self, outgoing: OutgoingFrame) -> Option<RoutedMessage> {
        match outgoing {
            OutgoingFrame::Frame(frame) => self.place_message(frame, None),
            OutgoingFrame::Replacement { original, frame } => {
                self.place_message(frame, Some(original))
            }
            OutgoingFrame::Dropped(frame) => self.place_dropped(frame, StreamItem::Dropped),
            OutgoingFrame::Cancelled(frame) => self.place_dropped(frame, StreamItem::Ended),
            OutgoingFrame::RequestReplaced(frame) => self.request_replaced(frame),
        }
    }

    /// A message goes to the stream that waits for it, or that waits for the one it replaces.
    fn place_message(&self, frame: Frame, replaces: Option<Box<Message>>) -> Option<RoutedMessage> {
        let (sequence, is_injected) = (frame.sequence, frame.is_injected());
        // The body of an answer counts since it was collected; a server in this process counts what it sends.
        let counts_already = matches!(frame.envelope, TransportEnvelope::Response(_))
            || self.connection.server() == Transport::InProcess;
        let Body::Message(message) = frame.body else {
            return None;
        };
        let mut state = self.state();
        let (stream, last) = if self.is_shared() {
            // A server may also end a subscription by cancelling it; then no answer will follow.
            let is_over = message.method().as_deref() == Some("notifications/cancelled")
                && !self.awaits_answer(frame.stream);
            let answers = matches!(message.kind(), Kind::Response | Kind::Error);
            state.note_probe_answer(&message);
            (frame.stream, is_over || answers || replaces.is_some())
        } else {
            let own = match frame.stream {
                StreamId::Exchange(exchange) if is_injected => state.router.refuse(exchange),
                _ => None,
            };
            let routed = replaces.as_deref().unwrap_or(&message);
            match own.unwrap_or_else(|| state.router.route(routed)) {
                StreamRoute::Post { exchange, last } => (exchange.into(), last),
                StreamRoute::Get => (StreamId::Standing, false),
                StreamRoute::Cancelled => {
                    drop(state);
                    self.undelivered(sequence, "the client had cancelled its request");
                    return None;
                }
                StreamRoute::Waiting if replaces.is_some() => (StreamId::Standing, false),
                StreamRoute::Waiting => {
                    let waits = state.router.wait(sequence, &message);
                    let is_lost = waits.is_err()
                        && message.kind() == Kind::Notification
                        && self.connection.server() == Transport::InProcess;
                    if is_lost && state.router.has_waiting() {
                        let lost = self.connection.lost_notifications();
                        state.behind.get_or_insert_with(|| lost.fall_behind());
                    }
                    drop(state);
                    if is_lost {
                        self.lose_notification();
                    }
                    if let Err(why) = waits.map_err(|why| why.to_string()) {
                        self.undelivered(sequence, &why);
                        self.answer_lost(&message, &why);
                    }
                    return None;
                }
            }
        };
        let open = match last {
            true => state.streams.remove(&stream),
            false => state.streams.get(&stream).cloned(),
        };
        let data = match counts_already {
            true => message.into_raw(),
            false => self.held(message),
        };
        let message = self.stored(&mut state, stream, data, last, sequence);
        Some(RoutedMessage {
            stream,
            open,
            item: StreamItem::Message(message),
        })
    }

    /// Counts a large message as long as its client does not read it.
    /// If there is no room for an answer, its client gets an error in its place.
    fn held(&self, message: Message) -> Bytes {
        if message.len() < COUNTED_FROM {
            return message.into_raw();
        }
        let memory = self.connection.run.memory();
        match (memory.hold(message.raw().clone()), message.kind()) {
            (Ok(held), _) => held,
            (Err(over), Kind::Response | Kind::Error) => {
                over.answer(message.id().as_ref()).into_raw()
            }
            (Err(_), _) => memory.hold_anyway(message.into_raw()),
        }
    }

    /// On a shared session: whether the request of this stream still waits for its answer.
    fn awaits_answer(&self, stream: StreamId) -> bool {
        let exchange = stream.exchange();
        exchange.is_some_and(|exchange| self.connection.awaits_answer(exchange))
    }

    /// The client's request reached the server as something else: its stream waits for the answer to that, if there will
    /// be one.
    fn request_replaced(&self, frame: Frame) -> Option<RoutedMessage> {
        let (Body::Message(message), StreamId::Exchange(exchange)) = (&frame.body, frame.stream)
        else {
            return None;
        };
        let mut state = self.state();
        let awaits = match self.is_shared() {
            true if message.kind() == Kind::Request => PostExpectation::Answers,
            true => PostExpectation::Nothing,
            false => state.router.post(exchange, message),
        };
        if awaits == PostExpectation::Answers {
            return None;
        }
        Some(end_post(&mut state, exchange, StreamItem::Accepted))
    }

    /// A message that was dropped ends the exchange of the client that waits for it.
    fn place_dropped(&self, frame: Frame, end: StreamItem) -> Option<RoutedMessage> {
        let Body::Message(message) = &frame.body else {
            return None;
        };
        let mut state = self.state();
        let exchange = match (message.kind(), frame.stream) {
            (Kind::Request, StreamId::Exchange(exchange)) => exchange,
            (Kind::Batch, StreamId::Exchange(exchange)) if message.expects_any_answer() => exchange,
            (Kind::Response | Kind::Error, StreamId::Exchange(exchange)) if self.is_shared() => {
                exchange
            }
            (Kind::Response | Kind::Error | Kind::Batch, _) => match state.router.route(message) {
                StreamRoute::Post { exchange, .. } => exchange,
                _ => return None,
            },
            _ => return None,
        };
        Some(end_post(&mut state, exchange, end))
    }

    /// The server waits for an answer to each request of its own: for those that reach nobody, this is it.
    fn answer_lost(&self, message: &Message, why: &str) {
        let parts = message.parts().unwrap_or_else(|| vec![message.clone()]);
        for request in parts.iter().filter(|part| part.kind() == Kind::Request) {
            let answer = error_response(
                request.id().as_ref(),
                ErrorCode::CANNOT_CARRY,
                &format!("the request could not be delivered: {why}"),
                None,
            );
            let frame = Frame::message(StreamId::Only, Origin::Proxy, answer);
            // Not awaited: the caller reads the server, and a server that is not read may not read either.
            if self.inbox.try_send(InboxItem::Frame(frame)).is_err() {
                self.note(
                    "the server takes no more messages, not even an error for its own request",
                );
            }
        }
    }

    /// A stream that begins with what waited for one.
    pub(super) fn stream(
        &self,
        state: &mut HttpSessionState,
        stream: StreamId,
        waiting: Vec<WaitingMessage>,
    ) -> (StreamSender, StreamReceiver) {
        let behind = match waiting.is_empty() {
            true => None,
            false => state.behind.take(),
        };
        let waiting = waiting.into_iter().map(|waiting| {
            let data = waiting.message.into_raw();
            StreamItem::Message(self.stored(state, stream, data, false, waiting.sequence))
        });
        let (sender, messages) = stream_channel(Some(Arc::clone(&self.connection)), waiting);
        if let Some(behind) = behind {
            sender.set_behind(behind);
        }
        (sender, messages)
    }

    /// A message for a stream. It is kept if clients can come back for it.
    fn stored(
        &self,
        state: &mut HttpSessionState,
        stream: StreamId,
        data: Bytes,
        last: bool,
        sequence: Option<u64>,
    ) -> StreamMessage {
        let event_id = self
            .is_resumable()
            .then(|| state.replay.push(stream, data.clone(), last));
        StreamMessage {
            data,
            event_id,
            last,
            sequence,
        }
    }
}

/// Nothing more will come for a POST.
fn end_post(state: &mut HttpSessionState, exchange: ExchangeId, item: StreamItem) -> RoutedMessage {
    state.router.post_closed(exchange);
    RoutedMessage {
        stream: exchange.into(),
        open: state.streams.remove(&StreamId::Exchange(exchange)),
        item,
    }
}
