//! Every screen there is, as the state that shows it.

use std::path::PathBuf;

use mcp_proxy_tui::ProxyPort;
use mcp_proxy_tui::ViewState;
use mcp_proxy_tui::{App, ProxyOwner, Tab, Theme};
use mcp_proxy_wire::Origin;
use serde_json::{Value, json};

use crate::calls;
use crate::heads;
use crate::layout;
use crate::record;
use crate::servers;
use crate::test_ui::TestUi;

/// A screen's name, and how it comes about.
pub type Scene = (&'static str, fn() -> TestUi);

pub const SCENES: &[Scene] = &[
    ("list", listed),
    ("message", read),
    ("held", held),
    ("intercept", intercepting),
    ("decided-elsewhere", decided_elsewhere),
    ("editor", editing),
    ("editor-invalid", editing_badly),
    ("filter-typed", filter_typed),
    ("filtered", filtered),
    ("filter-wrong", filter_wrong),
    ("nothing-matches", nothing_matches),
    ("search", searched),
    ("folded", folded),
    ("command", command_typed),
    ("help", || pressed(&["F1"])),
    ("breakpoints", || {
        let mut stage = held();
        stage.press(&["b", "j"]);
        stage
    }),
    ("rules", rules),
    ("rules-none", || pressed(&["u"])),
    ("stderr", stderr),
    ("servers", servers::hub_window),
    ("servers-at-start", servers::hub_at_start),
    ("servers-many", servers::many),
    ("servers-signed-in", servers::signed_in),
    ("servers-ended", || {
        let mut stage = servers::hub_window();
        stage.press(&["G"]);
        stage.gone("the proxy has ended");
        stage
    }),
    ("servers-none", || servers::of(json!([]))),
    ("diff-edit", || {
        let mut stage = edited();
        stage.press(&["D"]);
        stage
    }),
    ("diff-replay", || {
        let mut stage = replayed();
        stage.command("11");
        stage.press(&["D"]);
        stage
    }),
    ("replayed", replayed),
    ("quit", quitting),
    ("leave", || {
        let mut stage = intercepting();
        stage.press(&["q"]);
        stage
    }),
    ("ended", ended),
    ("undecided", undecided),
    ("record", || TestUi::opened(record::ordinary())),
    ("sessions", two_sessions),
    ("connections", connections),
    ("verdicts", verdicts),
    ("message-whole", || pressed(&["enter"])),
    ("headers", heads::opened),
    ("headers-folded", heads::folded),
    ("calls", calls::grouped),
    ("stray", layout::stray),
    ("badges", badges),
    ("filter-empty", || pressed(&["F2"])),
    ("closed-editor", closed_editor),
    ("connecting", || {
        TestUi::silent(record::empty(), Value::Null)
    }),
    ("no-messages", || {
        let mut stage = TestUi::live(record::empty());
        stage
            .app
            .show_program_output("listening on http://127.0.0.1:8888/mcp");
        stage
    }),
    ("opening", opening),
    ("failed", failed),
];

/// The ordinary session, live; the newest message is selected.
pub fn listed() -> TestUi {
    let mut stage = TestUi::live(record::ordinary());
    stage
        .app
        .show_program_output("listening on http://127.0.0.1:8888/mcp");
    stage
}

fn pressed(keys: &[&str]) -> TestUi {
    let mut stage = listed();
    stage.press(keys);
    stage
}

fn read() -> TestUi {
    pressed(&["tab", "j", "j"])
}

/// A call is held by a breakpoint.
pub fn held() -> TestUi {
    let mut stage = listed();
    stage.breakpoints = json!([
        {"id": 1, "filter": "tools/call read_file", "direction": "client_to_server", "left": null, "hits": 1},
        {"id": 2, "filter": ".latency_ms > 500", "direction": null, "left": 3, "hits": 0},
    ]);
    let arguments = r#"{"path":"/srv/notes/plan.txt"}"#;
    let call = stage.record.call(4, "read_file", arguments);
    stage.hold(1, call, "breakpoint 1");
    stage.all_read(10);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    stage
}

fn intercepting() -> TestUi {
    let mut stage = listed();
    stage.mode = "intercept";
    let call = stage.record.call(4, "search", "{}");
    stage.record.call(5, "search", "{}");
    stage.hold(1, call, "intercept");
    stage.hold(2, call + 1, "intercept");
    stage.all_read(11);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    stage
}

/// The first of two held messages went on by its time limit while it was selected.
fn decided_elsewhere() -> TestUi {
    let mut stage = intercepting();
    stage
        .record
        .verdict("hold", 10)
        .by("proxy")
        .why("intercept")
        .write();
    let why = "nobody decided within 55 s";
    stage
        .record
        .verdict("forward", 10)
        .by("timeout")
        .why(why)
        .write();
    stage.record.flush();
    stage.forwarded_by(1, "timeout", why);
    stage.until("the verdict is read", |app| {
        let told = app.tabs[0].view.message_with_context(10);
        told.is_ok_and(|told| told.message.verdicts.len() == 2)
    });
    stage
}

/// The held call is being changed.
pub fn editing() -> TestUi {
    let mut stage = held();
    stage.press(&["F6"]);
    stage.press(&["down"; 7]);
    stage.press(&["end"]);
    stage.press(&["backspace"; 5]);
    stage.letters(".md\"");
    stage
}

fn editing_badly() -> TestUi {
    let mut stage = editing();
    stage.press(&["backspace", "ctrl-s"]);
    stage
}

fn filter_typed() -> TestUi {
    let mut stage = pressed(&["F2"]);
    stage.letters(".status == \"err");
    // It applies while it is typed.
    stage.all_read(9);
    stage
}

/// Only what has gone wrong.
pub fn filtered() -> TestUi {
    let mut stage = filter_typed();
    stage.letters("or\"");
    stage.press(&["enter"]);
    stage.all_read(9);
    stage
}

fn filter_wrong() -> TestUi {
    let mut stage = filter_typed();
    stage.press(&["enter"]);
    stage
}

fn nothing_matches() -> TestUi {
    let mut stage = listed();
    stage.command("filter nowhere");
    stage.all_read(9);
    stage
}

fn searched() -> TestUi {
    let mut stage = listed();
    stage.command("search no such");
    stage
}

fn folded() -> TestUi {
    let mut stage = listed();
    stage.command("5");
    stage.press(&["tab", "z", "j"]);
    stage
}

fn command_typed() -> TestUi {
    let mut stage = pressed(&["X"]);
    stage.letters("~/evidence.har");
    stage
}

fn stderr() -> TestUi {
    let mut stage = pressed(&["l"]);
    stage.until("stderr is read", |app| {
        !app.tabs[0].view.events().is_empty()
    });
    stage
}

fn rules() -> TestUi {
    let mut stage = listed();
    stage.rules = json!({"file": "/home/user/rules.toml", "fault": "line 9: `delay` wants a time such as 2s",
    "rules": [
        {"rule": 1, "name": "slow-search", "line": 1, "does": "tool search, delay 2s"},
        {"rule": 2, "name": null, "line": 5, "does": "tool read_file, refuse -32000 `not here`"},
    ]});
    stage.press(&["u"]);
    stage
}

/// The held call went on with another path.
pub fn edited() -> TestUi {
    let mut stage = editing();
    stage.press(&["ctrl-s"]);
    let body = |path: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"read_file","arguments":{{"path":"{path}"}}}}}}"#
        )
    };
    let (before, after) = (body("/srv/notes/plan.txt"), body("/srv/notes/plan.md"));
    let params = json!({"hold": 1, "action": "modify", "raw_text": after, "as_is": false});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    record::decide(&mut stage.record, "modify", 10)
        .original(&before)
        .raw(&after)
        .write();
    stage.record.flush();
    stage.let_go(1);
    stage.until("it has changed", |app| {
        let told = app.tabs[0].view.message_with_context(10);
        told.is_ok_and(|told| told.message.modified)
    });
    stage
}

/// The call that failed was sent again, with another path.
pub fn replayed() -> TestUi {
    let mut stage = listed();
    stage.press(&["p", "r"]);
    let again = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/srv/notes/plan.md"}}}"#;
    let call = stage.record.on(2).from_client(again);
    let call = call.by(Origin::Replay).write();
    let found = r##"{"content":[{"type":"text","text":"# Plan"}],"isError":false}"##;
    stage.record.result(2, call, found);
    stage.record.flush();
    let answer = json!({"request": 10, "answer": 11, "conn": "c2", "latency_ms": 31.0, "raw": {}});
    let params = json!({"sequence": 8});
    stage.expect("replay", params, Ok(answer));
    stage.all_read(11);
    stage
}

/// Breakpoints and rules are set, and the server has written to stderr.
fn badges() -> TestUi {
    let mut stage = held();
    stage.rules = json!({"file": "rules.toml", "fault": null,
        "rules": [{"rule": 1, "name": null, "line": 1, "does": "delay 2s"}]});
    stage.press(&["u", "esc"]);
    stage.until("stderr is read", |app| {
        app.tabs[0].view.events().stderr_lines() > 0
    });
    stage
}

/// Somebody else decided about the message in the editor.
fn closed_editor() -> TestUi {
    let mut stage = editing();
    stage.forwarded_by(1, "user (ctl, pid 9)", "");
    stage
}

fn quitting() -> TestUi {
    let mut stage = held();
    stage.app.owner = ProxyOwner::Here;
    stage.press(&["q"]);
    stage
}

fn ended() -> TestUi {
    let mut stage = listed();
    stage.gone("the proxy has ended");
    stage
}

/// The proxy was killed while it held a message.
pub fn undecided() -> TestUi {
    let mut stage = held();
    stage
        .record
        .verdict("hold", 10)
        .by("proxy")
        .why("breakpoint 1")
        .write();
    stage.record.flush();
    stage.gone("the proxy has closed the connection");
    stage.until("the record is read", |app| {
        let told = app.tabs[0].view.message_with_context(10);
        told.is_ok_and(|told| !told.message.verdicts.is_empty())
    });
    stage
}

fn two_sessions() -> TestUi {
    let mut stage = listed();
    let other = stage.record.beside("yesterday.jsonl");
    std::fs::copy(stage.record.path(), &other).unwrap();
    stage.command(&format!("load {}", other.display()));
    stage.all_read(9);
    stage
}

fn connections() -> TestUi {
    let mut record = record::ordinary();
    record.on(2);
    record::open_session(&mut record);
    record.exit(3, "it ended by itself");
    record.flush();
    let mut stage = TestUi::live(record);
    stage.press(&["m", "k", "k", "m"]);
    stage
}

fn verdicts() -> TestUi {
    let mut record = record::ordinary();
    let call = record.call(4, "search", r#"{"query":"secrets"}"#);
    record::decide(&mut record, "drop", call).write();
    record.client("this is no JSON");
    record.client(r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]"#);
    record.server(r#"{"hello":"there"}"#);
    record.flush();
    let mut stage = TestUi::live(record);
    stage.command("10");
    stage
}

fn opening() -> TestUi {
    let record = record::ordinary();
    let mut stage = TestUi::silent(record, Value::Null);
    let (port, far) = ProxyPort::pair();
    let tab = Tab::open(stage.record.path().to_owned());
    // It has no turn, so nothing is taken in.
    stage.app = App::recorded(tab, port, Theme::Dark);
    stage.far = far;
    stage
}

fn failed() -> TestUi {
    let (port, far) = ProxyPort::pair();
    let path = PathBuf::from("/nowhere/session.jsonl");
    let mut stage = TestUi::silent(record::empty(), Value::Null);
    stage.app = App::recorded(Tab::open(path), port, Theme::Dark);
    stage.far = far;
    stage.until("it has failed", |app| {
        *app.tabs[0].view.state() != ViewState::Opening
    });
    stage
}
