//! What rules say about a message.

use std::fmt;
use std::time::Duration;

use mcp_proxy_session::{Budget, ChangePart};
use mcp_proxy_wire::Message;

use super::RuleName;

/// What becomes of a message, and by which rules.
///
/// To carry it out: wait [`delay`](Verdict::delay), then do what [`outcome`](Verdict::outcome) says, with
/// [`message`](Verdict::message) in the place of the message if there is one. Each of [`applied`](Verdict::applied) is worth an
/// `act` in the record.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The rules that did something, in order.
    pub applied: Vec<Applied>,
    /// The message after all changes; `None` if it stays as it is.
    pub message: Option<Message>,
    /// How long it waits, all delays together.
    pub delay: Duration,
    /// What happens to it then.
    pub outcome: Outcome,
}

/// A rule, and what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The rule.
    pub rule: RuleName,
    /// What it did.
    pub what: What,
}

/// What a rule did with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It changed this part.
    Changed(ChangePart),
    /// It holds it up.
    Delayed(Duration),
    /// It answered it.
    Answered,
    /// It answered it with an error.
    Refused,
    /// It dropped it.
    Dropped,
    /// It sends it to this server.
    Redirected(String),
    /// It should have done something and could not, for this reason. The message goes on as if the rule were not there.
    Failed(String),
    /// It would have taken longer than this. The message goes on as if the rule were not there.
    TooSlow(Budget),
}

/// What happens to a message after changes and delays.
#[derive(Debug, Clone, Default)]
pub enum Outcome {
    /// It goes on.
    #[default]
    Pass,
    /// It does not go on; its sender gets this answer.
    Answer(Message),
    /// It does not go on.
    Drop,
    /// It goes to the server of this name instead.
    Redirect(String),
}

impl RuleName {
    /// Who decided, as an `act` says it: `rule:no-secrets`, `rule:3`.
    pub fn by(&self) -> String {
        match &self.name {
            Some(name) => format!("rule:{name}"),
            None => format!("rule:{}", self.number),
        }
    }
}

impl What {
    /// The verb for an `act`. A rule that failed or is too slow gives a note instead.
    pub fn verb(&self) -> &'static str {
        match self {
            What::Changed(_) => "modify",
            What::Delayed(_) => "delay",
            What::Answered | What::Refused => "answer",
            What::Dropped => "drop",
            What::Redirected(_) => "redirect",
            What::Failed(_) | What::TooSlow(_) => "fail",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Changed(part) => write!(f, "changes {part}"),
            What::Delayed(delay) => write!(f, "delays it by {delay:?}"),
            What::Answered => f.write_str("answers it"),
            What::Refused => f.write_str("answers it with an error"),
            What::Dropped => f.write_str("drops it"),
            What::Redirected(server) => write!(f, "sends it to {server}"),
            What::Failed(why) => write!(f, "fails: {why}"),
            What::TooSlow(budget) => write!(
                f,
                "is too slow: it takes longer than {} ms",
                budget.time.as_millis()
            ),
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rule, self.what)
    }
}
