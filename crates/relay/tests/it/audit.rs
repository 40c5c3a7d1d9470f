//! What the audit log is told.

use std::time::Duration;

use mcp_proxy_relay::{
    AuditedAction, AuditedCommand, AuditedPeer, IdSource, NewClient, NewExtension, RelayAuditEvent,
    RelayClose, RelaySettings, RelayTime, SocketId, UserRelay,
};

use crate::scenes::{CONNECTED, WITH_TAB};
use crate::transcript::{Conversation, play_with};

fn play(transcript: &str) -> Conversation {
    let settings = RelaySettings {
        is_audited: true,
        ..RelaySettings::default()
    };
    play_with(settings, transcript)
}

/// Events in short, without their times.
fn told(conversation: &mut Conversation) -> Vec<String> {
    let events = conversation.relay.audit_events();
    events.iter().map(short).collect()
}

fn named_peer(peer: &AuditedPeer) -> String {
    match peer {
        AuditedPeer::Client { client } => format!("Client {client}"),
        AuditedPeer::Extension { extension } => format!("Extension {extension}"),
    }
}

fn short(event: &RelayAuditEvent) -> String {
    assert_eq!(event.user.as_deref(), Some("ada"));
    let named = |command: &AuditedCommand| {
        let cdp = command.cdp.as_deref().unwrap_or_default();
        format!("{} {cdp} {}", command.method, command.connection)
    };
    match &event.what {
        AuditedAction::Connected {
            client,
            connection,
            extension,
        } => format!("connected {client} {connection} {}", extension.as_str()),
        AuditedAction::Disconnected { connection, .. } => format!("disconnected {connection}"),
        AuditedAction::Closed { peer, reason } => format!("closed {} {reason}", named_peer(peer)),
        AuditedAction::TakenOver(peer) => format!("taken over {}", named_peer(peer)),
        AuditedAction::Denied { command, policy } => format!("denied {} {policy}", named(command)),
        AuditedAction::Finished {
            command,
            outcome,
            duration,
        } => format!("{} {outcome} {}", named(command), duration.as_secs()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_connection_and_its_commands_are_told_without_parameters() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"forwardCDPCommand","params":{"method":"Page.reload","params":{"secret":1}}}
        E< {"id":"conn-1:3"}
        @ 2
        E> {"id":"conn-1:3","error":{"code":-32000,"message":"no"}}
        A< {"id":3,"error":{"code":-32000}}
        A> {"id":4,"method":"click"}
        E< {"id":"conn-1:4"}
        A> {"id":5,"method":"disconnect"}
        A< {"id":4,"error":{"code":-32004}}
        A< {"id":5,"result":{}}
        E< {"method":"disconnected"}
    "#,
    );
    assert_eq!(
        told(&mut conversation),
        [
            "connected mcp-alice conn-1 ext-chrome",
            "createTab  conn-1 ok 0",
            "forwardCDPCommand Page.reload conn-1 error 2",
            "click  conn-1 disconnected 0",
            "disconnected conn-1",
        ]
    );
}

#[test]
fn sockets_that_are_closed_for_their_token_have_a_line_of_their_own() {
    let settings = RelaySettings {
        is_audited: true,
        ..RelaySettings::default()
    };
    let mut relay = UserRelay::new("ada", settings, IdSource::Counting(0));
    let at = |seconds: u64| RelayTime {
        elapsed: Duration::from_secs(seconds),
        wall_ms: i64::try_from(seconds * 1000).unwrap(),
    };
    for (socket, expires_at) in [(1, 100), (2, 200)] {
        let new = NewExtension {
            client_id: Some(format!("chrome-{socket}")),
            expires_at,
            ..NewExtension::default()
        };
        relay.extension_joined(SocketId(socket), &new, at(0));
    }
    for (socket, expires_at) in [(3, 100), (4, 200)] {
        let new = NewClient {
            client_id: Some(format!("laptop-{socket}")),
            expires_at,
            ..NewClient::default()
        };
        relay.client_joined(SocketId(socket), &new, at(0));
    }
    relay.tick(at(99));
    relay.tick(at(100));
    // Tokens are checked twice after a change. One line is enough.
    for second in [101, 102] {
        for socket in [SocketId(2), SocketId(4)] {
            let close = RelayClose::Unauthorized("Token revoked");
            relay.close(socket, close, at(second));
        }
    }
    relay.shut_down(at(103));
    let mut told: Vec<_> = relay.audit_events().iter().map(short).collect();
    told.sort();
    assert_eq!(
        told,
        [
            "closed Client mcp-laptop-3 Token expired",
            "closed Client mcp-laptop-4 Token revoked",
            "closed Extension ext-chrome-1 Token expired",
            "closed Extension ext-chrome-2 Token revoked",
        ]
    );
}

#[test]
fn denied_commands_name_the_part_of_the_policy_and_not_the_url() {
    let settings = RelaySettings {
        is_audited: true,
        policy: std::sync::Arc::new(
            mcp_proxy_relay::RelayPolicy::standard()
                .with(
                    mcp_proxy_relay::PolicyList::Urls,
                    None,
                    Some(&["*://evil.test/*".to_owned()]),
                )
                .unwrap()
                .with(
                    mcp_proxy_relay::PolicyList::Methods,
                    None,
                    Some(&["click".to_owned()]),
                )
                .unwrap(),
        ),
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"createTab","params":{"url":"https://evil.test/?token=1"}}
        A< {"id":2,"error":{"code":-32008}}
        A> {"id":3,"method":"forwardCDPCommand","params":{"method":"Network.getCookies"}}
        A< {"id":3,"error":{"code":-32008}}
        A> {"id":4,"method":"click"}
        A< {"id":4,"error":{"code":-32008}}
        A> {"id":5,"method":"sendCommand","params":{"method":"Network.getCookies"}}
        A< {"id":5,"error":{"code":-32008}}
        A> {"id":6,"method":"Storage.getCookies"}
        A< {"id":6,"error":{"code":-32008}}
        A> {"id":7,"method":"forwardCDPCommand","params":{"method":"Page.navigate","params":{"url":"https://evil.test/"}}}
        A< {"id":7,"error":{"code":-32008}}
    "#,
    );
    assert_eq!(
        told(&mut conversation)[1..],
        [
            "denied createTab  conn-1 url",
            "denied forwardCDPCommand Network.getCookies conn-1 cdp",
            "denied click  conn-1 method",
            "denied sendCommand Network.getCookies conn-1 cdp",
            "denied Storage.getCookies Storage.getCookies conn-1 cdp",
            "denied forwardCDPCommand Page.navigate conn-1 url",
        ]
    );
}

#[test]
fn lost_and_late_commands_and_takeovers_are_told_once() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        @ 31
        A< {"id":2,"error":{"code":-32005}}
        E> {"id":"conn-1:2","result":{}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        F+ extension chrome
        E<! 4409
        F< {"method":"authenticated"}
        A< {"id":3,"error":{"code":-32004}}
        B+ client alice
        A<! 4409
        B< {"id":0,"result":{"authenticated":true}}
    "#,
    );
    assert_eq!(
        told(&mut conversation)[1..],
        [
            "getTabs  conn-1 timeout 31",
            "taken over Extension ext-chrome",
            "getTabs  conn-1 superseded 0",
            "taken over Client mcp-alice",
        ]
    );
}

#[test]
fn nothing_is_collected_unless_somebody_reads_it() {
    let mut conversation = play_with(RelaySettings::default(), CONNECTED);
    assert_eq!(told(&mut conversation), [""; 0]);
}
