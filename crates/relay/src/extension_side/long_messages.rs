//! Long messages of an extension, which come in pieces.
//!
//! A long result is forwarded as it comes: all that has to be seen of it is its id, in front, and the current tab. What the relay
//! has to read as a whole is collected: results that say which tabs there are, errors, notifications, and messages whose id does
//! not stand in front of a long result. What nobody waits for is skipped.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::MemoryPermit;
use mcp_proxy_wire::{IdKey, Kind, Message, PartialHead, open_member_start, read_partial_head};

use super::answer;
use super::extension::{Extension, SentCommand};
use super::forwarded_answer::ForwardedAnswer;
use crate::context::RelayContext;
use crate::fault::{Delivered, RelayFault};
use crate::ids::ExtensionId;
use crate::messages::AnsweredRequest;
use crate::tabs::TabUse;

/// How much is kept of the two ends of a message that is too long to be collected: enough for what stands around its result.
const FRONT_KEPT: usize = 1024;
const BACK_KEPT: usize = 4096;

/// A piece of a message that is too long to come whole.
#[derive(Clone, Debug)]
pub struct MessagePiece {
    /// Its bytes.
    pub bytes: Bytes,
    /// Where in the message it belongs.
    pub place: PiecePlace,
}

/// Which piece of a message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PiecePlace {
    /// The first one. There is another.
    First {
        /// How long the message is at least, if that is known; else 0.
        announced: usize,
    },
    /// Neither the first nor the last.
    Middle,
    /// The last one.
    Last,
}

/// What is done with a message that has begun.
#[derive(Debug, Default)]
pub(super) enum LongMessage {
    /// None has.
    #[default]
    Nothing,
    /// It is needed whole.
    Collected(CollectedMessage),
    /// It is forwarded.
    Forwarded(Box<ForwardedAnswer>),
    /// It is too long, and whose answer it is may stand at its end.
    Oversize(Box<MessageEnds>),
    /// Nobody wants the rest.
    Skipped,
}

/// A message that is collected.
#[derive(Debug)]
pub(super) struct CollectedMessage {
    bytes: BytesMut,
    memory: MemoryPermit,
    /// The command that it answers, if that is known.
    key: Option<IdKey>,
    /// When more of it must have come.
    pub(super) deadline: Duration,
}

/// What is kept of a message that is too long to be collected.
#[derive(Debug)]
pub(super) struct MessageEnds {
    front: Bytes,
    back: Vec<u8>,
    /// What its client is told.
    fault: RelayFault,
}

impl MessageEnds {
    fn new(front: &[u8], fault: RelayFault) -> MessageEnds {
        MessageEnds {
            front: Bytes::copy_from_slice(&front[..front.len().min(FRONT_KEPT)]),
            back: front[front.len().saturating_sub(BACK_KEPT)..].to_vec(),
            fault,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.back
            .extend_from_slice(&bytes[bytes.len().saturating_sub(BACK_KEPT)..]);
        let longer = self.back.len().saturating_sub(BACK_KEPT);
        self.back.drain(..longer);
    }
}

impl Extension {
    /// Takes a piece of a long message. Returns the whole message if it had to be collected, with its last piece.
    pub(super) fn piece(
        &mut self,
        own: &ExtensionId,
        piece: MessagePiece,
        context: &mut RelayContext<'_>,
    ) -> Option<Message> {
        if let PiecePlace::First { announced } = piece.place {
            self.begin_long(own, piece.bytes, announced, context);
            return None;
        }
        let is_last = piece.place == PiecePlace::Last;
        match std::mem::take(&mut self.long) {
            LongMessage::Collected(collected) => {
                return self.collect(collected, &piece.bytes, is_last, context);
            }
            LongMessage::Forwarded(mut answer) => {
                if is_last {
                    answer.note_end();
                }
                self.forward(answer, &piece.bytes, context);
            }
            LongMessage::Oversize(mut ends) => {
                ends.add(&piece.bytes);
                self.continue_oversize(ends, is_last, context);
            }
            LongMessage::Skipped if !is_last => self.long = LongMessage::Skipped,
            LongMessage::Skipped | LongMessage::Nothing => {}
        }
        None
    }

    fn begin_long(
        &mut self,
        own: &ExtensionId,
        front: Bytes,
        announced: usize,
        context: &mut RelayContext<'_>,
    ) {
        let max = context.settings.max_answer;
        let (is_too_long, too_long) = (announced > max, RelayFault::TooLarge(max));
        let memory = context.settings.memory.permit();
        let head = read_partial_head(&front, &[]);
        let key = answered_command(&head);
        let sent = key.as_ref().map(|key| self.sent.get(key));
        let deadline = context.now.elapsed + context.settings.command_timeout;
        let collected = |key| {
            LongMessage::Collected(CollectedMessage {
                bytes: BytesMut::from(front.clone()),
                memory,
                key,
                deadline,
            })
        };
        self.long = match (&key, sent) {
            (Some(key), Some(None)) => {
                context.counters.late_answers += 1;
                self.note_late_answer(key);
                LongMessage::Skipped
            }
            (Some(key), _) if is_too_long => {
                self.refuse_answer(key, too_long, context);
                LongMessage::Skipped
            }
            _ if is_too_long => LongMessage::Oversize(Box::new(MessageEnds::new(&front, too_long))),
            (Some(key), Some(Some(sent)))
                if head.kind == Kind::Response && is_forwarded(sent.tab_use) =>
            {
                match open_member_start(&front, "result") {
                    Some(start) => {
                        return self.begin_answer(own, &key.clone(), &front, start, context);
                    }
                    None => collected(Some(key.clone())),
                }
            }
            _ => collected(key),
        };
    }

    fn collect(
        &mut self,
        mut collected: CollectedMessage,
        bytes: &Bytes,
        is_last: bool,
        context: &mut RelayContext<'_>,
    ) -> Option<Message> {
        let (length, max) = (
            collected.bytes.len() + bytes.len(),
            context.settings.max_answer,
        );
        let fault = match collected.memory.resize(length) {
            _ if length > max => Some(RelayFault::TooLarge(max)),
            Ok(()) => None,
            Err(_) => Some(RelayFault::NoRoom(Delivered::Yes)),
        };
        if let Some(fault) = fault {
            let Some(key) = &collected.key else {
                let mut ends = Box::new(MessageEnds::new(&collected.bytes, fault));
                ends.add(bytes);
                self.continue_oversize(ends, is_last, context);
                return None;
            };
            self.refuse_answer(key, fault, context);
            if !is_last {
                self.long = LongMessage::Skipped;
            }
            return None;
        }
        collected.bytes.extend_from_slice(bytes);
        if is_last {
            return Some(Message::parse(collected.bytes.freeze()));
        }
        // It makes progress.
        let later = context.now.elapsed + context.settings.command_timeout;
        collected.deadline = later;
        let sent = collected.key.as_ref();
        if let Some(sent) = sent.and_then(|key| self.sent.get_mut(key)) {
            sent.deadline = sent.deadline.max(later);
        }
        self.long = LongMessage::Collected(collected);
        None
    }

    /// A message that is too long is read to its end, which may say what it answers.
    fn continue_oversize(
        &mut self,
        ends: Box<MessageEnds>,
        is_last: bool,
        context: &mut RelayContext<'_>,
    ) {
        if !is_last {
            self.long = LongMessage::Oversize(ends);
            return;
        }
        match answered_command(&read_partial_head(&ends.front, &ends.back)) {
            Some(key) if self.sent.contains_key(&key) => {
                self.refuse_answer(&key, ends.fault, context);
            }
            Some(key) => {
                context.counters.late_answers += 1;
                self.note_late_answer(&key);
            }
            None => context.counters.ignored += 1,
        }
    }

    /// A command whose answer is too long, or finds no room.
    fn refuse_answer(&mut self, key: &IdKey, fault: RelayFault, context: &mut RelayContext<'_>) {
        if let Some(sent) = self.finish_sent(key) {
            self.forget_current(&sent);
            answer(sent.connection, sent.number, Err(fault), context);
        }
    }

    /// The answer to a command is an error, or could not be read. If it was about another tab, the extension may be attached to
    /// that one all the same.
    pub(super) fn forget_current(&mut self, sent: &SentCommand) {
        if let Some(known) = self.connections.get_mut(&sent.connection)
            && sent.tab_use.acquires()
        {
            known.current = None;
        }
    }

    /// A command is answered, one way or the other.
    pub(super) fn finish_sent(&mut self, key: &IdKey) -> Option<SentCommand> {
        let sent = self.sent.remove(key)?;
        self.proven = self.proven.max(sent.place);
        if let Some(known) = self.connections.get_mut(&sent.connection)
            && sent.tab_use.acquires()
        {
            known.acquiring = known.acquiring.saturating_sub(1);
        }
        Some(sent)
    }
}

/// The command that a message answers, as far as its head tells. The relay's own questions are answered like commands, but are
/// not found in `sent`.
fn answered_command(head: &PartialHead) -> Option<IdKey> {
    let is_answer = matches!(head.kind, Kind::Response | Kind::Error);
    let key = head.id.as_ref().filter(|_| is_answer)?.key();
    matches!(AnsweredRequest::of(&key), AnsweredRequest::Command).then_some(key)
}

/// Whether a result of such a command needs no reading.
fn is_forwarded(tab_use: TabUse) -> bool {
    match tab_use {
        TabUse::Works | TabUse::Activates | TabUse::Browser => true,
        TabUse::Opens | TabUse::Selects | TabUse::Closes | TabUse::Lists => false,
    }
}
