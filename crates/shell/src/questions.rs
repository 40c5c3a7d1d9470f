//! Questions of servers (elicitation), asked at the terminal.

mod form;
mod terminal_input;

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_proxy_client::rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_lines};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::progress::ProgressLine;
use form::{FormAnswer, fill_form};

/// Held for the whole of a question: there is one terminal, whatever the number of servers that ask.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Asks the person at the terminal. Without one every question is declined.
#[derive(Clone)]
pub(crate) struct Questions(Arc<QuestionState>);

struct QuestionState {
    /// The server, as it may be shown.
    server: String,
    /// The number of the last command. A question belongs to the command that runs when it is asked.
    begun: AtomicU64,
    /// The number of the last command that has ended.
    ended: AtomicU64,
    progress: Arc<ProgressLine>,
}

/// A command runs, and the server may ask, until this is dropped.
pub(crate) struct RunningCommand<'a> {
    state: &'a QuestionState,
    number: u64,
}

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        self.state.ended.fetch_max(self.number, Ordering::SeqCst);
    }
}

impl Questions {
    pub(crate) fn new(server: String, progress: Arc<ProgressLine>) -> Questions {
        Questions(Arc::new(QuestionState {
            server,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            progress,
        }))
    }

    /// A command begins. One runs at a time.
    pub(crate) fn begin(&self) -> RunningCommand<'_> {
        RunningCommand {
            state: &self.0,
            number: self.0.begun.fetch_add(1, Ordering::SeqCst) + 1,
        }
    }

    /// Answers a question of the server. Between commands the input belongs to the shell, and every question is cancelled.
    pub(crate) async fn answer(&self, params: ElicitRequestParams) -> ElicitResult {
        let has_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        self.answer_with(has_terminal, move |state, command| {
            state.ask(&params, command)
        })
        .await
    }

    async fn answer_with(
        &self,
        has_terminal: bool,
        ask: impl FnOnce(&QuestionState, u64) -> ElicitResult + Send + 'static,
    ) -> ElicitResult {
        let state = Arc::clone(&self.0);
        let command = state.begun.load(Ordering::SeqCst);
        if state.is_over(command) {
            return ElicitResult::new(ElicitationAction::Cancel);
        }
        if !has_terminal {
            return ElicitResult::new(ElicitationAction::Decline);
        }
        let terminal = TERMINAL.lock().await;
        // A person takes time, and reading blocks. It ends with the command, even if nobody waits for this answer.
        let answered = tokio::task::spawn_blocking(move || {
            let _terminal = terminal;
            match state.is_over(command) {
                true => ElicitResult::new(ElicitationAction::Cancel),
                false => ask(&state, command),
            }
        });
        let answered = answered.await;
        answered.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }
}

impl QuestionState {
    fn is_over(&self, command: u64) -> bool {
        self.ended.load(Ordering::SeqCst) >= command
    }

    fn introduction(&self, message: &str) -> String {
        let (server, message) = (sanitize(&self.server), sanitize_lines(message));
        format!("\n{server} asks: {message}")
    }

    fn ask(&self, params: &ElicitRequestParams, command: u64) -> ElicitResult {
        self.progress.clear();
        match terminal_input::drop_earlier_lines() {
            0 => {}
            1 => self.say("\nDropped the line that was typed before this question."),
            lines => self.say(&format!(
                "\nDropped the {lines} lines that were typed before this question."
            )),
        }
        let answer = match params {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                self.say(&self.introduction(message));
                self.say("Type !decline to decline, !cancel to cancel.");
                fill_form(
                    &schema,
                    &mut |prompt| self.line(prompt, command),
                    &mut |text| {
                        self.say(text);
                    },
                )
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                self.say(&self.introduction(message));
                self.say(&format!("Open this address yourself: {}", sanitize(url)));
                self.consent(command)
            }
            _ => FormAnswer::Decline,
        };
        match answer {
            FormAnswer::Accept(content) if content.is_empty() => {
                ElicitResult::new(ElicitationAction::Accept)
            }
            FormAnswer::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            FormAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            FormAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    fn consent(&self, command: u64) -> FormAnswer {
        loop {
            let answer = self.line("Continue? [y]es, [n]o, [c]ancel: ", command);
            match answer.as_deref().map(str::trim) {
                Some("y" | "yes") => return FormAnswer::Accept(serde_json::Map::new()),
                Some("n" | "no" | "!decline") => return FormAnswer::Decline,
                Some("c" | "cancel" | "!cancel") | None => return FormAnswer::Cancel,
                Some(_) => {}
            }
        }
    }

    fn line(&self, prompt: &str, command: u64) -> Option<String> {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{prompt}").and_then(|()| stderr.flush());
        drop(stderr);
        terminal_input::read_line(|| self.is_over(command))
    }

    fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn questions() -> Questions {
        Questions::new("demo\u{1b}[2J".to_owned(), Arc::default())
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    fn accept(_: &QuestionState, _: u64) -> ElicitResult {
        ElicitResult::new(ElicitationAction::Accept)
    }

    #[test]
    fn a_server_may_ask_only_while_a_command_runs() {
        let questions = questions();
        let action = |has_terminal| {
            let answer = questions.answer_with(has_terminal, accept);
            runtime().block_on(answer).action
        };
        assert_eq!(action(true), ElicitationAction::Cancel);
        let command = questions.begin();
        assert_eq!(action(true), ElicitationAction::Accept);
        assert_eq!(action(false), ElicitationAction::Decline);
        drop(command);
        assert_eq!(action(true), ElicitationAction::Cancel);
    }

    #[test]
    fn a_question_that_waited_past_its_command_is_cancelled() {
        let questions = questions();
        let action = runtime().block_on(async {
            let terminal = TERMINAL.lock().await;
            let command = questions.begin();
            let asking = questions.answer_with(true, accept);
            let ending = async {
                drop(command);
                drop(terminal);
            };
            tokio::join!(asking, ending).0.action
        });
        assert_eq!(action, ElicitationAction::Cancel);
    }

    #[test]
    fn two_questions_never_use_the_terminal_at_once() {
        static ASKING: AtomicUsize = AtomicUsize::new(0);
        fn alone(_: &QuestionState, _: u64) -> ElicitResult {
            let others = ASKING.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
            ASKING.fetch_sub(1, Ordering::SeqCst);
            ElicitResult::new(match others {
                0 => ElicitationAction::Accept,
                _ => ElicitationAction::Decline,
            })
        }
        let (one, other) = (questions(), questions());
        let _commands = (one.begin(), other.begin());
        runtime().block_on(async {
            for _ in 0..50 {
                let both =
                    tokio::join!(one.answer_with(true, alone), other.answer_with(true, alone));
                assert_eq!(both.0.action, ElicitationAction::Accept);
                assert_eq!(both.1.action, ElicitationAction::Accept);
            }
        });
    }

    #[test]
    fn a_question_names_the_server() {
        let text = questions().0.introduction("Name?");
        assert!(text.contains("demo") && text.contains("Name?"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
