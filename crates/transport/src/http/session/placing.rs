//! Where what the server sends goes: the stream of the client that waits for it.

use bytes::Bytes;
use mcp_proxy_wire::{
    Body, Carriage, ErrorCode, ExchangeId, Frame, Instead, Kind, Message, error_response,
};

use super::{Session, State};
use crate::http::outlet::{Messages, Outlet, outlet};
use crate::http::replay::GET_STREAM;
use crate::http::router::{Awaits, Waiting, Way};
use crate::http::stream::Out;
use crate::inbox::Arrival;

/// A server's message with its place.
pub(super) struct Placed {
    pub(super) stream: ExchangeId,
    /// Nobody reads that stream at present: none.
    pub(super) outlet: Option<Outlet>,
    pub(super) out: Out,
    /// Its number in the record, where it is known.
    pub(super) sequence: Option<u64>,
}

impl Session {
    /// Finds the stream for a frame from the server, and what to put on it.
    pub(super) fn place(&self, frame: Frame) -> Option<Placed> {
        let message = match frame.body {
            Body::Whole(message) => message,
            Body::Withheld(message) => return self.withhold(frame.exchange, &message),
            Body::Instead(instead) => return self.place_instead(frame.exchange, *instead),
            _ => return None,
        };
        let mut state = self.state();
        if self.is_shared() {
            // A server may also end a subscription by cancelling it; then no answer will follow.
            let is_over = message.method().as_deref() == Some("notifications/cancelled")
                && !self.connection.awaits_answer(frame.exchange);
            let last = is_over || matches!(message.kind(), Kind::Response | Kind::Error);
            let sender = match last {
                true => state.streams.remove(&frame.exchange),
                false => state.streams.get(&frame.exchange).cloned(),
            };
            let out = Out {
                data: message.into_raw(),
                event_id: None,
                last,
            };
            return Some(Placed {
                stream: frame.exchange,
                outlet: sender,
                out,
                sequence: None,
            });
        }
        // What comes from the server has its number there: the step `Number` has put it.
        let sequence = match frame.carriage {
            Carriage::Message => None,
            _ => Some(frame.exchange.0),
        };
        let own = match frame.carriage {
            Carriage::Message => state.router.refuse(frame.exchange),
            _ => None,
        };
        let (stream, last) = match own.unwrap_or_else(|| state.router.route(&message)) {
            Way::Post { exchange, last } => (exchange, last),
            Way::Get => (GET_STREAM, false),
            Way::Waiting => {
                let waits = state.router.wait(sequence, &message);
                drop(state);
                if let Err(why) = waits {
                    self.undelivered(sequence, &why);
                    self.answer_lost(&message, &why);
                }
                return None;
            }
        };
        let sender = match last {
            true => state.streams.remove(&stream),
            false => state.streams.get(&stream).cloned(),
        };
        let out = self.stored(&mut state, stream, message.into_raw(), last);
        Some(Placed {
            stream,
            outlet: sender,
            out,
            sequence,
        })
    }

    /// What stands in the place of another: an answer goes where that would have gone; a client that asked waits for what
    /// its request has become.
    fn place_instead(&self, exchange: ExchangeId, instead: Instead) -> Option<Placed> {
        let Instead { was, now } = instead;
        let mut state = self.state();
        if was.asks_any() {
            let awaits = match self.is_shared() {
                true if now.kind() == Kind::Request => Awaits::Answers,
                true => Awaits::Nothing,
                false => state.router.post(exchange, &now),
            };
            if awaits == Awaits::Answers {
                return None;
            }
            state.router.post_closed(exchange);
            return Some(Placed {
                stream: exchange,
                outlet: state.streams.remove(&exchange),
                out: Out::accepted(),
                sequence: None,
            });
        }
        let (stream, last, sequence) = match self.is_shared() {
            true => (exchange, true, None),
            false => match state.router.route(&was) {
                Way::Post {
                    exchange: post,
                    last,
                } => (post, last, Some(exchange.0)),
                Way::Get | Way::Waiting => (GET_STREAM, false, Some(exchange.0)),
            },
        };
        let sender = match last {
            true => state.streams.remove(&stream),
            false => state.streams.get(&stream).cloned(),
        };
        let out = match self.is_shared() {
            true => Out {
                data: now.into_raw(),
                event_id: None,
                last,
            },
            false => self.stored(&mut state, stream, now.into_raw(), last),
        };
        Some(Placed {
            stream,
            outlet: sender,
            out,
            sequence,
        })
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
            let frame = Frame {
                exchange: GET_STREAM,
                carriage: Carriage::Message,
                body: Body::Whole(answer),
            };
            // Not awaited: whoever calls this reads the server, and a server that is not read may not read either.
            if self.inbox.try_send(Arrival::Frame(frame)).is_err() {
                self.note(
                    "the server takes no more messages, not even an error for its own request",
                );
            }
        }
    }

    /// A message that is not let go on ends the exchange of the client that waits for it.
    fn withhold(&self, exchange: ExchangeId, message: &Message) -> Option<Placed> {
        let mut state = self.state();
        let exchange = match message.kind() {
            Kind::Request if exchange != GET_STREAM => exchange,
            Kind::Batch if exchange != GET_STREAM && message.asks_any() => exchange,
            Kind::Response | Kind::Error if self.is_shared() => exchange,
            Kind::Response | Kind::Error | Kind::Batch => match state.router.route(message) {
                Way::Post { exchange, .. } => exchange,
                _ => return None,
            },
            _ => return None,
        };
        state.router.post_closed(exchange);
        Some(Placed {
            stream: exchange,
            outlet: state.streams.remove(&exchange),
            out: Out::nothing(),
            sequence: None,
        })
    }

    /// A stream that begins with what waited for one.
    pub(super) fn stream(
        &self,
        state: &mut State,
        stream: ExchangeId,
        waiting: Vec<Waiting>,
    ) -> (Outlet, Messages) {
        let waiting = waiting.into_iter();
        outlet(waiting.map(|waiting| self.stored(state, stream, waiting.message.into_raw(), false)))
    }

    fn stored(&self, state: &mut State, stream: ExchangeId, data: Bytes, last: bool) -> Out {
        let event_id = Some(state.replay.keep(stream, data.clone(), last));
        Out {
            data,
            event_id,
            last,
        }
    }
}
