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
    assert_eq!(stage.said(), format!("{} is no file", missing.display()));
}

#[test]
fn what_was_written_is_told() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["S"]);
    stage.letters("/var/copy.jsonl");
    stage.press(&["enter"]);
    let answer = Ok(json!({"output": "/var/copy.jsonl", "bytes": 5120}));
    stage.expect("save", json!({"output": "/var/copy.jsonl"}), answer);
    assert_eq!(stage.said(), "saved: /var/copy.jsonl, 5120 bytes");
    stage.press(&["X"]);
    stage.letters("/var/s.har");
    stage.press(&["enter"]);
    let params = json!({"format": "har", "output": "/var/s.har"});
    stage.expect("export", params, Err("/var/s.har is there already"));
    assert_eq!(stage.said(), "/var/s.har is there already");
    stage.command("export har");
    assert!(stage.said().starts_with("export what, and where?"));
    assert_eq!(stage.asked(), []);
}

#[test]
fn a_record_is_opened_beside_the_live_session() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("load /nowhere/at/all.jsonl");
    assert_eq!(stage.said(), "/nowhere/at/all.jsonl is no file");
    let notes = stage.record.beside("notes.txt");
    std::fs::write(&notes, "hello\n").unwrap();
    stage.command(&format!("load {}", notes.display()));
    let said = format!("{} is not a session record", notes.display());
    assert!(stage.said().starts_with(&said), "{}", stage.said());
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
    assert!(stage.said().contains("only the live session"));
    stage.press(&["r"]);
    assert_eq!(stage.asked(), []);
    stage.press(&["]"]);
    assert_eq!(stage.app.tab, 0);
    stage.press(&["ctrl-w"]);
    assert_eq!(stage.said(), "this session stays open; q leaves");
    stage.press(&["[", "ctrl-w"]);
    assert_eq!((stage.app.tab, stage.app.tabs.len()), (0, 1));
}

#[test]
fn a_record_alone_is_copied_by_whoever_opened_it() {
    let mut stage = TestUi::opened(record::ordinary());
    stage.command("export markdown /var/s.md");
    let record = stage.app.tabs[0].view.path().unwrap().to_owned();
    let params = json!({"format": "markdown", "output": "/var/s.md", "record": record});
    let answer = json!({"output": "/var/s.md", "bytes": Value::Null});
    stage.expect("export", params, Ok(answer));
    assert_eq!(stage.said(), "exported: /var/s.md");
    stage.press(&["ctrl-w"]);
    assert_eq!(stage.app.tabs.len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_is_told() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("save /var/copy.jsonl");
    let params = json!({"output": "/var/copy.jsonl"});
    stage.expect("save", params, Ok(json!([1, 2])));
    assert!(
        stage
            .said()
            .starts_with("the proxy's answer cannot be read")
    );
}
