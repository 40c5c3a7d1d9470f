//! Messages that are far larger than the memory they may take.

use super::*;

/// The base64 of the largest screenshot that a browser was seen to send.
const SCREENSHOT: usize = 93_000_000;
/// What Chromium puts into a frame.
const FRAGMENT: usize = 131_000;
const MEMORY_MAX: usize = 1 << 20;

/// Sends a text of [`SCREENSHOT`] bytes in frames of `size`.
async fn send_screenshot(mut peer: DuplexStream, size: usize) -> DuplexStream {
    let mut left = SCREENSHOT;
    // A mask like any other, and the same bytes again and again: a test is not optimised.
    let masked = frame(0, &vec![b'x'; FRAGMENT])[8..].to_vec();
    while left > 0 {
        let length = left.min(size);
        let opcode = if left == SCREENSHOT { 1 } else { 0 };
        left -= length;
        let is_final = if left == 0 { 0x80 } else { 0 };
        let head = head(opcode | is_final, length, MASK);
        peer.write_all(&head).await.unwrap();
        let mut unsent = length;
        while unsent > 0 {
            // The mask fits again after a multiple of four bytes.
            let part = unsent.min(FRAGMENT);
            peer.write_all(&masked[masked.len() - FRAGMENT..][..part])
                .await
                .unwrap();
            unsent -= part;
        }
    }
    peer
}

/// Reads such a message slowly. The reader must never be far ahead of what is consumed.
async fn the_reader_holds_little(frame_size: usize) {
    let options = SocketOptions {
        max_message: 128 << 20,
        ..SocketOptions::default()
    };
    let (socket, counts, peer) = counted_socket(256 * 1024, &options);
    let (mut reader, _writer) = socket.split();
    let sending = tokio::spawn(send_screenshot(peer, frame_size));
    let mut consumed = 0;
    let mut most = 0;
    loop {
        let event = reader.next().await.unwrap();
        let SocketEvent::Piece { bytes, is_last } = event else {
            panic!("{event:?}");
        };
        assert!(bytes.len() <= PIECE_MAX);
        assert!(consumed > 0 || bytes.len() >= options.stream_above);
        assert!(bytes.iter().step_by(1009).all(|byte| *byte == b'x'));
        // The peer sends as much as it can before this piece is consumed.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let held = counts.read.load(Ordering::SeqCst) - consumed;
        most = most.max(held).max(reader.buffer.capacity() + bytes.len());
        consumed += bytes.len();
        if is_last {
            break;
        }
    }
    assert_eq!(consumed, SCREENSHOT);
    assert!(most <= MEMORY_MAX, "{most} bytes were held");
    // Heads are not part of what is consumed.
    let mut peer = sending.await.unwrap();
    peer.write_all(&frame(0x81, b"small")).await.unwrap();
    let message = SocketEvent::Message(Bytes::from_static(b"small"));
    assert_eq!(reader.next().await, Ok(message));
    assert!(reader.buffer.capacity() <= 8 * 1024);
}

#[tokio::test]
async fn a_screenshot_in_one_frame_takes_little_memory() {
    the_reader_holds_little(SCREENSHOT).await;
}

#[tokio::test]
async fn a_screenshot_in_the_fragments_of_chromium_takes_little_memory() {
    the_reader_holds_little(FRAGMENT).await;
}

#[tokio::test]
async fn a_waiting_reader_holds_no_buffer() {
    let ((mut reader, _writer), mut peer) = socket(1 << 20, &SocketOptions::default());
    let long = vec![b'x'; 200_000];
    peer.write_all(&frame(0x81, &long)).await.unwrap();
    while let Ok(SocketEvent::Piece { is_last: false, .. }) = reader.next().await {}
    let waited = tokio::select! {
        biased;
        event = reader.next() => Some(event),
        () = tokio::task::yield_now() => None,
    };
    assert_eq!(waited, None);
    assert_eq!(reader.buffer.capacity(), 0);
}
