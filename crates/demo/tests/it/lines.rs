//! The server over byte streams, spoken to in hand-written lines.

use mcp_proxy_demo::{DemoContent, serve};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    task::JoinHandle,
};

/// One raw connection to a fresh server.
struct RawConnection {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), mcp_proxy_demo::DemoError>>,
}

impl RawConnection {
    fn connect() -> RawConnection {
        let (ours, theirs) = duplex(64 << 10);
        let (reader, writer) = split(theirs);
        let server = tokio::spawn(serve(DemoContent::WithFixtures, reader, writer));
        let (reader, writer) = split(ours);
        RawConnection {
            lines: BufReader::new(reader).lines(),
            writer,
            server,
        }
    }

    async fn send(&mut self, message: Value) {
        self.writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap();
        serde_json::from_str(&line.expect("a message before the end")).unwrap()
    }

    /// The next message with this id, and the notifications before it.
    async fn answer(&mut self, id: Value) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return (message, before);
            }
            before.push(message);
        }
    }

    async fn hang_up(mut self) {
        self.writer.shutdown().await.unwrap();
        self.server.await.unwrap().unwrap();
    }
}

fn modern(id: u32, method: &str, mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    params["_meta"] = meta;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[tokio::test]
async fn a_legacy_session_in_raw_lines() {
    let mut raw = RawConnection::connect();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
    });
    raw.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
        .await;
    let (answer, _) = raw.answer(json!(1)).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    raw.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;

    // A watched resource is announced, an unwatched one is not.
    let echo = json!({ "name": "echo", "arguments": { "message": "hi" } });
    raw.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": echo }))
        .await;
    let (answer, before) = raw.answer(json!(2)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hi");
    assert!(before.is_empty(), "{before:?}");
    let uri = json!({ "uri": "demo://tally" });
    raw.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": uri }))
        .await;
    raw.answer(json!(3)).await;
    raw.send(json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": echo }))
        .await;
    let (_, before) = raw.answer(json!(4)).await;
    assert_eq!(before[0]["method"], "notifications/resources/updated");
    raw.send(json!({ "jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": uri }))
        .await;
    let (answer, _) = raw.answer(json!(5)).await;
    assert_eq!(answer["result"]["contents"][0]["text"], r#"{"calls":2}"#);

    // This client cannot be asked, so asking is an error and not a wait.
    let ask = json!({ "name": "ask_name" });
    raw.send(json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": ask }))
        .await;
    let (answer, _) = raw.answer(json!(6)).await;
    assert_eq!(answer["error"]["code"], -32600);
    raw.hang_up().await;
}

#[tokio::test]
async fn modern_requests_in_raw_lines() {
    let mut raw = RawConnection::connect();
    raw.send(modern(1, "server/discover", json!({}))).await;
    let (answer, _) = raw.answer(json!(1)).await;
    let versions = answer["result"]["supportedVersions"]
        .as_array()
        .unwrap()
        .clone();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));

    raw.send(modern(2, "tools/call", json!({ "name": "ask_name" })))
        .await;
    let (answer, _) = raw.answer(json!(2)).await;
    assert_eq!(answer["result"]["resultType"], "input_required");
    assert_eq!(
        answer["result"]["inputRequests"]["name"]["method"],
        "elicitation/create"
    );

    let responses = json!({ "name": { "action": "accept", "content": { "name": "Grace" } } });
    raw.send(modern(
        3,
        "tools/call",
        json!({ "name": "ask_name", "inputResponses": responses }),
    ))
    .await;
    let (answer, _) = raw.answer(json!(3)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Grace!");

    // Without a log level in the request, nothing may be logged.
    raw.send(modern(4, "tools/call", json!({ "name": "count_down" })))
        .await;
    let (answer, before) = raw.answer(json!(4)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Lift-off!");
    assert!(before.is_empty(), "{before:?}");

    // Whoever listens hears of a change, and of the end.
    let filter = json!({ "notifications": { "resourceSubscriptions": ["demo://tally"] } });
    raw.send(modern(5, "subscriptions/listen", filter)).await;
    let acknowledged = raw.next().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    raw.send(modern(
        6,
        "tools/call",
        json!({ "name": "greet", "arguments": { "name": "you" } }),
    ))
    .await;
    // The answer and the notification take their own ways, so either may come first.
    let pair = [raw.next().await, raw.next().await];
    let changed = pair.iter().find(|message| message["id"].is_null()).unwrap();
    assert_eq!(changed["method"], "notifications/resources/updated");
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        5
    );
    raw.writer.shutdown().await.unwrap();
    raw.answer(json!(5)).await;
    raw.hang_up().await;
}

#[tokio::test]
async fn a_client_that_only_probes_is_no_failure() {
    let mut raw = RawConnection::connect();
    raw.send(modern(1, "server/discover", json!({}))).await;
    raw.answer(json!(1)).await;
    raw.hang_up().await;
}

#[tokio::test]
async fn a_message_over_the_sdks_own_limit_comes_back_whole() {
    let mut raw = RawConnection::connect();
    let text = "x".repeat(17 << 20);
    let echo = json!({ "name": "echo", "arguments": { "message": text } });
    let line = format!("{}\n", modern(1, "tools/call", echo));
    let RawConnection {
        mut lines,
        mut writer,
        server,
    } = raw;
    // Both directions at once: neither side may wait for the other with its buffer full.
    let sent = tokio::spawn(async move {
        writer.write_all(line.as_bytes()).await.unwrap();
        writer
    });
    let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        17 << 20
    );
    raw = RawConnection {
        lines,
        writer: sent.await.unwrap(),
        server,
    };
    raw.hang_up().await;
}
