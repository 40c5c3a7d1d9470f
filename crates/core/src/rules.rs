//! Rules: what to do with which messages, from an ordered file (`docs/rules.md`).
//!
//! A pure engine: [`Rules::parse`] reads the file once, [`Rules::judge`] says what becomes of a message. It changes bytes but
//! sends, waits and records nothing; the caller carries out the [`RuleVerdict`]. [`LiveRules`] are those that a run obeys.

mod error;
mod live;
mod name_patterns;
mod rules_file;
mod rules_parser;
mod verdict;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_proxy_session::{Change, ChangeError, ChangePart, Filter, JqError, MessageFacts};
use mcp_proxy_wire::headers::HeaderEdits;
use mcp_proxy_wire::{Direction, Kind, Message};

use name_patterns::NamePatterns;

pub use error::RulesError;
pub(crate) use live::{DelayPermit, REDIRECT_TIME};
pub use live::{LiveRules, OpenServerCallback};
pub use rules_file::{RulesFile, RulesServer, reload_summary};
pub use verdict::{AppliedRule, RuleEffect, RuleOutcome, RuleVerdict};

/// The most rules that a file may have.
pub const MOST_RULES: usize = 10_000;

/// An ordered list of rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// There are several servers, so `server` of a rule is compared with that of each message.
    has_several_servers: bool,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its place in the file, and its name.
    pub name: RuleName,
    /// The line where it begins.
    pub line: usize,
    direction: Option<Direction>,
    method: Option<NamePatterns>,
    tool: Option<NamePatterns>,
    server: Option<NamePatterns>,
    filter: Filter,
    action: RuleAction,
    too_slow: Arc<AtomicU64>,
}

/// What a rule is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName {
    /// Its place in the file, from 1.
    pub number: usize,
    /// The name that the file gives it.
    pub name: Option<String>,
}

/// What a rule does.
#[derive(Debug, Clone)]
enum RuleAction {
    Change(Change, Option<ChangePart>),
    Delay(Duration),
    /// A result, in one line of JSON.
    Answer(Box<str>),
    Error {
        code: i64,
        message: String,
        data: Option<String>,
    },
    Drop,
    Redirect(String),
    Headers(HeaderEdits),
}

impl Rules {
    /// Reads a rules file. `folder` is where the files that it names are.
    pub fn parse(text: &str, folder: &Path) -> Result<Rules, RulesError> {
        rules_parser::parse(text, folder).map(|rules| Rules {
            rules,
            has_several_servers: false,
        })
    }

    /// Only the rules for the server that is shown as `name`. A rule that names no server is for all.
    pub fn for_server(&self, name: &str) -> Rules {
        let is_for = |rule: &&Rule| rule.server.as_ref().is_none_or(|names| names.matches(name));
        Rules {
            rules: self.rules.iter().filter(is_for).cloned().collect(),
            has_several_servers: false,
        }
    }

    /// The rules for a run with several servers: each is compared with the server of a message.
    pub fn for_several_servers(self) -> Rules {
        Rules {
            has_several_servers: true,
            ..self
        }
    }

    /// The rules, in their order.
    pub fn list(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What becomes of a message. Nothing, if no rule is for it.
    ///
    /// Rules are tried in their order. After a change, of headers too, or a delay the later rules still apply, and see the changed message; every other
    /// action is the last. `server` in a rule is looked at only after [`Rules::for_several_servers`]. A rule that misses its
    /// deadline does nothing to the message, and is switched off.
    pub fn judge(&self, facts: &MessageFacts<'_>) -> Option<RuleVerdict> {
        let mut verdict = RuleVerdict::default();
        let mut next = 0;
        loop {
            let changed = verdict.message.clone();
            let now = MessageFacts {
                message: changed.as_ref().unwrap_or(facts.message),
                ..*facts
            };
            match self.apply_from(&now, next, &mut verdict) {
                // What a rule has changed may be for other rules now.
                Some(place) => next = place + 1,
                None => break,
            }
        }
        (!verdict.applied.is_empty()).then_some(verdict)
    }

    /// Tries the rules from `next` on. Returns the place of one that changed the message.
    fn apply_from(
        &self,
        facts: &MessageFacts<'_>,
        next: usize,
        verdict: &mut RuleVerdict,
    ) -> Option<usize> {
        for (place, rule) in self.rules.iter().enumerate().skip(next) {
            if !rule.is_for(facts) || self.has_several_servers && !rule.is_for_server(facts) {
                continue;
            }
            match rule.run(facts, verdict) {
                Ok(RuleFlow::Continue) | Err(JqError::Failed(_)) => {}
                Ok(RuleFlow::ContinueChanged) => return Some(place),
                Ok(RuleFlow::Stop) => return None,
                Err(JqError::TooSlow) => {
                    rule.too_slow.fetch_add(1, Ordering::Relaxed);
                    verdict.add(rule, RuleEffect::TooSlow);
                }
                Err(JqError::SwitchedOff) => {
                    rule.too_slow.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        None
    }
}

/// Whether later rules are tried.
enum RuleFlow {
    Continue,
    /// With the changed message.
    ContinueChanged,
    Stop,
}

impl Rule {
    /// Whether a message has what the rule's head asks for, and is one that its action can act on.
    fn is_for(&self, facts: &MessageFacts<'_>) -> bool {
        self.direction
            .is_none_or(|direction| direction == facts.direction)
            && self.can_act_on(facts)
            && self
                .method
                .as_ref()
                .is_none_or(|names| facts.method().is_some_and(|method| names.matches(&method)))
            && self.tool.as_ref().is_none_or(|names| {
                facts.method().as_deref() == Some("tools/call")
                    && facts.name().is_some_and(|tool| names.matches(&tool))
            })
    }

    fn is_for_server(&self, facts: &MessageFacts<'_>) -> bool {
        let named = |names: &NamePatterns| facts.server.is_some_and(|name| names.matches(name));
        self.server.as_ref().is_none_or(named)
    }

    fn can_act_on(&self, facts: &MessageFacts<'_>) -> bool {
        match &self.action {
            RuleAction::Change(_, part) => ChangePart::of(facts.message)
                .is_some_and(|own| part.is_none_or(|part| own == part) && own.is_in(facts.message)),
            RuleAction::Answer(_) | RuleAction::Error { .. } => facts.kind() == Kind::Request,
            RuleAction::Redirect(_) => {
                facts.direction == Direction::ClientToServer
                    && matches!(facts.kind(), Kind::Request | Kind::Notification)
            }
            // Also a message that came without a head may be sent with one.
            RuleAction::Headers(_) => {
                facts.envelope.has_http_head() || facts.direction == Direction::ClientToServer
            }
            RuleAction::Delay(_) | RuleAction::Drop => true,
        }
    }

    /// Whether it changes HTTP headers.
    pub fn changes_headers(&self) -> bool {
        matches!(self.action, RuleAction::Headers(_))
    }

    /// How many messages it was too slow for. It did nothing to them.
    pub fn too_slow(&self) -> u64 {
        self.too_slow.load(Ordering::Relaxed)
    }

    /// Does what the rule says, if its filter matches. An error means that the filter did not decide, or that the rule took too
    /// long.
    fn run(
        &self,
        facts: &MessageFacts<'_>,
        verdict: &mut RuleVerdict,
    ) -> Result<RuleFlow, JqError> {
        if !self.filter.judge(facts)? {
            return Ok(RuleFlow::Continue);
        }
        let RuleAction::Change(change, part) = &self.action else {
            return Ok(self.act(facts, verdict));
        };
        let Some(part) = part.or_else(|| ChangePart::of(facts.message)) else {
            return Ok(RuleFlow::Continue);
        };
        match change.apply(facts.message, part) {
            Ok(message) if message.raw() == facts.message.raw() => Ok(RuleFlow::Continue),
            Ok(message) => {
                verdict.message = Some(message);
                verdict.add(self, RuleEffect::Changed(part));
                Ok(RuleFlow::ContinueChanged)
            }
            Err(ChangeError::Program(error @ (JqError::TooSlow | JqError::SwitchedOff))) => {
                Err(error)
            }
            Err(error) => {
                verdict.add(self, RuleEffect::Failed(error.to_string()));
                Ok(RuleFlow::Continue)
            }
        }
    }

    /// All actions but a change, which always work.
    fn act(&self, facts: &MessageFacts<'_>, verdict: &mut RuleVerdict) -> RuleFlow {
        match &self.action {
            RuleAction::Change(..) => RuleFlow::Continue,
            RuleAction::Delay(delay) => {
                verdict.delay = verdict.delay.saturating_add(*delay);
                verdict.add(self, RuleEffect::Delayed(*delay));
                RuleFlow::Continue
            }
            RuleAction::Headers(edits) => {
                verdict.headers.extend(edits);
                verdict.add(self, RuleEffect::HeadersChanged(edits.clone()));
                RuleFlow::Continue
            }
            RuleAction::Answer(result) => verdict.end(
                self,
                RuleEffect::Answered,
                RuleOutcome::Answer(answer(facts.message, result)),
            ),
            RuleAction::Error {
                code,
                message,
                data,
            } => {
                let id = facts.message.id();
                let code = mcp_proxy_wire::ErrorCode(*code);
                let error =
                    mcp_proxy_wire::error_response(id.as_ref(), code, message, data.as_deref());
                verdict.end(self, RuleEffect::Refused, RuleOutcome::Answer(error))
            }
            RuleAction::Drop => verdict.end(self, RuleEffect::Dropped, RuleOutcome::Drop),
            RuleAction::Redirect(server) => {
                let what = RuleEffect::Redirected(server.clone());
                verdict.end(self, what, RuleOutcome::Redirect(server.clone()))
            }
        }
    }
}

impl RuleVerdict {
    fn add(&mut self, rule: &Rule, what: RuleEffect) {
        self.applied.push(AppliedRule {
            rule: rule.name.clone(),
            effect: what,
        });
    }

    fn end(&mut self, rule: &Rule, what: RuleEffect, outcome: RuleOutcome) -> RuleFlow {
        self.add(rule, what);
        self.outcome = outcome;
        RuleFlow::Stop
    }
}

/// The answer to `request` with this result.
fn answer(request: &Message, result: &str) -> Message {
    let id = request.id_token().unwrap_or(b"null");
    let parts: [&[u8]; 5] = [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":"#,
        result.as_bytes(),
        b"}",
    ];
    Message::parse(parts.concat())
}

impl fmt::Display for Rule {
    /// Its head, its filter and its action, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(direction) = self.direction {
            write!(f, "direction {direction}, ")?;
        }
        for (word, names) in [
            ("method", &self.method),
            ("tool", &self.tool),
            ("server", &self.server),
        ] {
            if let Some(names) = names {
                write!(f, "{word} {names}, ")?;
            }
        }
        if !self.filter.is_empty() {
            write!(f, "filter {}, ", self.filter)?;
        }
        self.action.fmt(f)
    }
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleAction::Change(change, None) => write!(f, "change: {}", change.text()),
            RuleAction::Change(change, Some(part)) => write!(f, "change {part}: {}", change.text()),
            RuleAction::Delay(delay) => write!(f, "delay {delay:?}"),
            RuleAction::Answer(result) => write!(f, "answer {} bytes", result.len()),
            RuleAction::Error { code, message, .. } => write!(f, "error {code}: {message}"),
            RuleAction::Drop => f.write_str("drop"),
            RuleAction::Redirect(server) => write!(f, "redirect to {server}"),
            RuleAction::Headers(edits) => edits.fmt(f),
        }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "rule {} ({name})", self.number),
            None => write!(f, "rule {}", self.number),
        }
    }
}

#[cfg(test)]
mod tests;
