//! Long answers on their way to clients, piece by piece.
//!
//! The extension's side sends only what it has credit for, and a client gets one long answer at a time. So however long an answer
//! is, and however slowly a client reads, little of it waits here.

use bytes::Bytes;
use mcp_proxy_wire::Id;

use super::ClientSide;
use crate::context::RelayContext;
use crate::exchange::{AnswerCutCause, CommandKey, ToExtension};
use crate::fault::Delivered;
use crate::ids::{ExtensionId, SocketId};
use crate::messages;
use crate::outbox::{ANSWER_PART, AnswerPart, RelayClose, SocketOutput};

/// What became of an answer, for the audit log, if its client left or did not read it.
const CLIENT_GONE: &str = "client_gone";

/// An answer that has begun.
#[derive(Debug)]
pub(super) struct LongAnswer {
    command: CommandKey,
    socket: SocketId,
    extension: ExtensionId,
    /// The id that the client gave the command.
    id: Id,
    progress: AnswerProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerProgress {
    /// Another long answer is being written to the same socket.
    Waiting,
    /// Its pieces come.
    Open,
    /// All of it is in the outbox.
    Ended,
}

impl ClientSide {
    /// An extension has begun to answer a command.
    pub(super) fn begin_answer(
        &mut self,
        extension: ExtensionId,
        command: CommandKey,
        context: &mut RelayContext<'_>,
    ) {
        let known = self.connections.get_mut(&command.connection);
        let waiting = known.and_then(|known| Some((known.finish(command.number)?, known.socket?)));
        let waiting = waiting.filter(|(_, socket)| self.is_open(*socket));
        let Some((id, socket)) = waiting else {
            context.counters.late_answers += 1;
            return skip(&extension, command, context);
        };
        self.long_answers.push(LongAnswer {
            command,
            socket,
            extension,
            id,
            progress: AnswerProgress::Waiting,
        });
        self.open_next(socket, context);
    }

    pub(super) fn add_to_answer(
        &mut self,
        command: &CommandKey,
        bytes: Bytes,
        context: &mut RelayContext<'_>,
    ) {
        self.write_answer(command, bytes, AnswerPart::Middle, context);
    }

    pub(super) fn end_answer(&mut self, command: &CommandKey, context: &mut RelayContext<'_>) {
        let end = Bytes::from_static(messages::ANSWER_END);
        if let Some(place) = self.write_answer(command, end, AnswerPart::Last, context) {
            self.long_answers[place].progress = AnswerProgress::Ended;
            context.counters.answers += 1;
            context.audit.finish(command.number, "ok", context.now);
        }
    }

    /// An answer will never be complete. If its client has nothing of it, it gets an error in its place; else its socket is
    /// closed, because the half of a message cannot be taken back.
    pub(super) fn cut_answer(
        &mut self,
        command: &CommandKey,
        cause: AnswerCutCause,
        context: &mut RelayContext<'_>,
    ) {
        let Some(place) = self.place_of(command) else {
            return;
        };
        let LongAnswer {
            socket,
            id,
            progress,
            ..
        } = self.long_answers.remove(place);
        let outcome = match &cause {
            AnswerCutCause::NotRead => CLIENT_GONE,
            AnswerCutCause::Failed(fault) => fault.reason(),
        };
        context.audit.finish(command.number, outcome, context.now);
        let Some(outbox) = self.outbox(socket) else {
            return;
        };
        match cause {
            AnswerCutCause::NotRead => {
                outbox.cut(RelayClose::NotRead("the client does not read"));
                context.counters.slow_readers += 1;
            }
            AnswerCutCause::Failed(fault) => {
                context.counters.count_fault(&fault);
                if progress == AnswerProgress::Waiting || outbox.unsay_long() {
                    self.send(socket, fault.answer(Some(&id)), context);
                    return self.open_next(socket, context);
                }
                outbox.cut(RelayClose::CutAnswer);
                context.counters.cut_answers += 1;
            }
        }
        context.sockets_with_output.push(socket);
    }

    /// What to write to a client now. What it takes of a long answer makes room for more.
    pub(crate) fn take(
        &mut self,
        socket: SocketId,
        budget: usize,
        context: &mut RelayContext<'_>,
    ) -> Option<SocketOutput> {
        let mut output = SocketOutput::default();
        self.outbox(socket)?.take(budget, &mut output);
        if output.pieces.is_empty() && output.close.is_none() {
            return Some(output);
        }
        let middle = |part| part == AnswerPart::Middle;
        let taken = output.pieces.iter().filter(|piece| middle(piece.part));
        let taken: usize = taken.map(|piece| piece.bytes.len()).sum();
        let current = |answer: &&LongAnswer| {
            answer.socket == socket && answer.progress == AnswerProgress::Open
        };
        if let Some(answer) = self.long_answers.iter().find(current)
            && taken > 0
        {
            give_credit(answer, taken, context);
        }
        if output.close.is_some() {
            self.abandon_answers(socket, context);
        } else if output.pieces.last().map(|piece| piece.part) == Some(AnswerPart::Last) {
            self.long_answers.retain(|answer| {
                answer.socket != socket || answer.progress != AnswerProgress::Ended
            });
            self.open_next(socket, context);
        }
        Some(output)
    }

    /// A socket is about to be closed: long answers that wait for their turn are not written. Their commands were carried out.
    pub(super) fn fail_waiting_answers(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        context: &mut RelayContext<'_>,
    ) {
        let is_waiting = |answer: &mut LongAnswer| {
            answer.socket == socket && answer.progress == AnswerProgress::Waiting
        };
        let waiting: Vec<_> = self.long_answers.extract_if(.., is_waiting).collect();
        for answer in waiting {
            let fault = close.fault(Delivered::Yes);
            self.send(socket, fault.answer(Some(&answer.id)), context);
            skip(&answer.extension, answer.command, context);
        }
    }

    /// A socket takes nothing more: the rest of what was on its way to it is not wanted.
    pub(super) fn abandon_answers(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let left = self
            .long_answers
            .extract_if(.., |answer| answer.socket == socket);
        for answer in left.filter(|answer| answer.progress != AnswerProgress::Ended) {
            skip(&answer.extension, answer.command, context);
        }
    }

    /// A client's socket does not take what is written to it.
    pub(crate) fn stalled(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        if self.is_open(socket)
            && let Some(outbox) = self.outbox(socket)
        {
            outbox.cut(RelayClose::NotRead("the client does not read"));
            context.counters.slow_readers += 1;
        }
    }

    /// Whether the long answer to a request with this id is not written to its end.
    pub(super) fn is_answering(&self, socket: SocketId, id: &Id) -> bool {
        let is_its = |answer: &LongAnswer| answer.socket == socket && answer.id.key() == id.key();
        self.long_answers.iter().any(is_its)
    }

    fn is_open(&mut self, socket: SocketId) -> bool {
        let outbox = self.outbox(socket);
        outbox.is_some_and(|outbox| !outbox.is_closing())
    }

    fn place_of(&self, command: &CommandKey) -> Option<usize> {
        let mut answers = self.long_answers.iter();
        answers.position(|answer| answer.command == *command)
    }

    /// Begins to write the next long answer for a socket, if it is not in the middle of one.
    fn open_next(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let next = self
            .long_answers
            .iter_mut()
            .find(|answer| answer.socket == socket && answer.progress == AnswerProgress::Waiting);
        let Some(next) = next else {
            return;
        };
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        if known.outbox.has_long() {
            return;
        }
        next.progress = AnswerProgress::Open;
        known
            .outbox
            .push_piece(messages::answer_beginning(&next.id), AnswerPart::First);
        // The last piece may exceed it.
        give_credit(next, ANSWER_PART, context);
        context.sockets_with_output.push(socket);
    }

    /// Puts a piece of an answer into its outbox, and says which answer that is.
    fn write_answer(
        &mut self,
        command: &CommandKey,
        bytes: Bytes,
        part: AnswerPart,
        context: &mut RelayContext<'_>,
    ) -> Option<usize> {
        let place = self.place_of(command)?;
        let socket = self.long_answers[place].socket;
        if !self.is_open(socket) {
            let gone = self.long_answers.remove(place);
            skip(&gone.extension, gone.command, context);
            return None;
        }
        self.outbox(socket)?.push_piece(bytes, part);
        context.sockets_with_output.push(socket);
        Some(place)
    }
}

fn give_credit(answer: &LongAnswer, bytes: usize, context: &mut RelayContext<'_>) {
    let command = answer.command.clone();
    let credit = ToExtension::AnswerCredit { command, bytes };
    context.exchange.to_extension(&answer.extension, credit);
}

fn skip(extension: &ExtensionId, command: CommandKey, context: &mut RelayContext<'_>) {
    context
        .audit
        .finish(command.number, CLIENT_GONE, context.now);
    let skip = ToExtension::SkipAnswer { command };
    context.exchange.to_extension(extension, skip);
}
