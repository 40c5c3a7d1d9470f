//! The one way for every message: `read → wrap → record → steps → verdict → write`.
//!
//! This crate knows messages ([`mcp_proxy_wire`]), the record ([`mcp_proxy_session`]) and how to wait.
//! It must not know sockets, processes or command lines: those make [`Link`]s elsewhere and hand them in.
//!
//! Read [`lane`] first (what happens to a message), then [`carry()`] (who pumps it).

pub mod carry;
pub mod connection;
pub mod connections;
pub mod control;
pub mod correlate;
pub mod in_process;
pub mod intercept;
pub mod lane;
pub mod large;
pub mod link;
pub mod mock;
pub mod multiplexer;
mod overruns;
pub mod peer;
pub mod pipeline;
pub mod replay;
pub mod rules;
pub mod step;

pub use carry::{CarryEnd, CarryOptions, carry};
pub use connection::{ClientStreams, Connection, NewConnection};
pub use connections::ConnectionRegistry;
pub use in_process::{ClientGone, InProcessReceiver, InProcessSender, InProcessServer, in_process};
pub use intercept::{HoldOptions, HoldPolicy, Intercept, InterceptMode};
pub use lane::{Lane, Offered, Passed, Telling};
pub use link::{BoxFuture, Dial, FrameReader, FrameWriter, Link, LinkEnd, Outgoing};
pub use multiplexer::{
    Delivery, MultiplexerError, MultiplexerLimits, Recipient, RequestMultiplexer,
};
pub use peer::{Caller, Peer};
pub use pipeline::{DurableWait, Pipeline, PipelineOptions};
