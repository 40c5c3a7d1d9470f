//! On a shared connection: the client's ids become ours on the way out, and its own again on the way back.

use mcp_proxy_wire::{Body, Direction, ErrorCode, Frame, Kind, Message, StreamId, error_response};

use super::Stage;
use crate::lane::Passed;
use crate::link::{LinkEnd, Outgoing};

pub(super) fn take(stage: &Stage<'_>, passed: &mut Passed) -> Result<(), LinkEnd> {
    for outgoing in std::mem::take(&mut passed.on) {
        let kept = match outgoing {
            Outgoing::Frame(frame) => {
                let Some(message) = whole(&frame) else {
                    continue;
                };
                match stage.direction {
                    Direction::ClientToServer => to_server(stage, frame, &message),
                    Direction::ServerToClient => to_client(stage, frame, &message, passed)?,
                }
                .map(Outgoing::Frame)
            }
            // The record has the decision already, so nothing is noted when nobody waits for it.
            Outgoing::Dropped(frame) => match whole(&frame) {
                Some(message) if !stage.connection.is_of_replay(&message) => {
                    place(stage, frame, &message).map(Outgoing::Dropped)
                }
                _ => Some(Outgoing::Dropped(frame)),
            },
            Outgoing::Replacement { original, frame } => place_replacement(stage, original, frame),
            other => Some(other),
        };
        passed.on.extend(kept);
    }
    Ok(())
}

fn whole(frame: &Frame) -> Option<Message> {
    match &frame.body {
        Body::Whole(message) => Some(message.clone()),
        _ => None,
    }
}

/// An edited answer goes to the client that the original belonged to, under the id that the editor wrote.
fn place_replacement(stage: &Stage<'_>, original: Message, frame: Frame) -> Option<Outgoing> {
    if stage.connection.is_of_replay(&original) {
        return Some(Outgoing::Replacement { original, frame });
    }
    let Some(placed) = place(stage, frame.clone(), &original) else {
        let why = "no client waits for it";
        stage.connection.act(frame.sequence, "drop", why);
        return None;
    };
    let frame = Frame {
        stream: placed.stream,
        ..frame
    };
    Some(Outgoing::Replacement { original, frame })
}

/// Gives a server's message the stream and the ids of the client that waits for it.
fn place(stage: &Stage<'_>, frame: Frame, message: &Message) -> Option<Frame> {
    let mut share = stage.connection.share()?;
    share.to_client(frame, message)
}

fn to_server(stage: &Stage<'_>, mut frame: Frame, message: &Message) -> Option<Frame> {
    // The ids of what the proxy says itself are ours already.
    let exchange = match frame.is_injected() {
        true => None,
        false => frame.stream.exchange(),
    };
    let Some(exchange) = exchange else {
        return Some(frame);
    };
    let changed = stage.connection.share()?.to_server(exchange, message);
    let Some(changed) = changed else {
        let why = "a cancel that belongs to no open request, or not clearly to one";
        stage.connection.act(frame.sequence, "drop", why);
        return None;
    };
    frame.body = Body::Whole(changed);
    Some(frame)
}

fn to_client(
    stage: &Stage<'_>,
    frame: Frame,
    message: &Message,
    passed: &mut Passed,
) -> Result<Option<Frame>, LinkEnd> {
    let sequence = frame.sequence;
    if message.kind() == Kind::Request {
        // 2026-07-28 has no requests from servers, and no single client is meant.
        let why = "server requests cannot reach clients that share a server";
        stage.connection.act(sequence, "answer", why);
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
        passed.back.push(answer.into());
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
            .act(sequence, "drop", "no client waits for it");
    }
    Ok(placed)
}
