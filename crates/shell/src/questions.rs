//! Questions of servers (elicitation), asked at the terminal.

mod form;
mod terminal_input;

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_proxy_client::rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_lines};
use serde_json::Value;

use crate::progress::ProgressLine;
use form::{FormAnswer, fill_form};

/// Asks the person at the terminal. Without one every question is declined.
#[derive(Clone, Default)]
pub(crate) struct Questions(Arc<QuestionState>);

#[derive(Default)]
struct QuestionState {
    /// How many commands have ended. A question belongs to the command that runs when it is asked.
    ended: AtomicU64,
    progress: Arc<ProgressLine>,
}

impl Questions {
    pub(crate) fn new(progress: Arc<ProgressLine>) -> Questions {
        Questions(Arc::new(QuestionState {
            ended: AtomicU64::new(0),
            progress,
        }))
    }

    /// The command has ended: nobody waits for an answer any more.
    pub(crate) fn stop(&self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Answers a question of the server.
    pub(crate) async fn answer(&self, params: ElicitRequestParams) -> ElicitResult {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return ElicitResult::new(ElicitationAction::Decline);
        }
        let state = Arc::clone(&self.0);
        // A person takes time, and reading blocks.
        let command = state.ended.load(Ordering::SeqCst);
        let answered = tokio::task::spawn_blocking(move || state.ask(&params, command)).await;
        answered.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }
}

impl QuestionState {
    fn ask(&self, params: &ElicitRequestParams, command: u64) -> ElicitResult {
        self.progress.clear();
        let answer = match params {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                self.say(&format!("\nThe server asks: {}", sanitize_lines(message)));
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
                self.say(&format!("\nThe server asks: {}", sanitize_lines(message)));
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
        terminal_input::read_line(|| self.ended.load(Ordering::SeqCst) != command)
    }

    fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}
