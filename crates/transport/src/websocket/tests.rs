//! Both halves of a socket over memory, with a peer that writes its bytes by hand.

mod ending;
mod linking;
mod silence;
mod streaming;
mod writing;

use std::io::Result as IoResult;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex};

use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

type MemorySocket = (SocketReader<DuplexStream>, SocketWriter<DuplexStream>);

/// A socket, and the other end of its connection, which holds `room` bytes in each direction.
fn socket(room: usize, options: &SocketOptions) -> (MemorySocket, DuplexStream) {
    let (ours, peer) = duplex(room);
    (WebSocket::new(ours, options).split(), peer)
}

/// A masked frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(first, payload.len(), MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, key)| byte ^ key));
    bytes
}

fn head(first: u8, length: usize, mask: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![first];
    match length {
        0..=125 => bytes.push(0x80 | length as u8),
        126..=0xffff => {
            bytes.push(0xfe);
            bytes.extend((length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes
}

fn text(bytes: &'static str) -> OutgoingPiece {
    part(bytes, PiecePart::Whole)
}

fn part(bytes: impl Into<Bytes>, part: PiecePart) -> OutgoingPiece {
    let bytes = bytes.into();
    OutgoingPiece { bytes, part }
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

/// Our close frame with this code and reason.
fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    let length = 2 + reason.len() as u8;
    [&[0x88, length][..], &code.to_be_bytes(), reason.as_bytes()].concat()
}

/// How a socket ends, whatever comes before that. Its peer has been told.
async fn end_of(reader: &mut SocketReader<DuplexStream>) -> SocketEnd {
    loop {
        if let Err(end) = reader.next().await {
            reader.wind_up().await;
            return end;
        }
    }
}

on_both_runtimes!(messages_pass_in_both_directions_from_two_tasks);
async fn messages_pass_in_both_directions_from_two_tasks() {
    let ((mut reader, mut writer), mut peer) = socket(64, &SocketOptions::default());
    let reading = tokio::spawn(async move {
        for _ in 0..100 {
            let message = SocketEvent::Message(Bytes::from_static(b"to the server"));
            assert_eq!(reader.next().await, Ok(message));
        }
        reader
    });
    let writing = tokio::spawn(async move {
        for _ in 0..100 {
            writer.send(&[text("to the client")]).await.unwrap();
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
    peer = from.unsplit(sending.await.unwrap());
    drop(peer);
}

on_both_runtimes!(a_ping_is_answered_while_the_writer_is_idle);
async fn a_ping_is_answered_while_the_writer_is_idle() {
    let ((mut reader, _writer), mut peer) = socket(1024, &SocketOptions::default());
    let reading = tokio::spawn(async move { reader.next().await });
    peer.write_all(&frame(0x89, b"hi")).await.unwrap();
    expect(&mut peer, b"\x8a\x02hi").await;
    peer.write_all(&frame(0x8a, b"")).await.unwrap();
    assert_eq!(reading.await.unwrap(), Ok(SocketEvent::Pong));
}

on_both_runtimes!(a_ping_is_answered_between_the_pieces_of_a_message);
async fn a_ping_is_answered_between_the_pieces_of_a_message() {
    let ((mut reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    let piece = |bytes, part| OutgoingPiece {
        bytes: Bytes::from_static(bytes),
        part,
    };
    let first = piece(b"01", PiecePart::First);
    writer.send(&[first]).await.unwrap();
    let pings = [frame(0x89, b"x"), frame(0x81, b"m")].concat();
    peer.write_all(&pings).await.unwrap();
    let message = SocketEvent::Message(Bytes::from_static(b"m"));
    assert_eq!(reader.next().await, Ok(message));
    let reading = tokio::spawn(async move { reader.next().await });
    expect(&mut peer, b"\x01\x0201\x8a\x01x").await;
    let last = piece(b"2", PiecePart::Last);
    writer.send(&[last]).await.unwrap();
    expect(&mut peer, b"\x80\x012").await;
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_from_a_peer_that_reads_nothing_is_read_and_takes_no_memory() {
    let ((mut reader, _writer), mut peer) = socket(64, &SocketOptions::default());
    let payload = [b'p'; 125];
    let side = Arc::clone(&reader.side);
    let sending = tokio::spawn(async move {
        for _ in 0..1000 {
            peer.write_all(&frame(0x89, &payload)).await.unwrap();
        }
        peer.write_all(&frame(0x81, b"done")).await.unwrap();
        peer
    });
    let message = SocketEvent::Message(Bytes::from_static(b"done"));
    assert_eq!(reader.next().await, Ok(message));
    let unsent = side.lock().await.unsent_bytes();
    assert!(unsent <= 127, "{unsent} bytes of pongs");
    drop(sending.await.unwrap());
}

on_both_runtimes!(a_dropped_next_loses_nothing);
async fn a_dropped_next_loses_nothing() {
    let ((mut reader, _writer), mut peer) = socket(8, &SocketOptions::default());
    let input = [
        frame(0x01, b"0123"),
        frame(0x89, b"ping"),
        frame(0x80, b"4567"),
    ];
    for byte in input.concat() {
        peer.write_all(&[byte]).await.unwrap();
        let dropped = tokio::select! {
            biased;
            event = reader.next() => Some(event),
            () = tokio::task::yield_now() => None,
        };
        if let Some(event) = dropped {
            let message = SocketEvent::Message(Bytes::from_static(b"01234567"));
            assert_eq!(event, Ok(message));
        }
    }
    // The rest of the pong.
    let reading = tokio::spawn(async move { reader.next().await });
    expect(&mut peer, b"\x8a\x04ping").await;
    reading.abort();
}

/// Counts what is read from and written to a connection.
struct CountedStream {
    inner: DuplexStream,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    read: AtomicUsize,
    writes: AtomicUsize,
    vectored_writes: AtomicUsize,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<IoResult<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, into);
        let read = into.filled().len() - before;
        self.counts.read.fetch_add(read, Ordering::SeqCst);
        polled
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<IoResult<usize>> {
        self.counts.writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<IoResult<usize>> {
        self.counts.vectored_writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A socket over a counted connection.
fn counted_socket(
    room: usize,
    options: &SocketOptions,
) -> (WebSocket<CountedStream>, Arc<Counts>, DuplexStream) {
    let (inner, peer) = duplex(room);
    let counts = Arc::new(Counts::default());
    let stream = CountedStream {
        inner,
        counts: Arc::clone(&counts),
    };
    (WebSocket::new(stream, options), counts, peer)
}
