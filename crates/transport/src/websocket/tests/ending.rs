//! Every way in which a socket ends, and what the peer is told.

use super::*;

/// How a socket ends, whatever comes before that. Its peer has been told.
async fn end_of(reader: &mut dyn FrameReader, handle: &WebSocketHandle) -> SocketEnd {
    while reader.read(&mut Vec::new()).await.is_ok() {}
    reader.wind_up().await;
    handle.end().unwrap().clone()
}

/// Our close frame with this code and reason.
fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    let length = 2 + reason.len() as u8;
    [&[0x88, length][..], &code.to_be_bytes(), reason.as_bytes()].concat()
}

#[tokio::test(start_paused = true)]
async fn the_close_frame_of_the_peer_is_answered() {
    let bye = [&4000_u16.to_be_bytes()[..], b"bye"].concat();
    for (payload, answer, code, reason) in [
        (&bye[..], close_frame(4000, "bye"), Some(4000), "bye"),
        (b"", b"\x88\x00".to_vec(), None, ""),
    ] {
        let (mut link, handle, mut peer) = socket(1024, SocketOptions::default()).await;
        let input = [frame(0x81, b"last"), frame(0x88, payload)].concat();
        peer.write_all(&input).await.unwrap();
        assert_eq!(read(&mut link).await, [b"last"]);
        let reason = reason.to_owned();
        let end = SocketEnd::ClosedByPeer { code, reason };
        assert_eq!(end_of(&mut *link.reader, &handle).await, end);
        expect_end(&mut peer, &answer).await;
        // It stays so.
        assert_eq!(end_of(&mut *link.reader, &handle).await, end);
        let sent = write(&mut link, &["more"]).await;
        assert!(matches!(sent, Err(LinkEnd::Closed)), "{sent:?}");
    }
}

on_both_runtimes!(what_a_peer_sends_before_it_agrees_to_a_close_is_read);
async fn what_a_peer_sends_before_it_agrees_to_a_close_is_read() {
    let (mut link, handle, mut peer) = socket(1024, SocketOptions::default()).await;
    handle.set_close(4401, "expired");
    link.writer.close().await;
    expect(&mut peer, &close_frame(4401, "expired")).await;
    let sent = write(&mut link, &["more"]).await;
    assert!(matches!(sent, Err(LinkEnd::Closed)), "{sent:?}");
    let answer = frame(0x88, &4401_u16.to_be_bytes());
    let input = [frame(0x81, b"late"), answer].concat();
    peer.write_all(&input).await.unwrap();
    assert_eq!(read(&mut link).await, [b"late"]);
    end_of(&mut *link.reader, &handle).await;
    expect_end(&mut peer, b"").await;
}

#[tokio::test]
async fn a_long_reason_is_cut_between_characters() {
    let (mut link, handle, mut peer) = socket(1024, SocketOptions::default()).await;
    handle.set_close(4000, &"€".repeat(60));
    link.writer.close().await;
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
        (frame(0x81, b"\xff"), 1007),
        (frame(0x81, &[b'x'; 1001]), 1009),
        (frame(0x81, &[b'x'; 200_000]), 1009),
    ] {
        let options = SocketOptions {
            max_first_message: 1000,
            ..SocketOptions::default()
        };
        let (mut link, handle, mut peer) = socket(64, options).await;
        let reading = tokio::spawn(async move {
            let end = end_of(&mut *link.reader, &handle).await;
            (end, link)
        });
        // More than the connection holds: the rest has to be read, or the peer never comes to read the close frame.
        peer.write_all(&input).await.unwrap();
        peer.write_all(&[0; 5000]).await.unwrap();
        let mut told = Vec::new();
        peer.read_to_end(&mut told).await.unwrap();
        assert_eq!((told[0], told[1] as usize), (0x88, told.len() - 2));
        assert_eq!(u16::from_be_bytes([told[2], told[3]]), code);
        drop(peer);
        let (end, mut link) = reading.await.unwrap();
        let SocketEnd::Violation(violation) = end else {
            panic!("{end:?}");
        };
        assert_eq!(violation.close_code(), code);
        assert!(write(&mut link, &["more"]).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_keeps_sending_after_a_violation_is_cut_off() {
    let (mut link, handle, mut peer) = socket(1024, SocketOptions::default()).await;
    let start = tokio::time::Instant::now();
    let sending = tokio::spawn(async move {
        while peer.write_all(&[0xff; 100]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let end = end_of(&mut *link.reader, &handle).await;
    assert!(matches!(end, SocketEnd::Violation(_)), "{end:?}");
    assert!(start.elapsed() < Duration::from_secs(3));
    drop(link);
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_close_frame_is_broken() {
    let (mut link, handle, mut peer) = socket(1024, SocketOptions::default()).await;
    peer.write_all(&frame(0x01, b"half")).await.unwrap();
    peer.shutdown().await.unwrap();
    let end = end_of(&mut *link.reader, &handle).await;
    assert!(matches!(end, SocketEnd::Broken(_)), "{end:?}");
}

on_both_runtimes!(a_known_peer_may_send_longer_messages);
async fn a_known_peer_may_send_longer_messages() {
    let (mut link, handle, mut peer) = socket(1 << 20, SocketOptions::default()).await;
    let long = vec![b'x'; 300 << 10];
    peer.write_all(&frame(0x81, b"1")).await.unwrap();
    read(&mut link).await;
    handle.set_max_message(300 << 10);
    peer.write_all(&frame(0x81, &long)).await.unwrap();
    assert_eq!(read(&mut link).await[0].len(), long.len());
    let longer = vec![b'x'; (300 << 10) + 1];
    peer.write_all(&frame(0x81, &longer)).await.unwrap();
    peer.shutdown().await.unwrap();
    let limit = 300 << 10;
    let too_long = SocketViolation::TooLong { limit };
    let end = end_of(&mut *link.reader, &handle).await;
    assert_eq!(end, too_long.into());
}
