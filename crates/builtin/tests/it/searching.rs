//! `search_files` and `search_text`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::testbed::Testbed;

fn project() -> Testbed {
    let testbed = Testbed::read_only();
    testbed.file("src/main.rs", "fn main() {\n    run();\n}\n");
    testbed.file("src/deep/lib.rs", "pub fn run() {}\r\n");
    testbed.file("README.md", "Run it. a.b\n");
    testbed.file(".git/config", "run");
    testbed.file("logo.bin", b"run\0run");
    symlink("..", testbed.inside("src/up")).unwrap();
    testbed
}

fn matches(testbed: &Testbed, tool: &str, arguments: Value) -> Value {
    let called = testbed.call(tool, arguments);
    assert_eq!(called.value()["truncated"], false);
    called.value()["matches"].clone()
}

#[test]
fn files_are_found_by_glob() {
    let testbed = project();
    let find = |arguments| matches(&testbed, "search_files", arguments);
    assert_eq!(
        find(json!({ "pattern": "*.rs" })),
        json!(["src/deep/lib.rs", "src/main.rs"])
    );
    assert_eq!(
        find(json!({ "pattern": "src/*" })),
        json!(["src/deep/", "src/main.rs", "src/up"])
    );
    assert_eq!(
        find(json!({ "pattern": "*.rs", "path": "src/deep" })),
        json!(["src/deep/lib.rs"])
    );
    assert_eq!(find(json!({ "pattern": "config" })), json!([]));
    assert_eq!(find(json!({ "pattern": "../*" })), json!([]));
    let secret = testbed.outside("secret.rs");
    fs::write(secret, "").unwrap();
    assert_eq!(find(json!({ "pattern": "**/secret*" })), json!([]));
}

#[test]
fn lines_are_found_by_text_and_by_regex() {
    let testbed = project();
    let find = |arguments| matches(&testbed, "search_text", arguments);
    assert_eq!(
        find(json!({ "query": "run()" })),
        json!([
            { "path": "src/deep/lib.rs", "line": 1, "text": "pub fn run() {}" },
            { "path": "src/main.rs", "line": 2, "text": "    run();" },
        ])
    );
    assert_eq!(
        find(json!({ "regex": "^fn \\w+" }))[0]["path"],
        "src/main.rs"
    );
    assert_eq!(find(json!({ "regex": "(?i)^run" }))[0]["path"], "README.md");
    assert_eq!(
        find(json!({ "regex": r"\{\}$" }))[0]["path"],
        "src/deep/lib.rs"
    );
    assert_eq!(find(json!({ "query": "a.b" })).as_array().unwrap().len(), 1);
    assert_eq!(find(json!({ "query": "axb" })), json!([]));
    assert_eq!(find(json!({ "query": "run", "glob": "*.md" })), json!([]));
    let one = find(json!({ "query": "run", "path": "src/main.rs" }));
    assert_eq!(one.as_array().unwrap().len(), 1);
}

#[test]
fn bad_searches_are_refused() {
    let testbed = project();
    let table = [
        ("search_files", json!({}), "`pattern`"),
        ("search_files", json!({ "pattern": "[" }), "`pattern`"),
        (
            "search_files",
            json!({ "pattern": "*".repeat(2_000) }),
            "`pattern`",
        ),
        (
            "search_files",
            json!({ "pattern": "*", "path": "../" }),
            "`path`",
        ),
        (
            "search_files",
            json!({ "pattern": "*", "path": "none" }),
            "none",
        ),
        ("search_text", json!({}), "give either"),
        (
            "search_text",
            json!({ "query": "a", "regex": "a" }),
            "give either",
        ),
        ("search_text", json!({ "query": "" }), "`query`"),
        ("search_text", json!({ "regex": "(" }), "`regex`"),
        ("search_text", json!({ "regex": "(?=x)" }), "`regex`"),
        (
            "search_text",
            json!({ "regex": "(((a{100}){100}){100}){100}" }),
            "`regex`",
        ),
        (
            "search_text",
            json!({ "query": "a", "glob": "{" }),
            "`glob`",
        ),
    ];
    for (tool, arguments, start) in table {
        let called = testbed.call(tool, arguments.clone());
        assert!(
            called.failure().starts_with(start),
            "{arguments}: {}",
            called.0
        );
    }
}

#[test]
fn results_are_capped() {
    let testbed = Testbed::read_only();
    testbed.file("many.txt", "match\n".repeat(2_000));
    let called = testbed.call("search_text", json!({ "query": "match" }));
    assert_eq!(called.value()["matches"].as_array().unwrap().len(), 500);
    assert_eq!(called.value()["truncated"], true);

    // Control characters take six bytes each in JSON.
    testbed.file(
        "many.txt",
        format!("{}\n", "\u{1}".repeat(400)).repeat(2_000),
    );
    let called = testbed.call("search_text", json!({ "regex": "." }));
    assert_eq!(called.value()["truncated"], true);
    assert!(called.text().len() <= 256 << 10);
}

#[test]
fn a_match_in_a_long_line_is_shown() {
    let testbed = Testbed::read_only();
    let filler = "ü".repeat(5_000);
    testbed.file("long.txt", format!("{filler}needle{filler}"));
    let found = matches(&testbed, "search_text", json!({ "query": "needle" }));
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.contains("needle") && text.len() <= 500, "{text}");
}

#[test]
fn deep_directories_end_somewhere() {
    let testbed = Testbed::read_only();
    let path = "d/".repeat(100);
    testbed.file(&format!("{path}bottom.txt"), "x");
    testbed.file("d/top.txt", "x");
    let found = matches(&testbed, "search_files", json!({ "pattern": "*.txt" }));
    assert_eq!(found, json!(["d/top.txt"]));
    let read = testbed.call("read_file", json!({ "path": format!("{path}bottom.txt") }));
    assert_eq!(read.text(), "x");
}

#[test]
fn hard_regexes_stay_linear() {
    let testbed = Testbed::read_only();
    testbed.file("a.txt", "a".repeat(50_000));
    let found = matches(&testbed, "search_text", json!({ "regex": "(a*)*(a+)+$b" }));
    assert_eq!(found, json!([]));
}
