//! Plays a transcript against the pumps.
//!
//! `C> m` the client says m, `S< m` the server gets m, `S> m` the server says, `C< m` the client gets;
//! `C.` the client closes, `S. text` the server ends with that failure, `S|` the server's input was closed.
//! `C< ~text` matches any message that contains the text, `C< ~text ~ other` one that contains both.
//! `! forward 3`, `! drop 3`, `! modify 3 m`, `! as-is 3 m`, `! error 3 -1 text` decide about the held message of that
//! number once it is held; `! held 3` waits until it is; `! break filter`, `! intercept`, `! passthrough`, `! step`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::intercept::{
    InterceptAction, InterceptMode, JsonCheck, MessageEdit, NewBreakpoint,
};
use mcp_proxy_core::{
    BoxFuture, CarryEnd, CarryOptions, Connection, FrameReader, FrameWriter, HoldOptions, Link,
    LinkEnd, OutgoingFrame, ProxyRun, RunOptions, carry,
};
use mcp_proxy_session::{Filter, RecordLocation, RecordOptions, Recorder, testing};
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, LineEnd, Message, Side, StreamId, Transport, TransportEnvelope,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::runtimes::by_runtime;

/// One side of a conversation as the test holds it.
pub struct TestPeer {
    side: Side,
    say: Option<mpsc::UnboundedSender<Result<Frame, LinkEnd>>>,
    hear: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
}

struct PeerReader(mpsc::UnboundedReceiver<Result<Frame, LinkEnd>>);
struct PeerWriter(mpsc::UnboundedSender<Option<Vec<u8>>>);

impl FrameReader for PeerReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            into.push(self.0.recv().await.unwrap_or(Err(LinkEnd::Closed))?);
            Ok(())
        })
    }
}

impl FrameWriter for PeerWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            if let Body::Message(message) = frame.body {
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

/// A side, and the link to it.
pub fn peer(side: Side) -> (TestPeer, Link) {
    let (say, says) = mpsc::unbounded_channel();
    let (hears, hear) = mpsc::unbounded_channel();
    (
        TestPeer {
            side,
            say: Some(say),
            hear,
        },
        Link::new(PeerReader(says), PeerWriter(hears)),
    )
}

/// A record of stdio on both sides, in a folder.
pub fn recorder(folder: &Path, options: RecordOptions) -> Recorder {
    let place = RecordLocation::File(folder.join("s.jsonl"));
    Recorder::create(place, options, &testing::header()).unwrap()
}

/// A pipeline with or without a record.
pub fn proxy_run(recorder: Option<Recorder>) -> Arc<ProxyRun> {
    holding(recorder, HoldOptions::default())
}

/// The same, holding messages in some way.
pub fn holding(recorder: Option<Recorder>, hold: HoldOptions) -> Arc<ProxyRun> {
    ProxyRun::new(RunOptions {
        recorder,
        // Stray lines are all that a transcript may be warned of.
        warn: Arc::new(|text| assert!(text.contains("stdout"), "{text}")),
        pass_noise: false,
        hold,
    })
}

/// Plays a transcript over stdio on both sides.
pub async fn play(transcript: &str) -> CarryEnd {
    let run = proxy_run(None);
    let connection = run.connect(Transport::Stdio, Transport::Stdio);
    play_on(&connection, transcript).await
}

/// A conversation that is carried: its two sides.
pub fn carried(connection: &Arc<Connection>) -> (TestPeer, TestPeer) {
    let (client, server, _) = carry_on(connection);
    (client, server)
}

fn carry_on(connection: &Arc<Connection>) -> (TestPeer, TestPeer, JoinHandle<CarryEnd>) {
    let (client, client_link) = peer(Side::Client);
    let (server, server_link) = peer(Side::Server);
    let carrying = tokio::spawn({
        let connection = Arc::clone(connection);
        async move {
            let stop = std::future::pending();
            carry(&connection, client_link, server_link, options(), stop).await
        }
    });
    (client, server, carrying)
}

/// The usual deadlines. Those that a transcript waits for in vain are short where time is real.
fn options() -> CarryOptions {
    let usual = CarryOptions::default();
    let short = CarryOptions {
        drain_idle: Duration::from_millis(50),
        stray_wait: Duration::from_millis(300),
        ..usual
    };
    by_runtime(usual, short)
}

/// Plays a transcript on a connection.
pub async fn play_on(connection: &Arc<Connection>, transcript: &str) -> CarryEnd {
    let (mut client, mut server, carrying) = carry_on(connection);
    for line in transcript
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (head, rest) = line.split_at(line.len().min(2));
        let rest = rest.trim();
        match head {
            "C>" => client.say(rest),
            "S>" => server.say(rest),
            "C<" => client.hears(line, rest).await,
            "S<" => server.hears(line, rest).await,
            "C." => client.close(),
            "S." => server.fail(rest),
            "!" | "! " => decide(connection, rest).await,
            "S|" => assert_eq!(server.next().await, None, "{line}"),
            other => panic!("no such line in a transcript: {other}"),
        }
    }
    tokio::time::timeout(Duration::from_secs(60), carrying)
        .await
        .unwrap()
        .unwrap()
}

/// Plays a line that begins with `!`.
async fn decide(connection: &Arc<Connection>, line: &str) {
    let intercept = connection.run.intercept();
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "intercept" => return intercept.set_mode(InterceptMode::Intercept, "test"),
        "passthrough" => return intercept.set_mode(InterceptMode::Passthrough, "test"),
        "step" => return intercept.step("test"),
        "break" => {
            let filter = Filter::parse(rest).unwrap();
            let new = NewBreakpoint {
                filter,
                ..NewBreakpoint::default()
            };
            intercept.add_breakpoint(new);
            return;
        }
        _ => {}
    }
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let sequence: u64 = number.parse().unwrap();
    let mut changes = intercept.watch();
    let held = loop {
        let state = intercept.state();
        if let Some(held) = state.held.iter().find(|held| held.sequence == sequence) {
            break held.hold;
        }
        let changed = tokio::time::timeout(Duration::from_secs(30), changes.changed()).await;
        changed
            .unwrap_or_else(|_| panic!("not held: {line}"))
            .unwrap();
    };
    let bytes = rest.as_bytes().to_vec();
    let action = match verb {
        "held" => return,
        "forward" => InterceptAction::Forward,
        "drop" => InterceptAction::Drop,
        "modify" => InterceptAction::Modify(MessageEdit::new(bytes, JsonCheck::Json)),
        "as-is" => InterceptAction::Modify(MessageEdit::new(bytes, JsonCheck::AsIs)),
        "error" => {
            let (code, message) = rest.split_once(' ').unwrap();
            let (code, message) = (code.parse().unwrap(), message.to_owned());
            InterceptAction::Error { code, message }
        }
        other => panic!("no such decision: {other}"),
    };
    intercept.resolve(held, action, "test").unwrap();
}

impl TestPeer {
    /// It sends nothing more.
    pub fn close(&mut self) {
        drop(self.say.take());
    }

    /// The server ends with this failure.
    pub fn fail(&mut self, text: &str) {
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, text);
        let _ = self.say.take().unwrap().send(Err(end));
    }

    pub fn say(&mut self, text: &str) {
        let frame = Frame::new(
            StreamId::Only,
            self.side.into(),
            TransportEnvelope::Line(LineEnd::Lf),
            Body::Message(Message::parse(text.to_owned())),
        );
        self.say.as_ref().unwrap().send(Ok(frame)).unwrap();
    }

    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.hear.recv()).await;
        next.expect("nothing came").flatten()
    }

    pub async fn hears(&mut self, line: &str, expected: &str) {
        let heard = self
            .next()
            .await
            .unwrap_or_else(|| panic!("closed instead of: {line}"));
        let heard = String::from_utf8_lossy(&heard).into_owned();
        match expected.strip_prefix('~') {
            Some(parts) => {
                let has_all = parts.split(" ~ ").all(|part| heard.contains(part));
                assert!(has_all, "{line}\nheard: {heard}");
            }
            None => assert_eq!(heard, expected, "{line}"),
        }
    }
}
