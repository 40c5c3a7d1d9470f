//! `tools`, `resources`, `prompts`, `call`, `read`, `prompt` and `shell`: a server is dialled, used, and stopped.

mod dial;
mod running_hub;

use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_session::store;
use mcp_proxy_shell::{
    CallArgs, CancelSignal, CapabilityType, CatalogCommand, ClientCommand, CommandFailure,
    CommandForm, CommandOutput, ConnectTarget, Conversation, ConversationOptions, DialServer,
    ListArgs, OutputReader, PromptArgs, ReadArgs, SayLine, ShellOptions, ShellSession,
};
use mcp_proxy_wire::terminal_text::sanitize_lines;

use super::{runtime, runtime_with};
use crate::cli::client::{
    CatalogArgs, CatalogSubcommand, DEFAULT_TIMEOUT, ServerCommandArgs, ShellArgs, UsedServerArgs,
};
use crate::printer;

/// Threads of the shell: the conversation continues while a line is typed.
const SHELL_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// `tools`, `resources`, `prompts`
pub fn catalog(kind: CapabilityType, args: &CatalogArgs) -> Result<ExitCode> {
    let (command, server) = match &args.command {
        None => {
            let list = ListArgs {
                json: args.listed.command.json,
                ..ListArgs::default()
            };
            (CatalogCommand::List(list), &args.listed.server)
        }
        Some(CatalogSubcommand::List(args)) => {
            (CatalogCommand::List(args.command.clone()), &args.server)
        }
        Some(CatalogSubcommand::Search(args)) => {
            (CatalogCommand::Search(args.command.clone()), &args.server)
        }
        Some(CatalogSubcommand::Info(args)) => {
            (CatalogCommand::Info(args.command.clone()), &args.server)
        }
    };
    use_server(&ClientCommand::Catalog(kind, command), server)
}

/// `call`
pub fn call(args: &ServerCommandArgs<CallArgs>) -> Result<ExitCode> {
    use_server(&ClientCommand::Call(args.command.clone()), &args.server)
}

/// `read`
pub fn read(args: &ServerCommandArgs<ReadArgs>) -> Result<ExitCode> {
    use_server(&ClientCommand::Read(args.command.clone()), &args.server)
}

/// `prompt`
pub fn prompt(args: &ServerCommandArgs<PromptArgs>) -> Result<ExitCode> {
    use_server(&ClientCommand::Prompt(args.command.clone()), &args.server)
}

fn use_server(command: &ClientCommand, server: &UsedServerArgs) -> Result<ExitCode> {
    prepare();
    let runtime = runtime().context("cannot start")?;
    let mut cancel = CancelSignal::listen(&runtime).context("cannot start")?;
    let outcome = runtime.block_on(run_command(command, server, &mut cancel));
    Ok(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.exit_code()),
    })
}

fn say_failure(failure: &CommandFailure) {
    if !failure.text().is_empty() {
        printer::say(&sanitize_lines(&format!("mcp-proxy: {}", failure.text())));
    }
}

/// Runs a command, and says why it fails as soon as that is known.
async fn run_command(
    command: &ClientCommand,
    server: &UsedServerArgs,
    cancel: &mut CancelSignal,
) -> Result<(), CommandFailure> {
    let opening = async {
        let stream = dial::open(server, called_tool(command), cancel).await?;
        Conversation::open(stream, &conversation_options(server), cancel).await
    };
    let conversation = opening.await.inspect_err(say_failure)?;
    let say = |text: &str| printer::say(&sanitize_lines(&format!("mcp-proxy: {text}")));
    let mut screen = screen(Arc::new(say), command_form(server));
    let outcome = conversation.run(command, &mut screen, cancel).await;
    let outcome = outcome.inspect_err(say_failure);
    let closing = async {
        match &outcome {
            Ok(()) => conversation.close().await,
            Err(_) => conversation.abandon().await,
        }
        Ok(())
    };
    // Another Ctrl-C does not wait for the server to end.
    let closed = cancel.or_cancelled(closing).await;
    outcome.and_then(|()| closed.inspect_err(say_failure))
}

/// The tool that a command calls.
fn called_tool(command: &ClientCommand) -> Option<&str> {
    match command {
        ClientCommand::Call(args) => Some(args.tool()),
        _ => None,
    }
}

/// `shell`
pub fn shell(args: &ShellArgs) -> Result<ExitCode> {
    prepare();
    let runtime = runtime_with(Some(SHELL_THREADS)).context("cannot start")?;
    let mut cancel = CancelSignal::listen(&runtime).context("cannot start")?;
    let options = ShellOptions {
        dial: dial_for_shell(args.server.clone()),
        conversation: conversation_options(&args.server),
        history: match args.no_history {
            true => None,
            false => history_file(),
        },
        fail_fast: args.fail_fast,
    };
    let say = |text: &str| printer::say(&sanitize_lines(text));
    let screen = screen(Arc::new(say), CommandForm::default());
    let mut session = ShellSession::new(options, screen);
    let is_named = dial::names_server(&args.server);
    let opened = runtime
        .block_on(dial::open(&args.server, None, &mut cancel))
        .and_then(|stream| {
            let name = if is_named { "server" } else { "hub" };
            session.connect(&runtime, name, stream, &mut cancel)
        });
    match opened {
        Ok(()) => {}
        // Without a hub there are still the connections that the user opens.
        Err(CommandFailure::Unreachable(_)) if !is_named && args.server.hub.is_none() => {}
        Err(failure) => {
            printer::say(&sanitize_lines(&format!("mcp-proxy: {}", failure.text())));
            return Ok(ExitCode::from(failure.exit_code()));
        }
    }
    Ok(ExitCode::from(session.run(&runtime, &mut cancel)))
}

/// If a guard is killed, what it left behind becomes ours to clean up. Where that is not possible it is left out.
fn prepare() {
    let _ = mcp_proxy_transport::process::become_subreaper();
}

fn conversation_options(server: &UsedServerArgs) -> ConversationOptions {
    ConversationOptions {
        raw: server.raw,
        timeout: server.timeout.unwrap_or(DEFAULT_TIMEOUT),
        log: server
            .verbose
            .then(|| Arc::new(|line: &str| printer::say(line)) as SayLine),
        warn: Arc::new(|line| printer::say(&format!("mcp-proxy: {line}"))),
    }
}

fn screen(say: SayLine, form: CommandForm) -> CommandOutput {
    let is_terminal = printer::stdout_is_terminal();
    let width = crossterm::terminal::size().ok().filter(|_| is_terminal);
    CommandOutput {
        out: Box::new(printer::stdout_writer()),
        reader: match is_terminal {
            true => OutputReader::Terminal,
            false => OutputReader::Program,
        },
        width: width.map(|(columns, _)| usize::from(columns)),
        say,
        form,
    }
}

/// How the user would type another command for the same server. Headers and variables may be secrets and are left out.
fn command_form(server: &UsedServerArgs) -> CommandForm {
    let quoted = |word: &str| match shlex::try_quote(word) {
        Ok(quoted) => quoted.into_owned(),
        Err(_) => word.to_owned(),
    };
    let mut after = String::new();
    if let Some(url) = &server.url {
        after.push_str(&format!(" --url {}", quoted(url)));
    }
    for file in &server.source.config {
        after.push_str(&format!(" --config {}", quoted(&file.to_string_lossy())));
    }
    for entry in &server.source.server {
        after.push_str(&format!(" --server {}", quoted(entry)));
    }
    if let Some(id) = &server.hub {
        after.push_str(&format!(" --hub {}", quoted(id)));
    }
    if !server.server_command.is_empty() {
        let words = server.server_command.iter();
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        after.push_str(&format!(" -- {}", words.join(" ")));
    }
    CommandForm {
        before: "mcp-proxy ".to_owned(),
        after,
    }
}

/// `connect` of the shell: a server with nothing of the command line but its timeouts.
fn dial_for_shell(first: UsedServerArgs) -> DialServer {
    Arc::new(move |target| {
        let (timeout, verbose) = (first.timeout, first.verbose);
        let server = match target {
            ConnectTarget::Hub { id } => UsedServerArgs {
                hub: id,
                ..UsedServerArgs::default()
            },
            ConnectTarget::Url { url, headers } => UsedServerArgs {
                url: Some(url),
                header: headers,
                ..UsedServerArgs::default()
            },
            ConnectTarget::Command(words) => UsedServerArgs {
                server_command: words.into_iter().map(Into::into).collect(),
                ..UsedServerArgs::default()
            },
        };
        let server = UsedServerArgs {
            timeout,
            verbose,
            ..server
        };
        Box::pin(async move { dial::open_one(&server).await })
    })
}

/// `shell-history` next to the records; only the user can read it.
fn history_file() -> Option<PathBuf> {
    let folder = store::state_dir().ok()?.parent()?.to_owned();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("shell-history"))
}
