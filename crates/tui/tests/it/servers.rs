//! The servers of a hub: what is shown of them, what is asked, and the filter for one of them.

use std::time::Duration;

use mcp_proxy_session::PeerInfo;
use mcp_proxy_tui::{Overlay, ProxyOwner, UiCommand};
use mcp_proxy_wire::Transport;
use serde_json::{Value, json};

use crate::record;
use crate::scenes::listed;
use crate::test_ui::TestUi;

/// A hub with these servers, and the window open. Connection 1 is a client's, 2 is to the server `git`.
pub fn of(servers: Value) -> TestUi {
    let mut record = record::ordinary();
    let hub = PeerInfo::in_process("hub");
    let mut git = PeerInfo::new(Transport::Stdio);
    git.name = Some("git".to_owned());
    record.opened_by(6, 2, &hub, &git);
    record.on(2);
    record.call(1, "log", r#"{"limit":3}"#);
    record.stderr("INFO git: /srv/project is the repository");
    record.stderr("WARNING git: detached HEAD");
    record.flush();
    let hello = json!({"protocol": 2, "version": "0.1.0", "target": "mcp-proxy serve (git, docs)",
        "client": "streamable_http", "server": "in_process", "record": record.path(), "pid": 4711, "servers": servers});
    let mut stage = TestUi::with(record, hello);
    stage.servers = servers;
    stage.connections = json!([
        {"connection": 2, "client": {"name": "hub", "transport": "in_process"},
            "server": {"name": "git", "transport": "stdio"}, "open": true, "parent": 6},
        {"connection": 1, "client": {"name": null, "transport": "streamable_http"},
            "server": {"name": "hub", "transport": "in_process"}, "open": true, "parent": null},
    ]);
    stage.all_read(10);
    stage.until("stderr is read", |app| app.tabs[0].view.events().len() >= 4);
    stage.press(&["v"]);
    stage
}

/// A hub that has just started in this terminal: no client is connected.
pub fn hub_at_start() -> TestUi {
    hub_at_start_with(some_servers())
}

fn hub_at_start_with(servers: Value) -> TestUi {
    let record = record::ordinary();
    let hello = json!({"protocol": 2, "version": "0.1.0", "target": "mcp-proxy serve (git, docs)",
        "client": "streamable_http", "server": "in_process", "record": record.path(), "pid": 4711,
        "listens": "http://127.0.0.1:8888/mcp", "servers": servers});
    let mut stage = TestUi::silent(record, hello);
    stage.app.owner = ProxyOwner::Here;
    stage.servers = servers;
    stage.until("the hub has answered", |app| !app.tabs.is_empty());
    stage.all_read(9);
    stage
}

/// One server in each state.
pub fn hub_window() -> TestUi {
    of(some_servers())
}

fn some_servers() -> Value {
    json!([
        server(
            "git",
            "stdio",
            "uvx mcp-server-git",
            json!({"state": "ready", "tools": 12, "restarts": 1,
            "scope": "auto", "error": "it exited with status 1"})
        ),
        server(
            "docs",
            "streamable_http",
            "https://example.com/mcp?key=***",
            json!({"state": "starting", "tools": 3,
            "resources": 1, "stale": true, "scope": "shared"})
        ),
        server(
            "notes",
            "in_process",
            "built-in files",
            json!({"state": "disabled", "scope": "auto",
            "error": "it is disabled"})
        ),
        server(
            "a-server-with-a-name-that-nobody-wants-to-read",
            "stdio",
            "/nonexistent",
            json!({"state": "failed",
            "scope": "session", "restarts": 3,
            "error": "cannot start /nonexistent: No such file or directory (os error 2); it is tried again in 8 s"})
        ),
    ])
}

/// One server that needs a sign-in, and one that has it.
pub fn signed_in() -> TestUi {
    let health = [
        json!({"state": "needs sign-in", "scope": "auto",
            "error": "needs sign-in: run `mcp-proxy login https://a.example/mcp`, then try again"}),
        json!({"state": "ready", "tools": 12, "scope": "auto",
            "sign_in": {"account": "ada", "until": "2026-11-18T14:05:00.000000Z", "renews": true}}),
    ];
    let servers = ["a", "b"].into_iter().zip(health);
    let servers = servers.map(|(name, health)| {
        let url = format!("https://{name}.example/mcp");
        server(name, "streamable_http", &url, health)
    });
    of(servers.collect())
}

fn server(name: &str, transport: &str, target: &str, health: Value) -> Value {
    let connections = u64::from(name == "git");
    json!({"name": name, "transport": transport, "target": target, "connections": connections, "health": health})
}

/// More servers than there are lines, and one of the last is selected.
pub fn many() -> TestUi {
    let servers = (1..=200).map(|number| {
        let health = json!({"state": "ready", "tools": number, "scope": "auto"});
        server(&format!("server-{number}"), "stdio", "uvx server", health)
    });
    let mut stage = of(servers.collect());
    stage.screen(80, 24);
    stage.press(&["G", "k", "k"]);
    stage
}

fn selected(stage: &TestUi) -> usize {
    match stage.app.overlay {
        Overlay::Servers(window) => window.selected,
        _ => panic!("the servers are not shown"),
    }
}

#[test]
fn a_hub_shows_its_servers_until_the_first_client_connects() {
    let mut stage = hub_at_start();
    assert_eq!(selected(&stage), 0);
    let client = json!({"connection": 1, "client": {"name": null, "transport": "streamable_http"},
        "server": {"name": "hub", "transport": "in_process"}, "open": true, "parent": null});
    stage.connections = json!([client]);
    stage.now += Duration::from_secs(1);
    stage.settle();
    assert!(stage.is_plain());
}

#[test]
fn d31_failed_servers_come_first_and_are_not_pushed_off_the_screen() {
    let mut list: Vec<Value> = (1..=8)
        .map(|number| {
            let health = json!({"state": "ready", "tools": number, "scope": "auto"});
            server(&format!("server-{number}"), "stdio", "uvx server", health)
        })
        .collect();
    let health = json!({"state": "failed", "scope": "auto", "error": "no such program"});
    list.push(server("broken", "stdio", "nothing", health));
    let mut stage = hub_at_start_with(json!(list));
    let screen = stage.screen(80, 24);
    let rows: Vec<&str> = screen.lines().collect();
    assert!(rows[3].contains("broken"), "{screen}");
    assert!(screen.contains("last error: no such program"), "{screen}");
    for number in 1..=8 {
        assert!(screen.contains(&format!(" server-{number} ")), "{screen}");
    }
    assert!(screen.contains("http://127.0.0.1:8888/mcp"), "{screen}");
    // Where there is room, the whole entry for a config is there too.
    assert!(stage.screen(160, 45).contains("mcpServers"));
}

#[test]
fn a_window_that_was_used_stays_when_a_client_connects() {
    let mut stage = hub_at_start();
    let client = json!({"connection": 1, "client": {"name": null, "transport": "streamable_http"},
        "server": {"name": "hub", "transport": "in_process"}, "open": true, "parent": null});
    stage.press(&["r"]);
    stage.answer(Ok(json!({})));
    stage.connections = json!([client]);
    stage.now += Duration::from_secs(1);
    stage.settle();
    assert_eq!(selected(&stage), 0);
}

#[test]
fn keys_are_about_the_selected_server() {
    let mut stage = hub_window();
    stage.press(&["j", "j", "r"]);
    stage.expect("servers.restart", json!({"server": "docs"}), Ok(json!({})));
    stage.says(&["docs"]);
    stage.press(&["k", "d"]);
    stage.expect("servers.disable", json!({"server": "git"}), Ok(json!({})));
    stage.says(&["git"]);
    stage.press(&["j", "j", "e"]);
    stage.expect("servers.enable", json!({"server": "notes"}), Err("REASON"));
    stage.complains(&["notes", "REASON"]);
    stage.press(&["R"]);
    stage.expect("servers.reload", json!({}), Err("line 3: REASON"));
    stage.complains(&["line 3: REASON"]);
    // Keys of the panes mean nothing here.
    stage.press(&["F5", "F8", "i", "s", "c", "b", "tab", "m"]);
    assert_eq!(stage.asked(), []);
    assert_eq!(selected(&stage), 3);
    stage.press(&["esc"]);
    assert!(stage.is_plain());
}

#[test]
fn the_hub_is_asked_once_a_second_while_the_window_is_open() {
    let mut stage = hub_window();
    assert_eq!(stage.server_polls, 1);
    stage.now += Duration::from_millis(999);
    stage.settle();
    assert_eq!(stage.server_polls, 1);
    stage.now += Duration::from_millis(1);
    stage.settle();
    assert_eq!(stage.server_polls, 2);
    // An action is followed by a look at once.
    stage.press(&["r"]);
    stage.answer(Ok(json!({})));
    assert_eq!(stage.server_polls, 3);
    stage.press(&["esc"]);
    stage.now += Duration::from_secs(5);
    stage.settle();
    assert_eq!(stage.server_polls, 3);
}

#[test]
fn a_slow_hub_is_not_asked_again_before_it_has_answered() {
    let mut stage = hub_window();
    for _ in 0..5 {
        stage.now += Duration::from_secs(2);
        stage.app.tick(stage.now);
    }
    let asked = stage.far.asks.try_iter().count();
    assert_eq!(asked, 1);
}

#[test]
fn the_selected_server_stays_selected_when_others_come_and_go() {
    let mut stage = hub_window();
    stage.press(&["j", "j"]);
    let mut servers = some_servers();
    let list = servers.as_array_mut().unwrap();
    list.remove(0);
    stage.servers = servers;
    stage.now += Duration::from_secs(1);
    stage.settle();
    assert_eq!(selected(&stage), 1);
    stage.servers = json!([]);
    stage.now += Duration::from_secs(1);
    stage.settle();
    assert_eq!(selected(&stage), 0);
    stage.press(&["j", "r"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&[]);
}

#[test]
fn the_list_shows_the_messages_of_one_server_also_after_a_restart() {
    let mut stage = hub_window();
    stage.press(&["j", "enter"]);
    stage.all_read(10);
    assert!(stage.is_plain());
    stage.says(&["git"]);
    let view = &stage.app.tabs[0].view;
    assert_eq!((view.filter(), view.len()), (r#".server == "git""#, 1));
    let mut git = PeerInfo::new(Transport::Stdio);
    git.name = Some("git".to_owned());
    stage.record.opened(3, &PeerInfo::in_process("hub"), &git);
    stage.record.on(3).call(1, "status", "{}");
    stage.grown(11);
    stage.all_read(11);
    assert_eq!(stage.app.tabs[0].view.len(), 2);
    stage.press(&["v"]);
    assert_eq!(selected(&stage), 1);
}

#[test]
fn a_server_without_messages_keeps_the_window() {
    let mut stage = hub_window();
    stage.press(&["g", "enter"]);
    stage.complains(&["a-server-with-a-name"]);
    assert_eq!(selected(&stage), 0);
}

#[test]
fn only_a_running_hub_has_the_window() {
    for mut stage in [listed(), TestUi::opened(record::ordinary())] {
        stage.press(&["v"]);
        assert!(stage.is_plain());
        stage.complains(&["mcp-proxy serve"]);
        stage.run(UiCommand::RestartServer);
        assert_eq!(stage.asked(), []);
    }
}

#[test]
fn pages_and_ends_of_a_long_list() {
    let mut stage = many();
    assert_eq!(selected(&stage), 197);
    stage.press(&["ctrl-u"]);
    let page = 197 - selected(&stage);
    assert!((2..20).contains(&page), "{page}");
    let screen = stage.screen(80, 24);
    assert!(
        screen.contains(&format!("server-{}", 198 - page)),
        "{screen}"
    );
    stage.press(&["g", "k"]);
    assert_eq!(selected(&stage), 0);
    assert!(stage.screen(80, 24).contains(" server-1 "));
}
