//! Between kinds of transport, CR and LF outside strings become spaces and nothing else changes.
//!
//! What still cannot be carried (a line break inside a string, in broken JSON) is answered with an error to its sender.

use mcp_proxy_wire::{Body, ErrorCode, ExchangeId, Frame, Kind, Message, error_response, flatten};

use super::Stage;
use crate::lane::Passed;
use crate::link::LinkEnd;

const WHY_NOT: &str = "this message is broken JSON with a line break inside a string and cannot be carried \
                       on the other side's transport, where a message is one line";

pub(super) fn take(stage: &Stage<'_>, passed: &mut Passed) -> Result<(), LinkEnd> {
    let fits = |body: &Body| !matches!(body, Body::Whole(message) if has_line_break(message.raw()));
    if passed.on.iter().all(|frame| fits(&frame.body)) {
        return Ok(());
    }
    let frames = std::mem::take(&mut passed.on);
    let sequences = std::mem::take(&mut passed.sequences);
    for (mut frame, sequence) in frames.into_iter().zip(sequences) {
        if let Body::Whole(message) = &frame.body
            && has_line_break(message.raw())
        {
            let Some(flat) = flatten(message) else {
                act(stage, sequence, "refuse", WHY_NOT);
                passed.back.extend(refuse(stage, message, frame.exchange)?);
                continue;
            };
            act(
                stage,
                sequence,
                "flatten",
                "line breaks between tokens became spaces",
            );
            frame.body = Body::Whole(flat);
        }
        passed.on.push(frame);
        passed.sequences.push(sequence);
    }
    Ok(())
}

/// The answer to its sender; nobody waits for one to a notification or to an answer.
fn refuse(
    stage: &Stage<'_>,
    message: &Message,
    exchange: ExchangeId,
) -> Result<Option<Frame>, LinkEnd> {
    if matches!(
        message.kind(),
        Kind::Notification | Kind::Response | Kind::Error
    ) {
        return Ok(None);
    }
    let answer = error_response(
        message.id().as_ref(),
        ErrorCode::CANNOT_CARRY,
        WHY_NOT,
        None,
    );
    let direction = stage.direction.reverse();
    stage
        .connection
        .author(direction, exchange, answer, stage.now)
        .map(Some)
}

fn act(stage: &Stage<'_>, sequence: Option<u64>, kind: &'static str, why: &str) {
    stage.connection.act(sequence, kind, why);
}

fn has_line_break(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'))
}
