//! A proxy that names no record.

use serde_json::{Value, json};

use crate::record;
use crate::test_ui::TestUi;

fn hello() -> Value {
    json!({"protocol": 1, "target": "python server.py", "server": "stdio", "client": "stdio", "record": null, "pid": 1})
}

fn greeted(hello: Value) -> TestUi {
    let mut stage = TestUi::silent(record::ordinary(), hello);
    stage.until("the proxy has said who it is", |app| !app.tabs.is_empty());
    stage
}

#[test]
fn a_proxy_that_names_no_record_is_shown_without_messages() {
    let mut stage = greeted(hello());
    let screen = stage.screen(100, 20);
    assert!(screen.contains("the proxy names no record"), "{screen}");
}

#[test]
fn without_a_record_the_proxy_says_why_it_saves_nothing() {
    let mut stage = greeted(hello());
    stage.asked();
    stage.command("save /var/copy.jsonl");
    let why = "this run keeps no record";
    stage.expect("save", json!({"output": "/var/copy.jsonl"}), Err(why));
    stage.complains(&[why]);
}

#[test]
fn the_title_says_where_clients_connect() {
    let title = |stage: &mut TestUi| stage.screen(100, 20).lines().next().unwrap().to_owned();
    let mut stage = greeted(hello());
    let over_stdio = title(&mut stage);
    let mut hello = hello();
    hello["client"] = json!("streamable_http");
    let mut stage = greeted(hello.clone());
    let over_http = title(&mut stage);
    hello["listens"] = json!("http://127.0.0.1:8888/mcp");
    let mut stage = greeted(hello);
    let at_address = title(&mut stage);
    assert!(at_address.contains("http://127.0.0.1:8888/mcp → python"));
    insta::assert_snapshot!("titles", [over_stdio, over_http, at_address].join("\n"));
}
