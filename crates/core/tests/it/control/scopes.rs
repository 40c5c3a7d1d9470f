//! Requests that name a connection or a server.

use std::path::Path;
use std::sync::Arc;

use mcp_proxy_control::{HubLoad, ServerRow};
use mcp_proxy_core::control::{RunServer, ServerManagement, ServerOrder};
use mcp_proxy_core::rules::Rules;
use mcp_proxy_core::{Connection, Peer as ServerPeer};
use mcp_proxy_wire::Transport;
use serde_json::{Value, json};

use super::{ControlledRun, ask, gone, holding, temporary};
use crate::transcript::{TestPeer, carried, proxy_run};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#;

/// A run in which two connections are carried, `c2` and `c3`; `c1` is idle.
struct Two {
    run: ControlledRun,
    second: (TestPeer, TestPeer),
    third: (TestPeer, TestPeer),
    connections: [Arc<Connection>; 2],
}

/// Both to the same server.
fn two() -> Two {
    let run = ControlledRun::unrecorded(1 << 20);
    carrying(run, [Transport::Stdio.into(), Transport::Stdio.into()])
}

/// Each to a server of its own, `db` and `web`.
fn two_servers() -> Two {
    let run = proxy_run(None);
    run.keep_temporary_record(temporary(1 << 20, None));
    let peers = ["db", "web"].map(|name| ServerPeer::new(Transport::Stdio).named(name));
    let [db, web] = peers.clone();
    let server = |peer: ServerPeer, target: &str, why: &'static str| RunServer {
        peer,
        target: target.to_owned(),
        dial: gone(why),
        is_for_clients_only: false,
    };
    let servers = vec![
        server(db, "db-server", "the database is gone"),
        server(web, "http://web", "the web is gone"),
    ];
    carrying(ControlledRun::in_front_of(run, None, None, servers), peers)
}

fn carrying(run: ControlledRun, servers: [ServerPeer; 2]) -> Two {
    let connections = servers.map(|server| run.run.connect(Transport::Stdio, server));
    let [second, third] = connections.each_ref().map(carried);
    Two {
        run,
        second,
        third,
        connections,
    }
}

impl Two {
    /// Waits until this many messages are held.
    async fn held(&self, number: usize) {
        let intercept = self.run.run.intercept();
        let mut changes = intercept.watch();
        while intercept.state().held.len() != number {
            changes.changed().await.unwrap();
        }
    }
}

/// The result of a request.
async fn result(run: &ControlledRun, method: &str, params: Value) -> Value {
    let answer = ask(&run.viewer(), method, params).await;
    assert_eq!(answer.get("error"), None, "{answer}");
    answer["result"].clone()
}

/// The text of a refusal, which is about the parameters.
async fn refused(run: &ControlledRun, method: &str, params: Value) -> String {
    let answer = ask(&run.viewer(), method, params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

on_both_runtimes!(one_connection_is_intercepted_and_the_others_pass);
async fn one_connection_is_intercepted_and_the_others_pass() {
    let mut two = two();
    let params = json!({"mode": "intercept", "connection": "c2"});
    let set = result(&two.run, "intercept.set", params).await;
    assert_eq!(holding(&set), json!({"mode": "intercept", "held": []}));
    two.second.0.say(PING);
    two.held(1).await;
    two.third.0.say(PING);
    two.third.1.hears("the other connection", PING).await;
    // The run's own mode is what it was, and it says what differs.
    let present = result(&two.run, "intercept.get", json!({})).await;
    let own = json!({"connection": 2, "server": null, "mode": "intercept"});
    assert_eq!(
        holding(&present),
        json!({"mode": "passthrough", "held": [1], "overrides": [own]})
    );
    let params = json!({"connection": 3});
    let present = result(&two.run, "intercept.get", params).await;
    assert_eq!(
        holding(&present),
        json!({"mode": "passthrough", "held": []})
    );
    let listed = result(&two.run, "hold.list", json!({})).await;
    assert_eq!(listed["holds"][0]["conn"], "c2");
    assert_eq!(listed["holds"][0]["server"], "server");
    // Without a mode of its own the connection follows the run, and what it held is forwarded.
    let params = json!({"mode": "inherit", "connection": 2});
    let set = result(&two.run, "intercept.set", params).await;
    assert_eq!(holding(&set), json!({"mode": "passthrough", "held": []}));
    two.second.1.hears("what was held", PING).await;
}

on_both_runtimes!(a_connection_counts_more_than_its_server_and_that_more_than_the_run);
async fn a_connection_counts_more_than_its_server_and_that_more_than_the_run() {
    let mut two = two();
    let mode = |mode: &str, scope: Value| {
        let mut params = scope;
        params["mode"] = mode.into();
        params
    };
    let run = &two.run;
    result(run, "intercept.set", mode("intercept", json!({}))).await;
    let params = mode("passthrough", json!({"server": "server"}));
    result(run, "intercept.set", params).await;
    let params = mode("intercept", json!({"connection": 2}));
    result(run, "intercept.set", params).await;
    two.third.0.say(PING);
    two.third.1.hears("its server's mode", PING).await;
    two.second.0.say(PING);
    two.held(1).await;
    // A server is also found by its command or URL.
    let present = result(&two.run, "intercept.get", json!({"server": "x"})).await;
    assert_eq!(present["mode"], "passthrough");
    // `continue` forwards everything and leaves nobody a mode of their own.
    let present = result(&two.run, "continue", json!({})).await;
    assert_eq!(
        holding(&present),
        json!({"mode": "passthrough", "held": []})
    );
    two.second.1.hears("what was held", PING).await;
    two.second.0.say(CALL);
    two.second.1.hears("nothing is held", CALL).await;
}

on_both_runtimes!(one_server_is_intercepted_and_the_others_pass);
async fn one_server_is_intercepted_and_the_others_pass() {
    let mut two = two_servers();
    let params = json!({"mode": "intercept", "server": "db"});
    result(&two.run, "intercept.set", params).await;
    two.third.0.say(PING);
    two.third.1.hears("another server", PING).await;
    two.second.0.say(PING);
    two.held(1).await;
    let listed = result(&two.run, "hold.list", json!({})).await;
    assert_eq!(listed["holds"][0]["server"], "db");
    let present = result(&two.run, "intercept.get", json!({"server": "web"})).await;
    assert_eq!(
        holding(&present),
        json!({"mode": "passthrough", "held": []})
    );
    let listed = result(&two.run, "connections.list", json!({"server": "web"})).await;
    let rows = listed["connections"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["connection"]), (1, &json!(3)));
    let text = refused(&two.run, "intercept.get", json!({"server": "mail"})).await;
    assert!(text.contains("db, web"), "{text}");
}

/// A hub that got the server `db` while it ran.
struct Reloaded;

impl ServerManagement for Reloaded {
    fn load(&self) -> HubLoad {
        HubLoad::default()
    }

    fn list(&self) -> Vec<ServerRow> {
        vec![ServerRow {
            name: "db".to_owned(),
            transport: "stdio".to_owned(),
            target: "db-server".to_owned(),
            connections: 0,
            health: None,
        }]
    }

    fn find(&self, name: &str) -> Option<RunServer> {
        ["db", "db-server"].contains(&name).then(|| RunServer {
            peer: ServerPeer::new(Transport::Stdio).named("db"),
            target: "db-server".to_owned(),
            dial: gone("the database is gone"),
            is_for_clients_only: false,
        })
    }

    fn change(&self, _: ServerOrder<'_>) -> Result<(), String> {
        Ok(())
    }
}

on_both_runtimes!(a_server_that_a_reload_added_is_found);
async fn a_server_that_a_reload_added_is_found() {
    let run = proxy_run(None);
    let management: Arc<dyn ServerManagement> = Arc::new(Reloaded);
    let run = ControlledRun::managed(run, None, None, (Vec::new(), Some(management)));
    let db = ServerPeer::new(Transport::Stdio).named("db");
    let web = ServerPeer::new(Transport::Stdio).named("web");
    let two = carrying(run, [db, web]);
    for name in ["db", "db-server"] {
        let listed = result(&two.run, "connections.list", json!({"server": name})).await;
        let rows = listed["connections"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["connection"]), (1, &json!(2)));
    }
    let params = json!({"mode": "intercept", "server": "db"});
    let set = result(&two.run, "intercept.set", params).await;
    assert_eq!(holding(&set), json!({"mode": "intercept", "held": []}));
    let params = json!({"filter": "tools/call", "server": "db"});
    result(&two.run, "breakpoints.add", params).await;
    let text = refused(&two.run, "intercept.get", json!({"server": "web"})).await;
    assert!(text.ends_with(": db"), "{text}");
}

on_both_runtimes!(a_connection_takes_its_mode_with_it);
async fn a_connection_takes_its_mode_with_it() {
    let Two {
        run,
        third,
        connections: [second, _third],
        ..
    } = two();
    let params = json!({"mode": "intercept", "connection": 2});
    result(&run, "intercept.set", params).await;
    drop(second);
    let gone = || result(&run, "connections.list", json!({}));
    while gone().await["connections"][1]["open"] == true {
        tokio::task::yield_now().await;
    }
    let present = result(&run, "intercept.get", json!({})).await;
    assert_eq!(
        holding(&present),
        json!({"mode": "passthrough", "held": []})
    );
    let (mut client, mut server) = third;
    client.say(PING);
    server.hears("the other", PING).await;
    assert!(!run.run.intercept().is_active());
}

on_both_runtimes!(a_breakpoint_is_for_one_connection);
async fn a_breakpoint_is_for_one_connection() {
    let mut two = two();
    let params = json!({"filter": "tools/call", "connection": 3});
    result(&two.run, "breakpoints.add", params).await;
    let params = json!({"filter": "tools/list", "server": "server"});
    result(&two.run, "breakpoints.add", params).await;
    let listed = result(&two.run, "breakpoints.list", json!({})).await;
    let of = |row: &Value| (row["connection"].clone(), row["server"].clone());
    let rows = listed["breakpoints"].as_array().unwrap();
    assert_eq!(of(&rows[0]), (json!(3), json!(null)));
    assert_eq!(of(&rows[1]), (json!(null), json!("server")));
    two.second.0.say(CALL);
    two.second.1.hears("another connection", CALL).await;
    two.third.0.say(CALL);
    two.held(1).await;
}

on_both_runtimes!(what_does_not_exist_is_named);
async fn what_does_not_exist_is_named() {
    let two = two();
    let run = &two.run;
    let methods = ["intercept.get", "rules.list"];
    for method in methods {
        let text = refused(run, method, json!({"connection": 9})).await;
        assert!(text.contains("c9"), "{text}");
        let text = refused(run, method, json!({"server": "db"})).await;
        assert!(text.contains("`db`") && text.contains("server"), "{text}");
        let both = json!({"connection": 2, "server": "server"});
        let text = refused(run, method, both).await;
        assert!(
            text.contains("connection") && text.contains("server"),
            "{text}"
        );
    }
    let params = json!({"filter": "ping", "connection": 9});
    let text = refused(run, "breakpoints.add", params).await;
    assert!(text.contains("c9"), "{text}");
    let text = refused(run, "connections.list", json!({"server": "db"})).await;
    assert!(text.contains("`db`"), "{text}");
    let text = refused(run, "intercept.set", json!({"mode": "inherit"})).await;
    assert!(text.starts_with("mode:"), "{text}");
    two.connections[0].close("for the test");
    let text = refused(run, "intercept.get", json!({"connection": 2})).await;
    assert!(text.contains("c2"), "{text}");
}

on_both_runtimes!(servers_and_connections_are_listed);
async fn servers_and_connections_are_listed() {
    let two = two();
    two.connections[0].close("for the test");
    let hello = result(&two.run, "hello", json!({})).await;
    assert_eq!(hello["protocol"], 2);
    let server = json!({"name": "server", "transport": "stdio", "target": "x", "connections": 2});
    assert_eq!(hello["servers"], json!([server]));
    assert_eq!(hello["connection_count"], 3);
    let listed = result(&two.run, "connections.list", json!({})).await;
    assert_eq!(listed["connections"], hello["connections"]);
    assert_eq!((&listed["open"], &listed["count"]), (&json!(2), &json!(3)));
    let row = |connection: u32, open: bool| {
        json!({"connection": connection, "client": {"name": null, "transport": "stdio"},
            "server": {"name": "server", "transport": "stdio"}, "open": open, "parent": null})
    };
    assert_eq!(
        listed["connections"],
        json!([row(3, true), row(2, false), row(1, true)])
    );
    let params = json!({"limit": 1, "server": "server"});
    let listed = result(&two.run, "connections.list", params).await;
    assert_eq!(listed["connections"], json!([row(3, true)]));
    let servers = result(&two.run, "servers.list", json!({})).await;
    assert_eq!(servers["servers"], hello["servers"]);
    let text = refused(&two.run, "connections.list", json!({"limit": 1001})).await;
    assert!(text.starts_with("limit:"), "{text}");
}

on_both_runtimes!(the_last_hundred_ended_connections_are_remembered);
async fn the_last_hundred_ended_connections_are_remembered() {
    let run = ControlledRun::unrecorded(1 << 20);
    for _ in 0..150 {
        drop(run.run.connect(Transport::Stdio, Transport::Stdio));
    }
    let listed = result(&run, "connections.list", json!({"limit": 1000})).await;
    let rows = listed["connections"].as_array().unwrap();
    assert_eq!(rows.len(), 101);
    assert_eq!(rows[0]["connection"], 151);
    assert_eq!(rows[100]["connection"], 1, "it is open");
    assert_eq!(listed["count"], 151);
}

on_both_runtimes!(rules_are_listed_for_a_server);
async fn rules_are_listed_for_a_server() {
    let run = ControlledRun::unrecorded(1 << 20);
    let text = "[[rule]]\nserver = \"x\"\ndrop = true\n\n[[rule]]\nserver = \"y\"\ndrop = true\n";
    let rules = Rules::parse(text, Path::new(".")).unwrap();
    run.run.rules().set(rules);
    let all = result(&run, "rules.list", json!({})).await;
    assert_eq!(all["rules"].as_array().unwrap().len(), 2);
    for params in [json!({"server": "server"}), json!({"connection": 1})] {
        let own = result(&run, "rules.list", params).await;
        assert_eq!(own["rules"].as_array().unwrap().len(), 1);
        assert_eq!(own["rules"][0]["rule"], 1);
    }
}

on_both_runtimes!(a_live_replay_uses_the_session_that_is_named);
async fn a_live_replay_uses_the_session_that_is_named() {
    let mut two = two();
    two.second.0.say(PING);
    two.second.1.hears("the first time", PING).await;
    let run = &two.run;
    let params = json!({"sequence": 1, "session": "live", "server": "server"});
    let text = refused(run, "replay", params).await;
    assert!(text.starts_with("server:"), "{text}");
    let params = json!({"sequence": 1, "session": "live", "connection": 9});
    let text = refused(run, "replay", params).await;
    assert!(text.contains("c9"), "{text}");
    let params = json!({"sequence": 1, "session": "fresh", "server": "db"});
    let text = refused(run, "replay", params).await;
    assert!(text.contains("`db`"), "{text}");
    let viewer = run.viewer();
    let params = json!({"sequence": 1, "session": "live", "connection": 3});
    let replayed = tokio::spawn(async move { ask(&viewer, "replay", params).await });
    let sent = two.third.1.next().await.unwrap();
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent["method"], "ping");
    let answer = json!({"jsonrpc": "2.0", "id": sent["id"], "result": {}});
    two.third.1.say(&answer.to_string());
    let replayed = replayed.await.unwrap();
    assert_eq!(replayed["result"]["conn"], "c3", "{replayed}");
}

on_both_runtimes!(a_fresh_replay_goes_to_the_server_that_is_named);
async fn a_fresh_replay_goes_to_the_server_that_is_named() {
    let mut two = two_servers();
    let modern = r#"{"id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    two.third.0.say(modern);
    two.third.1.hears("the first time", modern).await;
    for (scope, why) in [
        (json!({}), "the web is gone"),
        (json!({"server": "db"}), "the database is gone"),
        (json!({"server": "http://web"}), "the web is gone"),
        (json!({"connection": "c2"}), "the database is gone"),
    ] {
        let mut params = scope;
        params["sequence"] = json!(1);
        let answer = ask(&two.run.viewer(), "replay", params).await;
        assert_eq!(answer["error"]["message"], why, "{answer}");
    }
}
