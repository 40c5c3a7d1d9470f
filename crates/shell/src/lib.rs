//! The commands that use a server, on the command line and in an interactive shell: what it offers, calls, resources, prompts.
//!
//! A [`Conversation`] is opened on a stream that the program makes, and runs a [`ClientCommand`]. [`ShellSession`] reads
//! commands from a person or a script. Arguments are typed and checked by the schema of the tool before anything is sent.
//!
//! It must not know sockets, processes or config files: the program dials.

#![warn(unreachable_pub)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "tests stop at the first surprise")
)]

mod args;
mod arguments;
mod cancel_signal;
mod catalog;
mod command;
mod conversation;
mod details;
mod exact_numbers;
mod failure;
mod interactive;
mod lookup;
mod near_names;
mod output;
mod progress;
mod questions;
mod results;
mod schema;
mod text;

pub use args::{
    CallArgs, CatalogCommand, InfoArgs, ListArgs, PromptArgs, ReadArgs, SearchWordsArgs,
};
pub use cancel_signal::CancelSignal;
pub use command::ClientCommand;
pub use conversation::{Conversation, ConversationOptions, ServerStream};
pub use details::CommandForm;
pub use failure::CommandFailure;
pub use interactive::{ConnectTarget, DialServer, ShellOptions, ShellSession};
pub use mcp_proxy_client::CapabilityType;
pub use output::{CommandOutput, OutputReader, SayLine};
