//! Peers that say nothing: those that are there, and those that are not.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

const LIMITS: SilenceLimits = SilenceLimits {
    ping_after: Duration::from_secs(30),
    answer_within: Duration::from_secs(20),
};
const PING: &[u8] = &[0x89, 0x00];

fn watched() -> SocketOptions {
    SocketOptions {
        silence: Some(LIMITS),
        ..SocketOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_asked_and_one_that_does_not_answer_is_given_up() {
    let ((mut reader, _writer), mut peer) = socket(1024, &watched());
    let start = Instant::now();
    let end = end_of(&mut reader).await;
    let silent = LIMITS.ping_after + LIMITS.answer_within;
    assert_eq!(end, SocketEnd::Silent(silent));
    assert_eq!(start.elapsed(), silent);
    expect_end(&mut peer, PING).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_stays_for_ever() {
    let ((mut reader, _writer), mut peer) = socket(1024, &watched());
    let reading = tokio::spawn(async move {
        for _ in 0..10 {
            assert_eq!(reader.next().await, Ok(SocketEvent::Pong));
        }
        reader
    });
    let start = Instant::now();
    for _ in 0..10 {
        expect(&mut peer, PING).await;
        // Nearly too late.
        tokio::time::sleep(Duration::from_secs(19)).await;
        peer.write_all(&frame(0x8a, b"")).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::from_secs(49) * 10);
    drop(reading.await.unwrap());
}

/// One that gets messages and never sends any, as an idle extension does.
#[tokio::test(start_paused = true)]
async fn a_ping_travels_with_a_message_that_is_written_anyway() {
    let ((mut reader, mut writer), mut peer) = socket(1024, &watched());
    let reading = tokio::spawn(async move {
        for _ in 0..10 {
            assert_eq!(reader.next().await, Ok(SocketEvent::Pong));
        }
        end_of(&mut reader).await
    });
    let start = Instant::now();
    let status = [text("status")];
    let message: &[u8] = b"\x81\x06status";
    for _ in 0..10 {
        // Too early for a ping.
        tokio::time::sleep(Duration::from_secs(14)).await;
        writer.send(&status).await.unwrap();
        expect(&mut peer, message).await;
        tokio::time::sleep(Duration::from_secs(14)).await;
        writer.send(&status).await.unwrap();
        expect(&mut peer, &[PING, message].concat()).await;
        peer.write_all(&frame(0x8a, b"")).await.unwrap();
    }
    // The peer does not answer the last ping, and is given up without another one.
    tokio::time::sleep(Duration::from_secs(28)).await;
    writer.send(&status).await.unwrap();
    tokio::time::sleep(Duration::from_secs(14)).await;
    writer.send(&status).await.unwrap();
    let silent = Duration::from_secs(28) + LIMITS.answer_within;
    assert_eq!(reading.await.unwrap(), SocketEnd::Silent(silent));
    assert_eq!(start.elapsed(), Duration::from_secs(28) * 10 + silent);
    expect_end(&mut peer, &[PING, message, message].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_talks_is_not_asked() {
    let ((mut reader, writer), mut peer) = socket(1024, &watched());
    let reading = tokio::spawn(async move {
        for _ in 0..10 {
            let message = SocketEvent::Message(Bytes::from_static(b"hi"));
            assert_eq!(reader.next().await, Ok(message));
        }
    });
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(29)).await;
        peer.write_all(&frame(0x81, b"hi")).await.unwrap();
    }
    reading.await.unwrap();
    drop(writer);
    expect_end(&mut peer, b"").await;
}

#[tokio::test(start_paused = true)]
async fn what_came_while_nobody_read_counts() {
    let ((mut reader, _writer), mut peer) = socket(1024, &watched());
    let waited = tokio::time::timeout(LIMITS.ping_after, reader.next()).await;
    assert!(waited.is_err());
    // Whoever reads the socket is busy for longer than the peer may be silent.
    peer.write_all(&frame(0x81, b"here")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let message = SocketEvent::Message(Bytes::from_static(b"here"));
    assert_eq!(reader.next().await, Ok(message));
}
