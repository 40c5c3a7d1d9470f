//! On a shared connection: the client's ids become ours on the way out, and its own again on the way back.

use mcp_proxy_wire::{Body, Direction, ErrorCode, Frame, Kind, Message, StreamId, error_response};

use super::StepContext;
use crate::link::{LinkEnd, OutgoingFrame};
use crate::message_pipeline::PipelineOutput;
use crate::multiplexer::{Delivery, MultiplexerError};

const NOBODY: &str = "no client waits for it";

pub(super) fn multiplex_ids(
    stage: &StepContext<'_>,
    output: &mut PipelineOutput,
) -> Result<(), LinkEnd> {
    if stage.connection.multiplexer().is_none() {
        return Ok(());
    }
    for outgoing in std::mem::take(&mut output.forward) {
        let kept = match outgoing {
            OutgoingFrame::Frame(frame) => {
                let Some(message) = whole(&frame) else {
                    continue;
                };
                match stage.direction {
                    Direction::ClientToServer => to_server(stage, frame, &message, output)?,
                    Direction::ServerToClient => to_client(stage, frame, &message, output)?,
                }
                .map(OutgoingFrame::Frame)
            }
            // The record has the decision already, so nothing is noted when nobody waits for it.
            OutgoingFrame::Dropped(frame) => match whole(&frame) {
                Some(message) if !stage.connection.is_of_replay(&message) => {
                    place(stage, frame, &message).map(OutgoingFrame::Dropped)
                }
                _ => Some(OutgoingFrame::Dropped(frame)),
            },
            OutgoingFrame::Replacement { original, frame } => {
                place_replacement(stage, original, frame)
            }
            other => Some(other),
        };
        output.forward.extend(kept);
    }
    Ok(())
}

fn whole(frame: &Frame) -> Option<Message> {
    match &frame.body {
        Body::Message(message) => Some(message.clone()),
        _ => None,
    }
}

/// An edited answer goes to the client that the original belonged to, under the id that the editor wrote.
fn place_replacement(
    stage: &StepContext<'_>,
    original: Box<Message>,
    frame: Frame,
) -> Option<OutgoingFrame> {
    if stage.connection.is_of_replay(&original) {
        return Some(OutgoingFrame::Replacement { original, frame });
    }
    let Some((stream, _)) = recipient(stage, &original) else {
        stage
            .connection
            .record_proxy_verdict(frame.sequence, "drop", NOBODY);
        return None;
    };
    let frame = Frame { stream, ..frame };
    Some(OutgoingFrame::Replacement { original, frame })
}

/// Gives a server's message the stream and the ids of the client that waits for it.
fn place(stage: &StepContext<'_>, frame: Frame, message: &Message) -> Option<Frame> {
    let (stream, message) = recipient(stage, message)?;
    Some(Frame {
        stream,
        body: Body::Message(message),
        ..frame
    })
}

/// A server's message with the ids of the client it is for. What is for everyone goes to one open request: a modern client
/// without one has no stream to receive it on.
fn recipient(stage: &StepContext<'_>, message: &Message) -> Option<(StreamId, Message)> {
    let mut multiplexer = stage.connection.multiplexer()?;
    match multiplexer.to_client(message) {
        Delivery::To(stream, message) => Some((stream, message)),
        Delivery::Everyone(message) => Some((multiplexer.oldest_open()?, message)),
        Delivery::ToAny(_) | Delivery::Nobody => None,
    }
}

fn to_server(
    stage: &StepContext<'_>,
    mut frame: Frame,
    message: &Message,
    output: &mut PipelineOutput,
) -> Result<Option<Frame>, LinkEnd> {
    // The ids of what the proxy says itself are ours already.
    if frame.is_injected() {
        return Ok(Some(frame));
    }
    match under_our_ids(stage, frame.stream, message) {
        Ok(changed) => {
            frame.body = Body::Message(changed);
            Ok(Some(frame))
        }
        Err(MultiplexerError::UnknownRequest) => {
            let why = "a cancel that belongs to no open request, or not clearly to one";
            stage
                .connection
                .record_proxy_verdict(frame.sequence, "drop", why);
            Ok(None)
        }
        Err(error) => {
            let why = error.to_string();
            stage
                .connection
                .record_proxy_verdict(frame.sequence, "refuse", &why);
            let code = ErrorCode::PEER_STALLED;
            let answer = error_response(message.id().as_ref(), code, &why, None);
            let direction = Direction::ServerToClient;
            let refusal = stage
                .connection
                .author(direction, frame.stream, answer, stage.now)?;
            output.reply.push(refusal.into());
            Ok(None)
        }
    }
}

/// A client's message with the ids that the server knows.
fn under_our_ids(
    stage: &StepContext<'_>,
    stream: StreamId,
    message: &Message,
) -> Result<Message, MultiplexerError> {
    let multiplexer = stage.connection.multiplexer();
    match (multiplexer, message.kind()) {
        (Some(mut multiplexer), Kind::Request) => multiplexer.to_server(&stream, message),
        // A modern client POSTs a cancel on an exchange of its own.
        (Some(mut multiplexer), Kind::Notification) => multiplexer.cancel_any(message),
        _ => Ok(message.clone()),
    }
}

fn to_client(
    stage: &StepContext<'_>,
    frame: Frame,
    message: &Message,
    output: &mut PipelineOutput,
) -> Result<Option<Frame>, LinkEnd> {
    let sequence = frame.sequence;
    if message.kind() == Kind::Request {
        // 2026-07-28 has no requests from servers, and no single client is meant.
        let why = "server requests cannot reach clients that share a server";
        stage
            .connection
            .record_proxy_verdict(sequence, "answer", why);
        let text =
            "this connection is shared by several clients; requests to a client are not possible";
        let code = ErrorCode::METHOD_NOT_FOUND;
        let answer = error_response(message.id().as_ref(), code, text, None);
        let answer = stage.connection.author(
            Direction::ClientToServer,
            StreamId::Only,
            answer,
            stage.now,
        )?;
        output.reply.push(answer.into());
        return Ok(None);
    }
    // What belongs to a replay has ids of ours on both sides; it is taken out when it is about to be written.
    if stage.connection.is_of_replay(message) {
        return Ok(Some(frame));
    }
    if message.kind() == Kind::Batch {
        let number = sequence.unwrap_or_default();
        // The rest of the batch belongs to nobody, like any batch on a shared connection.
        drop(stage.connection.without_replays(message, number));
    }
    let placed = place(stage, frame, message);
    if placed.is_none() {
        stage
            .connection
            .record_proxy_verdict(sequence, "drop", NOBODY);
    }
    Ok(placed)
}
