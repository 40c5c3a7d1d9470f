//! The flags of the commands that use a server: `tools`, `resources`, `prompts`, `call`, `read`, `prompt` and `shell`.
//!
//! The words of each command itself are in `mcp-proxy-shell`, because the shell takes them too.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use mcp_proxy_shell::{InfoArgs, ListArgs, SearchWordsArgs};

use super::serve::ServerSourceArgs;
use super::suggestion;
use super::time::time;

const CATALOGS: [&str; 3] = ["tools", "resources", "prompts"];

/// How long an answer may take, if the user does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What is said about the word after `tools`, `resources`, `prompts` or `shell` that they do not know: a misspelt command, or a
/// server without its flag.
pub fn explain_unknown_word(argv: &[OsString]) -> Option<clap::Error> {
    use clap::Subcommand as _;
    let command = word(argv, 1).filter(|word| *word == "shell" || CATALOGS.contains(word))?;
    let given = word(argv, 2).filter(|given| !given.starts_with('-'))?;
    let mut names = Vec::new();
    if command != "shell" {
        let inner = CatalogSubcommand::augment_subcommands(clap::Command::new(""));
        names.extend(
            inner
                .get_subcommands()
                .map(|name| name.get_name().to_owned()),
        );
    }
    if names.iter().any(|name| name == given) {
        return None;
    }
    let unknown = format!("there is no command `{command} {given}`");
    let text = if let Some(meant) = suggestion::alike(given, &names) {
        format!("{unknown}; did you mean `{meant}`?")
    } else if given.contains("://") {
        format!("a server's URL goes after --url; use: mcp-proxy {command} --url {given}")
    } else if suggestion::is_program(given) {
        let words: Vec<_> = argv.iter().skip(2).map(OsString::as_os_str).collect();
        let server = suggestion::shown(&words);
        format!("the server's command goes after `--`; use: mcp-proxy {command} -- {server}")
    } else if names.is_empty() {
        return None;
    } else {
        let names = names.join(", ");
        format!("{unknown}, only {names}; use: mcp-proxy {command} list {given}")
    };
    Some(super::command().error(clap::error::ErrorKind::InvalidSubcommand, text))
}

/// An unknown flag of these commands may be meant as a name. clap would advise to put it after `--`, where the server's command
/// is.
pub fn with_name_flag(mut error: clap::Error, argv: &[OsString]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let takes_name = match word(argv, 1) {
        Some("call" | "prompt") => true,
        Some(kind) if CATALOGS.contains(&kind) => word(argv, 2) == Some("info"),
        Some("read" | "shell") => false,
        _ => return error,
    };
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if takes_name => Some(given.clone()),
        _ => None,
    };
    let is_misspelt = error.get(ContextKind::SuggestedArg).is_some();
    error.remove(ContextKind::Suggested);
    if let Some(given) = given.filter(|_| !is_misspelt) {
        let tip = format!("if this is the name, use '--name={given}'");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

fn word(argv: &[OsString], place: usize) -> Option<&str> {
    argv.get(place)?.to_str()
}

/// What `tools --help` shows first.
pub const TOOLS_AFTER: &str = "\
Examples:
  mcp-proxy tools                                     the tools behind the running hub
  mcp-proxy tools -- python server.py                 of a server that is started for this
  mcp-proxy tools list --url http://localhost:3000/mcp
  mcp-proxy tools list --config ~/.cursor/mcp.json    of all servers of a config file
  mcp-proxy tools search send mail                    by what they do
  mcp-proxy tools info add                            parameters, and an example of a call
  mcp-proxy tools --hub 5e550001                      if several hubs run; `mcp-proxy ls` lists them
  mcp-proxy tools list --json | jq -r '.[].name'

Exit code: 0 success, 1 the server says it failed, 2 a mistake found before anything was sent,
3 cannot connect, 130 cancelled with Ctrl-C.";

/// What `resources --help` shows first.
pub const RESOURCES_AFTER: &str = "\
Examples:
  mcp-proxy resources                                 what the running hub offers
  mcp-proxy resources list --url http://localhost:3000/mcp
  mcp-proxy resources search readme -- python server.py
  mcp-proxy resources info file:///notes.txt          `mcp-proxy read URI` shows the contents";

/// What `prompts --help` shows first.
pub const PROMPTS_AFTER: &str = "\
Examples:
  mcp-proxy prompts                                   what the running hub offers
  mcp-proxy prompts info review                       its arguments; `mcp-proxy prompt NAME` gets it
  mcp-proxy prompts list --url http://localhost:3000/mcp";

/// How `call` is used. `--name` is the exception.
pub const CALL_USAGE: &str = "mcp-proxy call [OPTIONS] <NAME> [KEY=VALUE]... [-- <COMMAND>...]";
/// How `prompt` is used.
pub const PROMPT_USAGE: &str = "mcp-proxy prompt [OPTIONS] <NAME> [KEY=VALUE]... [-- <COMMAND>...]";

/// What `call --help` shows first.
pub const CALL_AFTER: &str = "\
Examples:
  mcp-proxy call add a=1 b=2 -- mcp-proxy demo-server stdio
  mcp-proxy call git_log repo_path=. max_count=3      a tool behind the running hub
  mcp-proxy call draw points:='[[0,1],[2,3]]' label=@label.txt --output picture.png
  mcp-proxy call tag names=a names=b                  a list by repetition
  mcp-proxy call add --args '{\"a\": 1, \"b\": 2}'        or --args-file FILE, or - for stdin
  mcp-proxy call add a=1 b=2 --json | jq .structuredContent
  mcp-proxy call --name=--help a=1 -- python server.py
                                                      a tool whose name looks like a flag

Values are typed by the tool's schema, and checked by it before anything is sent.
A question of the server is asked at the terminal; without one it is declined.
Exit code: 0 success, 1 the server says it failed, 2 a mistake found before anything was sent,
3 cannot connect, 130 cancelled with Ctrl-C.";

/// What `read --help` shows first.
pub const READ_AFTER: &str = "\
Examples:
  mcp-proxy read demo://readme -- mcp-proxy demo-server stdio
  mcp-proxy read file:///logo.png --output logo.png
  mcp-proxy read file:///data.json --json

Exit code: 0 success, 1 the server says it failed, 2 a mistake found before anything was sent,
3 cannot connect, 130 cancelled with Ctrl-C.";

/// What `prompt --help` shows first.
pub const PROMPT_AFTER: &str = "\
Examples:
  mcp-proxy prompt review file=main.rs
  mcp-proxy prompt review text=@main.rs --url http://localhost:3000/mcp
  mcp-proxy prompt review file=main.rs --json

Exit code: 0 success, 1 the server says it failed, 2 a mistake found before anything was sent,
3 cannot connect, 130 cancelled with Ctrl-C.";

/// What `shell --help` shows first.
pub const SHELL_AFTER: &str = "\
Examples:
  mcp-proxy shell                                     with the running hub, if there is one
  mcp-proxy shell -- python server.py
  mcp-proxy shell --config ~/.cursor/mcp.json
  mcp-proxy shell --fail-fast <commands.txt           a script: one command a line, `#` for comments

In the shell:
  tools                                list them; also resources, prompts
  search WORDS                         find anything by what it does
  info NAME                            parameters and an example
  call add a=1 b=2                     Tab completes names and arguments
  read URI      prompt NAME key=value
  connect other http://localhost:3000/mcp
  connect third -- python server.py
  connections   use other   disconnect third
  help          quit

Exit code of a script: 0, or that of the first command that failed.";

/// `tools`, `resources` and `prompts`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CatalogArgs {
    /// What to do; without it they are listed
    #[command(subcommand)]
    pub command: Option<CatalogSubcommand>,
    #[command(flatten)]
    pub listed: ServerCommandArgs<JsonArgs>,
}

/// `tools` and the like without `list`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct JsonArgs {
    /// One JSON document: the definitions
    #[arg(long)]
    pub json: bool,
}

/// What can be done with one kind of capability.
#[derive(Debug, clap::Subcommand)]
pub enum CatalogSubcommand {
    /// List them, with the first sentence of each description
    List(Box<ServerCommandArgs<ListArgs>>),
    /// Find them by words, the best first
    Search(Box<ServerCommandArgs<SearchWordsArgs>>),
    /// Show one: its parameters and an example
    Info(Box<ServerCommandArgs<InfoArgs>>),
}

/// A command and the server that it is for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerCommandArgs<C: clap::Args> {
    #[command(flatten)]
    pub command: C,
    #[command(flatten)]
    pub server: UsedServerArgs,
}

/// `shell`
#[derive(Clone, Debug, clap::Args)]
pub struct ShellArgs {
    /// Stop a script at the first command that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// Neither read nor keep the history of lines
    #[arg(long)]
    pub no_history: bool,
    #[command(flatten)]
    pub server: UsedServerArgs,
}

/// The server that a command uses. Without any of these it is the running hub.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UsedServerArgs {
    /// The server's URL; its transport is detected
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Server",
        conflicts_with = "server_command"
    )]
    pub url: Option<String>,

    /// A header for every request, `Name: value` (repeatable); `${VAR}` and `Name: @FILE` as in `mcp-proxy proxy`
    #[arg(
        long,
        value_name = "HEADER",
        help_heading = "Server",
        conflicts_with = "server_command"
    )]
    pub header: Vec<String>,

    /// Additional certificate authorities for an https URL (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub ca_file: Option<PathBuf>,

    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub server_command: Vec<OsString>,

    /// A variable for the server's process, `NAME=value` (repeatable)
    #[arg(
        long,
        value_name = "VAR",
        help_heading = "Server",
        conflicts_with = "url"
    )]
    pub env: Vec<String>,

    #[command(flatten)]
    pub source: ServerSourceArgs,

    /// A running hub, by its id from `mcp-proxy ls` [default: the only one]
    #[arg(
        long,
        value_name = "ID",
        help_heading = "Server",
        conflicts_with_all = ["url", "server_command", "config", "server"]
    )]
    pub hub: Option<String>,

    /// Use the lists and methods of the server itself, not what is behind its `proxy` tool
    #[arg(long, help_heading = "Server")]
    pub raw: bool,

    /// How long to wait for the server to start and for each answer; progress starts the time again [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Server")]
    pub timeout: Option<Duration>,

    /// Show on stderr which hub is used, the server's log messages, and warnings about servers that a call does not need
    #[arg(short, long, help_heading = "Server")]
    pub verbose: bool,
}
