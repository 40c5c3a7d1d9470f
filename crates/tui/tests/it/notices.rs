//! The sentences of the status line, in one snapshot. What a key does is asserted where the key is tested.

use std::fmt::Write as _;

use mcp_proxy_tui::{StatusTone, UiCommand};
use serde_json::{Value, json};

use crate::deciding::two_held;
use crate::record;
use crate::scenes::{edited, held, listed};
use crate::test_ui::TestUi;

/// A user at a screen, and all that was said to them. A `!` marks what went wrong.
struct Notices {
    stage: TestUi,
    told: String,
}

impl Notices {
    fn at(&mut self, screen: &str, stage: TestUi) {
        self.stage = stage;
        self.stage.app.status = None;
        writeln!(self.told, "\n[{screen}]").unwrap();
    }

    fn keys(&mut self, keys: &[&str]) {
        self.stage.press(keys);
        self.tell(&keys.join(" "));
    }

    /// Each alone.
    fn each(&mut self, keys: &[&str]) {
        for key in keys {
            self.keys(&[key]);
        }
    }

    fn command(&mut self, line: &str) {
        self.stage.command(line);
        self.tell(&format!(":{line}"));
    }

    /// The question that the last key asked is answered.
    fn answer(&mut self, answer: Value) {
        self.stage.answer(Ok(answer));
        self.tell("answer");
    }

    fn refuse(&mut self) {
        self.stage.answer(Err("REASON"));
        self.tell("refusal");
    }

    fn tell(&mut self, after: &str) {
        let said = self.stage.app.status.take();
        let (mark, text) = match &said {
            Some(said) if said.tone == StatusTone::Bad => ("! ", said.text.as_str()),
            Some(said) => ("", said.text.as_str()),
            None => ("", "-"),
        };
        writeln!(self.told, "{after}: {mark}{text}").unwrap();
    }
}

#[test]
fn ui_notices() {
    let mut user = Notices {
        stage: listed(),
        told: String::new(),
    };
    deciding(&mut user);
    editing(&mut user);
    looking(&mut user);
    replaying(&mut user);
    typing(&mut user);
    files(&mut user);
    leaving(&mut user);
    servers(&mut user);
    insta::assert_snapshot!("ui_notices", user.told);
}

fn deciding(user: &mut Notices) {
    user.at("a held message", held());
    for key in ["F5", "F8", "s", "c", "i"] {
        user.keys(&[key]);
        user.answer(match key {
            "F8" => json!({"hold": 1, "note": "NOTE"}),
            _ => json!({"hold": 1}),
        });
    }
    user.command("error no");
    user.answer(json!({"hold": 1}));
    user.keys(&["F5"]);
    user.refuse();
    user.keys(&["g", "F8"]);
    user.keys(&["b", "j", "j", "j", "d"]);
    user.answer(json!({"id": 2}));
    user.keys(&["esc"]);
    user.command("break .latency_ms > 50");
    user.answer(json!({"id": 3}));
    user.command("filter nowhere");
    user.stage.all_read(10);
    user.each(&["F8", "s"]);
    user.at("two held messages", two_held());
    user.keys(&["s"]);
    user.answer(json!({}));
    user.at("decided by somebody else", two_held());
    user.stage.forwarded_by(1, "user (ctl, pid 9)", "");
    user.tell("the notice");
    user.keys(&["F5"]);
    user.at("a held notification", listed());
    user.stage.hold(1, 3, "intercept");
    user.stage.command("3");
    user.keys(&["x"]);
    user.at("nothing held", listed());
    user.each(&["F5", "s", "w"]);
    user.command("unbreak");
}

fn editing(user: &mut Notices) {
    let editor = |keys: &[&str]| {
        let mut stage = held();
        stage.press(&["F6"]);
        stage.press(keys);
        stage
    };
    user.at("the editor", editor(&[]));
    user.keys(&["ctrl-s"]);
    user.answer(json!({"hold": 1}));
    user.at("the editor, edited", editor(&["end", " "]));
    user.each(&["ctrl-c", "esc"]);
    user.at(
        "the editor, edited",
        editor(&["end", " ", "x", "backspace"]),
    );
    user.keys(&["ctrl-s"]);
    user.answer(json!({"hold": 1}));
    user.at("the editor, no JSON", editor(&["x"]));
    user.keys(&["ctrl-s"]);
    user.at("the editor, no message", editor(&["ctrl-k"; 40]));
    user.stage.letters("{}");
    user.keys(&["ctrl-s"]);
    user.at("the editor, decided by somebody else", editor(&["x"]));
    user.stage.let_go(1);
    user.tell("the notice");
    user.keys(&["ctrl-s"]);
    user.at("the editor, without a proxy", editor(&["x"]));
    user.stage.gone("REASON");
    user.tell("the loss");
    user.keys(&["ctrl-s", "ctrl-s"]);
}

fn looking(user: &mut Notices) {
    user.at("messages", listed());
    user.each(&["'", "P", "D", "n"]);
    user.stage.command("3");
    user.keys(&["p"]);
    user.stage.command("5");
    user.each(&["y", "Y"]);
    user.stage.record.call(4, "search", "{}");
    user.stage.grown(10);
    user.keys(&["G", "p"]);
    user.command("filter nowhere");
    user.stage.all_read(10);
    user.each(&["p", "P", "D", "m", "y", "Y"]);
    user.at("an edited message", edited());
    user.each(&["o", "o"]);
    user.keys(&["g", "o"]);
}

fn replaying(user: &mut Notices) {
    user.at("a failed call", listed());
    user.keys(&["r"]);
    user.refuse();
    user.keys(&["ctrl-r"]);
    user.answer(json!({"request": 10, "answer": 11, "conn": "c2", "latency_ms": 31.0, "raw": {}}));
    user.keys(&["r"]);
    user.answer(
        json!({"request": 10, "answer": null, "conn": "c2", "latency_ms": null, "raw": null}),
    );
    let mut record = record::ordinary();
    record.server(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    record.flush();
    user.at("a message of the server", TestUi::live(record));
    user.keys(&["r"]);
}

fn typing(user: &mut Notices) {
    user.at("commands", listed());
    for line in [
        "filter /(/",
        "search nowhere",
        "nonsense",
        "goto seven",
        "99",
        "theme pink",
        "export har",
        "load /nowhere/at/all.jsonl",
    ] {
        user.command(line);
    }
    user.command("note here");
    user.answer(json!({}));
    user.command("filter read_file");
    user.stage.all_read(9);
    user.command("6");
}

fn files(user: &mut Notices) {
    user.at("files", listed());
    user.command("save /var/copy.jsonl");
    user.answer(json!({"output": "/var/copy.jsonl", "bytes": 5120}));
    user.command("export har /var/s.har");
    user.answer(json!({"output": "/var/s.har", "bytes": null}));
    user.command("export har /var/s.har");
    user.refuse();
    user.command("save /var/copy.jsonl");
    user.answer(json!([1, 2]));
    user.keys(&["ctrl-w"]);
    let other = user.stage.record.beside("other.jsonl");
    std::fs::copy(user.stage.record.path(), &other).unwrap();
    user.stage.command(&format!("load {}", other.display()));
    user.stage.all_read(9);
    user.each(&["i", "r", "a"]);
    user.command("save /var/copy.jsonl");
}

fn leaving(user: &mut Notices) {
    user.at("a lost proxy", held());
    user.stage.gone("REASON");
    user.tell("the loss");
    user.each(&["i", "F5", "B", "r"]);
    user.at("a record", TestUi::opened(record::ordinary()));
    user.each(&["F5", "B", "i", "r"]);
}

fn servers(user: &mut Notices) {
    user.at("a run that is not a hub", listed());
    user.keys(&["v"]);
    user.at("a record", TestUi::opened(record::ordinary()));
    user.keys(&["v"]);
    user.at("connecting", TestUi::silent(record::empty(), Value::Null));
    user.stage.app.run(UiCommand::Servers, "");
    user.tell("v");
    user.at("a hub without servers", crate::servers::of(json!([])));
    user.keys(&["r"]);
    user.at("the servers of a hub", crate::servers::hub_window());
    user.stage.press(&["j"]);
    for key in ["r", "e", "d", "R"] {
        user.keys(&[key]);
        user.answer(json!({}));
        user.keys(&[key]);
        user.refuse();
    }
    user.keys(&["g", "enter"]);
    user.keys(&["g", "j", "enter"]);
    user.stage.press(&["v"]);
    user.stage.gone("the proxy has ended");
    user.tell("gone");
    user.keys(&["r"]);
}
