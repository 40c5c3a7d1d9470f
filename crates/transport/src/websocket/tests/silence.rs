//! Peers that say nothing: those that are there, and those that are not.

use tokio::time::Instant;

use super::*;

const LIMITS: SilenceLimits = SilenceLimits {
    ping_after: Duration::from_secs(30),
    answer_within: Duration::from_secs(20),
};
const PING: &[u8] = &[0x89, 0x00];

async fn watched() -> Socket {
    let options = SocketOptions {
        silence: Some(LIMITS),
        ..SocketOptions::default()
    };
    socket(1024, options).await
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_asked_and_one_that_does_not_answer_is_given_up() {
    let (mut link, handle, mut peer) = watched().await;
    let start = Instant::now();
    assert!(link.reader.read(&mut Vec::new()).await.is_err());
    let silent = LIMITS.ping_after + LIMITS.answer_within;
    assert_eq!(handle.end(), Some(&SocketEnd::Silent(silent)));
    assert_eq!(start.elapsed(), silent);
    expect(&mut peer, PING).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_stays_for_ever() {
    let (mut link, _handle, mut peer) = watched().await;
    let reading = tokio::spawn(async move { read(&mut link).await });
    let start = Instant::now();
    for _ in 0..10 {
        expect(&mut peer, PING).await;
        // Nearly too late.
        tokio::time::sleep(Duration::from_secs(19)).await;
        peer.write_all(&frame(0x8a, b"")).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::from_secs(49) * 10);
    peer.write_all(&frame(0x81, b"hi")).await.unwrap();
    assert_eq!(reading.await.unwrap(), [b"hi"]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_a_long_message_slowly_is_not_silent() {
    let (mut link, _handle, mut peer) = watched().await;
    let reading = tokio::spawn(async move { (read(&mut link).await, link) });
    for byte in frame(0x81, b"slowly") {
        tokio::time::sleep(Duration::from_secs(29)).await;
        peer.write_all(&[byte]).await.unwrap();
    }
    let (message, link) = reading.await.unwrap();
    assert_eq!(message, [b"slowly"]);
    drop(link);
    expect_end(&mut peer, b"").await;
}

#[tokio::test(start_paused = true)]
async fn what_came_while_nobody_read_counts() {
    let (mut link, _handle, mut peer) = watched().await;
    let waited = tokio::time::timeout(LIMITS.ping_after, read(&mut link)).await;
    assert!(waited.is_err());
    // Whoever reads the socket is busy for longer than the peer may be silent.
    peer.write_all(&frame(0x81, b"here")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(read(&mut link).await, [b"here"]);
}
