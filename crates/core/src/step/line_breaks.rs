//! Between kinds of transport, CR and LF outside strings become spaces and nothing else changes.
//!
//! What still cannot be carried (a line break inside a string, in broken JSON) is answered with an error to its sender.

use mcp_proxy_wire::{Body, ErrorCode, Frame, Kind, Message, StreamId, error_response, flatten};

use super::StepContext;
use crate::link::{LinkEnd, OutgoingFrame};
use crate::message_pipeline::PipelineOutput;

const WHY_NOT: &str = "this message is broken JSON with a line break inside a string and cannot be carried \
                       on the other side's transport, where a message is one line";

pub(super) fn flatten_line_breaks(
    stage: &StepContext<'_>,
    output: &mut PipelineOutput,
) -> Result<(), LinkEnd> {
    if !output.forward.iter().any(is_broken) {
        return Ok(());
    }
    for outgoing in std::mem::take(&mut output.forward) {
        if !is_broken(&outgoing) {
            output.forward.push(outgoing);
            continue;
        }
        let OutgoingFrame::Frame(mut frame) = outgoing else {
            continue;
        };
        let Body::Message(message) = &frame.body else {
            continue;
        };
        let Some(flat) = flatten(message) else {
            stage
                .connection
                .record_proxy_verdict(frame.sequence, "refuse", WHY_NOT);
            let refused = refuse(stage, message, frame.stream)?;
            output.reply.extend(refused.map(OutgoingFrame::Frame));
            continue;
        };
        let why = "line breaks between tokens became spaces";
        stage
            .connection
            .record_proxy_verdict(frame.sequence, "flatten", why);
        frame.body = Body::Message(flat);
        output.forward.push(frame.into());
    }
    Ok(())
}

/// Whether a message would not be one line.
fn is_broken(outgoing: &OutgoingFrame) -> bool {
    let OutgoingFrame::Frame(frame) = outgoing else {
        return false;
    };
    matches!(&frame.body, Body::Message(message) if message.has_line_break())
}

/// The answer to its sender; nobody waits for one to a notification or to an answer.
fn refuse(
    stage: &StepContext<'_>,
    message: &Message,
    stream: StreamId,
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
        .author(direction, stream, answer, stage.now)
        .map(Some)
}
