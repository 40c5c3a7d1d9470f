//! What an MCP message is on the wire.
//!
//! A [`Message`] is its raw bytes plus a head: the kind, the raw id token, the method, and the places of params,
//! result and error. It is forwarded as received. A change is a splice of one [`Span`], never parse and write again,
//! so that field order, number spelling, unknown members and malformed input all survive. A bad message is data here,
//! not an error: nothing in this crate fails or panics because of what a peer sent.
//!
//! | module | knows |
//! |---|---|
//! | `message`, `field`, `id`, `span` | bytes + head, look-ups inside, splices, batches |
//! | [`json`] | the one JSON cursor and writer |
//! | `line`, `sse` | cutting a byte stream into messages, losing no byte |
//! | `message_ends` | what is known of a message that is given up |
//! | `frame` | a message with its envelope, the two sides, the transports |
//! | [`headers`] | what each revision says about HTTP headers and status codes |
//! | `newline` | making a message fit on one line |
//! | [`revision`], `error` | protocol versions and eras, error codes |
//!
//! **It must not know** tokio, sockets, files, clocks, logging, or any other crate of this workspace. Everything is a
//! function of bytes, or a state machine that is handed bytes.

#![warn(unreachable_pub)]

mod error;
mod field;
mod frame;
pub mod headers;
mod id;
pub mod json;
mod line;
mod message;
mod message_ends;
mod newline;
pub mod revision;
mod scan;
mod span;
mod spelling;
mod sse;
pub mod terminal_text;
mod text;

pub use error::{ErrorCode, error_response};
pub use field::Field;
pub use frame::{
    Body, Direction, ExchangeId, Frame, LineEnd, Origin, Side, StreamId, Transport,
    TransportEnvelope, UnknownName,
};
pub use id::{Id, IdKey};
pub use json::{JsonToken, JsonWalk, json_string};
pub use line::{LineSplitter, LineUnit};
pub use message::{EMBED_DEPTH, Kind, MAX_DEPTH, Message, SpliceError};
pub use message_ends::{MessageEnds, PartialHead, read_partial_head};
pub use newline::{flatten, is_blank};
pub use revision::{Era, era_of, request_era};
pub use span::Span;
pub use spelling::{AmbiguousMember, fold_name};
pub use sse::{SseEvent, SseSplitter, SseUnit, encode_event};
pub use text::{string_content, string_spans};
