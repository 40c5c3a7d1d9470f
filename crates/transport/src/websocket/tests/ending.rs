//! Every way in which a socket ends, and what the peer is told.

use std::time::Duration;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_close_frame_of_the_peer_is_answered() {
    let text = [&4000_u16.to_be_bytes()[..], b"bye"].concat();
    for (payload, answer, code, reason) in [
        (&text[..], &b"\x88\x02\x0f\xa0"[..], Some(4000), "bye"),
        (b"", b"\x88\x00", None, ""),
    ] {
        let ((mut reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
        let input = [frame(0x81, b"last"), frame(0x88, payload)].concat();
        peer.write_all(&input).await.unwrap();
        let message = SocketEvent::Message(Bytes::from_static(b"last"));
        assert_eq!(reader.next().await, Ok(message));
        let reason = reason.to_owned();
        let end = SocketEnd::ClosedByPeer { code, reason };
        assert_eq!(end_of(&mut reader).await, end);
        expect_end(&mut peer, answer).await;
        // It stays so.
        assert_eq!(reader.next().await, Err(end));
        let sent = writer.send(&[super::text("more")]).await;
        assert_eq!(sent, Err(SocketWriteError::Closed));
        assert_eq!(writer.ping().await, Err(SocketWriteError::Closed));
        let closed = writer.close(1000, "").await;
        assert_eq!(closed, Err(SocketWriteError::Closed));
    }
}

on_both_runtimes!(closing_waits_for_the_answer_of_the_peer);
async fn closing_waits_for_the_answer_of_the_peer() {
    let ((mut reader, writer), mut peer) = socket(1024, &SocketOptions::default());
    let reading = tokio::spawn(async move {
        let event = reader.next().await;
        (event, end_of(&mut reader).await)
    });
    writer.close(4401, "expired").await.unwrap();
    expect(&mut peer, &close_frame(4401, "expired")).await;
    // What was on its way is still read.
    peer.write_all(&frame(0x81, b"late")).await.unwrap();
    let answer = frame(0x88, &4401_u16.to_be_bytes());
    peer.write_all(&answer).await.unwrap();
    let message = SocketEvent::Message(Bytes::from_static(b"late"));
    let ends = (Ok(message), SocketEnd::Closed);
    assert_eq!(reading.await.unwrap(), ends);
    expect_end(&mut peer, b"").await;
}

#[tokio::test(start_paused = true)]
async fn a_close_frame_without_answer_ends_the_socket_after_its_deadline() {
    let options = SocketOptions::default();
    let ((mut reader, writer), mut peer) = socket(1024, &options);
    let start = tokio::time::Instant::now();
    writer.close(1012, "restart").await.unwrap();
    assert_eq!(end_of(&mut reader).await, SocketEnd::CloseUnanswered);
    assert_eq!(start.elapsed(), options.close_deadline);
    expect_end(&mut peer, &close_frame(1012, "restart")).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_keeps_talking_does_not_postpone_the_deadline() {
    let options = SocketOptions::default();
    let ((mut reader, writer), mut peer) = socket(1024, &options);
    let start = tokio::time::Instant::now();
    writer.close(1000, "").await.unwrap();
    let talking = tokio::spawn(async move {
        while peer.write_all(&frame(0x81, b"but")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    assert_eq!(end_of(&mut reader).await, SocketEnd::CloseUnanswered);
    assert_eq!(start.elapsed(), options.close_deadline);
    drop(reader);
    talking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_dropped_has_its_deadline_all_the_same() {
    let options = SocketOptions::default();
    let ((mut reader, writer), mut peer) = socket(4, &options);
    let start = tokio::time::Instant::now();
    tokio::select! {
        biased;
        closed = writer.close(1000, "a long goodbye") => panic!("{closed:?}"),
        () = std::future::ready(()) => {}
    }
    let reading = tokio::spawn(async move { end_of(&mut reader).await });
    tokio::time::sleep(options.close_deadline).await;
    // It is written to its end as soon as the peer takes it.
    expect_end(&mut peer, &close_frame(1000, "a long goodbye")).await;
    assert_eq!(reading.await.unwrap(), SocketEnd::CloseUnanswered);
    assert_eq!(start.elapsed(), options.close_deadline);
}

#[tokio::test]
async fn a_long_reason_is_cut_between_characters() {
    let ((_reader, writer), mut peer) = socket(1024, &SocketOptions::default());
    let reason = "€".repeat(60);
    writer.close(4000, &reason).await.unwrap();
    expect(&mut peer, &close_frame(4000, &"€".repeat(41))).await;
}

#[tokio::test(start_paused = true)]
async fn a_violation_is_told_with_its_code() {
    let unmasked = b"\x81\x02hi".to_vec();
    for (input, code) in [
        (unmasked, 1002),
        (frame(0xc1, b"compressed"), 1002),
        (frame(0x83, b"reserved"), 1002),
        (frame(0x09, b"fragmented ping"), 1002),
        (frame(0x89, &[b'x'; 126]), 1002),
        (frame(0x80, b"continues nothing"), 1002),
        (frame(0x88, &1005_u16.to_be_bytes()), 1002),
        (frame(0x81, b"\xff"), 1007),
        (frame(0x81, &[b'x'; 1001]), 1009),
    ] {
        let options = SocketOptions {
            max_message: 1000,
            ..SocketOptions::default()
        };
        let ((mut reader, mut writer), mut peer) = socket(64, &options);
        let reading = tokio::spawn(async move { end_of(&mut reader).await });
        // More than the connection holds: the rest has to be read, or the peer never comes to read the close frame.
        peer.write_all(&input).await.unwrap();
        peer.write_all(&[0; 5000]).await.unwrap();
        let mut told = Vec::new();
        peer.read_to_end(&mut told).await.unwrap();
        assert_eq!((told[0], told[1] as usize), (0x88, told.len() - 2));
        assert_eq!(u16::from_be_bytes([told[2], told[3]]), code);
        drop(peer);
        let end = reading.await.unwrap();
        let SocketEnd::Violation(violation) = end else {
            panic!("{end:?}");
        };
        assert_eq!(violation.close_code(), code);
        let sent = writer.send(&[text("more")]).await;
        assert_eq!(sent, Err(SocketWriteError::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_known_before_a_peer_that_does_not_read_has_heard_of_it() {
    let violation = [0xff; 100].to_vec();
    for (input, is_cut_off) in [(violation, false), (Vec::new(), true)] {
        let ((mut reader, mut writer), mut peer) = socket(128, &SocketOptions::default());
        let long = part(vec![b'x'; 1000], PiecePart::Whole);
        let writing = tokio::spawn(async move { writer.send(&[long]).await });
        tokio::task::yield_now().await;
        peer.write_all(&input).await.unwrap();
        if is_cut_off {
            peer.shutdown().await.unwrap();
        }
        let start = tokio::time::Instant::now();
        let end = reader.next().await;
        assert!(end.is_err(), "{end:?}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        writing.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_keeps_sending_after_a_violation_is_cut_off() {
    let options = SocketOptions::default();
    let ((mut reader, writer), mut peer) = socket(1024, &options);
    let start = tokio::time::Instant::now();
    let sending = tokio::spawn(async move {
        while peer.write_all(&[0xff; 100]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let end = end_of(&mut reader).await;
    assert!(matches!(end, SocketEnd::Violation(_)), "{end:?}");
    assert_eq!(start.elapsed(), options.close_deadline);
    drop((reader, writer));
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_close_frame_is_broken() {
    let ((mut reader, mut writer), mut peer) = socket(1024, &SocketOptions::default());
    peer.write_all(&frame(0x01, b"half")).await.unwrap();
    peer.shutdown().await.unwrap();
    let end = end_of(&mut reader).await;
    assert!(matches!(end, SocketEnd::Broken(_)), "{end:?}");
    expect_end(&mut peer, b"").await;
    let sent = writer.send(&[text("more")]).await;
    assert_eq!(sent, Err(SocketWriteError::Closed));
}

on_both_runtimes!(the_limit_changes_while_the_socket_is_open);
async fn the_limit_changes_while_the_socket_is_open() {
    let ((mut reader, _writer), mut peer) = socket(1 << 20, &SocketOptions::default());
    let long = vec![b'x'; 300 * 1024];
    reader.set_max_message(16 << 20);
    peer.write_all(&frame(0x81, &long)).await.unwrap();
    let mut length = 0;
    loop {
        let SocketEvent::Piece { bytes, is_last } = reader.next().await.unwrap() else {
            panic!("not a piece");
        };
        length += bytes.len();
        if is_last {
            break;
        }
    }
    assert_eq!(length, long.len());
    reader.set_max_message(256 * 1024);
    peer.write_all(&frame(0x81, &long)).await.unwrap();
    peer.shutdown().await.unwrap();
    let limit = 256 * 1024;
    let too_long = SocketViolation::TooLong { limit };
    assert_eq!(reader.next().await, Err(too_long.into()));
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_writer_is_dropped_keeps_reading() {
    let ((mut reader, writer), mut peer) = socket(1024, &SocketOptions::default());
    drop(writer);
    peer.write_all(&frame(0x89, b"")).await.unwrap();
    peer.write_all(&frame(0x81, b"still")).await.unwrap();
    let message = SocketEvent::Message(Bytes::from_static(b"still"));
    assert_eq!(reader.next().await, Ok(message));
    let reading = tokio::spawn(async move { reader.next().await });
    expect(&mut peer, b"\x8a\x00").await;
    reading.abort();
}
