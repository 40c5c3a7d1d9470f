//! The lane's side of rules: what they say about a message is written down and done.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::Budget;
use mcp_proxy_wire::{Body, Direction, Frame, Message};

use super::{Lane, Passed, Telling, holding};
use crate::intercept::{Entry, HeldBy, LaneMailbox, NewHold, Released};
use crate::link::Outgoing;
use crate::rules::{Outcome, Verdict, What};

impl Lane {
    /// Does what the rules say about a message. What comes back goes on, changed or not; nothing, if it does not go on
    /// or not yet.
    pub(super) fn rule(
        &mut self,
        frame: Frame,
        now: Duration,
        passed: &mut Passed,
    ) -> Option<Outgoing> {
        let pipeline = &self.connection.pipeline;
        let (Body::Whole(message), Some(number)) = (&frame.body, frame.sequence) else {
            return Some(frame.into());
        };
        if !pipeline.rules().is_active() {
            return Some(frame.into());
        }
        if self.direction == Direction::ClientToServer {
            self.connection.note_opening(message);
        }
        pipeline.rules().renew(&mut self.rules);
        let facts = self.facts(&frame, message, number, now);
        let Some(verdict) = self.rules.judge(&facts) else {
            return Some(frame.into());
        };
        let message = message.clone();
        self.obey(verdict, (frame, message), now, passed)
    }

    fn obey(
        &mut self,
        verdict: Verdict,
        (frame, message): (Frame, Message),
        now: Duration,
        passed: &mut Passed,
    ) -> Option<Outgoing> {
        let intercept = Arc::clone(self.connection.pipeline.intercept());
        let own = self
            .mailbox
            .get_or_insert_with(|| LaneMailbox::new(&intercept));
        let mailbox = Arc::clone(&own.mailbox);
        let entry = Entry::new(NewHold {
            connection: Arc::clone(&self.connection),
            direction: self.direction,
            frame,
            message,
            now,
            by: HeldBy::Rules,
            telling: Telling::No,
            mailbox: Arc::clone(&mailbox),
        });
        self.write_down(&entry, &verdict);
        if let Outcome::Redirect(server) = verdict.outcome {
            let message = verdict.message.unwrap_or(entry.message.clone());
            self.redirect(entry, message, server, verdict.delay);
            return None;
        }
        if verdict.delay.is_zero() {
            return self.at_once(&entry, &verdict, passed);
        }
        let Some(place) = self.connection.pipeline.rules().place(entry.message.len()) else {
            self.connection
                .note("a message was not delayed: too many wait already");
            return self.at_once(&entry, &verdict, passed);
        };
        mailbox.expect();
        tokio::spawn(async move {
            let waited = entry.unless_abandoned(tokio::time::sleep(verdict.delay));
            if waited.await.is_some() {
                mailbox.put(match entry.is_given_up() {
                    true => entry.left(),
                    false => released(&entry, &verdict),
                });
            }
            drop(place);
        });
        None
    }

    /// A message that goes on may still be held; all else is done.
    fn at_once(&self, entry: &Entry, verdict: &Verdict, passed: &mut Passed) -> Option<Outgoing> {
        let released = released(entry, verdict);
        if let Outcome::Pass = verdict.outcome {
            passed.back.extend(released.back);
            return released.on;
        }
        holding::give(released, passed);
        None
    }

    /// One `act` a rule. The bytes are in that of the last change.
    fn write_down(&self, entry: &Entry, verdict: &Verdict) {
        let last_change = verdict
            .applied
            .iter()
            .rposition(|applied| matches!(applied.what, What::Changed(_)));
        for (place, applied) in verdict.applied.iter().enumerate() {
            if let What::Failed(why) = &applied.what {
                // Why it failed may quote the message, which the record may have to keep redacted.
                let why = match self.connection.pipeline.redacts() {
                    true => "why is not told, for what is redacted might be in it",
                    false => why,
                };
                let number = entry.number();
                let text = format!("{} failed on message {number}: {why}", applied.rule);
                self.connection.note(&text);
                continue;
            }
            if let What::TooSlow(budget) = applied.what {
                if self.rules.is_note_due(&applied.rule) {
                    let subject = applied.rule.to_string();
                    let text = too_slow(&subject, entry.number(), budget);
                    self.connection.note(&text);
                }
                continue;
            }
            let why = applied.what.to_string();
            let mut act = entry.act(applied.what.verb(), &applied.rule.by(), &why);
            if Some(place) == last_change {
                act.original_raw = Some(entry.message.raw().clone());
                act.raw = verdict
                    .message
                    .as_ref()
                    .map(|message| message.raw().clone());
            }
            self.connection.act_on(act);
        }
    }
}

/// The note about a rule or a breakpoint that took too long.
pub(super) fn too_slow(subject: &str, number: u64, budget: Budget) -> String {
    let limit = budget.time.as_millis();
    format!(
        "{subject} is too slow: it took longer than {limit} ms for message {number}, which passed as if it did not match"
    )
}

/// What becomes of a message that goes to no other server.
fn released(entry: &Entry, verdict: &Verdict) -> Released {
    match &verdict.outcome {
        Outcome::Pass => entry.pass(verdict.message.as_ref()),
        Outcome::Answer(answer) => entry.answered(answer.clone()),
        Outcome::Drop | Outcome::Redirect(_) => {
            let by = verdict.applied.last().map(|applied| applied.rule.by());
            entry.withheld(by.as_deref().unwrap_or("a rule"))
        }
    }
}
