//! A client's conversation is in the record, and its token is not.

use std::process::Command;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::TestRelay;
use crate::programs::{PROXY, record_lines};

#[test]
fn conversations_are_recorded_without_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("relay.jsonl");
    let record = record.to_str().unwrap();
    let relay = TestRelay::start(&["--session-file", record]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    client.hear_answer(&json!(3));
    let renewed = relay.token("ada");
    client.ask(4, "mcp_handshake", &json!({"accessToken": renewed}));
    for message in [
        format!(r#"[{{"id":5,"method":"mcp_handshake","params":{{"accessToken":"{renewed}"}}}}]"#),
        format!(r#"{{"id":6,"method":"mcp_handshake","params":{{"accessToken":"{renewed}"}}"#),
        format!(r#"{{"id":7,"method":"mcp_Handshake","params":{{"access_token":"{renewed}"}}}}"#),
        format!(r#"{{"id":"proxy:1","result":{{"accessToken":"{renewed}"}}}}"#),
    ] {
        client.say_text(&message);
    }
    client.ask(8, "list_extensions", &json!({}));
    drop((client, extension));
    let _ = relay.program.end("-TERM");
    let text = std::fs::read_to_string(record).unwrap();
    assert!(!text.contains(&renewed) && !text.contains("\"mcp_handshake"));
    assert!(text.contains("getTabs"), "{text}");
    let transports: Vec<Value> = record_lines(&text)
        .into_iter()
        .filter(|line| line["client"]["name"] == "laptop")
        .map(|line| line["client"]["transport"].clone())
        .collect();
    assert_eq!(transports, [json!("websocket")], "{text}");
}

#[test]
fn tokens_in_answers_reach_the_client_and_not_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("relay.jsonl");
    let relay = TestRelay::start(&["--session-file", record.to_str().unwrap()]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    let token = relay.token("ada");
    let page = "x".repeat(400_000);
    for (id, result) in [
        (
            3,
            json!({"storage": {"accessToken": "s3cret-1", "note": format!("Your token:\n{token}")}}),
        ),
        (
            4,
            json!({"text": json!({"access_token": "s3cret-2"}).to_string()}),
        ),
        // Long enough to be passed on while it comes.
        (
            5,
            json!({"a": page, "accessToken": "s3cret-3", "url": format!("/?t={token}"), "z": page}),
        ),
    ] {
        client.say(&json!({"id": id, "method": "listExtensions"}));
        let asked = extension.hear_command();
        extension.say(&json!({"id": asked["id"], "result": result}));
        assert_eq!(client.hear_answer(&json!(id))["result"], result);
    }
    let shown = ctl(&relay, &["get", "last=100", "raw=true"]).to_string();
    drop((client, extension));
    let _ = relay.program.end("-TERM");
    let text = std::fs::read_to_string(&record).unwrap();
    for text in [&text, &shown] {
        assert!(
            !text.contains(&token) && !text.contains("s3cret"),
            "{text:.2000}"
        );
    }
    let lines = record_lines(&text);
    assert_eq!(lines[0]["redaction"]["presets"], json!(["relay-tokens"]));
    let redacted: Vec<&Value> = lines
        .iter()
        .map(|line| &line["redacted"])
        .filter(|count| !count.is_null())
        .collect();
    assert_eq!(redacted, [&json!(2), &json!(1), &json!(2)]);
    assert!(text.contains(&page));
}

#[test]
fn an_answer_reaches_its_client_with_its_line_breaks() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let id = &extension.hear_command()["id"];
    extension.say_text(&format!("{{\"id\":{id},\r\n\"result\":{{\n\"tabs\":[]}}}}"));
    let answer = loop {
        let text = client.socket.read().unwrap().into_text().unwrap();
        if text.contains("result") && text.contains("tabs") {
            break text;
        }
    };
    assert_eq!(
        answer.as_str(),
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\n\"tabs\":[]}}"
    );
}

#[test]
fn a_client_that_closes_with_open_commands_hears_the_close_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("relay.jsonl");
    let relay = TestRelay::start(&["--session-file", record.to_str().unwrap()]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    extension.hear_command();
    client.socket.close(None).unwrap();
    let said: Vec<Message> = std::iter::from_fn(|| client.socket.read().ok()).collect();
    assert!(
        said.iter()
            .all(|said| !said.is_text() || !said.to_string().contains("\"id\":3")),
        "{said:?}"
    );
    assert!(said.last().is_some_and(Message::is_close), "{said:?}");
    drop(extension);
    let _ = relay.program.end("-TERM");
    let lines = record_lines(&std::fs::read_to_string(&record).unwrap());
    assert!(
        lines.iter().all(|line| line["kind"] != "error"),
        "{lines:?}"
    );
}

#[test]
fn a_command_with_a_token_is_refused_and_never_reaches_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("relay.jsonl");
    let record = record.to_str().unwrap();
    let relay = TestRelay::start(&["--session-file", record]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    let renewed = relay.token("ada");
    let answer = client.ask(3, "mcp_handshake", &json!({"accessToken": renewed}));
    assert_eq!(answer["result"]["authenticated"], true);
    for (id, params) in [
        (4, json!({"access_token": "hidden"})),
        (5, json!({"steps": [{"form": {"accessToken": "hidden"}}]})),
        (6, json!({"url": format!("https://a.test/?t={renewed}")})),
    ] {
        let refused = client.ask(id, "createTab", &params);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(refused["error"]["data"]["reason"], "invalid_params");
    }
    client.say(&json!({"id": renewed, "method": "createTab"}));
    assert_eq!(client.hear_answer(&Value::Null)["error"]["code"], -32602);
    let escaped = renewed.replace('.', "\\u002e");
    client.say_text(&format!(
        r#"{{"id":9,"method":"createTab","params":{{"x":"{escaped}"}}}}"#
    ));
    assert_eq!(client.hear_answer(&json!(9))["error"]["code"], -32602);
    client.say(&json!({"id": 7, "method": "createTab", "params": {"url": "access_token"}}));
    let asked = extension.hear_command();
    assert_eq!(asked["params"]["url"], "access_token");
    assert_eq!(relay.health()["refused"], 5);
    drop((client, extension));
    let _ = relay.program.end("-TERM");
    let text = std::fs::read_to_string(record).unwrap();
    assert!(
        !text.contains(&renewed) && !text.contains("hidden"),
        "{text}"
    );
}

#[test]
fn a_command_is_held_changed_and_sent_again() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    ctl(&relay, &["breakpoints.add", "filter=getTabs", "hits=1"]);
    client.say(&json!({"id": 3, "method": "getTabs", "params": {"of": "client"}}));
    let held = loop {
        let holds = ctl(&relay, &["hold.list"])["holds"].take();
        if let Some(held) = holds.get(0) {
            break held.clone();
        }
    };
    let changed = json!({"id": 3, "method": "getTabs", "params": {"of": "editor"}});
    let verdict = json!({"hold": held["hold"], "action": "modify", "raw": changed});
    ctl(&relay, &["hold.resolve", &verdict.to_string()]);
    let asked = extension.hear_command();
    assert_eq!(asked["params"]["of"], "editor");
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    client.hear_answer(&json!(3));

    let sequence = format!("sequence={}", held["sequence"]);
    let answering = std::thread::spawn(move || {
        let asked = extension.hear_command();
        extension.say(&json!({"id": asked["id"], "result": {"tabs": [], "count": 7}}));
        (asked, extension)
    });
    let replayed = ctl(&relay, &["replay", &sequence]);
    let (asked, _extension) = answering.join().unwrap();
    assert_eq!(asked["method"], "getTabs");
    assert_eq!(replayed["raw"]["result"]["count"], 7, "{replayed}");
    let fresh = ctl(&relay, &["replay", &sequence, "session=fresh"]);
    assert_eq!(fresh["error"]["data"]["reason"], "live_only");
    // The client does not see the answer.
    let listed = client.ask(4, "list_extensions", &json!({}));
    assert_eq!(listed["id"], 4);
}

fn ctl(relay: &TestRelay, words: &[&str]) -> Value {
    let asked = Command::new(PROXY)
        .arg("ctl")
        .args(words)
        .env("XDG_RUNTIME_DIR", relay.file("runtime"))
        .env("TMPDIR", relay.file("runtime"))
        .output()
        .unwrap();
    serde_json::from_slice(&asked.stdout).unwrap_or_else(|_| panic!("{asked:?}"))
}
