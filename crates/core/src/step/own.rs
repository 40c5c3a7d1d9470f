//! On a shared connection: the client's ids become ours on the way out, and its own again on the way back.

use mcp_proxy_wire::{
    Body, Direction, ErrorCode, ExchangeId, Frame, Instead, Kind, Message, error_response,
};

use super::Stage;
use crate::connection::PROXY_EXCHANGE;
use crate::lane::Passed;
use crate::link::LinkEnd;
use crate::multiplexer::{Delivery, MultiplexerError};

pub(super) fn take(stage: &Stage<'_>, passed: &mut Passed) -> Result<(), LinkEnd> {
    let frames = std::mem::take(&mut passed.on);
    let sequences = std::mem::take(&mut passed.sequences);
    for (frame, sequence) in frames.into_iter().zip(sequences) {
        let (message, withheld) = match &frame.body {
            Body::Whole(message) => (message.clone(), false),
            Body::Withheld(message) => (message.clone(), true),
            Body::Instead(instead) => {
                let placed = instead_of(stage, &frame, instead, sequence);
                passed.sequences.extend(placed.iter().map(|_| sequence));
                passed.on.extend(placed);
                continue;
            }
            _ => continue,
        };
        let kept = match stage.direction {
            Direction::ClientToServer => out(stage, frame, &message, sequence, passed)?,
            Direction::ServerToClient => back(stage, frame, &message, sequence, passed)?,
        };
        if let Some(mut frame) = kept {
            if withheld && let Body::Whole(message) = frame.body {
                frame.body = Body::Withheld(message);
            }
            passed.on.push(frame);
            passed.sequences.push(sequence);
        }
    }
    Ok(())
}

/// A changed answer goes to whom the first one belonged to. Its id is what somebody has written.
fn instead_of(
    stage: &Stage<'_>,
    frame: &Frame,
    instead: &Instead,
    sequence: Option<u64>,
) -> Option<Frame> {
    if stage.connection.is_of_replay(&instead.was) {
        return Some(frame.clone());
    }
    let Some((exchange, _)) = to_client(stage, &instead.was) else {
        let why = "no client waits for it";
        stage.connection.act(sequence, "drop", why);
        return None;
    };
    Some(Frame {
        exchange,
        ..frame.clone()
    })
}

fn out(
    stage: &Stage<'_>,
    mut frame: Frame,
    message: &Message,
    sequence: Option<u64>,
    passed: &mut Passed,
) -> Result<Option<Frame>, LinkEnd> {
    if frame.exchange == PROXY_EXCHANGE {
        return Ok(Some(frame));
    }
    match to_server(stage, frame.exchange, message) {
        Ok(changed) => {
            frame.body = Body::Whole(changed);
            Ok(Some(frame))
        }
        Err(MultiplexerError::UnknownRequest) => {
            stage.connection.act(
                sequence,
                "drop",
                "a cancel that belongs to no open request, or not clearly to one",
            );
            Ok(None)
        }
        Err(error) => {
            let why = error.to_string();
            stage.connection.act(sequence, "refuse", &why);
            let code = ErrorCode::PEER_STALLED;
            let answer = error_response(message.id().as_ref(), code, &why, None);
            let direction = Direction::ServerToClient;
            let refusal = stage
                .connection
                .author(direction, frame.exchange, answer, stage.now)?;
            passed.back.push(refusal);
            Ok(None)
        }
    }
}

/// A client's message with the ids that the server knows.
fn to_server(
    stage: &Stage<'_>,
    exchange: ExchangeId,
    message: &Message,
) -> Result<Message, MultiplexerError> {
    let multiplexer = stage.connection.multiplexer();
    match (multiplexer, message.kind()) {
        (Some(mut multiplexer), Kind::Request) => multiplexer.to_server(&exchange, message),
        // A modern client POSTs a cancel on an exchange of its own.
        (Some(mut multiplexer), Kind::Notification) => multiplexer.cancel_any(message),
        _ => Ok(message.clone()),
    }
}

/// A server's message with the ids of the client it is for. What is for everyone goes to one open request: a modern client
/// without one has no stream to receive it on.
fn to_client(stage: &Stage<'_>, message: &Message) -> Option<(ExchangeId, Message)> {
    let mut multiplexer = stage.connection.multiplexer()?;
    match multiplexer.to_client(message) {
        Delivery::To(exchange, message) => Some((exchange, message)),
        Delivery::Everyone(message) => Some((multiplexer.oldest_open()?, message)),
        Delivery::ToAny(_) | Delivery::Nobody => None,
    }
}

fn back(
    stage: &Stage<'_>,
    frame: Frame,
    message: &Message,
    sequence: Option<u64>,
    passed: &mut Passed,
) -> Result<Option<Frame>, LinkEnd> {
    if message.kind() == Kind::Request {
        // 2026-07-28 has no requests from servers, and no single client is meant.
        stage.connection.act(
            sequence,
            "answer",
            "server requests cannot reach clients that share a server",
        );
        let text =
            "this connection is shared by several clients; requests to a client are not possible";
        let answer = error_response(
            message.id().as_ref(),
            ErrorCode::METHOD_NOT_FOUND,
            text,
            None,
        );
        let direction = Direction::ClientToServer;
        let frame = stage
            .connection
            .author(direction, PROXY_EXCHANGE, answer, stage.now)?;
        passed.back.push(frame);
        return Ok(None);
    }
    // What belongs to a replay has ids of ours on both sides; it is taken out when it is about to be written.
    if stage.connection.is_of_replay(message) {
        return Ok(Some(frame));
    }
    if message.kind() == Kind::Batch {
        let number = sequence.unwrap_or_default();
        // The rest of it is nobody's, as any batch here.
        drop(stage.connection.without_replays(message, number));
    }
    // Of what was withheld the record has its verdict.
    let is_withheld = matches!(frame.body, Body::Withheld(_));
    let placed = to_client(stage, message).map(|(exchange, message)| Frame {
        exchange,
        body: Body::Whole(message),
        ..frame
    });
    if placed.is_none() && !is_withheld {
        stage
            .connection
            .act(sequence, "drop", "no client waits for it");
    }
    Ok(placed)
}
