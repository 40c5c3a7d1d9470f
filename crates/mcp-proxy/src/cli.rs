//! The command line as typed: clap types only. What it means is decided in [`crate::config`].

pub mod client;
pub mod control;
pub mod mock;
mod number;
pub mod proxy;
pub mod redact;
pub mod relay;
pub mod relay_protocol;
pub mod replay;
pub mod rules;
pub mod savings;
pub mod serve;
pub mod sessions;
pub mod sign_in;
mod size;
pub mod suggestion;
mod time;
pub mod token;
pub mod tui;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use proxy::ProxyArgs;

const USAGE: &str = "\
mcp-proxy [OPTIONS] <URL>
       mcp-proxy [OPTIONS] -- <COMMAND>…
       mcp-proxy <SUBCOMMAND> …";

/// Examples, and what else is said at length, come before the flags: people read from the top.
const TEMPLATE: &str = "\
{before-help}{about-with-newline}
{usage-heading} {usage}{after-help}

{all-args}
";

const EXAMPLES: &str = "\
Examples:
  mcp-proxy demo                                    see it work, with nothing else installed
  mcp-proxy -- npx -y @modelcontextprotocol/server-everything
                                                    in front of a stdio server, in a client's config
  mcp-proxy http://localhost:3000/mcp               in front of an HTTP server
  mcp-proxy proxy --listen http -- python server.py
                                                    offer a stdio server over HTTP, on port 8888
  mcp-proxy call echo message=hi -- npx -y @modelcontextprotocol/server-everything
                                                    call a tool of a server, without any client
  mcp-proxy sessions                                what was recorded
  mcp-proxy open LAST                               the newest record in the terminal UI
  mcp-proxy inspect LAST                            the same, printed

Without a subcommand it is `mcp-proxy proxy`, whose options are shown by `mcp-proxy proxy --help`.
`mcp-proxy help filters` explains how messages are chosen, `help rules` how they are changed, and
`help keys` lists the keys of the terminal UI.";

/// A proxy between MCP clients and servers: watch, record and bridge every message, byte for byte.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-proxy",
    version,
    arg_required_else_help = true,
    override_usage = USAGE,
    after_help = EXAMPLES,
    subcommand_required = true,
    propagate_version = true,
    disable_help_subcommand = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Everything the program can do, one line and one file each.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the proxy between a client and one server; forward everything unchanged and record it
    Proxy(Box<ProxyArgs>),
    /// Put many servers behind one endpoint, and offer one tool that finds and calls everything
    #[command(after_help = serve::SERVE_AFTER, mut_args(serve::hide_server_flags))]
    Serve(Box<serve::ServeArgs>),
    /// Let MCP clients drive people's browsers through an extension, over WebSocket
    #[command(after_help = relay::RELAY_AFTER, mut_args(relay::adapt_flags))]
    Relay(Box<relay::RelayArgs>),
    /// List, search or show the tools of a server or of the running hub
    #[command(after_help = client::TOOLS_AFTER)]
    Tools(Box<client::CatalogArgs>),
    /// List, search or show resources and resource templates
    #[command(after_help = client::RESOURCES_AFTER)]
    Resources(Box<client::CatalogArgs>),
    /// List, search or show prompts
    #[command(after_help = client::PROMPTS_AFTER)]
    Prompts(Box<client::CatalogArgs>),
    /// Call a tool
    #[command(after_help = client::CALL_AFTER, override_usage = client::CALL_USAGE)]
    Call(Box<client::ServerCommandArgs<mcp_proxy_shell::CallArgs>>),
    /// Read a resource
    #[command(after_help = client::READ_AFTER)]
    Read(Box<client::ServerCommandArgs<mcp_proxy_shell::ReadArgs>>),
    /// Get a prompt
    #[command(after_help = client::PROMPT_AFTER, override_usage = client::PROMPT_USAGE)]
    Prompt(Box<client::ServerCommandArgs<mcp_proxy_shell::PromptArgs>>),
    /// Use servers interactively, or run a script of commands
    #[command(after_help = client::SHELL_AFTER)]
    Shell(Box<client::ShellArgs>),
    /// Sign in to a server that asks who you are
    #[command(after_help = sign_in::LOGIN_AFTER)]
    Login(sign_in::LoginArgs),
    /// Sign out of a server: revoke and remove its tokens
    #[command(after_help = sign_in::LOGOUT_AFTER)]
    Logout(sign_in::LogoutArgs),
    /// Show what tools cost a model, listed directly or behind one tool, and what a record's results cost
    Savings(savings::SavingsArgs),
    /// Play a short session through the proxy and show it live; needs nothing else
    Demo(DemoArgs),
    /// Run the embedded demo server by itself, over stdio or HTTP
    DemoServer(DemoServerArgs),
    /// Play the server of a record, over any transport
    #[command(after_help = mock::MOCK_AFTER)]
    Mock(Box<mock::MockArgs>),
    /// Replay the client side of a record against a live server and compare the answers
    #[command(after_help = replay::REPLAY_AFTER, mut_args(replay::hide_client_flags))]
    Replay(Box<replay::ReplayArgs>),
    /// Look at a record in the terminal UI
    Open(tui::OpenArgs),
    /// Print what a record holds
    Inspect(sessions::InspectArgs),
    /// Write a record in another format
    Export(sessions::ExportArgs),
    /// Make a record from a session in the JSON format
    Import(sessions::ImportArgs),
    /// List the records
    Sessions(sessions::SessionsArgs),
    /// Remove records
    Prune(sessions::PruneArgs),
    /// Show how the servers of a running hub are doing
    Status(control::StatusArgs),
    /// List running proxies
    Ls(control::LsArgs),
    /// Attach to a running proxy: watch its messages and decide about held ones
    Attach(control::AttachArgs),
    /// Query or control a running proxy: JSON in, JSON out
    Ctl(control::CtlArgs),
    /// Check a rules file, optionally against a record
    Rules(rules::RulesArgs),
    /// Issue, show and revoke the access tokens of a relay
    Token(token::TokenArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print help on a topic shared by several commands
    #[command(name = "help")]
    Help(HelpArgs),
    /// Print the man page, or write all man pages into a folder
    Man(ManArgs),
}

/// `demo`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mcp-proxy demo             about five seconds, then it says where the record is
  mcp-proxy demo --pace 0    as fast as it goes")]
pub struct DemoArgs {
    /// Milliseconds between two steps of the scripted client
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub pace: u64,
    /// Write the record here instead of the state directory
    #[arg(long, value_name = "FILE")]
    pub session_file: Option<PathBuf>,
    /// Print a list instead of opening the terminal UI (the default without a terminal)
    #[arg(long)]
    pub plain: bool,
    #[command(flatten)]
    pub tui: tui::TuiArgs,
}

/// `demo-server`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mcp-proxy demo-server stdio
  mcp-proxy demo-server http --port 3000     then: mcp-proxy http://127.0.0.1:3000/mcp")]
pub struct DemoServerArgs {
    /// How it is reached
    #[arg(value_enum, default_value = "stdio")]
    pub transport: DemoTransport,
    /// Port for HTTP; 0 picks a free port, printed on the first line of stderr
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// How the demo server is reached.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum DemoTransport {
    /// Over stdin and stdout.
    Stdio,
    /// Streamable HTTP at /mcp.
    Http,
}

/// `completions`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mcp-proxy completions bash > ~/.local/share/bash-completion/completions/mcp-proxy
  mcp-proxy completions zsh > ~/.zfunc/_mcp-proxy
  mcp-proxy completions fish > ~/.config/fish/completions/mcp-proxy.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `help`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mcp-proxy help filters    how messages are chosen: words, /regex/ or jq
  mcp-proxy help rules      how messages are changed, delayed, answered or dropped
  mcp-proxy help keys       the keys of the terminal UI
  mcp-proxy help export     the same as: mcp-proxy export --help")]
pub struct HelpArgs {
    /// The page
    pub topic: HelpTopic,
}

/// A page of help.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum HelpTopic {
    /// How messages are chosen.
    Filters,
    /// How messages are changed, delayed, answered or dropped.
    Rules,
    /// The keys of the terminal UI.
    Keys,
}

/// `man`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mcp-proxy man | man -l -                      read the man page
  mcp-proxy man ~/.local/share/man/man1         install it, with a page for each command")]
pub struct ManArgs {
    /// Write mcp-proxy.1 and a page for each command into this folder
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// The whole command line. Help, completions and man pages are made from it.
pub fn command() -> clap::Command {
    use clap::CommandFactory as _;
    with_template(Args::command())
}

fn with_template(command: clap::Command) -> clap::Command {
    command
        .help_template(TEMPLATE)
        .mut_subcommands(with_template)
}

/// Reads the command line.
pub fn read(argv: Vec<OsString>) -> Result<Command, clap::Error> {
    use clap::FromArgMatches as _;
    let argv = with_command(argv)?;
    let matches = command().try_get_matches_from(&argv);
    let matches = matches.map_err(|error| match error.kind() {
        clap::error::ErrorKind::UnknownArgument => explain_missing_separator(&argv)
            .or_else(|| client::explain_unknown_word(&argv))
            .unwrap_or_else(|| client::with_name_flag(error, &argv)),
        _ => error,
    })?;
    refuse_hidden_flags(&matches)?;
    Args::from_arg_matches(&matches).map(|args| args.command)
}

/// Refuses flags of `proxy` that the help of another command does not show, because they mean nothing there.
fn refuse_hidden_flags(matches: &clap::ArgMatches) -> Result<(), clap::Error> {
    let (name, given, why) = match matches.subcommand() {
        Some(("serve", given)) => {
            let why = "its servers come from --config FILE and --server NAME=COMMAND|URL";
            ("serve", given, why)
        }
        Some(("relay", given)) => {
            let why = "clients and extensions connect to it over WebSocket";
            ("relay", given, why)
        }
        _ => return Ok(()),
    };
    let all = command();
    let flags = all.find_subcommand(name).into_iter();
    let mut flags = flags.flat_map(clap::Command::get_arguments);
    let refused = flags.find(|flag| {
        let source = given.value_source(flag.get_id().as_str());
        flag.is_hide_set() && source == Some(clap::parser::ValueSource::CommandLine)
    });
    let Some(refused) = refused else {
        return Ok(());
    };
    let text = match refused.get_long() {
        Some(flag) => format!("--{flag} does not apply to `{name}`: {why}"),
        None => format!("`{name}` takes no server here: {why}"),
    };
    Err(command().error(clap::error::ErrorKind::ArgumentConflict, text))
}

/// `mcp-proxy --intercept npx -y server`: the flags after the server's command are not ours.
fn explain_missing_separator(argv: &[OsString]) -> Option<clap::Error> {
    let words: Vec<_> = argv.iter().skip(2).map(OsString::as_os_str).collect();
    let is_proxy = argv.get(1).is_some_and(|word| word == "proxy");
    let text = suggestion::for_command_after_flags(&words).filter(|_| is_proxy)?;
    Some(command().error(clap::error::ErrorKind::UnknownArgument, text))
}

/// Adds the word `proxy` where a client's config leaves it out: `mcp-proxy --target-command …`, `mcp-proxy URL`,
/// `mcp-proxy -- command`. Other words that are not understood are explained.
fn with_command(mut argv: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let Some(first) = argv.get(1).and_then(|word| word.to_str()) else {
        return Ok(argv);
    };
    if first == "help" && !names_topic(argv.get(2)) {
        // `mcp-proxy help export` is `mcp-proxy export --help`.
        argv.remove(1);
        argv.push("--help".into());
        return Ok(argv);
    }
    let commands = match first {
        "-h" | "--help" | "-V" | "--version" => return Ok(argv),
        // After it nobody types another command.
        "proxy" => Vec::new(),
        first => {
            let commands = command_names();
            if commands.iter().any(|name| name == first) {
                return Ok(argv);
            }
            commands
        }
    };
    if first != "proxy" {
        argv.insert(1, "proxy".into());
    }
    let words: Vec<_> = argv.iter().skip(2).map(OsString::as_os_str).collect();
    match suggestion::for_words(&words, &commands) {
        Some(text) => Err(command().error(clap::error::ErrorKind::InvalidSubcommand, text)),
        None => Ok(argv),
    }
}

fn command_names() -> Vec<String> {
    let command = command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    names.map(str::to_owned).collect()
}

/// Whether the word after `help` is a page of its own or about `help` itself, not a command's.
fn names_topic(word: Option<&OsString>) -> bool {
    use clap::ValueEnum as _;
    word.and_then(|word| word.to_str())
        .is_some_and(|word| word.starts_with('-') || HelpTopic::from_str(word, false).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest that help is shown. clap would break a longer line anywhere.
    const WIDTH: usize = 100;

    fn wide_lines(command: &clap::Command) -> Vec<String> {
        let after = command.get_after_help().map(ToString::to_string);
        let about = command.get_about().map(ToString::to_string);
        let text = [about, after].map(Option::unwrap_or_default).join("\n");
        let lines = text.lines().filter(|line| line.chars().count() > WIDTH);
        let own = lines.map(|line| format!("{}: {line}", command.get_name()));
        let inner = command.get_subcommands().flat_map(wide_lines);
        own.chain(inner).collect()
    }

    #[test]
    fn no_line_of_the_help_texts_is_too_wide() {
        assert_eq!(wide_lines(&command()), Vec::<String>::new());
    }
}
