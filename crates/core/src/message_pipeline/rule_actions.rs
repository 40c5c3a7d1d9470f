//! The pipeline's side of rules: what they say about a message is written down and done.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Body, Direction, Frame, Message};

use super::{MessagePipeline, PipelineOutput, ProgressSupport, holding};
use crate::intercept::{
    ActiveHold, HoldOutcome, HoldReason, HoldTimeout, NewHold, ReleaseQueueReader,
};
use crate::link::OutgoingFrame;
use crate::rules::{RuleEffect, RuleOutcome, RuleVerdict};

impl MessagePipeline {
    /// Applies the rules to a message. Returns what to forward, changed or not, or nothing if it is not forwarded, or not
    /// yet.
    pub(super) fn apply_rules(
        &mut self,
        frame: Frame,
        now: Duration,
        output: &mut PipelineOutput,
    ) -> Option<OutgoingFrame> {
        let run = &self.connection.run;
        let (Body::Message(message), Some(number)) = (&frame.body, frame.sequence) else {
            return Some(frame.into());
        };
        if !run.rules().is_active() {
            return Some(frame.into());
        }
        if self.direction == Direction::ClientToServer {
            self.connection.note_handshake(message);
        }
        let facts = self.facts(&frame, message, number, now);
        let Some(mut verdict) = run.rules().current().judge(&facts) else {
            return Some(frame.into());
        };
        let has_head = self.connection.forwards_heads() && facts.envelope.has_http_head();
        if !has_head && !self.connection.makes_heads(self.direction) {
            verdict.forget_headers();
            if verdict.applied.is_empty() {
                return Some(frame.into());
            }
        }
        let message = message.clone();
        self.carry_out(verdict, (frame, message), now, output)
    }

    fn carry_out(
        &mut self,
        verdict: RuleVerdict,
        (frame, message): (Frame, Message),
        now: Duration,
        output: &mut PipelineOutput,
    ) -> Option<OutgoingFrame> {
        let own = self
            .release_queue
            .get_or_insert_with(|| ReleaseQueueReader::new(&self.connection));
        let release_queue = Arc::clone(&own.release_queue);
        let new = NewHold {
            connection: Arc::clone(&self.connection),
            direction: self.direction,
            frame,
            message,
            now,
            by: HoldReason::Rules,
            progress_support: ProgressSupport::No,
            release_queue: Arc::clone(&release_queue),
        };
        let entry = ActiveHold::new(new, HoldTimeout::Never);
        self.record_verdicts(&entry, &verdict);
        if let RuleOutcome::Redirect(server) = verdict.outcome {
            let message = verdict.message.unwrap_or(entry.message.clone());
            self.redirect(entry, message, server, verdict.delay);
            return None;
        }
        if verdict.delay.is_zero() {
            return self.carry_out_now(&entry, &verdict, output);
        }
        let Some(place) = self
            .connection
            .run
            .rules()
            .take_delay_permit(entry.message.len())
        else {
            self.connection
                .note("a message was not delayed: too many wait already");
            return self.carry_out_now(&entry, &verdict, output);
        };
        release_queue.expect();
        tokio::spawn(async move {
            let waited = entry.unless_abandoned(tokio::time::sleep(verdict.delay));
            if waited.await.is_some() {
                entry.give_back(match entry.is_given_up() {
                    true => entry.resolve_abandoned(),
                    false => rule_hold_outcome(&entry, &verdict),
                });
            }
            drop(place);
        });
        None
    }

    /// Only a message that is forwarded may still be held.
    fn carry_out_now(
        &self,
        entry: &ActiveHold,
        verdict: &RuleVerdict,
        output: &mut PipelineOutput,
    ) -> Option<OutgoingFrame> {
        let released = rule_hold_outcome(entry, verdict);
        if let RuleOutcome::Pass = verdict.outcome {
            output.reply.extend(released.reply);
            return released.forward;
        }
        holding::append_outcome(released, output);
        None
    }

    /// One `act` a rule. The bytes are in that of the last change.
    fn record_verdicts(&self, entry: &ActiveHold, verdict: &RuleVerdict) {
        let last_change = verdict
            .applied
            .iter()
            .rposition(|applied| matches!(applied.effect, RuleEffect::Changed(_)));
        for (place, applied) in verdict.applied.iter().enumerate() {
            if let RuleEffect::Failed(why) = &applied.effect {
                // Why it failed may quote the message, which the record may have to keep redacted.
                let why = match self.connection.run.redacts() {
                    true => "reason omitted: it may contain redacted data",
                    false => why,
                };
                let number = entry.number();
                let text = format!("{} failed on message {number}: {why}", applied.rule);
                self.connection.note(&text);
                continue;
            }
            if applied.effect == RuleEffect::TooSlow {
                let text = too_slow(&applied.rule.to_string(), entry.number());
                self.connection.note(&text);
                continue;
            }
            let why = applied.effect.to_string();
            let mut act = entry.verdict(applied.effect.verb(), &applied.rule.by(), &why);
            if let RuleEffect::Delayed(delay) = applied.effect {
                act.delay = Some(delay);
            }
            if Some(place) == last_change {
                act.original_raw = Some(entry.message.raw().clone());
                act.raw = verdict
                    .message
                    .as_ref()
                    .map(|message| message.raw().clone());
            }
            self.connection.record_verdict(act);
        }
    }
}

/// The note about a rule or a breakpoint that took too long.
pub(super) fn too_slow(subject: &str, number: u64) -> String {
    format!(
        "{subject} is too slow and switched off: it did not finish in time for message {number}, which passed as if it did not match"
    )
}

/// What becomes of a message that goes to no other server.
fn rule_hold_outcome(entry: &ActiveHold, verdict: &RuleVerdict) -> HoldOutcome {
    match &verdict.outcome {
        RuleOutcome::Pass => entry.resolve_forward(verdict.message.as_ref(), &verdict.headers),
        RuleOutcome::Answer(answer) => {
            entry.note_released();
            entry.resolve_with_answer(answer.clone())
        }
        RuleOutcome::Drop | RuleOutcome::Redirect(_) => {
            let by = verdict.applied.last().map(|applied| applied.rule.by());
            entry.resolve_dropped(by.as_deref().unwrap_or("a rule"))
        }
    }
}
