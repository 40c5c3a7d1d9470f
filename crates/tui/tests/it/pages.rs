//! Pages that the program makes: the keys, and the screens of `docs/tui.md`.
//!
//! `UPDATE_DOCS=1 cargo test -p mcp-proxy-tui` writes them anew.

use std::path::PathBuf;

use mcp_proxy_tui::keys_page;

use crate::scenes::{self, SCENES};

/// Screens of the page.
const WIDTH: u16 = 100;
const HEIGHT: u16 = 20;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

/// The page says this, or is made to.
fn compare(name: &str, expected: &str) {
    let path = page(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is not what the program makes now: `UPDATE_DOCS=1 cargo test -p mcp-proxy-tui pages` writes it anew"
    );
}

#[test]
fn the_keys() {
    compare("keys.md", &keys_page());
}

/// Every code block behind a `<!-- screen: NAME -->` is the screen of that name.
#[test]
fn the_screens() {
    let found = std::fs::read_to_string(page("tui.md")).unwrap();
    let mut made = String::new();
    let mut lines = found.lines();
    let mut screens = 0;
    while let Some(line) = lines.next() {
        made.push_str(line);
        made.push('\n');
        let Some(name) = line
            .strip_prefix("<!-- screen: ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        screens += 1;
        let scene = SCENES.iter().find(|(scene, _)| *scene == name);
        let (_, scene) = scene.unwrap_or_else(|| panic!("docs/tui.md: there is no screen {name}"));
        let screen = scene().screen(WIDTH, HEIGHT);
        made.push_str(&format!("```text\n{screen}```\n"));
        assert_eq!(lines.next(), Some("```text"), "docs/tui.md: {name}");
        assert!(lines.any(|line| line == "```"), "docs/tui.md: {name}");
    }
    assert!(screens >= 6, "only {screens} screens");
    compare("tui.md", &made);
}

/// The walk-through of the page, key by key.
#[test]
fn the_walk() {
    let mut stage = scenes::listed();
    stage.press(&["!"]);
    stage.all_read(9);
    assert_eq!(stage.selected(), Some(9));
    assert_eq!(stage.app.tabs[0].view.len(), 1);
    stage.press(&["!"]);
    stage.all_read(9);
    stage.press(&["p", "B", "enter"]);
    let filter = r#".tool == "read_file" and .direction == "client_to_server""#;
    let filter = serde_json::json!({ "filter": filter });
    stage.expect("breakpoints.add", filter, Ok(serde_json::json!({"id": 1})));
    let mut stage = scenes::editing();
    stage.press(&["ctrl-s"]);
    assert_eq!(stage.asked()[0].1["action"], "modify");
    let mut stage = scenes::replayed();
    stage.press(&["D", "esc", "X"]);
    stage.letters("~/evidence.har");
    stage.press(&["enter"]);
    assert_eq!(stage.asked()[0].0, "export");
}
