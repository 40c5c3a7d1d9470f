//! Tokens that expire and are renewed while a socket is open.

use mcp_proxy_relay::{
    IdSource, NewClient, NewExtension, RelaySettings, RelayTime, SocketId, UserRelay,
};
use mcp_proxy_wire::{Id, Message};
use serde_json::Value;

const SOCKET: SocketId = SocketId(1);

fn at(seconds: u64) -> RelayTime {
    RelayTime {
        elapsed: std::time::Duration::from_secs(seconds),
        wall_ms: i64::try_from(seconds * 1000).unwrap(),
    }
}

fn relay() -> UserRelay {
    UserRelay::new("ada", RelaySettings::default(), IdSource::Counting(0))
}

fn extension(expires_at: i64) -> NewExtension {
    NewExtension {
        expires_at,
        client_id: Some("chrome".to_owned()),
        ..NewExtension::default()
    }
}

fn methods(relay: &mut UserRelay, now: RelayTime) -> (Vec<String>, Option<u16>) {
    let output = relay.take(SOCKET, 1 << 20, now);
    let messages = output.messages.iter().map(|message| {
        let value: Value = serde_json::from_slice(message.raw()).unwrap();
        let id = value["id"].as_str().unwrap_or_default();
        format!("{id}{}", value["method"].as_str().unwrap_or_default())
    });
    (messages.collect(), output.close.map(|close| close.code()))
}

#[test]
fn an_extension_is_asked_for_another_token_before_its_own_expires() {
    let mut relay = relay();
    relay.extension_joined(SOCKET, &extension(100), at(0));
    let _ = methods(&mut relay, at(0));
    relay.tick(at(39));
    assert!(
        !methods(&mut relay, at(39))
            .0
            .contains(&"proxy:2authenticate".to_owned())
    );
    assert!(relay.next_tick() <= at(40).elapsed);
    relay.tick(at(40));
    assert!(
        methods(&mut relay, at(40))
            .0
            .contains(&"proxy:2authenticate".to_owned())
    );
    let answer = Message::parse(r#"{"id":"proxy:2","result":{"accessToken":"next"}}"#);
    let shown = relay.renewal(SOCKET, &answer).unwrap().unwrap();
    assert_eq!(shown.token, "next");
    relay.renewed(SOCKET, &shown, 1000, at(41));
    relay.message(SOCKET, answer, at(41));
    relay.tick(at(101));
    assert_eq!(methods(&mut relay, at(101)).1, None);
}

#[test]
fn an_extension_without_another_token_is_closed() {
    let mut relay = relay();
    relay.extension_joined(SOCKET, &extension(100), at(0));
    let asked = |relay: &mut UserRelay, now| {
        let (heard, close) = methods(relay, now);
        let asked = heard.iter().filter(|heard| heard.ends_with("authenticate"));
        (asked.count(), close)
    };
    relay.tick(at(40));
    assert_eq!(asked(&mut relay, at(40)), (1, None));
    // It is asked again from time to time: another token may have been impossible to check.
    let same = Message::parse(r#"{"id":"proxy:2","result":{"accessToken":"same"}}"#);
    let shown = relay.renewal(SOCKET, &same).unwrap().unwrap();
    relay.renewed(SOCKET, &shown, 100, at(41));
    relay.message(SOCKET, same, at(41));
    for second in 42..100 {
        relay.tick(at(second));
        let times = usize::from(matches!(second, 60 | 80));
        assert_eq!(asked(&mut relay, at(second)), (times, None));
    }
    relay.tick(at(100));
    assert_eq!(methods(&mut relay, at(100)).1, Some(4401));
}

#[test]
fn a_client_is_closed_when_its_token_expires_unless_it_shows_another() {
    let mut relay = relay();
    let new = NewClient {
        expires_at: 100,
        request: Some(Id::number(1)),
        ..NewClient::default()
    };
    relay.client_joined(SOCKET, &new, at(0));
    let handshake =
        Message::parse(r#"{"id":2,"method":"mcp_handshake","params":{"access_token":"next"}}"#);
    let shown = relay.renewal(SOCKET, &handshake).unwrap().unwrap();
    relay.renewed(SOCKET, &shown, 200, at(50));
    let output = relay.take(SOCKET, 1 << 20, at(50));
    let renewed: Value = serde_json::from_slice(output.messages[1].raw()).unwrap();
    assert_eq!(
        (&renewed["id"], &renewed["result"]["authenticated"]),
        (&2.into(), &true.into())
    );
    relay.tick(at(101));
    assert_eq!(methods(&mut relay, at(101)).1, None);
    relay.tick(at(200));
    assert_eq!(methods(&mut relay, at(200)).1, Some(4401));
}

#[test]
fn other_messages_are_not_taken_for_credentials() {
    let mut relay = relay();
    relay.extension_joined(SOCKET, &extension(1000), at(0));
    for message in [
        r#"{"id":"proxy:1","result":{"accessToken":"next"}}"#,
        r#"{"id":"proxy:9","result":{"accessToken":"next"}}"#,
        r#"{"id":1,"method":"mcp_handshake","params":{"accessToken":"x"}}"#,
    ] {
        let message = Message::parse(message);
        assert!(relay.renewal(SOCKET, &message).is_none());
    }
}
