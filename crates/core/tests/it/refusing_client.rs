//! A client that takes nothing: the answers that the proxy itself had for it are undelivered.

use std::path::Path;
use std::time::Duration;

use mcp_proxy_core::{
    BoxFuture, CarryOptions, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame, carry,
};
use mcp_proxy_session::RecordOptions;
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, LineEnd, Message, Origin, Side, StreamId, Transport, TransportEnvelope,
};
use serde_json::Value;

use crate::runtimes::by_runtime;
use crate::transcript::{peer, proxy_run, recorder};

/// How the client does not take what is written to it.
#[derive(Clone, Copy)]
enum RefusingWriter {
    Fails,
    Stalls,
}

/// What the client sends, and what it does then.
enum ShortReader {
    /// A request, and then nothing.
    Request(Option<Frame>),
    /// A request, and then its end.
    RequestAndEnd(Option<Frame>),
    /// A message that is refused, and then nothing.
    Refused(Vec<Message>),
}

impl FrameReader for ShortReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            match self {
                ShortReader::Request(frame) | ShortReader::RequestAndEnd(frame)
                    if frame.is_some() =>
                {
                    into.extend(frame.take());
                    Ok(())
                }
                ShortReader::Refused(refusals) if !refusals.is_empty() => Ok(()),
                ShortReader::RequestAndEnd(_) => Err(LinkEnd::Closed),
                ShortReader::Request(_) | ShortReader::Refused(_) => std::future::pending().await,
            }
        })
    }

    fn refusals(&mut self) -> Vec<Message> {
        match self {
            ShortReader::Refused(refusals) => std::mem::take(refusals),
            ShortReader::Request(_) | ShortReader::RequestAndEnd(_) => Vec::new(),
        }
    }
}

impl FrameWriter for RefusingWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        frames.clear();
        match self {
            RefusingWriter::Fails => Box::pin(std::future::ready(Err(LinkEnd::Closed))),
            RefusingWriter::Stalls => Box::pin(std::future::pending()),
        }
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn request() -> Option<Frame> {
    Some(Frame::new(
        StreamId::Only,
        Origin::Client,
        TransportEnvelope::Line(LineEnd::Lf),
        Body::Message(Message::parse(r#"{"id":1,"method":"tools/call"}"#)),
    ))
}

/// Carries what the client sends to a server that fails once it has it.
async fn carried(folder: &Path, reader: ShortReader, writer: RefusingWriter) -> Vec<u64> {
    let run = proxy_run(Some(recorder(folder, RecordOptions::default())));
    let connection = run.connect(Transport::Stdio, Transport::Stdio);
    let (mut server, server_link) = peer(Side::Server);
    let asks = !matches!(reader, ShortReader::Refused(_));
    let usual = CarryOptions::default();
    let options = CarryOptions {
        stall: by_runtime(usual.stall, Duration::from_millis(50)),
        last_request: by_runtime(usual.last_request, Duration::from_millis(50)),
        ..usual
    };
    let client_link = Link::new(reader, writer);
    let stop = std::future::pending();
    let carrying = carry(&connection, client_link, server_link, options, stop);
    let failing = async {
        if asks {
            assert!(server.next().await.is_some());
        }
        while !asks && undelivered(folder).is_empty() {
            tokio::task::yield_now().await;
        }
        server.fail("gone");
    };
    tokio::join!(carrying, failing);
    undelivered(folder)
}

fn undelivered(folder: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.join("s.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["kind"] == "undelivered")
        .map(|line| line["sequence"].as_u64().unwrap())
        .collect()
}

on_both_runtimes!(the_last_answers_are_undelivered);
async fn the_last_answers_are_undelivered() {
    for writer in [RefusingWriter::Fails, RefusingWriter::Stalls] {
        let folder = tempfile::tempdir().unwrap();
        let reader = ShortReader::Request(request());
        assert_eq!(carried(folder.path(), reader, writer).await, [2]);
    }
}

on_both_runtimes!(the_last_answers_after_the_clients_end_are_undelivered);
async fn the_last_answers_after_the_clients_end_are_undelivered() {
    for writer in [RefusingWriter::Fails, RefusingWriter::Stalls] {
        let folder = tempfile::tempdir().unwrap();
        let reader = ShortReader::RequestAndEnd(request());
        assert_eq!(carried(folder.path(), reader, writer).await, [2]);
    }
}

on_both_runtimes!(replies_are_undelivered);
async fn replies_are_undelivered() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = mcp_proxy_wire::error_response(None, ErrorCode::TOO_LARGE, "too large", None);
    let reader = ShortReader::Refused(vec![refusal]);
    assert_eq!(
        carried(folder.path(), reader, RefusingWriter::Fails).await,
        [1]
    );
}
