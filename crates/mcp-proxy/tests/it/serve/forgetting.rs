//! Servers that forget their HTTP session: the hub opens another one, and no call is lost.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::test_hub::TestHub;
use crate::passing::read_request;

/// How a server says that it does not know a session: the status and the body, in which `ID` is the id of the request.
const REFUSALS: [(&str, &str); 7] = [
    (
        "404 Not Found",
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#,
    ),
    (
        "404 Not Found",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
    ),
    (
        "404 Not Found",
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#,
    ),
    ("404 Not Found", "Session not found"),
    ("404 Not Found", ""),
    (
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
    ),
    (
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Missing session ID"}}"#,
    ),
];

/// A server over HTTP whose only tool, which is not read-only, tells in which session it was called.
pub struct SessionServer {
    pub address: String,
    session: Arc<AtomicUsize>,
}

impl SessionServer {
    pub fn start(refusal: (&'static str, &'static str)) -> SessionServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let session = Arc::new(AtomicUsize::new(1));
        let current = Arc::clone(&session);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read_request(&connection);
                let session = format!("s{}", current.load(Ordering::SeqCst));
                let answer = answer(&request, &session, refusal);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        SessionServer { address, session }
    }

    /// Its sessions are unknown from now on.
    fn forget(&self) {
        self.session.fetch_add(1, Ordering::SeqCst);
    }
}

fn answer(request: &str, session: &str, refusal: (&str, &str)) -> String {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return String::new();
    };
    let is_known = head
        .to_lowercase()
        .contains(&format!("mcp-session-id: {session}\r\n"));
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    let result = match method {
        "" => return http("405 Method Not Allowed", session, ""),
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
        }
        _ if !is_known => {
            let body = refusal.1.replace("ID,", &format!("{},", message["id"]));
            return http(refusal.0, session, &body);
        }
        "tools/list" => json!({"tools": [{"name": "write", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": session}]}),
        _ if message["id"].is_null() => return http("202 Accepted", session, ""),
        _ => json!({}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    http("200 OK", session, &answer.to_string())
}

fn http(status: &str, session: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

#[track_caller]
fn assert_session(answer: &Value, session: &str) {
    assert_eq!(answer["result"]["content"][0]["text"], session, "{answer}");
}

#[test]
fn a_server_that_forgets_its_session_is_initialised_again_and_no_call_is_lost() {
    let servers: Vec<SessionServer> = REFUSALS.into_iter().map(SessionServer::start).collect();
    let mut config = json!({"mcpServers": {}});
    for (number, server) in servers.iter().enumerate() {
        let url = format!("http://{}/mcp", server.address);
        config["mcpServers"][format!("s{number}")] = json!({"type": "http", "url": url});
    }
    let hub = TestHub::start(&config, &["--expose", "all"]);
    hub.until("all servers are up", |hub| {
        hub.tool_names().len() == servers.len()
    });
    for (number, server) in servers.iter().enumerate() {
        let call = json!({"name": format!("s{number}_write"), "arguments": {}});
        assert_session(&hub.answer("tools/call", &call), "s1");
        server.forget();
        assert_session(&hub.answer("tools/call", &call), "s2");
        assert_session(&hub.answer("tools/call", &call), "s2");
    }
}

#[test]
fn calls_that_are_refused_together_are_all_sent_again() {
    let server = SessionServer::start(REFUSALS[0]);
    let url = format!("http://{}/mcp", server.address);
    let config = json!({"mcpServers": {"s": {"type": "http", "url": url}}});
    let hub = TestHub::start(&config, &["--expose", "all"]);
    hub.until("the server is up", |hub| hub.tool_names().len() == 1);
    let call = json!({"name": "s_write", "arguments": {}});
    let sessions: Vec<String> = (0..8).map(|_| hub.program.session()).collect();
    for session in &sessions {
        assert_session(&hub.answer_in(session, "tools/call", &call), "s1");
    }
    server.forget();
    std::thread::scope(|scope| {
        for session in &sessions {
            let (hub, call) = (&hub, &call);
            scope.spawn(move || {
                assert_session(&hub.answer_in(session, "tools/call", call), "s2");
            });
        }
    });
}
