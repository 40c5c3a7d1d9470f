//! What happens when the configuration or a listing changes while the hub runs.

use insta::assert_snapshot;
use mcp_proxy_hub::{NewServer, ServerChange};

use crate::transcript::{ECHO, Transcript, call, server, settings};

#[test]
fn a_new_configuration_keeps_what_did_not_change() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
    hub.start_server(1, ECHO);
    hub.start_server(2, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.client_says(1, &call(1, "b_echo"));
    hub.client_says(1, &call(2, "a_echo"));
    // `a` is gone, `b` moves to its place, `c` is new.
    hub.reconfigure(
        settings(),
        vec![
            NewServer::Unchanged("b".to_owned()),
            NewServer::Changed(Box::new(server("c"))),
        ],
    );
    hub.client_says(1, &call(3, "b_echo"));
    hub.client_says(1, &call(4, "a_echo"));
    assert_snapshot!(hub.take());
    assert_eq!(hub.status().len(), 2);
}

#[test]
fn the_old_configuration_is_used_until_the_new_catalog_is_made() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
    hub.start_server(1, ECHO);
    hub.start_server(2, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    // `a` is gone, and `b` moves to its place.
    let servers = vec![NewServer::Unchanged("b".to_owned())];
    hub.reconfigure_slowly(settings(), servers, |hub| {
        hub.client_says(1, &call(1, "b_echo"));
        hub.client_says(1, &call(2, "a_echo"));
        hub.server_says(
            2,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        );
        hub.server_says(2, r#"{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}}"#);
    });
    // The list that came in between is not lost.
    hub.client_says(1, &call(3, "b_new"));
    hub.client_says(1, &call(4, "a_echo"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_is_switched_off_and_on() {
    let mut hub = Transcript::ready(ECHO);
    hub.change(ServerChange::Disable);
    hub.client_says(1, &call(1, "a_echo"));
    hub.change(ServerChange::Enable);
    hub.change(ServerChange::Restart);
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_with_a_mistake_in_its_entry_cannot_be_enabled() {
    let mut broken = server("a");
    broken.disabled = Some("config.json:3:5: command: is missing".to_owned());
    let mut hub = Transcript::new(settings(), vec![broken]);
    hub.change(ServerChange::Enable);
    hub.change(ServerChange::Restart);
    hub.change(ServerChange::Disable);
    hub.change(ServerChange::Enable);
    assert_snapshot!(hub.take());
    let reason = r#"a Disabled("config.json:3:5: command: is missing") [0, 0, 0, 0] stale=false"#;
    assert_eq!(hub.status(), [reason]);
}

#[test]
fn listings_that_come_during_a_build_are_taken_up_by_the_next() {
    let names = ["a", "b", "c"];
    let mut hub = Transcript::new(settings(), names.map(server).into());
    hub.slow_builds();
    hub.client();
    hub.initialize(1, "{}");
    for number in 1..=3 {
        hub.start_server(number, ECHO);
    }
    hub.take();
    hub.builds_finish();
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    hub.builds_finish();
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_is_never_sent_to_the_server_that_takes_the_place_of_its_own() {
    const LOOK: &str = r#"[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}]"#;
    for servers in [
        vec![],
        vec![NewServer::Unchanged("b".to_owned())],
        vec![NewServer::Changed(Box::new(server("c")))],
        vec![NewServer::Changed(Box::new(server("a")))],
    ] {
        let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
        hub.start_server(1, LOOK);
        hub.start_server(2, LOOK);
        hub.client();
        hub.initialize(1, "{}");
        hub.client_says(1, &call(1, "a_look"));
        hub.take();
        hub.reconfigure(settings(), servers);
        let said = hub.take();
        assert!(said.contains(r#""code":-31002"#), "{said}");
        assert!(!said.contains("tools/call\""), "{said}");
    }
}
