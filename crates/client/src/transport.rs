//! How messages travel: the standard streams of a server, HTTP, and what every transport is wrapped in.
//!
//! rmcp's own transports would lose what people notice. They skip an answer that rmcp's types do not take, so that its request
//! waits until its time runs out, and drop what the proxy tool says about its answers; what a server started outlives it; and an
//! HTTP error does not say why. Their HTTP client would bring reqwest into programs that use the library.

mod answers;
mod child;
#[cfg(feature = "http")]
mod http;
mod kept_facts;
mod lines;
mod observed;

pub(crate) use answers::{
    SkippedDefinition, WrittenError, decode_item, read_item, repair_prompt_result,
    repair_tool_result, skipped_definitions, written_error,
};
pub(crate) use child::ChildTransport;
#[cfg(feature = "http")]
pub(crate) use http::{HttpError, http_cause, http_transport, refused_status};
pub(crate) use kept_facts::keep_facts_in_result;
pub(crate) use lines::LineTransport;
pub(crate) use observed::{NotificationHandler, ObservedTransport, ProgressWatch};

/// The largest message that is accepted.
const MAX_MESSAGE: usize = 256 << 20;

/// How long the writing of one message may take.
const WRITE_DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
