//! The interactive shell: several connections, and commands from a person or a script.

mod completion;
mod connections;
mod line;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use mcp_proxy_wire::terminal_text::sanitize_lines;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::args::CatalogCommand;
use crate::cancel_signal::CancelSignal;
use crate::command::ClientCommand;
use crate::conversation::{ConversationOptions, ServerStream};
use crate::details::CommandForm;
use crate::failure::CommandFailure;
use crate::output::CommandOutput;
use completion::ShellHelper;
use connections::Connections;
use line::{ShellVerb, commands, help, is_complete, parse};

/// Lines that the history keeps.
const HISTORY: usize = 2000;
const WELCOME: &str =
    "Type `help` for the commands, Tab completes, Ctrl-C cancels a call, Ctrl-D quits.";

/// What `connect` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectTarget {
    /// A URL, with `Name: value` headers.
    Url {
        /// Where.
        url: String,
        /// Headers of each request.
        headers: Vec<String>,
    },
    /// A command.
    Command(Vec<String>),
    /// A running hub.
    Hub {
        /// Its id, if it is not the only one.
        id: Option<String>,
    },
}

/// Opens the way to a server.
pub type DialServer = Arc<
    dyn Fn(
            ConnectTarget,
        ) -> Pin<Box<dyn Future<Output = Result<ServerStream, CommandFailure>> + Send>>
        + Send
        + Sync,
>;

/// How a shell runs.
pub struct ShellOptions {
    /// Opens connections.
    pub dial: DialServer,
    /// How conversations are led.
    pub conversation: ConversationOptions,
    /// Where lines are kept between runs, if they are.
    pub history: Option<PathBuf>,
    /// Whether the first failure ends a script.
    pub fail_fast: bool,
}

/// A shell.
pub struct ShellSession {
    options: ShellOptions,
    connections: Connections,
    screen: CommandOutput,
}

/// Whether another line is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextLine {
    Read,
    Quit,
}

impl ShellSession {
    /// A shell without connections.
    pub fn new(options: ShellOptions, screen: CommandOutput) -> ShellSession {
        let screen = CommandOutput {
            form: CommandForm::default(),
            ..screen
        };
        ShellSession {
            options,
            connections: Connections::default(),
            screen,
        }
    }

    /// Opens the first connection, with the target of the command line.
    pub fn connect(
        &mut self,
        runtime: &Runtime,
        name: &str,
        server: ServerStream,
        cancel: &mut CancelSignal,
    ) -> Result<(), CommandFailure> {
        let opening = self
            .connections
            .open(name, server, &self.options.conversation, cancel);
        runtime.block_on(opening)?;
        Ok(())
    }

    /// Reads commands until the end. Returns the exit code.
    pub fn run(mut self, runtime: &Runtime, cancel: &mut CancelSignal) -> u8 {
        let code = match std::io::stdin().is_terminal() {
            true => self.read_person(runtime, cancel),
            false => self.read_script(runtime, cancel),
        };
        runtime.block_on(self.connections.close_all());
        code
    }

    fn read_person(&mut self, runtime: &Runtime, cancel: &mut CancelSignal) -> u8 {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY)
            .map(|config| {
                config
                    .history_ignore_space(true)
                    .auto_add_history(false)
                    .build()
            });
        let editor = config.and_then(Editor::<ShellHelper, FileHistory>::with_config);
        let mut editor = match editor {
            Ok(editor) => editor,
            Err(error) => {
                (self.screen.say)(&format!("the line editor cannot start: {error}"));
                return 1;
            }
        };
        editor.set_helper(Some(ShellHelper::default()));
        if let Some(path) = &self.options.history {
            // There is none the first time.
            let _ = editor.load_history(path);
        }
        (self.screen.say)(WELCOME);
        if let Some(about) = self.connections.current_about() {
            (self.screen.say)(&about);
        }
        loop {
            runtime.block_on(self.connections.refresh());
            // The terminal may have another size than at the last prompt.
            if let Some((columns, _)) = editor.dimensions().filter(|_| self.screen.width.is_some())
            {
                self.screen.width = Some(usize::from(columns));
            }
            if let Some(helper) = editor.helper_mut() {
                helper.set(self.connections.known_names(), self.screen.width);
            }
            match editor.readline(&self.connections.prompt()) {
                // Several lines were pasted, if it is more than one.
                Ok(text) => {
                    let (commands, _) = commands(&text);
                    for command in &commands {
                        let _ = editor.add_history_entry(command.as_str());
                    }
                    runtime.block_on(cancel.forget_earlier());
                    match self.run_all(runtime, &commands, cancel) {
                        NextLine::Read => {}
                        NextLine::Quit => break,
                    }
                }
                // At the prompt it clears the line, as in other shells.
                Err(ReadlineError::Interrupted) => {}
                Err(_) => break,
            }
        }
        if let Some(path) = &self.options.history
            && let Err(error) = editor.append_history(path)
        {
            (self.screen.say)(&format!("the history cannot be written: {error}"));
        }
        0
    }

    /// The commands that a person has typed or pasted at once, in their order. Ctrl-C drops the rest of them, as it drops what
    /// was typed ahead.
    fn run_all(
        &mut self,
        runtime: &Runtime,
        commands: &[String],
        cancel: &mut CancelSignal,
    ) -> NextLine {
        for (place, command) in commands.iter().enumerate() {
            if commands.len() > 1 && !command.trim().is_empty() {
                // Between the results of others it must be seen what this is the result of.
                (self.screen.say)(&format!("{}{command}", self.connections.prompt()));
            }
            let failure = match self.run_line(runtime, command, cancel) {
                Ok(NextLine::Read) => continue,
                Ok(NextLine::Quit) => return NextLine::Quit,
                Err(failure) => failure,
            };
            self.report(&failure);
            if failure == CommandFailure::Cancelled {
                match commands.len() - place - 1 {
                    0 => {}
                    1 => (self.screen.say)("the line after it was not run"),
                    left => (self.screen.say)(&format!("the {left} lines after it were not run")),
                }
                break;
            }
        }
        NextLine::Read
    }

    /// Commands from a file or a pipe, one a line; `#` begins a comment.
    fn read_script(&mut self, runtime: &Runtime, cancel: &mut CancelSignal) -> u8 {
        let mut code = 0;
        let mut open = String::new();
        let mut lines = stdin_lines();
        let mut number = 0;
        loop {
            let next = cancel.or_cancelled(async { Ok(lines.recv().await) });
            let line = match runtime.block_on(next) {
                Ok(Some(Ok(line))) => line,
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    (self.screen.say)(&format!("line {}: {error}", number + 1));
                    return 2;
                }
                Err(failure) => {
                    self.report(&failure);
                    return failure.exit_code();
                }
            };
            number += 1;
            open.push_str(&line);
            if !is_complete(&open) {
                open.push('\n');
                continue;
            }
            let line = std::mem::take(&mut open);
            match self.run_line(runtime, &line, cancel) {
                Ok(NextLine::Read) => {}
                Ok(NextLine::Quit) => return code,
                Err(failure) => {
                    self.report_line(number, &failure);
                    if failure == CommandFailure::Cancelled {
                        return failure.exit_code();
                    }
                    if code == 0 {
                        code = failure.exit_code();
                    }
                    if self.options.fail_fast {
                        return code;
                    }
                }
            }
        }
        if !open.trim().is_empty() {
            (self.screen.say)("the last line has a quote that does not close");
            return 2;
        }
        code
    }

    fn report(&self, failure: &CommandFailure) {
        if !failure.text().is_empty() {
            (self.screen.say)(&sanitize_lines(failure.text()));
        }
    }

    fn report_line(&self, number: usize, failure: &CommandFailure) {
        if !failure.text().is_empty() {
            let text = sanitize_lines(failure.text());
            (self.screen.say)(&format!("line {number}: {text}"));
        }
    }

    fn run_line(
        &mut self,
        runtime: &Runtime,
        line: &str,
        cancel: &mut CancelSignal,
    ) -> Result<NextLine, CommandFailure> {
        let Some(verb) = parse(line)? else {
            return Ok(NextLine::Read);
        };
        let command = match verb {
            ShellVerb::Quit => return Ok(NextLine::Quit),
            ShellVerb::Help { command } => {
                let text = help(command.as_deref())?;
                self.screen.print(&text)?;
                return Ok(NextLine::Read);
            }
            ShellVerb::Connections => {
                let text = self.connections.table();
                match text.is_empty() {
                    true => (self.screen.say)("there are no connections"),
                    false => self.screen.print(&text)?,
                }
                return Ok(NextLine::Read);
            }
            ShellVerb::Use { name } => {
                self.connections.select(&name)?;
                return Ok(NextLine::Read);
            }
            ShellVerb::Disconnect { name } => {
                runtime.block_on(self.connections.close(name.as_deref()))?;
                return Ok(NextLine::Read);
            }
            ShellVerb::Connect(args) => {
                self.connections.refuse_taken(&args.name)?;
                let (name, target) = args.target()?;
                let dial = Arc::clone(&self.options.dial);
                let opening = async {
                    let server = cancel.or_cancelled(dial(target)).await?;
                    self.connections
                        .open(&name, server, &self.options.conversation, cancel)
                        .await
                };
                let about = runtime.block_on(opening)?;
                (self.screen.say)(&about);
                return Ok(NextLine::Read);
            }
            ShellVerb::Tools(args) => {
                ClientCommand::Catalog(crate::CapabilityType::Tool, CatalogCommand::List(args))
            }
            ShellVerb::Resources(args) => {
                ClientCommand::Catalog(crate::CapabilityType::Resource, CatalogCommand::List(args))
            }
            ShellVerb::Prompts(args) => {
                ClientCommand::Catalog(crate::CapabilityType::Prompt, CatalogCommand::List(args))
            }
            ShellVerb::Search(args) => ClientCommand::Search(args),
            ShellVerb::Info(args) => ClientCommand::Info(args),
            ShellVerb::Call(args) => ClientCommand::Call(args),
            ShellVerb::Read(args) => ClientCommand::Read(args),
            ShellVerb::Prompt(args) => ClientCommand::Prompt(args),
        };
        let conversation = self.connections.current()?;
        let run = runtime.block_on(conversation.run(&command, &mut self.screen, cancel));
        run.map_err(|failure| match failure {
            CommandFailure::Unreachable(text) => CommandFailure::Unreachable(format!(
                "{text}; `disconnect` removes it, `connect NAME …` opens another"
            )),
            failure => failure,
        })?;
        Ok(NextLine::Read)
    }
}

/// The lines of stdin, read on a thread of their own: Ctrl-C must end a script that waits for its next line.
fn stdin_lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
