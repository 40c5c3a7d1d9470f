//! What rules say about a message.

use std::fmt;
use std::time::Duration;

use mcp_proxy_session::ChangePart;
use mcp_proxy_wire::Message;
use mcp_proxy_wire::headers::HeaderEdits;

use super::RuleName;

/// What becomes of a message, and by which rules.
///
/// To carry it out: wait [`delay`](RuleVerdict::delay), then do what [`outcome`](RuleVerdict::outcome) says, with
/// `message` in the place of the message if there is one. Each of [`applied`](RuleVerdict::applied) is worth an
/// `act` in the record.
#[derive(Debug, Clone, Default)]
pub struct RuleVerdict {
    /// The rules that did something, in order.
    pub applied: Vec<AppliedRule>,
    /// The message after all changes; `None` if it stays as it is.
    pub message: Option<Message>,
    /// Changes to its HTTP head.
    pub headers: HeaderEdits,
    /// How long it waits, all delays together.
    pub delay: Duration,
    /// What happens to it then.
    pub outcome: RuleOutcome,
}

/// A rule, and what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRule {
    /// The rule.
    pub rule: RuleName,
    /// What it did.
    pub effect: RuleEffect,
}

/// What a rule did with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleEffect {
    /// It changed this part.
    Changed(ChangePart),
    /// It changed headers.
    HeadersChanged(HeaderEdits),
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
    /// It should have done something and could not, for this reason. The message is forwarded as if the rule were not there.
    Failed(String),
    /// It missed its deadline and is switched off. The message is forwarded as if the rule were not there.
    TooSlow,
}

/// What happens to a message after changes and delays.
#[derive(Debug, Clone, Default)]
pub enum RuleOutcome {
    /// It is forwarded.
    #[default]
    Pass,
    /// It is not forwarded; its sender gets this answer.
    Answer(Message),
    /// It is dropped.
    Drop,
    /// It goes to the server of this name instead.
    Redirect(String),
}

impl RuleVerdict {
    /// The message is sent without a head of its own, so there are no headers to change.
    pub(crate) fn forget_headers(&mut self) {
        self.headers = HeaderEdits::default();
        let is_other =
            |applied: &AppliedRule| !matches!(applied.effect, RuleEffect::HeadersChanged(_));
        self.applied.retain(is_other);
    }
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

impl RuleEffect {
    /// The verb for an `act`. A rule that failed or is too slow gives a note instead.
    pub fn verb(&self) -> &'static str {
        match self {
            RuleEffect::Changed(_) | RuleEffect::HeadersChanged(_) => "modify",
            RuleEffect::Delayed(_) => "delay",
            RuleEffect::Answered | RuleEffect::Refused => "answer",
            RuleEffect::Dropped => "drop",
            RuleEffect::Redirected(_) => "redirect",
            RuleEffect::Failed(_) | RuleEffect::TooSlow => "fail",
        }
    }
}

impl fmt::Display for RuleEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleEffect::Changed(part) => write!(f, "changes {part}"),
            RuleEffect::HeadersChanged(edits) => edits.fmt(f),
            RuleEffect::Delayed(delay) => write!(f, "delays it by {delay:?}"),
            RuleEffect::Answered => f.write_str("answers it"),
            RuleEffect::Refused => f.write_str("answers it with an error"),
            RuleEffect::Dropped => f.write_str("drops it"),
            RuleEffect::Redirected(server) => write!(f, "sends it to {server}"),
            RuleEffect::Failed(why) => write!(f, "fails: {why}"),
            RuleEffect::TooSlow => f.write_str("is too slow and switched off"),
        }
    }
}

impl fmt::Display for AppliedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rule, self.effect)
    }
}
