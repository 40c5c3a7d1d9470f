//! The embedded MCP server, and a scripted client that plays a short session with it.
//!
//! `mcp-proxy demo` needs a server that is always there; the tests need one that is not ours. Both are
//! this crate: it is written on rmcp, the official SDK, so everything it says on the wire is somebody
//! else's reading of the specification. It serves both eras (the `initialize` era up to 2025-11-25, and
//! 2026-07-28), over standard input and output or over streamable HTTP.
//!
//! It knows no other crate of this workspace, and must not: a fixture that shares code with what it tests
//! shares its mistakes.
//!
//! Where to look: `tools`, `resources` and `prompts` are what a person sees; `server` ties them together; `script` is the
//! client. The fixture server in `fixtures/server` adds what the official conformance suite calls by name.

#![warn(unreachable_pub)]

mod error;
mod http;
mod prompts;
mod question;
mod reporter;
mod resources;
mod script;
mod server;
mod state;
mod stdio;
mod tools;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

pub use error::DemoError;
pub use http::{LOCAL_ORIGINS, serve_http};
pub use prompts::prompt_argument;
pub use question::{FormQuestion, QuestionReply, answer, ask, client_failed, require_elicitation};
pub use reporter::{RequestReporter, is_modern};
pub use resources::logo_base64;
pub use script::{ScriptEra, ScriptStep, run_script};
pub use server::DemoServer;
pub use state::ContentChange;
pub use stdio::{serve, serve_session, serve_stdio};

/// The longest message the server takes, as one line or as one HTTP body.
///
/// Larger than rmcp's own limits, so that tests can send large messages through whatever stands between.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;

// What callers pass in is boxed at the public functions, and so is the future that comes out. Otherwise rmcp's generic code would
// be compiled again in every program and test that calls them, which is the longest part of their build.
type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;
type BoxedWriter = Box<dyn AsyncWrite + Send + Unpin>;
type BoxedFuture<'a> = Pin<Box<dyn Future<Output = Result<(), DemoError>> + Send + 'a>>;
