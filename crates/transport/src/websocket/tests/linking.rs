//! A socket as a link: which messages come whole, which in pieces, and how both are written.

use mcp_proxy_core::{FrameReader, Link, LinkEnd, MemoryBudget, OutgoingFrame};
use mcp_proxy_wire::{Body, Frame, Message, Origin, StreamId, TransportEnvelope};

use super::*;

fn link() -> (Link, Arc<WebSocketHandle>, DuplexStream) {
    link_within(&MemoryBudget::default())
}

fn link_within(memory: &MemoryBudget) -> (Link, Arc<WebSocketHandle>, DuplexStream) {
    let options = SocketOptions {
        max_message: 1 << 20,
        ..SocketOptions::default()
    };
    let (ours, peer) = duplex(4 << 20);
    let (link, handle) = websocket_link(WebSocket::new(ours, &options), memory);
    (link, handle, peer)
}

async fn read(reader: &mut dyn FrameReader) -> Body {
    let mut frames = Vec::new();
    reader.read(&mut frames).await.unwrap();
    let frame = frames.pop().unwrap();
    assert!(frames.is_empty());
    frame.body
}

/// A frame for the peer.
fn outgoing(body: Body) -> OutgoingFrame {
    Frame::new(
        StreamId::Only,
        Origin::Server,
        TransportEnvelope::Bare,
        body,
    )
    .into()
}

#[tokio::test]
async fn a_long_message_is_written_in_frames_of_limited_length() {
    let (mut link, _handle, mut peer) = link();
    let long = Message::parse(vec![b'x'; PIECE_MAX * 2 + 1]);
    let mut frames = vec![outgoing(Body::Whole(long))];
    link.writer.write(&mut frames).await.unwrap();
    for (first, length) in [(0x01, PIECE_MAX), (0x00, PIECE_MAX), (0x80, 1)] {
        let mut head = vec![first];
        match length {
            1 => head.push(1),
            _ => head.extend([&[127][..], &(length as u64).to_be_bytes()].concat()),
        }
        expect(&mut peer, &head).await;
        expect(&mut peer, &vec![b'x'; length]).await;
    }
    link.writer.close().await;
    let more = outgoing(Body::Whole(Message::parse("1")));
    let written = link.writer.write(&mut vec![more]).await;
    assert!(matches!(written, Err(LinkEnd::Closed)));
}

#[tokio::test]
async fn messages_that_came_together_are_read_together_once_their_limit_is_set() {
    let (mut link, handle, mut peer) = link();
    let three = [frame(0x81, b"1"), frame(0x81, b"2"), frame(0x81, b"3")].concat();
    peer.write_all(&three).await.unwrap();
    // The second might be longer than the limit that the first one leads to.
    let Body::Whole(first) = read(link.reader.as_mut()).await else {
        panic!("in pieces");
    };
    assert_eq!(&**first.raw(), b"1");

    handle.set_max_message(2 << 20);
    let mut frames = Vec::new();
    link.reader.read(&mut frames).await.unwrap();
    let texts = frames.iter().map(|frame| match &frame.body {
        Body::Whole(message) => message.raw().to_vec(),
        other => panic!("{other:?}"),
    });
    assert_eq!(texts.collect::<Vec<_>>(), [b"2", b"3"]);

    let long = vec![b'x'; 1_500_000];
    let behind = [frame(0x81, b"4"), frame(0x89, b"ping"), frame(0x81, &long)].concat();
    peer.write_all(&behind).await.unwrap();
    frames.clear();
    link.reader.read(&mut frames).await.unwrap();
    assert_eq!(frames.len(), 1);
    frames.clear();
    link.reader.read(&mut frames).await.unwrap();
    assert!(
        matches!(&frames[..], [Frame { body: Body::Whole(message), .. }] if message.len() == long.len())
    );
    expect(&mut peer, &[0x8a, 4, b'p', b'i', b'n', b'g']).await;
}

#[tokio::test]
async fn a5_a_message_without_room_is_skipped_and_answered() {
    let memory = MemoryBudget::new(200_000);
    let (mut link, _handle, mut peer) = link_within(&memory);
    let long = format!(r#"{{"id":7,"method":"{}"}}"#, "x".repeat(600_000));
    let small = br#"{"id":8,"method":"ping"}"#;
    peer.write_all(&frame(0x81, long.as_bytes())).await.unwrap();
    peer.write_all(&frame(0x81, small)).await.unwrap();
    let mut frames = Vec::new();
    link.reader.read(&mut frames).await.unwrap();
    assert!(frames.is_empty());
    let refusals = link.reader.refusals();
    let codes: Vec<_> = refusals.iter().map(Message::error_code).collect();
    assert_eq!(codes, [Some(mcp_proxy_wire::ErrorCode::MEMORY_BUDGET.0)]);
    assert_eq!(refusals[0].id().unwrap().token(), b"7");
    let Body::Whole(message) = read(link.reader.as_mut()).await else {
        panic!("in pieces");
    };
    assert_eq!(message.raw(), &small[..]);
    assert_eq!((memory.used(), memory.refused()), (0, 1));
}

#[tokio::test]
async fn a5_a_small_message_has_room_in_a_full_budget() {
    let memory = MemoryBudget::new(200_000);
    let (mut link, _handle, mut peer) = link_within(&memory);
    let _full = memory.hold(vec![0; 200_000].into()).unwrap();
    peer.write_all(&frame(0x01, br#"{"id":8,"#)).await.unwrap();
    peer.write_all(&frame(0x80, br#""method":"ping"}"#))
        .await
        .unwrap();
    let Body::Whole(message) = read(link.reader.as_mut()).await else {
        panic!("in pieces");
    };
    assert_eq!(message.raw(), &br#"{"id":8,"method":"ping"}"#[..]);
}

#[tokio::test]
async fn a5_a_message_of_which_nothing_has_room_is_answered() {
    let memory = MemoryBudget::new(200_000);
    let (mut link, _handle, mut peer) = link_within(&memory);
    let _full = memory.hold(vec![0; 200_000].into()).unwrap();
    let long = "x".repeat(600_000);
    for text in [
        format!(r#"{{"id":7,"method":"a","params":{{"text":"{long}"}}}}"#),
        format!(r#"{{"params":{{"text":"{long}"}},"method":"a","id":7}}"#),
    ] {
        peer.write_all(&frame(0x81, text.as_bytes())).await.unwrap();
        link.reader.read(&mut Vec::new()).await.unwrap();
        let refusals = link.reader.refusals();
        assert_eq!(refusals[0].id().unwrap().token(), b"7");
    }
}
