//! Transcripts of both eras: `C>` is the client, `S<` the server.

use mcp_proxy_builtin::{BuiltinServer, TimeServer, WriteAccess};
use mcp_proxy_wire::Message;
use serde_json::{Value, json};

use crate::testbed::{Testbed, ask};

fn berlin() -> BuiltinServer {
    BuiltinServer::Time(TimeServer::in_zone("Europe/Berlin").unwrap())
}

/// What the server answers to each line, below that line.
fn transcript(server: &BuiltinServer, lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("C> {line}\n"));
        match server.answer(&Message::parse((*line).to_owned())) {
            Some(answer) => {
                let answer = String::from_utf8(answer.raw().to_vec()).unwrap();
                text.push_str(&format!("S< {answer}\n"));
            }
            None => text.push_str("S  no answer\n"),
        }
    }
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

/// A modern request.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn a_legacy_conversation() {
    let transcript = transcript(
        &berlin(),
        &[
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":"a\/1","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"convert_time","arguments":{"time":"2026-01-15T09:30","source_timezone":"Europe/Berlin","target_timezone":"Asia/Kolkata"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_current_time","arguments":{"timezone":"Europe/Berlim"}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"get_current_time","arguments":{"zone":"UTC"}}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"convert_time","arguments":{"time":"09:30"}}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"get_time"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
        ],
    );
    insta::assert_snapshot!(transcript);
}

#[test]
fn a_modern_conversation() {
    let requests = [
        modern(1, "server/discover", json!({})),
        modern(2, "tools/list", json!({})),
        modern(
            3,
            "tools/call",
            json!({ "name": "convert_time", "arguments": {
                "time": "2026-07-15 23:30:10", "source_timezone": "UTC", "target_timezone": "Europe/Berlin",
            } }),
        ),
        modern(
            4,
            "tools/call",
            json!({ "name": "get_current_time", "arguments": { "timezone": 5 } }),
        ),
        modern(5, "ping", json!({})),
        modern(6, "subscriptions/listen", json!({ "notifications": {} })),
    ];
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    insta::assert_snapshot!(transcript(&berlin(), &lines));
}

#[test]
fn the_tools_of_the_files_server() {
    let testbed = Testbed::new(WriteAccess::ReadWrite);
    let list = ask(testbed.server(), &modern(1, "tools/list", json!({}))).unwrap();
    let list = serde_json::to_string_pretty(&list["result"]["tools"]).unwrap();
    insta::assert_snapshot!(testbed.stable(&list));
}

#[test]
fn every_legacy_version_is_accepted() {
    let table = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("draft", "2025-11-25"),
    ];
    for (requested, expected) in table {
        let params = json!({ "protocolVersion": requested, "capabilities": {} });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = ask(&berlin(), &request).unwrap();
        assert_eq!(answer["result"]["protocolVersion"], expected, "{requested}");
    }
}

#[test]
fn modern_requests_must_say_what_they_are() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let table = [
        (json!({ (version): "2026-07-28" }), -32602),
        (
            json!({ (version): "2026-07-28", (capabilities): 1 }),
            -32602,
        ),
        (json!({ (version): 20260728, (capabilities): {} }), -32602),
        (json!({ (capabilities): {} }), -32602),
        (
            json!({ (version): "2031-01-01", (capabilities): {} }),
            -32022,
        ),
        (
            json!({ (version): "2025-11-25", (capabilities): {} }),
            -32022,
        ),
        (json!({ (version): "", (capabilities): {} }), -32022),
    ];
    for (meta, code) in table {
        let params = json!({ "_meta": meta });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        let answer = ask(&berlin(), &request).unwrap();
        assert_eq!(answer["error"]["code"], code, "{meta}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"]["requested"], meta[version]);
            let supported = answer["error"]["data"]["supported"].as_array().unwrap();
            assert!(supported.contains(&json!("2026-07-28")));
        }
    }
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" });
    assert_eq!(ask(&berlin(), &discover).unwrap()["error"]["code"], -32602);
}

#[test]
fn requests_that_make_no_sense_get_an_error_and_their_id() {
    let table = [
        ("{", -32700, "null"),
        ("", -32700, "null"),
        ("5", -32600, "null"),
        (r#"{"id":3}"#, -32600, "3"),
        ("[]", -32600, "null"),
        (r#"{"id":4,"method":5}"#, -32601, "4"),
        (r#"{"id":null,"method":"x"}"#, -32601, "null"),
        (r#"{"id":5,"method":"tools/call"}"#, -32602, "5"),
        (r#"{"id":6,"method":"tools/call","params":[]}"#, -32602, "6"),
        (
            r#"{"id":7,"method":"tools/call","params":{"name":7}}"#,
            -32602,
            "7",
        ),
        (
            r#"{"id":8,"method":"tools/call","params":{"name":"get_current_time","arguments":[]}}"#,
            -32602,
            "8",
        ),
        (
            r#"{"id":9,"method":"tools/list","params":{"cursor":"x"}}"#,
            -32602,
            "9",
        ),
        (
            r#"{"id":10,"method":"initialize","params":{}}"#,
            -32602,
            "10",
        ),
    ];
    for (request, code, id) in table {
        let answer = berlin()
            .answer(&Message::parse(request.to_owned()))
            .unwrap();
        assert_eq!(answer.error_code(), Some(code), "{request}");
        assert_eq!(answer.id_token(), Some(id.as_bytes()), "{request}");
    }
}

#[test]
fn a_batch_is_answered_in_one_message() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 2, "method": "nothing" },
    ]);
    let answers = ask(&berlin(), &batch).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 2);
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32601);
    let silent = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert_eq!(ask(&berlin(), &silent), None);
}

#[test]
fn writing_tools_are_offered_only_when_enabled() {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let names = |write| {
        let list = ask(Testbed::new(write).server(), &request).unwrap();
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        let name = |tool: Value| tool["name"].as_str().unwrap().to_owned();
        tools.into_iter().map(name).collect::<Vec<_>>()
    };
    let reading = [
        "list_directory",
        "read_file",
        "search_files",
        "search_text",
        "file_info",
    ];
    assert_eq!(names(WriteAccess::ReadOnly), reading);
    assert_eq!(
        names(WriteAccess::ReadWrite),
        [reading.as_slice(), &["write_file", "edit_file"]].concat()
    );
    let write = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "write_file", "arguments": { "path": "x", "content": "" },
    } });
    let testbed = Testbed::read_only();
    assert_eq!(
        ask(testbed.server(), &write).unwrap()["error"]["code"],
        -32602
    );
    assert!(!testbed.inside("x").exists());
}
