//! What happens to every message: read, record, rules and holds, steps, write.
//!
//! This crate knows messages ([`mcp_proxy_wire`]), the record ([`mcp_proxy_session`]) and how to wait.
//! It must not know sockets, processes or command lines: those make [`Link`]s elsewhere and hand them in.
//!
//! Read `message_pipeline` first (what happens to a message), then [`carry()`] (who pumps it).

#![warn(unreachable_pub)]

mod carry;
mod connection;
mod connections;
pub mod control;
mod correlator;
mod in_process;
pub mod intercept;
mod link;
mod lost_notifications;
mod memory_budget;
mod message_pipeline;
pub mod mock;
mod multiplexer;
mod own_request;
mod peer;
mod proxy_run;
pub mod replay;
pub mod rules;
mod step;
mod unredacted_messages;

pub use carry::{CarryEnd, CarryOptions, carry};
pub use connection::{ClientStreams, Connection, NewConnection};
pub use connections::ConnectionRegistry;
pub use correlator::{Correlation, Correlator, Observation};
pub use in_process::{
    ClientGone, InProcessReceiver, InProcessSender, InProcessServer, QueueReader, in_process,
};
pub use intercept::{HoldOptions, HoldPolicy, HoldTimeout, InterceptMode, Interceptor};
pub use link::{
    BoxFuture, Dial, FrameReader, FrameWriter, Link, LinkEnd, LinkFailure, OutgoingFrame,
};
pub use lost_notifications::{LaggingStream, LostNotifications};
pub use memory_budget::{
    COUNTED_FROM, DEFAULT_MEMORY_BUDGET, MemoryBudget, MemoryPermit, OverBudget,
};
pub use message_pipeline::{MessagePipeline, PassResult, PipelineOutput, ProgressSupport};
pub use multiplexer::{
    Delivery, MultiplexerError, MultiplexerLimits, Recipient, RequestMultiplexer, answer_under,
};
pub use own_request::OwnRequest;
pub use peer::{Caller, Peer};
pub use proxy_run::{DurableWait, ProxyRun, RunOptions};
