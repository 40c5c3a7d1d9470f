//! Streams that nobody reads, and streams that a client comes back for.

use mcp_proxy_core::{
    ClientStreams, FrameWriter as _, HoldOptions, NewConnection, OutgoingFrame, ProxyRun,
    RunOptions,
};
use mcp_proxy_wire::Transport;
use tokio::time::{Instant as Moment, timeout};

use super::writer::STREAM_STALL;
use super::*;
use crate::http::event_stream::StreamItem;
use crate::inbox::{InboxReader, inbox};
use crate::runtimes::by_runtime;

const SLOW: ExchangeId = ExchangeId(1);
const QUICK: ExchangeId = ExchangeId(2);

/// A session that modern clients share: each POST has a stream of its own.
fn shared() -> (Arc<HttpSession>, InboxReader) {
    session(SessionKind::Shared, ClientStreams::Shared)
}

/// A session of a client that can come back for its streams.
fn legacy() -> (Arc<HttpSession>, InboxReader) {
    let kind = SessionKind::Legacy("s".to_owned());
    session(kind, ClientStreams::FoundById)
}

fn session(kind: SessionKind, streams: ClientStreams) -> (Arc<HttpSession>, InboxReader) {
    session_with(kind, streams, Transport::Stdio)
}

fn session_with(
    kind: SessionKind,
    streams: ClientStreams,
    server: Transport,
) -> (Arc<HttpSession>, InboxReader) {
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(move |text| assert_eq!(server, Transport::InProcess, "{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let connection =
        run.open(NewConnection::between(Transport::StreamableHttp, server).with_streams(streams));
    let (sender, reader) = inbox();
    let session = HttpSession::new(kind, connection, sender, Arc::default(), None);
    (session, reader)
}

fn ask(session: &HttpSession, exchange: ExchangeId) -> StreamReceiver {
    let request = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    session.open_post(exchange, &request).unwrap().messages
}

fn to(exchange: ExchangeId, message: &Message) -> OutgoingFrame {
    Frame::message(exchange, Origin::Server, message.clone()).into()
}

async fn next(messages: &mut StreamReceiver) -> StreamMessage {
    match messages.next().await {
        Some(StreamItem::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn log(bytes: usize) -> Message {
    let text = "x".repeat(bytes);
    Message::parse(format!(r#"{{"method":"n","params":"{text}"}}"#))
}

on_both_runtimes!(a_slow_clients_large_messages_wait_until_it_reads);
async fn a_slow_clients_large_messages_wait_until_it_reads() {
    let (session, _reader) = shared();
    let mut messages = ask(&session, SLOW);
    let (large, mut writer) = (log(15 << 20), SessionWriter::new(Arc::clone(&session)));
    let mut frames: Vec<OutgoingFrame> = (0..6).map(|_| to(SLOW, &large)).collect();
    let mut writing = tokio::spawn(async move { writer.write(&mut frames).await });
    // Paused time moves on only when nothing else can: then all that fits is in the queue.
    let limit = by_runtime(Duration::from_secs(1), Duration::from_millis(100));
    let stuck = timeout(limit, &mut writing).await;
    assert!(stuck.is_err(), "one of 15 MiB fits, not six");
    for _ in 0..6 {
        assert_eq!(next(&mut messages).await.data, large.raw());
    }
    writing.await.unwrap().unwrap();
}

on_both_runtimes!(a_client_that_reads_nothing_loses_its_stream_and_holds_the_others_up_no_longer);
async fn a_client_that_reads_nothing_loses_its_stream_and_holds_the_others_up_no_longer() {
    let (session, _reader) = shared();
    let (_unread, mut messages) = (ask(&session, SLOW), ask(&session, QUICK));
    let large = log(15 << 20);
    let answer = Message::parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let mut frames: Vec<OutgoingFrame> = (0..6).map(|_| to(SLOW, &large)).collect();
    frames.push(to(QUICK, &answer));
    let stall = by_runtime(STREAM_STALL, Duration::from_millis(100));
    let mut writer = SessionWriter::with_stall(Arc::clone(&session), stall);
    let start = Moment::now();
    let writing = timeout(stall * 100, writer.write(&mut frames));
    writing.await.unwrap().unwrap();
    let (waited, slack) = (start.elapsed(), by_runtime(1, 5));
    assert!(waited >= stall && waited < stall + Duration::from_secs(slack));
    assert!(next(&mut messages).await.last);
}

/// A legacy client's POST that has had one event; its stream, and what names the event.
async fn posted(session: &Arc<HttpSession>) -> (PostStream, String) {
    let request = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    let mut opened = session.open_post(SLOW, &request).unwrap();
    let mut writer = SessionWriter::new(Arc::clone(session));
    writer.write(&mut vec![to(SLOW, &log(1))]).await.unwrap();
    let event = next(&mut opened.messages).await.event_id.unwrap();
    (opened, event)
}

on_both_runtimes!(an_old_connection_that_is_found_to_be_gone_does_not_close_the_resumed_stream);
async fn an_old_connection_that_is_found_to_be_gone_does_not_close_the_resumed_stream() {
    let (session, _reader) = legacy();
    let (old, event) = posted(&session).await;
    let (exchange, _, mut messages) = session.resume(&event).unwrap().live.unwrap();
    assert_eq!(exchange, SLOW);
    session.stream_closed(SLOW, old.number);
    let answer = Message::parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let mut writer = SessionWriter::new(Arc::clone(&session));
    writer.write(&mut vec![to(SLOW, &answer)]).await.unwrap();
    assert_eq!(next(&mut messages).await.data, answer.raw());
}

on_both_runtimes!(a_session_that_has_ended_opens_no_stream_for_a_client_that_comes_back);
async fn a_session_that_has_ended_opens_no_stream_for_a_client_that_comes_back() {
    let (session, _reader) = legacy();
    let (_, event) = posted(&session).await;
    // It is over, and on another thread the table of sessions does not know it yet.
    session.end();
    assert!(session.resume(&event).is_none());
    assert!(session.open_get().is_none());
}

on_both_runtimes!(a2_a_client_without_a_stream_is_told_what_was_too_large_to_wait);
async fn a2_a_client_without_a_stream_is_told_what_was_too_large_to_wait() {
    let kind = SessionKind::Legacy("s".to_owned());
    let (session, _reader) = session_with(kind, ClientStreams::FoundById, Transport::InProcess);
    let lost = session.connection.lost_notifications();
    let mut writer = SessionWriter::new(Arc::clone(&session));
    let frame =
        |bytes| OutgoingFrame::from(Frame::message(StreamId::Only, Origin::Server, log(bytes)));
    writer.write(&mut vec![frame(1 << 20)]).await.unwrap();
    assert_eq!((lost.untold(), lost.can_be_told()), (1, true));
    // What waits comes first.
    writer
        .write(&mut vec![frame(1), frame(1 << 20)])
        .await
        .unwrap();
    assert_eq!((lost.untold(), lost.can_be_told()), (2, false));
    let (_, mut messages) = session.open_get().unwrap();
    next(&mut messages).await;
    assert!(lost.can_be_told());
}

on_both_runtimes!(a5_an_answer_that_was_collected_counts_once);
async fn a5_an_answer_that_was_collected_counts_once() {
    let (session, _reader) = legacy();
    let memory = session.connection.run.memory();
    let mut messages = ask(&session, SLOW);
    let text = "x".repeat(100_000);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
    let size = body.len();
    let answer = Message::parse(memory.hold(body.into()).unwrap());
    let (parts, ()) = http::Response::new(()).into_parts();
    let envelope = TransportEnvelope::Response(Box::new(parts));
    let frame = Frame::new(
        StreamId::Only,
        Origin::Server,
        envelope,
        Body::Message(answer),
    );
    let mut writer = SessionWriter::new(Arc::clone(&session));
    writer.write(&mut vec![frame.into()]).await.unwrap();
    assert_eq!(memory.used(), size);
    drop(next(&mut messages).await);
}
