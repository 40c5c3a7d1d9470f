//! What a server sees of a replay from HTTP to HTTP: the client's headers, and those that follow the message.

use std::io::Write as _;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{before, number_of, replay};
use crate::control::test_home::{PING, TestHome};
use crate::passing::read_request;
use crate::programs::INITIALIZE;

/// What a server answers to a request.
pub type ScriptedResponse = fn(&str) -> String;

/// A server that answers each request by the next function, and returns the requests it saw.
pub fn scripted(answers: Vec<ScriptedResponse>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut seen, mut open) = (Vec::new(), Vec::new());
        for respond in answers {
            let (stream, _) = listener.accept().unwrap();
            let request = read_request(&stream);
            (&stream).write_all(respond(&request).as_bytes()).unwrap();
            seen.push(request);
            open.push(stream);
        }
        seen
    });
    (url, serving)
}

/// A whole answer.
pub fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The id of the message in a request.
pub fn id_of(request: &str) -> Value {
    let body = request.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str::<Value>(body).unwrap()["id"].clone()
}

#[test]
fn from_http_to_http_it_carries_the_headers_of_the_client() {
    let plain: ScriptedResponse = |request| {
        let answer = json!({"jsonrpc": "2.0", "id": id_of(request), "result": {}});
        let headers = "mcp-session-id: s1\r\ncontent-type: application/json\r\n";
        http("200 OK", headers, &answer.to_string())
    };
    let stream: ScriptedResponse = |request| {
        let id = id_of(request);
        let asks = json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"});
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"n": 1}});
        let body = format!("data: {asks}\n\ndata: {progress}\n\ndata: {answer}\n\n");
        http("200 OK", "content-type: text/event-stream\r\n", &body)
    };
    let taken: ScriptedResponse = |_| http("202 Accepted", "", "");
    let gone: ScriptedResponse = |_| http("401 Unauthorized", "", "who are you");
    let (url, serving) = scripted(vec![plain, plain, stream, taken, gone]);
    let house = TestHome::new();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = before(&house, "http", &target);
    proxy.post(&[], INITIALIZE);
    let headers = [
        ("mcp-session-id", "s1"),
        ("mcp-protocol-version", "2025-11-25"),
        ("authorization", "Bearer t0ken"),
        ("x-tenant", "blue"),
    ];
    proxy.post(&headers, PING);
    let replayed = replay(&house, "sequence=3");
    assert_eq!(replayed["raw"]["result"]["n"], 1);
    let refused = house.refused(&["replay", "sequence=3", "session=live"]);
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(refused["data"]["reason"], "unanswered", "{refused}");
    let text = refused["message"].as_str().unwrap();
    assert!(text.contains("401") && text.contains("who are you"));
    let seen = serving.join().unwrap();
    for request in &seen[2..] {
        for (name, value) in headers {
            assert!(
                request.contains(&format!("{name}: {value}\r\n")),
                "{request}"
            );
        }
        assert_eq!(request.matches("content-length").count(), 1, "{request}");
    }
    assert!(seen[3].contains(r#""id":9,"error":{"code":-32601"#));
    // What was asked and answered belongs together, and the token is nowhere in the record.
    let record = house.record();
    assert!(!record.contains("t0ken"));
    let asked = number_of(&house, "roots/list");
    let answers = format!(r#""answers":{}"#, asked.strip_prefix("sequence=").unwrap());
    assert!(
        house.ctl(&["get"]).to_string().contains(&answers),
        "{record}"
    );
}

#[test]
fn from_http_to_http_a_server_that_is_silent_is_told_and_headers_follow_the_message() {
    let plain: ScriptedResponse = |request| {
        let tool = json!({"name": "add", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}}}});
        let result = json!({"tools": [tool]});
        let answer = json!({"jsonrpc": "2.0", "id": id_of(request), "result": result});
        let headers = "content-type: application/json\r\n";
        http("200 OK", headers, &answer.to_string())
    };
    let silent: ScriptedResponse = |_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        format!("{head}transfer-encoding: chunked\r\n\r\n")
    };
    let taken: ScriptedResponse = |_| http("202 Accepted", "", "");
    let (url, serving) = scripted(vec![plain, plain, silent, taken]);
    let house = TestHome::new();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = before(&house, "http", &target);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    proxy.post(&headers, &list.to_string());
    // A call of the modern era, where the last POST was another method.
    let params = json!({"name": "add", "arguments": {"region": "eu"}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let edit = format!("raw={call}");
    house.ctl(&["replay", "sequence=1", "session=live", &edit]);
    // A server of the older eras is told that nobody waits any more.
    let edit = format!("raw={PING}");
    let words = ["replay", "sequence=1", "session=live", "timeout_ms=200"];
    let refused = house.refused(&[&words[..], &[&edit]].concat());
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(refused["data"]["reason"], "timeout", "{refused}");
    let seen = serving.join().unwrap();
    for header in [
        "mcp-method: tools/call",
        "mcp-name: add",
        "mcp-param-region: eu",
    ] {
        assert!(seen[1].contains(&format!("{header}\r\n")), "{}", seen[1]);
    }
    assert!(seen[2].contains("mcp-method: ping\r\n") && !seen[2].contains("mcp-name"));
    assert!(seen[3].contains("notifications/cancelled"), "{}", seen[3]);
    assert!(seen[3].contains(id_of(&seen[2]).as_str().unwrap()));
}

#[test]
fn from_http_to_http_each_of_several_clients_is_replayed_with_its_own_credentials() {
    let plain: ScriptedResponse = |request| {
        let answer = json!({"jsonrpc": "2.0", "id": id_of(request), "result": {}});
        http(
            "200 OK",
            "content-type: application/json\r\n",
            &answer.to_string(),
        )
    };
    let (url, serving) = scripted(vec![plain; 4]);
    let house = TestHome::new();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = before(&house, "http", &target);
    let ask = |token: &str, id: u32| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"_meta": meta}});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "ping"),
            ("authorization", token),
        ];
        assert_eq!(proxy.post(&headers, &body.to_string()).status, 200);
    };
    ask("Bearer anna", 1);
    ask("Bearer bert", 1);
    replay(&house, "sequence=1");
    // What a replay sent was no client's: nobody can say with whose credentials to send it again.
    let again = number_of(&house, "mcp-proxy-replay-");
    let refused = house.refused(&["replay", &again, "session=live"]);
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(refused["data"]["reason"], "not_live", "{refused}");
    replay(&house, "sequence=3");
    let tokens = serving.join().unwrap().into_iter().map(|request| {
        let line = request
            .lines()
            .find_map(|line| line.strip_prefix("authorization: Bearer "));
        line.unwrap().to_owned()
    });
    assert_eq!(tokens.collect::<Vec<_>>(), ["anna", "bert", "anna", "bert"]);
}
