//! What the proxy did with messages, in everything that is read or exported: a session with one of each.

use mcp_proxy_session::testing::{SamplePace, SampleRecord, event, post, response};
use mcp_proxy_session::{
    BodyInclusion, Filter, MarkOperation, MessageWithContext, RecordEvent, ReplayOrigin,
    SessionRecord, export,
};
use mcp_proxy_wire::Origin;
use serde_json::Value;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// 1 changed call with 2 its changed answer, 3 dropped, 4 answered by 5 of the proxy, 6 of a replay with 7 its failed answer,
/// 8 delayed and redirected, 9 held for three seconds with 10 its answer, 11 held and not decided, 12 not delivered.
fn interventions() -> SampleRecord {
    let mut record = SampleRecord::new();
    let call = |id: u64, tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
        )
    };
    record.call(1, "sum", "{}");
    record
        .verdict("modify", 1)
        .by("rule:1")
        .why("changes params")
        .original(call(1, "sum"))
        .raw(call(1, "total"))
        .write();
    record.result(1, 1, r#"{"content":[{"type":"text","text":"3"}]}"#);
    record
        .verdict("modify", 2)
        .by("rule:2")
        .raw(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}"#)
        .write();
    record.call(3, "erase", "{}");
    record.verdict("drop", 3).write();
    record.call(4, "ask", "{}");
    record.verdict("error", 4).by("user").write();
    record
        .from_server(r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no"}}"#)
        .by(Origin::Proxy)
        .answering(4)
        .write();
    record
        .from_client(call(6, "fail"))
        .by(Origin::Replay)
        .write();
    record.result(6, 6, r#"{"content":[],"isError":true}"#);
    record.call(8, "far", "{}");
    record
        .verdict("delay", 8)
        .by("rule:3")
        .delay(SECOND / 2)
        .write();
    record.verdict("redirect", 8).by("rule:3").write();
    record.call(9, "wait", "{}");
    record.verdict("hold", 9).by("proxy").write();
    record.verdict("forward", 9).after(3 * SECOND).write();
    record
        .from_server(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#)
        .answering(9)
        .after_holding(3 * SECOND)
        .write();
    record.call(11, "open", "{}");
    record.verdict("hold", 11).by("proxy").write();
    record.call(12, "lost", "{}");
    record.io(&RecordEvent::Undelivered {
        sequence: 12,
        why: "gone",
    });
    for line in ["Traceback:", "```", "  \u{1b}[31mboom"] {
        record.stderr(line);
    }
    record
}

fn exported(session: &SessionRecord, format: &str) -> String {
    let mut out = Vec::new();
    let exporter = export::exporter(format).unwrap();
    exporter.export(session, &mut out, &mut |_, _| {}).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(session: &SessionRecord) -> Value {
    serde_json::from_str(&exported(session, "json")).unwrap()
}

#[test]
fn rows_and_messages_know_what_was_done() {
    let session = interventions().open();
    let row = |sequence: u64| session.row(session.find(sequence).unwrap()).unwrap();
    assert!(row(1).is_modified() && row(3).is_dropped() && row(4).is_answered());
    assert!(row(8).is_delayed() && row(8).is_redirected() && row(9).is_held());
    assert!(row(12).is_undelivered() && !row(12).is_held());
    let message = |sequence: u64| session.message(session.find(sequence).unwrap()).unwrap();
    assert_eq!(message(8).held, Some(SECOND / 2));
    assert_eq!(message(9).held, Some(3 * SECOND));
    let answer = message(10);
    assert_eq!(answer.request_held, Some(3 * SECOND));
    assert_eq!(answer.latency, Some(Duration::from_millis(1)));
    assert!(message(11).undecided && message(11).held.is_none());
    // And back from the line that viewers get.
    for sequence in 1..=12 {
        let told = session
            .message_with_context(session.find(sequence).unwrap())
            .unwrap();
        let line = told.to_json(BodyInclusion::Include);
        let read = MessageWithContext::from_json(&line.into()).unwrap();
        assert_eq!(read.remarks(), told.remarks());
        assert_eq!(read.message.request_held, told.message.request_held);
    }
}

#[test]
fn json_says_it_in_the_metadata_and_stays_the_seeds_model() {
    let session = json(&interventions().open());
    for message in session["messages"].as_array().unwrap() {
        let keys: Vec<&str> = message
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys.join(" "),
            "id sequence timestamp direction transport raw jsonrpc_id method correlated_id modified original_raw"
        );
    }
    let told = &session["metadata"]["proxy"];
    let verdict = |number: &str, place: usize| &told[number]["verdicts"][place];
    assert_eq!(verdict("1", 0)["by"], "rule:1");
    assert_eq!(verdict("2", 0)["kind"], "modify");
    assert_eq!(told["3"]["dropped"], true);
    assert_eq!(told["4"]["answered"], true);
    assert_eq!(told["5"]["origin"], "proxy");
    assert_eq!(told["6"]["origin"], "replay");
    assert_eq!(told["7"], Value::Null);
    assert_eq!(
        (&told["8"]["delayed"], &told["8"]["redirected"]),
        (&true.into(), &true.into())
    );
    assert_eq!(verdict("8", 0)["delay_ms"], 500.0);
    assert_eq!(told["9"]["held_ms"], 3000.0);
    assert_eq!(told["10"]["request_held_ms"], 3000.0);
    assert_eq!(told["11"]["undecided"], true);
    assert_eq!(told["12"]["undelivered"], true);
}

#[test]
fn an_import_keeps_what_the_proxy_did() {
    let mut record = interventions();
    let session = record.open();
    let source = record.beside("s.json");
    std::fs::write(&source, exported(&session, "json")).unwrap();
    assert_eq!(json(&SessionRecord::open(&source).unwrap()), json(&session));
}

#[test]
fn har_says_it_next_to_the_message() {
    let har: Value = serde_json::from_str(&exported(&interventions().open(), "har")).unwrap();
    let entry = |sequence: u64| {
        let entries = har["log"]["entries"].as_array().unwrap();
        let of_message = |entry: &&Value| entry["_sequences"][0] == sequence;
        entries.iter().find(of_message).unwrap()
    };
    let changed = entry(1);
    assert_eq!(changed["_sequences"], serde_json::json!([1, 2]));
    assert_eq!(changed["request"]["_modified"], true);
    assert!(
        changed["request"]["_original"]
            .as_str()
            .unwrap()
            .contains("\"sum\"")
    );
    let response = &changed["response"];
    assert_eq!(response["_modified"], true);
    assert!(response["comment"].as_str().unwrap().contains("rule:2"));
    assert!(response["_original"].as_str().unwrap().contains("\"3\""));
    assert_eq!(entry(3)["request"]["_dropped"], true);
    assert_eq!(entry(4)["request"]["_answered"], true);
    assert_eq!(entry(4)["response"]["_origin"], "proxy");
    assert_eq!(entry(6)["request"]["_origin"], "replay");
    assert_eq!(entry(8)["request"]["_delayed"], true);
    assert_eq!(entry(8)["request"]["_redirected"], true);
    assert_eq!(entry(12)["request"]["_undelivered"], true);
    // One that passed as it was has no remark.
    assert_eq!(entry(9)["response"]["comment"], Value::Null);
}

#[test]
fn har_wait_is_the_servers_own_time() {
    let mut record = SampleRecord::new().paced(SamplePace {
        step: 5 * SECOND,
        latency: SECOND,
    });
    record.call(1, "wait", "{}");
    record
        .from_server(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
        .answering(1)
        .after_holding(4 * SECOND)
        .write();
    let har: Value = serde_json::from_str(&exported(&record.open(), "har")).unwrap();
    let entry = &har["log"]["entries"][0];
    assert_eq!(entry["time"], 5000.0);
    assert_eq!(entry["timings"]["wait"], 1000.0);
    assert_eq!(entry["timings"]["blocked"], 4000.0);
    assert_eq!(entry["timings"]["receive"], 0.0);
    assert_eq!(entry["_heldMs"], 4000.0);
}

#[test]
fn har_sequences_of_a_stream_have_the_request_and_all_events() {
    let mut record = SampleRecord::new();
    record
        .from_client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#)
        .carried_by(&post("/mcp", &[]))
        .in_exchange(1)
        .write();
    for (raw, answers) in [
        (
            r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(1)),
    ] {
        let message = record
            .from_server(raw)
            .carried_by(&event("7"))
            .in_exchange(1);
        match answers {
            Some(request) => message.answering(request).write(),
            None => message.write(),
        };
    }
    let har: Value = serde_json::from_str(&exported(&record.open(), "har")).unwrap();
    let entry = &har["log"]["entries"][0];
    assert_eq!(entry["_sequences"], serde_json::json!([1, 2, 3]));
    assert_eq!(entry["timings"]["wait"], 2.0);
}

#[test]
fn markdown_marks_failed_tools_names_answers_and_folds_stderr_last() {
    let report = exported(&interventions().open(), "markdown");
    let row = |sequence: u64| {
        let start = format!("| {sequence} |");
        report
            .lines()
            .find(|line| line.starts_with(&start))
            .unwrap()
    };
    assert!(row(2).contains("| tools/call | total |") && row(2).contains("modified"));
    assert!(row(3).contains("dropped"));
    assert!(row(7).contains("⚠ tool error") && row(7).contains("| tools/call | fail |"));
    assert!(row(8).contains("delayed") && row(8).contains("redirected"));
    assert!(row(9).contains("held 3.00 s"));
    let stderr = report.find("<details>").unwrap();
    assert!(stderr > report.rfind("### #12").unwrap());
    let block = &report[stderr..];
    assert!(block.contains("<summary>3 lines</summary>"), "{block}");
    assert!(block.contains("````text\nTraceback:\n```\n"), "{block}");
    assert!(!block.contains('\u{1b}') && report.trim_end().ends_with("</details>"));
}

#[test]
fn a_failed_tool_is_shown_with_the_first_line_of_what_it_says() {
    let mut record = SampleRecord::new();
    let call = record.call(1, "divide", "{}");
    let text = r#"{"isError":true,"content":[{"type":"image"},{"type":"text","text":"\n division by zero\n  at line 4"}]}"#;
    record.result(1, call, text);
    record.flush();
    let session = record.open();
    let problem = session.message_with_context(1).unwrap().problem().unwrap();
    assert_eq!(problem.what, "tool error");
    assert_eq!(problem.text.as_deref(), Some("division by zero"));
    let report = exported(&session, "markdown");
    assert!(
        report.contains("⚠ tool error: division by zero,"),
        "{report}"
    );
}

#[test]
fn words_find_the_answers_of_a_tool_and_of_a_method() {
    let session = interventions().open();
    let found = |filter: &str| -> Vec<u64> {
        let filter = Filter::parse(filter).unwrap();
        let rows = session.rows().iter();
        rows.filter(|row| filter.matches(&session, row).unwrap())
            .map(|row| row.sequence())
            .collect()
    };
    assert_eq!(found("fail"), [6, 7]);
    assert_eq!(found("tools/call wait"), [9, 10]);
    assert_eq!(found("tools/call"), (1..=12).collect::<Vec<u64>>());
    // The same where there is no record.
    let filter = Filter::parse("wait").unwrap();
    let told = session.message_with_context(9).unwrap();
    assert!(filter.matches_message(&told).unwrap());
}

#[test]
fn an_answer_that_is_exported_brings_its_request() {
    let mut session = interventions().open();
    let filter = Filter::parse(".status == \"error\"").unwrap();
    session.retain_matching(&filter).unwrap();
    let document = json(&session);
    let messages = document["messages"].as_array().unwrap();
    let numbers: Vec<u64> = messages
        .iter()
        .map(|message| message["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [4, 5, 6, 7]);
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    for message in messages {
        let answers = &message["correlated_id"];
        assert!(answers.is_null() || ids.contains(&answers), "{message}");
    }
}

/// A message, its edited replay, and what people noted.
fn noted() -> SampleRecord {
    let mut record = SampleRecord::new();
    record.call(1, "total", "{}");
    record.by(Origin::Replay).call(2, "total", "{}");
    let origin = ReplayOrigin {
        sequence: 1,
        is_edited: true,
    };
    record.verdict("replay", 2).replay_of(origin).write();
    record.io(&RecordEvent::Note {
        text: "of the proxy",
    });
    record.io(&RecordEvent::UserNote {
        sequence: Some(1),
        by: "user (tui, pid 7)",
        text: "a | b",
    });
    record.io(&RecordEvent::UserNote {
        sequence: None,
        by: "user",
        text: "on all of it",
    });
    record.mark(2, MarkOperation::Set);
    record
}

#[test]
fn every_export_has_the_notes_of_people_and_the_origin_of_a_replay() {
    let mut record = noted();
    let session = record.open();
    let notes = session.notes().unwrap();
    let about: Vec<_> = notes.iter().map(|note| note.sequence).collect();
    assert_eq!(about, [Some(1), None, Some(2)]);
    let document = json(&session);
    let told = &document["metadata"]["notes"];
    assert_eq!(
        (&told[0]["by"], &told[0]["text"]),
        (&"user (tui, pid 7)".into(), &"a | b".into())
    );
    assert_eq!(
        (&told[1]["sequence"], &told[2]["mark"]),
        (&Value::Null, &"set".into())
    );
    let replay = &document["metadata"]["proxy"]["2"];
    assert_eq!(
        (&replay["replay_of"], &replay["edited"]),
        (&1.into(), &true.into())
    );
    assert_eq!(replay["verdicts"], Value::Null);
    let har: Value = serde_json::from_str(&exported(&session, "har")).unwrap();
    assert_eq!(&har["log"]["_notes"], told);
    assert_eq!(har["log"]["entries"][1]["request"]["_replayOf"], 1);
    let report = exported(&session, "markdown");
    let (_, bodies) = report.split_once("### #1").unwrap();
    assert!(
        bodies.contains("a \\| b") && report.contains("on all of it"),
        "{report}"
    );
    assert!(exported(&session, "jsonl").contains("on all of it"));
    // And back.
    let source = record.beside("s.json");
    std::fs::write(&source, exported(&session, "json")).unwrap();
    assert_eq!(json(&SessionRecord::open(&source).unwrap()), document);
    // A note on a message that was left out is left out too.
    let mut session = record.open();
    let filter = Filter::parse(".sequence == 2").unwrap();
    session.retain_matching(&filter).unwrap();
    let about: Vec<_> = session
        .notes()
        .unwrap()
        .iter()
        .map(|note| note.sequence)
        .collect();
    assert_eq!(about, [None, Some(2)]);
}

#[test]
fn an_http_error_that_is_not_json_is_an_error_and_said_once() {
    let mut record = SampleRecord::new();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let call = record.from_client(call).carried_by(&post("/mcp", &[]));
    call.in_exchange(1).write();
    let answer = record.from_server("Bad things");
    let answer = answer.carried_by(&response(400, &[])).in_exchange(1);
    let answer = answer.write();
    let session = record.open();
    let filter = Filter::parse(".status == \"error\"").unwrap();
    let rows = session.rows().iter();
    let found = rows.filter(|row| filter.matches(&session, row).unwrap());
    assert!(found.map(|row| row.sequence()).eq([answer]));
    let report = exported(&session, "markdown");
    let (_, body) = report.split_once("### #2").unwrap();
    assert_eq!(body.matches("HTTP 400").count(), 1, "{body}");
}
