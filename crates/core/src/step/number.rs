//! Towards HTTP clients, what a server of another kind sends belongs to no exchange yet: its number takes that place, so that whoever
//! finds no stream for it can say in the record which message that was.

use mcp_proxy_wire::{Body, Carriage, Direction, ExchangeId};

use super::Stage;
use crate::lane::Passed;

pub(super) fn take(stage: &Stage<'_>, passed: &mut Passed) {
    if stage.direction == Direction::ClientToServer {
        return;
    }
    for (frame, sequence) in passed.on.iter_mut().zip(&passed.sequences) {
        // An answer of ours has its exchange, and so has what was withheld.
        let is_ours = matches!(frame.carriage, Carriage::Message);
        if let (Body::Whole(_) | Body::Instead(_), Some(sequence), false) =
            (&frame.body, sequence, is_ours)
        {
            frame.exchange = ExchangeId(*sequence);
        }
    }
}
