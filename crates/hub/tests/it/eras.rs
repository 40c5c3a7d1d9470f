//! Which era clients are offered that could speak both.

use std::time::Duration;

use mcp_proxy_hub::config::{EraOffer, StartMode};
use mcp_proxy_hub::{HubSettings, KnownEras, ServerSettings};
use mcp_proxy_wire::Message;

use crate::transcript::{ECHO, Transcript, server, settings};

const MODERN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}"#;

/// Asks as a new client whether it can speak 2026-07-28: `None` if it can, otherwise the code of the refusal.
fn refusal(hub: &mut Transcript, client: usize) -> Option<i64> {
    hub.client();
    hub.take();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}"#;
    hub.client_says(client, &request.replace("META", MODERN_META));
    let said = hub.take();
    let to_client = format!("C{client}< ");
    let answer = said.lines().find_map(|line| line.strip_prefix(&to_client));
    let answer = Message::parse(
        answer
            .unwrap_or_else(|| panic!("no answer: {said}"))
            .to_owned(),
    );
    answer.error_code()
}

fn modern_server_starts(hub: &mut Transcript, server: usize) {
    hub.server_opens(server);
    hub.server_says(server, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"modern only","data":{"supported":["2026-07-28"]}}}"#);
    hub.server_opens(server);
    hub.server_says(server, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}"#);
    hub.server_says(server, r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}}"#);
}

#[test]
fn g3_discover_is_refused_while_a_server_may_be_a_legacy_one() {
    let lazy = ServerSettings {
        start: StartMode::Lazy,
        ..server("lazy")
    };
    let broken = ServerSettings {
        disabled: Some("no command".to_owned()),
        ..server("broken")
    };
    let own = ServerSettings {
        eras: KnownEras::Both,
        ..server("own")
    };
    for (servers, expected) in [
        (vec![], None),
        (vec![own.clone()], None),
        (vec![broken], None),
        (vec![lazy, own], Some(-32601)),
    ] {
        let mut hub = Transcript::new(settings(), servers);
        hub.wait(Duration::from_secs(1));
        assert_eq!(refusal(&mut hub, 1), expected);
    }
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.start_server(1, ECHO);
    assert_eq!(refusal(&mut hub, 1), Some(-32601));
}

#[test]
fn g3_discover_waits_for_servers_that_start_and_is_answered_when_all_are_modern() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
    modern_server_starts(&mut hub, 1);
    hub.client();
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{META}}"#;
    hub.take();
    hub.client_says(1, &request.replace("META", MODERN_META));
    assert!(!hub.take().contains("C1< "), "b is still starting");
    modern_server_starts(&mut hub, 2);
    let said = hub.take();
    let mut answers = said.lines().filter_map(|line| line.strip_prefix("C1< "));
    assert!(answers.any(|answer| answer.contains("supportedVersions")));
    assert_eq!(refusal(&mut hub, 2), None);
    // One that has gone is what it was.
    hub.server_ends(2, "gone");
    assert_eq!(refusal(&mut hub, 3), None);
}

#[test]
fn g3_the_operator_has_the_last_word() {
    let offer = |era| HubSettings { era, ..settings() };
    for (era, expected) in [(EraOffer::Modern, None), (EraOffer::Legacy, Some(-32601))] {
        let own = ServerSettings {
            eras: KnownEras::Both,
            ..server("own")
        };
        let servers = match era {
            EraOffer::Modern => vec![server("a")],
            EraOffer::Auto | EraOffer::Legacy => vec![own],
        };
        let mut hub = Transcript::new(offer(era), servers);
        hub.wait(Duration::from_secs(1));
        assert_eq!(refusal(&mut hub, 1), expected);
    }
}

#[test]
fn g3_a_client_that_does_not_ask_is_served() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.start_server(1, ECHO);
    assert_eq!(refusal(&mut hub, 1), Some(-32601));
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{META}}"#;
    hub.client_says(1, &list.replace("META", MODERN_META));
    assert!(hub.take().contains(r#""name":"a_echo""#));
    // And so is one that goes on with `initialize`.
    hub.initialize(1, "{}");
    assert!(hub.take().contains(r#""protocolVersion":"2025-11-25""#));
}
