//! A proxy without a record is asked for its messages.

use mcp_proxy_session::{BodyInclusion, SessionRecord};
use serde_json::{Value, json};

use crate::record;
use crate::test_ui::TestUi;
use mcp_proxy_session::testing::SampleRecord;

/// The messages as `get` gives them.
fn rows(record: &SampleRecord) -> Vec<Value> {
    let session = SessionRecord::open(record.path()).unwrap();
    let told = (0..session.len()).map(|row| session.message_with_context(row).unwrap());
    told.map(|told| serde_json::from_slice(told.to_json(BodyInclusion::Include).as_ref()).unwrap())
        .collect()
}

fn hello() -> Value {
    json!({"protocol": 1, "target": "python server.py", "server": "stdio", "client": "stdio", "record": null, "pid": 1})
}

#[test]
fn messages_are_fetched_portion_by_portion() {
    let record = record::ordinary();
    let rows = rows(&record);
    let mut stage = TestUi::with(record, hello());
    let params = json!({"from": 1, "limit": 1000, "raw": true});
    let portion = json!({"rows": rows[..5], "next": 6, "first": 1, "upto": 9});
    stage.expect("get", params.clone(), Ok(portion));
    let portion = json!({"rows": rows[5..], "next": null, "first": 1, "upto": 9});
    let rest = json!({"from": 6, "limit": 1000, "raw": true});
    stage.expect("get", rest, Ok(portion));
    stage.all_read(9);
    assert_eq!(stage.selected(), Some(9));
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(8));
    // While one question is under way there is no second; verdicts come with rows that are known.
    stage.notice("rows", json!({"upto": 9}));
    stage.notice("rows", json!({"upto": 9}));
    let mut told = rows[7].clone();
    told["dropped"] = json!(true);
    let portion = json!({"rows": [told], "next": null, "first": 1, "upto": 9});
    stage.expect("get", params, Ok(portion));
    stage.command("filter .dropped");
    stage.until("it is found", |app| app.tabs[0].view.len() == 1);
}

#[test]
fn without_a_record_the_proxy_says_why_it_saves_nothing() {
    let mut stage = TestUi::with(record::ordinary(), hello());
    stage.asked();
    stage.command("save /var/copy.jsonl");
    let why = "this run keeps no record";
    stage.expect("save", json!({"output": "/var/copy.jsonl"}), Err(why));
    stage.complains(&[why]);
}

#[test]
fn the_title_says_where_clients_connect() {
    let title = |stage: &mut TestUi| stage.screen(100, 20).lines().next().unwrap().to_owned();
    let mut stage = TestUi::with(record::ordinary(), hello());
    let over_stdio = title(&mut stage);
    let mut hello = hello();
    hello["client"] = json!("streamable_http");
    let mut stage = TestUi::with(record::ordinary(), hello.clone());
    let over_http = title(&mut stage);
    hello["listens"] = json!("http://127.0.0.1:8888/mcp");
    let mut stage = TestUi::with(record::ordinary(), hello);
    let at_address = title(&mut stage);
    assert!(at_address.contains("http://127.0.0.1:8888/mcp → python"));
    insta::assert_snapshot!("titles", [over_stdio, over_http, at_address].join("\n"));
}
