//! The driver with sockets in memory, on paused time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_core::{
    BoxFuture, CarryOptions, FrameReader, FrameWriter, HoldOptions, Link, LinkEnd, OutgoingFrame,
    ProxyRun, RunOptions,
};
use mcp_proxy_relay::{
    CheckedToken, PeerFailure, RelayDriver, RelayOptions, RelaySettings, RelaySocket,
    RelaySocketHandle, SocketPath, TokenRefusal,
};
use mcp_proxy_wire::{Body, Frame, Message, Origin, StreamId};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::transcript::LATE;

/// How long a socket may take to show its token.
const AUTHENTICATION_DEADLINE: Duration = Duration::from_secs(10);

/// The end of a socket that a peer has.
struct TestPeer {
    /// None once the peer has closed it.
    say: Option<UnboundedSender<Message>>,
    hear: UnboundedReceiver<Value>,
    handle: Arc<TestHandle>,
}

#[derive(Default)]
struct TestHandle {
    close: Mutex<Option<u16>>,
    messages_begun: AtomicU64,
    failure: Mutex<Option<PeerFailure>>,
    /// Locked by a peer that does not read.
    is_read: tokio::sync::Mutex<()>,
}

struct TestReader(UnboundedReceiver<Message>);

struct TestWriter {
    /// None once the relay has closed it.
    hear: Option<UnboundedSender<Value>>,
    handle: Arc<TestHandle>,
}

impl RelaySocketHandle for TestHandle {
    fn set_close(&self, code: u16, _: &str) {
        *self.close.lock().unwrap() = Some(code);
    }

    fn set_max_message(&self, _: usize) {}

    fn messages_begun(&self) -> u64 {
        self.messages_begun.load(Ordering::Relaxed)
    }

    fn peer_failure(&self) -> Option<PeerFailure> {
        *self.failure.lock().unwrap()
    }
}

impl FrameReader for TestReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let message = self.0.recv().await.ok_or(LinkEnd::Closed)?;
            into.push(Frame::message(StreamId::Only, Origin::Client, message));
            Ok(())
        })
    }
}

impl FrameWriter for TestWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let _read = self.handle.is_read.lock().await;
            for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
                let Body::Message(message) = frame.body else {
                    panic!("in pieces");
                };
                self.handle.messages_begun.fetch_add(1, Ordering::Relaxed);
                if let Some(hear) = &self.hear {
                    let _ = hear.send(serde_json::from_slice(message.raw()).unwrap());
                }
            }
            Ok(())
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _read = self.handle.is_read.lock().await;
            self.hear = None;
        })
    }
}

impl TestPeer {
    fn open(driver: &Arc<RelayDriver>, path: SocketPath) -> TestPeer {
        let (say, said) = unbounded_channel();
        let (written, hear) = unbounded_channel();
        let handle = Arc::new(TestHandle::default());
        let writer = TestWriter {
            hear: Some(written),
            handle: Arc::clone(&handle),
        };
        let socket = RelaySocket {
            link: Link::new(TestReader(said), writer),
            handle: Arc::clone(&handle) as Arc<dyn RelaySocketHandle>,
            path,
            caller: None,
        };
        let driver = Arc::clone(driver);
        tokio::spawn(async move { driver.serve(socket).await });
        TestPeer {
            say: Some(say),
            hear,
            handle,
        }
    }

    fn say(&self, message: &Value) {
        let message = Message::parse(message.to_string());
        self.say.as_ref().unwrap().send(message).unwrap();
    }

    /// The next message, without those that tell how many peers there are.
    async fn hear(&mut self) -> Value {
        loop {
            let heard = self.hear.recv().await.expect("a message");
            if heard["method"] != "status" && heard["method"] != "connection_status" {
                return heard;
            }
        }
    }

    /// The code with which the relay closes the socket, after everything else that it says.
    async fn hear_status(&mut self) {
        while self.hear.recv().await.expect("a status")["method"] != "status" {}
    }

    async fn hear_close(&mut self) -> Option<u16> {
        assert_eq!(self.hear.recv().await, None);
        self.say = None;
        *self.handle.close.lock().unwrap()
    }

    async fn client(driver: &Arc<RelayDriver>, client_id: &str) -> TestPeer {
        let mut peer = TestPeer::open(driver, SocketPath::Client);
        let params = json!({"access_token": "ada", "client_id": client_id});
        peer.say(&json!({"id": 1, "method": "mcp_handshake", "params": params}));
        assert_eq!(peer.hear().await["result"]["authenticated"], true);
        peer
    }

    async fn extension(driver: &Arc<RelayDriver>, user: &str) -> TestPeer {
        let mut peer = TestPeer::open(driver, SocketPath::Extension);
        assert_eq!(peer.hear().await["method"], "authenticate");
        let shown = json!({"access_token": user, "client_id": "chrome"});
        peer.say(&json!({"id": "proxy:1", "result": shown}));
        assert_eq!(peer.hear().await["method"], "authenticated");
        peer
    }
}

/// Waits until nobody has anything to do: only then does paused time pass.
async fn until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A client, and an extension that was sent its command 3, under this id, and has not answered.
async fn asking_client(driver: &Arc<RelayDriver>) -> (TestPeer, TestPeer, Value) {
    let mut extension = TestPeer::extension(driver, "ada").await;
    let mut client = TestPeer::client(driver, "alice").await;
    client.say(&json!({"id": 2, "method": "connect", "params": {"extension_id": "ext-chrome"}}));
    assert_eq!(client.hear().await["id"], 2);
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let id = extension.hear().await["id"].clone();
    (client, extension, id)
}

/// A relay in which a token is the name of its user, and "bad" is not one.
fn relay(authentications_per_second: u32) -> Arc<RelayDriver> {
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    RelayDriver::start(RelayOptions {
        run,
        carry: CarryOptions {
            last_request: Duration::ZERO,
            drain_open: Duration::ZERO,
            drain_idle: Duration::ZERO,
            ..CarryOptions::default()
        },
        settings: RelaySettings::default(),
        check: Arc::new(|token| match token {
            "bad" => Err(TokenRefusal::Invalid("Invalid token")),
            user => Ok(CheckedToken {
                user: user.to_owned(),
                expires_at: LATE,
                issued_at: None,
                token_id: None,
            }),
        }),
        refresh_keys: None,
        authentication_deadline: AUTHENTICATION_DEADLINE,
        authentications_per_second,
        audit: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_never_shows_a_token_is_closed_after_the_deadline() {
    let driver = relay(1_000);
    for path in [SocketPath::Client, SocketPath::Extension, SocketPath::Any] {
        let began = Instant::now();
        let mut silent = TestPeer::open(&driver, path);
        let mut talking = TestPeer::open(&driver, path);
        for peer in [&mut silent, &mut talking] {
            if path != SocketPath::Client {
                assert_eq!(peer.hear().await["method"], "authenticate");
            }
        }
        // To say other things does not help.
        talking.say(&json!({"method": "build_info"}));
        for peer in [&mut silent, &mut talking] {
            assert_eq!(peer.hear_close().await, Some(4401));
            assert_eq!(began.elapsed().as_secs(), AUTHENTICATION_DEADLINE.as_secs());
        }
    }
    assert_eq!(driver.counters().refused_tokens, 6);
    assert_eq!(driver.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn sockets_are_counted_and_so_is_why_they_were_lost() {
    let driver = relay(1_000);
    let too_large = Some(PeerFailure::TooLarge);
    for failure in [None, too_large, Some(PeerFailure::Silent), too_large] {
        let extension = TestPeer::extension(&driver, "ada").await;
        *extension.handle.failure.lock().unwrap() = failure;
    }
    let stranger = TestPeer::open(&driver, SocketPath::Client);
    *stranger.handle.failure.lock().unwrap() = too_large;
    drop(stranger);
    until_idle().await;
    let counted = driver.counters();
    assert_eq!(
        (
            counted.sockets_opened,
            counted.oversized,
            counted.silent_peers
        ),
        (5, 3, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn sockets_that_come_too_many_at_once_wait_or_are_told_to_come_later() {
    // One a second is admitted, and nobody waits for longer than ten seconds.
    let driver = relay(1);
    let began = Instant::now();
    let mut peers = Vec::new();
    for number in 0..12 {
        let peer = TestPeer::open(&driver, SocketPath::Client);
        let params = json!({"access_token": "ada", "client_id": number.to_string()});
        peer.say(&json!({"id": 1, "method": "mcp_handshake", "params": params}));
        tokio::task::yield_now().await;
        peers.push(peer);
    }
    let mut refused = peers.pop().unwrap();
    let told = refused.hear().await;
    assert_eq!(told["error"]["data"]["reason"], "admission_limit");
    assert_eq!(refused.hear_close().await, Some(1013));
    assert_eq!(began.elapsed().as_secs(), 0);
    for (second, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.hear().await["result"]["authenticated"], true);
        assert_eq!(began.elapsed().as_secs(), second as u64);
    }
    assert_eq!(driver.counters().admission_limit, 1);
    // Then there is room again.
    TestPeer::client(&driver, "late").await;
}

#[tokio::test(start_paused = true)]
async fn commands_behind_a_handshake_that_is_refused_were_not_delivered() {
    let driver = relay(1_000);
    let (mut client, _extension, _) = asking_client(&driver).await;
    let params = json!({"access_token": "bad"});
    client.say(&json!({"id": 4, "method": "mcp_handshake", "params": params}));
    client.say(&json!({"id": 5, "method": "getTabs"}));
    let refused = client.hear().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(4), &json!(-32000))
    );
    for (id, delivered) in [(3, json!("unknown")), (5, json!(false))] {
        let lost = client.hear().await;
        assert_eq!(lost["id"], id);
        assert_eq!(lost["error"]["code"], -32004);
        let data = json!({"reason": "disconnected", "delivered": delivered});
        assert_eq!(lost["error"]["data"], data);
    }
    assert_eq!(client.hear_close().await, Some(4401));
}

#[tokio::test(start_paused = true)]
async fn commands_that_come_after_a_takeover_were_not_delivered() {
    let driver = relay(1_000);
    let (mut client, _extension, _) = asking_client(&driver).await;
    // Nothing reaches the older socket until its next command is on its way.
    let handle = Arc::clone(&client.handle);
    let unread = handle.is_read.lock().await;
    let _newer = TestPeer::client(&driver, "alice").await;
    client.say(&json!({"id": 4, "method": "getTabs"}));
    until_idle().await;
    drop(unread);
    let mut lost = [client.hear().await, client.hear().await];
    lost.sort_by_key(|answer| answer["id"].as_u64());
    for (answer, delivered) in lost.iter().zip([json!("unknown"), json!(false)]) {
        assert_eq!(answer["error"]["code"], -32004);
        let data = json!({"reason": "superseded", "delivered": delivered});
        assert_eq!(answer["error"]["data"], data);
    }
    assert_eq!(client.hear_close().await, Some(4409));
}

#[tokio::test(start_paused = true)]
async fn a_command_of_which_nothing_was_written_was_not_delivered() {
    let driver = relay(1_000);
    let (mut client, mut extension, _) = asking_client(&driver).await;
    let handle = Arc::clone(&extension.handle);
    let _unread = handle.is_read.lock().await;
    client.say(&json!({"id": 4, "method": "getTabs"}));
    // Its writer has the command by then.
    until_idle().await;
    extension.say = None;
    let lost_at = Instant::now();
    for (id, delivered) in [(3, json!("unknown")), (4, json!(false))] {
        let lost = client.hear().await;
        assert_eq!(lost["id"], id);
        let data = json!({"reason": "extension_gone", "delivered": delivered});
        assert_eq!(lost["error"]["data"], data);
    }
    // At once, although the extension does not even take a close frame.
    assert_eq!(lost_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn another_users_extension_cannot_answer_a_command() {
    let driver = relay(1_000);
    let (mut client, extension, id) = asking_client(&driver).await;
    let mallory = TestPeer::extension(&driver, "mallory").await;
    mallory.say(&json!({"id": id, "result": {"forged": true}}));
    until_idle().await;
    extension.say(&json!({"id": id, "result": {"forged": false}}));
    assert_eq!(client.hear().await["result"], json!({"forged": false}));
    assert_eq!(driver.counters().late_answers, 1);
}

#[tokio::test(start_paused = true)]
async fn every_user_gets_status_in_time_and_one_who_has_left_is_forgotten() {
    let driver = relay(1_000);
    let mut ada = TestPeer::extension(&driver, "ada").await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let mut bob = TestPeer::extension(&driver, "bob").await;
    for _ in 0..3 {
        let start = Instant::now();
        tokio::join!(ada.hear_status(), bob.hear_status());
        assert!(start.elapsed() <= Duration::from_secs(20));
    }
    assert_eq!(driver.counts(), (2, 2));
    bob.say = None;
    let start = Instant::now();
    while driver.counts() != (1, 1) {
        ada.hear_status().await;
        // After the resume window it is forgotten with the next tick.
        assert!(start.elapsed() <= Duration::from_secs(60));
    }
    ada.hear_status().await;
}
