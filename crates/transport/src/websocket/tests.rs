//! A socket as a link over memory, with a peer that writes its bytes by hand.

mod ending;
mod silence;

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::{FrameReader, Link, LinkEnd, MemoryBudget, OutgoingFrame};
use mcp_proxy_wire::{Body, ErrorCode, Frame, Message, Origin, StreamId, TransportEnvelope};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::link::websocket_link;
use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

type Socket = (Link, Arc<WebSocketHandle>, DuplexStream);

/// A socket, and the other end of its connection, which holds `room` bytes in each direction.
async fn socket(room: usize, options: SocketOptions) -> Socket {
    socket_within(room, options, &MemoryBudget::default()).await
}

async fn socket_within(room: usize, options: SocketOptions, memory: &MemoryBudget) -> Socket {
    let (ours, peer) = duplex(room);
    let (link, handle) = websocket_link(ours, options, memory);
    (link, handle, peer)
}

/// A masked frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0xfe);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, key)| byte ^ key));
    bytes
}

/// Reads exactly these bytes.
async fn expect(peer: &mut DuplexStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    peer.read_exact(&mut bytes).await.unwrap();
    assert_eq!(bytes, expected);
}

/// Reads to the end and finds exactly these bytes.
async fn expect_end(peer: &mut DuplexStream, expected: &[u8]) {
    let mut bytes = Vec::new();
    peer.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, expected);
}

/// The messages that come next, all that are ready.
async fn read(link: &mut Link) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link.reader.read(&mut frames).await.unwrap();
    let raw = frames.into_iter().map(|frame| match frame.body {
        Body::Message(message) => message.raw().to_vec(),
        other => panic!("{other:?}"),
    });
    raw.collect()
}

/// Messages for the peer.
async fn write(link: &mut Link, messages: &[&str]) -> Result<(), LinkEnd> {
    let frames = messages.iter().map(|text| {
        let body = Body::Message(Message::parse((*text).to_owned()));
        let (stream, origin) = (StreamId::Only, Origin::Server);
        OutgoingFrame::from(Frame::new(stream, origin, TransportEnvelope::Bare, body))
    });
    link.writer.write(&mut frames.collect()).await
}

on_both_runtimes!(messages_pass_in_both_directions_from_two_tasks);
async fn messages_pass_in_both_directions_from_two_tasks() {
    let (link, handle, peer) = socket(64, SocketOptions::default()).await;
    handle.set_max_message(1024);
    let (mut reader, mut writer) = (link.reader, link.writer);
    let reading = tokio::spawn(async move {
        let mut frames = Vec::new();
        while frames.len() < 100 {
            reader.read(&mut frames).await.unwrap();
        }
        reader
    });
    let writing = tokio::spawn(async move {
        for _ in 0..100 {
            let body = Body::Message(Message::parse("to the client"));
            let (stream, origin) = (StreamId::Only, Origin::Server);
            let frame = Frame::new(stream, origin, TransportEnvelope::Bare, body);
            writer.write(&mut vec![frame.into()]).await.unwrap();
        }
        writer
    });
    let (mut from, mut to) = tokio::io::split(peer);
    let sending = tokio::spawn(async move {
        for _ in 0..100 {
            let sent = to.write_all(&frame(0x81, b"to the server")).await;
            sent.unwrap();
        }
        to
    });
    for _ in 0..100 {
        let mut bytes = [0; 15];
        from.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"\x81\x0dto the client");
    }
    let (_reader, _writer) = (reading.await.unwrap(), writing.await.unwrap());
    assert_eq!(handle.messages_begun(), 100);
    drop(from.unsplit(sending.await.unwrap()));
}

on_both_runtimes!(a_ping_is_answered_while_the_writer_is_idle);
async fn a_ping_is_answered_while_the_writer_is_idle() {
    let (mut link, _handle, mut peer) = socket(1024, SocketOptions::default()).await;
    let reading = tokio::spawn(async move { read(&mut link).await });
    peer.write_all(&frame(0x89, b"hi")).await.unwrap();
    expect(&mut peer, b"\x8a\x02hi").await;
    peer.write_all(&frame(0x8a, b"")).await.unwrap();
    peer.write_all(&frame(0x81, b"1")).await.unwrap();
    assert_eq!(reading.await.unwrap(), [b"1"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_from_a_peer_that_reads_nothing_is_read() {
    let (mut link, _handle, mut peer) = socket(64, SocketOptions::default()).await;
    let sending = tokio::spawn(async move {
        // Their answers are more than may wait unwritten.
        for _ in 0..5000 {
            let sent = peer.write_all(&frame(0x89, &[b'p'; 125])).await;
            sent.unwrap();
        }
        peer.write_all(&frame(0x81, b"done")).await.unwrap();
        peer
    });
    assert_eq!(read(&mut link).await, [b"done"]);
    drop(sending.await.unwrap());
}

on_both_runtimes!(a_dropped_read_loses_nothing);
async fn a_dropped_read_loses_nothing() {
    let (mut link, _handle, mut peer) = socket(8, SocketOptions::default()).await;
    let input = [
        frame(0x01, b"0123"),
        frame(0x89, b"ping"),
        frame(0x80, b"4567"),
    ];
    let mut messages = Vec::new();
    for byte in input.concat() {
        peer.write_all(&[byte]).await.unwrap();
        tokio::select! {
            biased;
            read = read(&mut link) => messages.extend(read),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(messages, [b"01234567"]);
    let reading = tokio::spawn(async move { read(&mut link).await });
    expect(&mut peer, b"\x8a\x04ping").await;
    reading.abort();
}

#[tokio::test]
async fn a_long_message_is_written_in_frames_of_limited_length() {
    const FRAME: usize = 64 << 10;
    let (mut link, handle, mut peer) = socket(1 << 20, SocketOptions::default()).await;
    let long = "x".repeat(2 * FRAME + 1);
    write(&mut link, &[&long, "2"]).await.unwrap();
    for first in [0x01, 0x00] {
        let head = [&[first, 127][..], &(FRAME as u64).to_be_bytes()].concat();
        expect(&mut peer, &head).await;
        expect(&mut peer, &long.as_bytes()[..FRAME]).await;
    }
    expect(&mut peer, b"\x80\x01x\x81\x012").await;
    assert_eq!(handle.messages_begun(), 2);
}

#[tokio::test]
async fn messages_that_came_together_are_read_together_once_their_limit_is_set() {
    let (mut link, handle, mut peer) = socket(4 << 20, SocketOptions::default()).await;
    let three = [frame(0x81, b"1"), frame(0x82, b"2"), frame(0x81, b"3")];
    peer.write_all(&three.concat()).await.unwrap();
    // The second might be longer than the limit that the first one leads to.
    assert_eq!(read(&mut link).await, [b"1"]);
    handle.set_max_message(2 << 20);
    assert_eq!(read(&mut link).await, [b"2", b"3"]);
    let long = vec![b'x'; 1_500_000];
    let behind = [frame(0x81, b"4"), frame(0x89, b"ping"), frame(0x81, &long)];
    peer.write_all(&behind.concat()).await.unwrap();
    let mut lengths = Vec::new();
    while lengths.len() < 2 {
        let messages = read(&mut link).await;
        lengths.extend(messages.iter().map(Vec::len));
    }
    assert_eq!(lengths, [1, long.len()]);
    let more = frame(0x81, b"5");
    peer.write_all(&more).await.unwrap();
    read(&mut link).await;
    expect(&mut peer, b"\x8a\x04ping").await;
}

#[tokio::test]
async fn a5_a_message_without_room_is_answered() {
    let memory = MemoryBudget::new(200_000);
    let options = SocketOptions {
        max_first_message: 1 << 20,
        ..SocketOptions::default()
    };
    let (mut link, _handle, mut peer) = socket_within(4 << 20, options, &memory).await;
    let long = "x".repeat(600_000);
    for text in [
        format!(r#"{{"id":7,"method":"a","params":{{"text":"{long}"}}}}"#),
        format!(r#"{{"params":{{"text":"{long}"}},"method":"a","id":7}}"#),
    ] {
        peer.write_all(&frame(0x81, text.as_bytes())).await.unwrap();
        assert!(read(&mut link).await.is_empty());
        let refusals = link.reader.refusals();
        let codes: Vec<_> = refusals.iter().map(Message::error_code).collect();
        assert_eq!(codes, [Some(ErrorCode::MEMORY_BUDGET.0)]);
        assert_eq!(refusals[0].id().unwrap().token(), b"7");
    }
    assert_eq!((memory.used(), memory.refused()), (0, 2));
    // A small one always has room.
    let _full = memory.hold(vec![0; 200_000].into()).unwrap();
    peer.write_all(&frame(0x81, br#"{"id":8}"#)).await.unwrap();
    assert_eq!(read(&mut link).await, [br#"{"id":8}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_given_up() {
    let options = SocketOptions::default();
    let stall = options.stall;
    let (mut link, handle, mut peer) = socket(1024, options).await;
    let start = tokio::time::Instant::now();
    let large = "x".repeat(100_000);
    let stalled = write(&mut link, &["1", &large, &large, "4"]).await;
    assert!(
        matches!(&stalled, Err(LinkEnd::Failed(failure)) if failure.code == ErrorCode::PEER_STALLED),
        "{stalled:?}"
    );
    assert_eq!(start.elapsed(), stall);
    // The others were not begun.
    assert_eq!(handle.messages_begun(), 2);
    assert!(write(&mut link, &["more"]).await.is_err());
    assert!(link.reader.read(&mut Vec::new()).await.is_err());
    // If it reads again, it finds why.
    let winding_up = tokio::spawn(async move { link.reader.wind_up().await });
    let mut read = Vec::new();
    peer.read_to_end(&mut read).await.unwrap();
    assert!(read.ends_with(b"\x88\x12\x03\xf5nothing was read"));
    winding_up.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_a_little_is_not_given_up() {
    let options = SocketOptions::default();
    let stall = options.stall;
    let (mut link, _handle, mut peer) = socket(1024, options).await;
    let large = "x".repeat(10_000);
    let taking = tokio::spawn(async move {
        let mut bytes = vec![0; 1000];
        for _ in 0..10 {
            tokio::time::sleep(stall - Duration::from_millis(1)).await;
            peer.read_exact(&mut bytes).await.unwrap();
        }
        peer
    });
    write(&mut link, &[&large]).await.unwrap();
    drop(taking.await.unwrap());
}
