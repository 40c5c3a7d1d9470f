//! A long result on its way from an extension to a client.
//!
//! It is sent as the client's side gives credit for it. Meanwhile nothing more of the extension is read, so a client that takes
//! too little holds up everybody else, and is cut.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::IdKey;

use super::extension::{Extension, SentCommand};
use super::long_messages::LongMessage;
use super::result_scanner::{ResultPart, ResultScanner};
use crate::context::RelayContext;
use crate::exchange::{AnswerCutCause, CommandKey, ToClients};
use crate::fault::{Delivered, RelayFault};
use crate::ids::ExtensionId;
use crate::outbox::ANSWER_PART;
use crate::settings::RelaySettings;

/// A long result on its way to a client.
#[derive(Debug)]
pub(super) struct ForwardedAnswer {
    command: CommandKey,
    scanner: ResultScanner,
    /// Of the message so far.
    length: usize,
    /// Parts of the result that wait for credit. No further piece is read meanwhile.
    waiting: VecDeque<Bytes>,
    /// How many bytes the client's side takes, once it has said so. The last part may have exceeded it.
    credit: Option<i64>,
    /// Since when nothing could be sent to a client that takes this answer.
    blocked_since: Option<Duration>,
    /// How long that was the case before.
    blocked: Duration,
    /// When the extension must have sent more.
    deadline: Duration,
    /// All of it has come.
    has_ended: bool,
}

impl Extension {
    /// Begins to forward the answer to a command. Its result begins at `start`.
    pub(super) fn begin_answer(
        &mut self,
        own: &ExtensionId,
        key: &IdKey,
        front: &Bytes,
        start: usize,
        context: &mut RelayContext<'_>,
    ) {
        let Some(SentCommand {
            connection, number, ..
        }) = self.finish_sent(key)
        else {
            return;
        };
        let command = CommandKey { connection, number };
        context.exchange.to_clients(ToClients::AnswerBegins {
            extension: own.clone(),
            command: command.clone(),
        });
        let answer = ForwardedAnswer {
            command,
            scanner: ResultScanner::default(),
            length: start,
            waiting: VecDeque::new(),
            credit: None,
            blocked_since: None,
            blocked: Duration::ZERO,
            deadline: Duration::ZERO,
            has_ended: false,
        };
        self.forward(Box::new(answer), &front.slice(start..), context);
    }

    pub(super) fn forward(
        &mut self,
        mut answer: Box<ForwardedAnswer>,
        bytes: &Bytes,
        context: &mut RelayContext<'_>,
    ) {
        answer.length += bytes.len();
        answer.deadline = context.now.elapsed + context.settings.command_timeout;
        let limit = context.settings.max_answer;
        let mut parts = Vec::new();
        answer.scanner.push(bytes, &mut parts);
        for part in parts {
            let mut bytes = match part {
                ResultPart::Plain(bytes) => bytes,
                ResultPart::Tab(shown) => self.own_tab(&answer.command.connection, shown),
            };
            while bytes.len() > ANSWER_PART {
                answer.waiting.push_back(bytes.split_to(ANSWER_PART));
            }
            answer.waiting.push_back(bytes);
        }
        let is_cut_off = answer.has_ended && !answer.scanner.is_complete();
        let fault = match answer.length > limit {
            true => Some(RelayFault::TooLarge(limit)),
            false => is_cut_off.then_some(RelayFault::UnusableAnswer),
        };
        if let Some(fault) = &fault {
            cut(&answer, AnswerCutCause::Failed(fault.clone()), context);
        }
        self.long = LongMessage::Forwarded(answer);
        match fault {
            Some(_) => self.skip_rest(context),
            None => self.send_waiting(context),
        }
    }

    /// Sends what there is credit for.
    fn send_waiting(&mut self, context: &mut RelayContext<'_>) {
        let LongMessage::Forwarded(answer) = &mut self.long else {
            return;
        };
        let Some(credit) = &mut answer.credit else {
            return;
        };
        while *credit > 0
            && let Some(bytes) = answer.waiting.pop_front()
        {
            *credit -= i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            let command = answer.command.clone();
            let piece = ToClients::AnswerPiece { command, bytes };
            context.exchange.to_clients(piece);
        }
        if !answer.waiting.is_empty() {
            answer.blocked_since.get_or_insert(context.now.elapsed);
        } else if answer.has_ended {
            let command = answer.command.clone();
            context
                .exchange
                .to_clients(ToClients::AnswerEnds { command });
            self.long = LongMessage::Nothing;
        }
    }

    /// Skips the rest of an answer.
    fn skip_rest(&mut self, context: &mut RelayContext<'_>) {
        self.long = match &self.long {
            LongMessage::Forwarded(answer) if !answer.has_ended => LongMessage::Skipped,
            _ => LongMessage::Nothing,
        };
        context.resumed.extend(self.socket);
    }

    /// Whether a further piece can be taken.
    pub(super) fn has_room(&self) -> bool {
        match &self.long {
            LongMessage::Forwarded(answer) => answer.waiting.is_empty(),
            _ => true,
        }
    }

    /// The client's side takes more of a long answer.
    pub(super) fn add_credit(
        &mut self,
        command: &CommandKey,
        bytes: usize,
        context: &mut RelayContext<'_>,
    ) {
        if let LongMessage::Forwarded(answer) = &mut self.long
            && answer.command == *command
        {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            answer.credit = Some(answer.credit.unwrap_or(0).saturating_add(bytes));
            if let Some(since) = answer.blocked_since.take() {
                answer.blocked += context.now.elapsed.saturating_sub(since);
            }
            // Until now the extension had to wait.
            answer.deadline = context.now.elapsed + context.settings.command_timeout;
            self.send_waiting(context);
            context.resumed.extend(self.socket);
        }
    }

    /// Nobody wants the rest of a long answer.
    pub(super) fn skip_answer(&mut self, command: &CommandKey, context: &mut RelayContext<'_>) {
        if let LongMessage::Forwarded(answer) = &self.long
            && answer.command == *command
        {
            self.skip_rest(context);
        }
    }

    /// The extension is lost, and the rest of what it was saying with it.
    pub(super) fn lose_long(&mut self, fault: RelayFault, context: &mut RelayContext<'_>) {
        if let LongMessage::Forwarded(answer) = std::mem::take(&mut self.long) {
            cut(&answer, AnswerCutCause::Failed(fault), context);
        }
    }

    /// Ends an answer that does not come any further, for whatever reason.
    pub(super) fn expire_long(&mut self, context: &mut RelayContext<'_>) {
        let Some(deadline) = self.long_deadline(context.settings) else {
            return;
        };
        if deadline > context.now.elapsed {
            return;
        }
        let LongMessage::Forwarded(answer) = &self.long else {
            // The command that it answers, if it answers one, has a deadline of its own.
            self.long = LongMessage::Skipped;
            return;
        };
        let cause = match answer.blocked_since {
            Some(_) => AnswerCutCause::NotRead,
            None => AnswerCutCause::Failed(RelayFault::Timeout(Delivered::Yes)),
        };
        cut(answer, cause, context);
        self.skip_rest(context);
    }

    /// When what it is saying must have come further.
    pub(super) fn long_deadline(&self, settings: &RelaySettings) -> Option<Duration> {
        match &self.long {
            LongMessage::Forwarded(answer) => {
                let others_wait = !self.sent.is_empty();
                Some(answer.next_deadline(settings, others_wait))
            }
            LongMessage::Collected(collected) => Some(collected.deadline),
            LongMessage::Nothing | LongMessage::Oversize(_) | LongMessage::Skipped => None,
        }
    }
}

impl ForwardedAnswer {
    /// All of it has come.
    pub(super) fn note_end(&mut self) {
        self.has_ended = true;
    }

    fn next_deadline(&self, settings: &RelaySettings, others_wait: bool) -> Duration {
        let Some(since) = self.blocked_since else {
            return self.deadline;
        };
        match others_wait {
            // In all it may hold others up for half as long as their commands may take.
            true => {
                let rest = (settings.command_timeout / 2).saturating_sub(self.blocked);
                since + rest.min(settings.stall)
            }
            false => since + settings.stall,
        }
    }
}

fn cut(answer: &ForwardedAnswer, cause: AnswerCutCause, context: &mut RelayContext<'_>) {
    let command = answer.command.clone();
    let cut = ToClients::AnswerCut { command, cause };
    context.exchange.to_clients(cut);
}
