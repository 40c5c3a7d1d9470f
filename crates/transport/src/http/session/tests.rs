//! Streams that nobody reads.

use mcp_proxy_core::{
    ClientStreams, FrameWriter as _, HoldOptions, NewConnection, Outgoing, Pipeline,
    PipelineOptions,
};
use mcp_proxy_wire::Transport;
use tokio::time::{Instant as Moment, timeout};

use super::writer::STREAM_STALL;
use super::*;
use crate::http::stream::StreamItem;
use crate::inbox::{InboxReader, inbox};

const SLOW: ExchangeId = ExchangeId(1);
const QUICK: ExchangeId = ExchangeId(2);

/// A session that modern clients share: each POST has a stream of its own.
fn shared() -> (Arc<Session>, InboxReader) {
    let pipeline = Pipeline::new(PipelineOptions {
        recorder: None,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let connection = pipeline.open(
        NewConnection::between(Transport::StreamableHttp, Transport::Stdio)
            .with_streams(ClientStreams::Shared),
    );
    let (sender, reader) = inbox();
    let session = Session::new(SessionKind::Shared, connection, sender, Arc::default());
    (session, reader)
}

fn ask(session: &Session, exchange: ExchangeId) -> Messages {
    let request = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    session.open_post(exchange, &request).unwrap().messages
}

fn to(exchange: ExchangeId, message: &Message) -> Outgoing {
    Frame::message(exchange, Origin::Server, message.clone()).into()
}

async fn next(messages: &mut Messages) -> StreamMessage {
    match messages.next().await {
        Some(StreamItem::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn log(bytes: usize) -> Message {
    let text = "x".repeat(bytes);
    Message::parse(format!(r#"{{"method":"n","params":"{text}"}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_slow_clients_large_messages_wait_until_it_reads() {
    let (session, _reader) = shared();
    let mut messages = ask(&session, SLOW);
    let (large, mut writer) = (log(15 << 20), SessionWriter(Arc::clone(&session)));
    let mut frames: Vec<Outgoing> = (0..6).map(|_| to(SLOW, &large)).collect();
    let mut writing = tokio::spawn(async move { writer.write(&mut frames).await });
    // Paused time moves on only when nothing else can: then all that fits is in the queue.
    let stuck = timeout(Duration::from_secs(1), &mut writing).await;
    assert!(stuck.is_err(), "one of 15 MiB fits, not six");
    for _ in 0..6 {
        assert_eq!(next(&mut messages).await.data, large.raw());
    }
    writing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_loses_its_stream_and_holds_the_others_up_no_longer() {
    let (session, _reader) = shared();
    let (_unread, mut messages) = (ask(&session, SLOW), ask(&session, QUICK));
    let large = log(15 << 20);
    let answer = Message::parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let mut frames: Vec<Outgoing> = (0..6).map(|_| to(SLOW, &large)).collect();
    frames.push(to(QUICK, &answer));
    let (mut writer, start) = (SessionWriter(Arc::clone(&session)), Moment::now());
    let writing = timeout(STREAM_STALL * 2, writer.write(&mut frames));
    writing.await.unwrap().unwrap();
    let waited = start.elapsed();
    assert!(waited >= STREAM_STALL && waited < STREAM_STALL + Duration::from_secs(1));
    assert!(next(&mut messages).await.last);
}
