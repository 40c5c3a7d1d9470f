//! What the writer sends, in how many writes, and to peers that take it slowly or not at all.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn many_small_messages_go_out_in_one_write() {
    let (socket, counts, mut peer) = counted_socket(1 << 20, &SocketOptions::default());
    let (_reader, mut writer) = socket.split();
    let messages = vec![text("a message"); 100];
    writer.send(&messages).await.unwrap();
    assert_eq!(counts.writes.load(Ordering::SeqCst), 1);
    assert_eq!(counts.vectored_writes.load(Ordering::SeqCst), 0);
    for _ in 0..100 {
        expect(&mut peer, b"\x81\x09a message").await;
    }
    // Nothing to send, nothing written.
    writer.send(&[]).await.unwrap();
    assert_eq!(counts.writes.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_large_message_shares_its_write_with_the_small_ones_in_front() {
    let (socket, counts, mut peer) = counted_socket(1 << 20, &SocketOptions::default());
    let (_reader, mut writer) = socket.split();
    let large = "l".repeat(100_000);
    let messages = [
        text("one"),
        part(large.clone(), PiecePart::Whole),
        text("two"),
    ];
    writer.send(&messages).await.unwrap();
    assert_eq!(counts.vectored_writes.load(Ordering::SeqCst), 1);
    assert_eq!(counts.writes.load(Ordering::SeqCst), 1);
    expect(&mut peer, b"\x81\x03one\x81\x7f\0\0\0\0\0\x01\x86\xa0").await;
    expect(&mut peer, large.as_bytes()).await;
    expect(&mut peer, b"\x81\x03two").await;
}

#[tokio::test]
async fn medium_messages_fill_buffers_of_64_kib() {
    let (socket, counts, mut peer) = counted_socket(1 << 20, &SocketOptions::default());
    let (_reader, mut writer) = socket.split();
    let medium = "m".repeat(16_000);
    let messages = vec![part(medium.clone(), PiecePart::Whole); 8];
    writer.send(&messages).await.unwrap();
    assert_eq!(counts.writes.load(Ordering::SeqCst), 2);
    for _ in 0..8 {
        expect(&mut peer, b"\x81\x7e\x3e\x80").await;
        expect(&mut peer, medium.as_bytes()).await;
    }
}

#[tokio::test]
async fn pieces_are_the_fragments_of_one_message() {
    let ((_reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    let pieces = [
        part("a", PiecePart::First),
        part("b", PiecePart::Middle),
        part("", PiecePart::Last),
        text("c"),
    ];
    writer.send(&pieces[..2]).await.unwrap();
    writer.ping().await.unwrap();
    writer.send(&pieces[2..]).await.unwrap();
    expect(&mut peer, b"\x01\x01a\x00\x01b\x89\x00\x80\x00\x81\x01c").await;
}

#[tokio::test]
async fn pieces_out_of_order_are_not_sent() {
    use PiecePart::{First, Last, Middle, Whole};
    let ((_reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    let pieces = |parts: &[PiecePart]| -> Vec<OutgoingPiece> {
        parts.iter().map(|it| part("x", *it)).collect()
    };
    for wrong in [
        &[Middle][..],
        &[Last],
        &[Whole, Last],
        &[First, First],
        &[First, Whole],
        &[First, Last, Middle],
    ] {
        let sent = writer.send(&pieces(wrong)).await;
        assert_eq!(sent, Err(SocketWriteError::OutOfOrder), "{wrong:?}");
    }
    writer.send(&pieces(&[Whole])).await.unwrap();
    expect(&mut peer, b"\x81\x01x").await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_given_up_and_the_reader_ends_too() {
    let options = SocketOptions::default();
    let ((mut reader, mut writer), _peer) = socket(1024, &options);
    let reading = tokio::spawn(async move { end_of(&mut reader).await });
    let large = part(vec![b'x'; 5000], PiecePart::Whole);
    let stalled = SocketWriteError::Stalled(options.stall);
    assert_eq!(writer.send(&[large]).await, Err(stalled.clone()));
    let end = SocketEnd::Stalled(options.stall);
    assert_eq!(reading.await.unwrap(), end);
    assert_eq!(writer.send(&[text("more")]).await, Err(stalled));
}

/// A peer takes nothing for longer than allowed, and then everything. `whole` is what it was sent.
async fn given_up_and_read_again(pieces: &[OutgoingPiece]) -> Vec<u8> {
    let options = SocketOptions::default();
    let ((mut reader, mut writer), mut peer) = socket(1024, &options);
    let reading = tokio::spawn(async move { end_of(&mut reader).await });
    let stalled = SocketWriteError::Stalled(options.stall);
    assert_eq!(writer.send(pieces).await, Err(stalled));
    let mut read = Vec::new();
    peer.read_to_end(&mut read).await.unwrap();
    let end = SocketEnd::Stalled(options.stall);
    assert_eq!(reading.await.unwrap(), end);
    read
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_again_finds_the_rest_of_the_frame_and_why_it_was_given_up() {
    let pieces = [
        part(vec![b'x'; 50_000], PiecePart::First),
        part(vec![b'y'; 50_000], PiecePart::Last),
    ];
    let read = given_up_and_read_again(&pieces).await;
    let close = close_frame(1013, "nothing was read");
    assert_eq!(read[..4], [0x01, 126, 0xc3, 0x50]);
    assert!(read[4..][..50_000].iter().all(|byte| *byte == b'x'));
    assert_eq!(read[50_004..], close);
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_too_long_to_be_ended_is_cut() {
    let long = part(vec![b'x'; 1 << 20], PiecePart::Whole);
    let read = given_up_and_read_again(&[long]).await;
    assert_eq!(read.len(), 1024);
}

#[tokio::test(start_paused = true)]
async fn messages_behind_the_one_that_a_peer_stopped_in_are_not_begun() {
    let options = SocketOptions::default();
    let ((mut reader, mut writer), mut peer) = socket(14, &options);
    let begun = writer.messages_begun();
    writer.send(&[text("whole")]).await.unwrap();
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let reading = tokio::spawn(async move { end_of(&mut reader).await });
    let messages = [text("one"), text("two"), text("three")];
    let stalled = SocketWriteError::Stalled(options.stall);
    assert_eq!(writer.send(&messages).await, Err(stalled));
    assert_eq!(begun.load(Ordering::Relaxed), 3);
    let close = close_frame(1013, "nothing was read");
    let read = [b"\x81\x05whole\x81\x03one\x81\x03two", &close[..]].concat();
    expect_end(&mut peer, &read).await;
    let end = SocketEnd::Stalled(options.stall);
    assert_eq!(reading.await.unwrap(), end);
}

#[tokio::test]
async fn a_send_that_was_dropped_has_begun_what_it_wrote_of() {
    let long = || part(vec![b'x'; 100_000], PiecePart::Whole);
    for messages in [[text("one"), text("two")], [long(), text("two")]] {
        let ((_reader, mut writer), _peer) = socket(5, &SocketOptions::default());
        tokio::select! {
            biased;
            sent = writer.send(&messages) => panic!("{sent:?}"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(writer.messages_begun().load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_peer_is_not_given_up() {
    let ((_reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    let large = vec![b'x'; 100_000];
    let start = tokio::time::Instant::now();
    let taking = tokio::spawn(async move {
        let mut taken = 0;
        while taken < 100_000 {
            tokio::time::sleep(Duration::from_secs(4)).await;
            taken += peer.read(&mut [0; 4096]).await.unwrap();
        }
        peer
    });
    let sent = writer.send(&[part(large, PiecePart::Whole)]).await;
    assert_eq!(sent, Ok(()));
    assert!(start.elapsed() > Duration::from_secs(300));
    drop(taking.await.unwrap());
}

#[tokio::test]
async fn a_send_that_was_dropped_ends_the_socket() {
    let ((mut reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    let large = [part(vec![b'x'; 5000], PiecePart::Whole)];
    tokio::select! {
        biased;
        sent = writer.send(&large) => panic!("{sent:?}"),
        () = std::future::ready(()) => {}
    }
    peer.read_exact(&mut [0; 1024]).await.unwrap();
    let sent = writer.send(&[text("more")]).await;
    assert_eq!(sent, Err(SocketWriteError::Interrupted));
    let end = end_of(&mut reader).await;
    assert!(matches!(end, SocketEnd::Broken(_)), "{end:?}");
    expect_end(&mut peer, b"").await;
}
