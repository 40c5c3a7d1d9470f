//! Plays a transcript against the pumps.
//!
//! `C> m` the client says m, `S< m` the server gets m, `S> m` the server says, `C< m` the client gets;
//! `C.` the client closes, `S. text` the server ends with that failure, `S|` the server's input was closed.
//! `C< ~text` matches any message that contains the text.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::{
    BoxFuture, CarryEnd, CarryOptions, Connection, FrameReader, FrameWriter, Link, LinkEnd,
    Pipeline, PipelineOptions, carry,
};
use mcp_proxy_session::Recorder;
use mcp_proxy_wire::{
    Body, Carriage, ErrorCode, ExchangeId, Frame, LineEnd, Message, Side, Transport,
};
use tokio::sync::mpsc;

/// One side of a conversation as the test holds it.
struct Peer {
    say: Option<mpsc::UnboundedSender<Result<Frame, LinkEnd>>>,
    hear: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
}

struct Says(mpsc::UnboundedReceiver<Result<Frame, LinkEnd>>);
struct Hears(mpsc::UnboundedSender<Option<Vec<u8>>>);

impl FrameReader for Says {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            into.push(self.0.recv().await.unwrap_or(Err(LinkEnd::Closed))?);
            Ok(())
        })
    }
}

impl FrameWriter for Hears {
    fn write<'a>(&'a mut self, frames: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        for frame in frames.drain(..) {
            if let Body::Whole(message) = frame.body {
                let _ = self.0.send(Some(message.raw().to_vec()));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        let _ = self.0.send(None);
        Box::pin(std::future::ready(()))
    }
}

fn peer() -> (Peer, Link) {
    let (say, says) = mpsc::unbounded_channel();
    let (hears, hear) = mpsc::unbounded_channel();
    (
        Peer {
            say: Some(say),
            hear,
        },
        Link::new(Says(says), Hears(hears)),
    )
}

/// A pipeline with or without a record.
pub fn pipeline(recorder: Option<Recorder>) -> Arc<Pipeline> {
    Pipeline::new(PipelineOptions {
        recorder,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
    })
}

/// Plays a transcript over stdio on both sides.
pub async fn play(transcript: &str) -> CarryEnd {
    let pipeline = pipeline(None);
    let connection = pipeline.connect(Transport::Stdio, Transport::Stdio);
    play_on(&connection, transcript).await
}

/// Plays a transcript on a connection.
pub async fn play_on(connection: &Arc<Connection>, transcript: &str) -> CarryEnd {
    let (mut client, client_link) = peer();
    let (mut server, server_link) = peer();
    let carrying = tokio::spawn({
        let connection = Arc::clone(connection);
        async move {
            let options = CarryOptions::default();
            carry(
                &connection,
                client_link,
                server_link,
                options,
                std::future::pending(),
            )
            .await
        }
    });
    for line in transcript
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (head, rest) = line.split_at(2);
        let rest = rest.trim();
        match head {
            "C>" => client.say(rest),
            "S>" => server.say(rest),
            "C<" => client.hears(line, rest).await,
            "S<" => server.hears(line, rest).await,
            "C." => drop(client.say.take()),
            "S." => {
                let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, rest);
                let _ = server.say.take().unwrap().send(Err(end));
            }
            "S|" => assert_eq!(server.next().await, None, "{line}"),
            other => panic!("no such line in a transcript: {other}"),
        }
    }
    tokio::time::timeout(Duration::from_secs(60), carrying)
        .await
        .unwrap()
        .unwrap()
}

impl Peer {
    fn say(&mut self, text: &str) {
        let frame = Frame {
            exchange: ExchangeId(0),
            carriage: Carriage::Line(LineEnd::Lf),
            body: Body::Whole(Message::parse(text.to_owned())),
        };
        self.say.as_ref().unwrap().send(Ok(frame)).unwrap();
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.hear.recv()).await;
        next.expect("nothing came").flatten()
    }

    async fn hears(&mut self, line: &str, expected: &str) {
        let heard = self
            .next()
            .await
            .unwrap_or_else(|| panic!("closed instead of: {line}"));
        let heard = String::from_utf8_lossy(&heard).into_owned();
        match expected.strip_prefix('~') {
            Some(part) => assert!(heard.contains(part), "{line}\nheard: {heard}"),
            None => assert_eq!(heard, expected, "{line}"),
        }
    }
}
