//! Save, load and export: the proxy writes, so it gets absolute paths.

use std::path::Path;

use serde_json::{Value, json};

use crate::record;
use crate::test_ui::TestUi;

fn output(stage: &mut TestUi) -> String {
    let asked = stage.asked();
    let [(_, params)] = &asked[..] else {
        panic!("one question was expected: {asked:?}");
    };
    params["output"].as_str().unwrap().to_owned()
}

#[test]
fn paths_are_made_absolute_here() {
    let mut stage = TestUi::live(record::ordinary());
    let here = std::env::current_dir().unwrap();
    stage.command("save copy.jsonl");
    assert_eq!(Path::new(&output(&mut stage)), here.join("copy.jsonl"));
    stage.command("save /var/copy.jsonl");
    assert_eq!(output(&mut stage), "/var/copy.jsonl");
    let home = std::env::var_os("HOME").unwrap();
    let home = Path::new(&home);
    stage.command("export har ~/a b.har");
    assert_eq!(Path::new(&output(&mut stage)), home.join("a b.har"));
    stage.command("save ~/copy.jsonl");
    assert_eq!(Path::new(&output(&mut stage)), home.join("copy.jsonl"));
    // Only at the beginning, and only one's own.
    stage.command("save a~/~you.jsonl");
    assert_eq!(Path::new(&output(&mut stage)), here.join("a~/~you.jsonl"));
    stage.command("load ~/nowhere/at/all.jsonl");
    let missing = home.join("nowhere/at/all.jsonl");
    stage.complains(&[&missing.display().to_string()]);
    assert_eq!(stage.app.tabs.len(), 1);
}

#[test]
fn what_was_written_is_told() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["S"]);
    stage.letters("/var/copy.jsonl");
    stage.press(&["enter"]);
    let answer = Ok(json!({"output": "/var/copy.jsonl", "bytes": 5120}));
    stage.expect("save", json!({"output": "/var/copy.jsonl"}), answer);
    stage.says(&["/var/copy.jsonl", "5120"]);
    // The ending decides about the format; without one it is JSON.
    for (path, format) in [
        ("/var/s.json", "json"),
        ("/var/s.HAR", "har"),
        ("/var/s.md", "markdown"),
        ("/var/my s.jsonl", "jsonl"),
        ("/var/s", "json"),
    ] {
        stage.press(&["X"]);
        stage.letters(path);
        stage.press(&["enter"]);
        let params = json!({"format": format, "output": path});
        stage.expect("export", params, Err("no"));
    }
    // A format that is named.
    stage.press(&["X"]);
    stage.letters("har /var/s.txt");
    stage.press(&["enter"]);
    let params = json!({"format": "har", "output": "/var/s.txt"});
    let why = "the proxy's reason";
    stage.expect("export", params, Err(why));
    stage.complains(&[why]);
    // The ending is a name too, not a file to write JSON to.
    stage.command("export md /var/s.txt");
    let params = json!({"format": "markdown", "output": "/var/s.txt"});
    stage.expect("export", params, Err(why));
    for name in ["har", "md"] {
        stage.command(&format!("export {name}"));
        stage.complains(&[":export"]);
    }
    assert_eq!(stage.asked(), []);
}

#[test]
fn a_command_without_its_path_says_what_it_needs() {
    let mut stage = TestUi::live(record::ordinary());
    for name in ["save", "load", "export", "note", "goto"] {
        stage.command(name);
        assert!(stage.is_plain(), "{name}");
        stage.complains(&[&format!(":{name}")]);
        // The line that a key opens, sent as it is.
        let key = match name {
            "save" => "S",
            "load" => "O",
            "goto" => "#",
            _ => continue,
        };
        stage.press(&[key, "enter"]);
        stage.complains(&[&format!(":{name}")]);
    }
    assert_eq!(stage.asked(), []);
}

#[test]
fn a_record_is_opened_beside_the_live_session() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("load /nowhere/at/all.jsonl");
    stage.complains(&["/nowhere/at/all.jsonl"]);
    let notes = stage.record.beside("notes.txt");
    std::fs::write(&notes, "hello\n").unwrap();
    stage.command(&format!("load {}", notes.display()));
    stage.complains(&[&notes.display().to_string()]);
    assert_eq!((stage.app.tab, stage.app.tabs.len()), (0, 1));
    let other = stage.record.beside("other.jsonl");
    std::fs::copy(stage.record.path(), &other).unwrap();
    stage.command(&format!("load {}", other.display()));
    stage.all_read(9);
    assert_eq!(
        (stage.app.tab, stage.app.tabs[1].name.as_str()),
        (1, "other.jsonl")
    );
    // It is written by nobody here, nor sent again.
    stage.command("save /var/copy.jsonl");
    stage.complains(&[]);
    stage.press(&["r"]);
    assert_eq!(stage.asked(), []);
    stage.press(&["]"]);
    assert_eq!(stage.app.tab, 0);
    stage.press(&["ctrl-w"]);
    stage.complains(&[]);
    assert_eq!(stage.app.tabs.len(), 2);
    stage.press(&["[", "ctrl-w"]);
    assert_eq!((stage.app.tab, stage.app.tabs.len()), (0, 1));
}

#[test]
fn a_json_export_is_loaded_like_a_record() {
    let mut stage = TestUi::live(record::ordinary());
    let session = stage.record.open();
    let mut json = Vec::new();
    let exporter = mcp_proxy_session::export::exporter("json").unwrap();
    exporter
        .export(&session, &mut json, &mut |_, _| {})
        .unwrap();
    let path = stage.record.beside("session.json");
    std::fs::write(&path, json).unwrap();
    stage.command(&format!("load {}", path.display()));
    stage.all_read(9);
    assert_eq!(stage.app.tab, 1);
    assert_eq!(stage.app.tabs[1].view.total(), 9);
}

#[test]
fn a_record_alone_is_copied_by_whoever_opened_it() {
    let mut stage = TestUi::opened(record::ordinary());
    stage.command("export markdown /var/s.md");
    let record = stage.app.tabs[0].view.path().unwrap().to_owned();
    let params = json!({"format": "markdown", "output": "/var/s.md", "record": record});
    let answer = json!({"output": "/var/s.md", "bytes": Value::Null});
    stage.expect("export", params, Ok(answer));
    stage.says(&["/var/s.md"]);
    stage.press(&["ctrl-w"]);
    assert_eq!(stage.app.tabs.len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_is_told() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("save /var/copy.jsonl");
    let params = json!({"output": "/var/copy.jsonl"});
    stage.expect("save", params, Ok(json!([1, 2])));
    stage.complains(&[]);
}
