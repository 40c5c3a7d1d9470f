//! One match over the commands: the table of contents of the program.

mod client;
mod completions;
mod control;
mod demo;
mod editor;
mod help;
mod mock;
mod proxy;
mod relay;
mod replay;
mod savings;
mod serve;
mod sessions;
mod sign_in;
mod token;
mod tui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use mcp_proxy_shell::CapabilityType;

use crate::cli::{self, Command};
use crate::printer;

/// Parses and runs.
pub fn run(argv: Vec<OsString>) -> ExitCode {
    let command = match cli::read(argv) {
        Ok(command) => command,
        Err(error) => {
            if error.use_stderr()
                && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            {
                printer::usage_error(&error.render().to_string());
            } else {
                let _ = error.print();
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match command {
        Command::Proxy(args) => proxy::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Tools(args) => client::catalog(CapabilityType::Tool, &args),
        Command::Resources(args) => client::catalog(CapabilityType::Resource, &args),
        Command::Prompts(args) => client::catalog(CapabilityType::Prompt, &args),
        Command::Call(args) => client::call(&args),
        Command::Read(args) => client::read(&args),
        Command::Prompt(args) => client::prompt(&args),
        Command::Shell(args) => client::shell(&args),
        Command::Login(args) => sign_in::login::run(&args),
        Command::Logout(args) => sign_in::logout::run(&args),
        Command::Savings(args) => savings::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::DemoServer(args) => demo::serve(&args),
        Command::Mock(args) => mock::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Open(args) => tui::open(&args),
        Command::Inspect(args) => sessions::inspect::run(&args),
        Command::Export(args) => sessions::export::run(&args),
        Command::Import(args) => sessions::import::run(&args),
        Command::Sessions(args) => sessions::list::run(&args),
        Command::Prune(args) => sessions::prune::run(&args),
        Command::Status(args) => control::status::run(&args),
        Command::Ls(args) => control::ls::run(&args),
        Command::Attach(args) => tui::attach(&args),
        Command::Ctl(args) => control::ctl::run(&args),
        Command::Rules(args) => sessions::rules::run(&args.command),
        Command::Token(args) => token::run(&args.command),
        Command::Completions(args) => completions::run(&args),
        Command::Help(args) => help::run(args.topic),
        Command::Man(args) => completions::man(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            printer::fail(&error);
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// A mistake on the command line: exit code 2, like clap's own.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// The runtime of `serve`, whose clients and servers do not wait for each other.
pub fn runtime_with(
    threads: Option<std::num::NonZeroUsize>,
) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads.get());
    }
    builder.enable_all().build()
}

/// The runtime of every other command that waits: one thread, because hand-overs between threads cost more than they give.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
