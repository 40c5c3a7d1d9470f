//! An MCP server in the test itself, for data that is too large to go through a script.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Answers each call of a tool with the same text, and keeps the arguments that it got.
pub(super) struct DataServer {
    pub(super) url: String,
    calls: Arc<Mutex<Vec<ToolCall>>>,
}

/// A call as it came.
pub(super) struct ToolCall {
    pub(super) tool: String,
    pub(super) arguments: String,
}

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<u64>,
    method: String,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl DataServer {
    /// A server with these tools, each with the text that it answers.
    pub(super) fn start(tools: &[(&str, &str)]) -> DataServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let results = tools.iter().map(|(name, text)| {
            let result = json!({"content": [{"type": "text", "text": text}]});
            ((*name).to_owned(), result.to_string())
        });
        let results: Arc<HashMap<String, String>> = Arc::new(results.collect());
        let kept = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (results, kept) = (Arc::clone(&results), Arc::clone(&kept));
                std::thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    while serve_request(&mut stream, &results, &kept).is_some() {}
                });
            }
        });
        DataServer { url, calls }
    }

    /// The calls since this was last asked.
    pub(super) fn take_calls(&self) -> Vec<ToolCall> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

/// Answers one HTTP request. `None` when there are no more.
fn serve_request(
    stream: &mut BufReader<TcpStream>,
    results: &HashMap<String, String>,
    kept: &Mutex<Vec<ToolCall>>,
) -> Option<()> {
    let body = read_request(stream)?;
    let Some(body) = body else {
        return respond(stream, "405 Method Not Allowed", "");
    };
    let request: Request<'_> = serde_json::from_str(&body).unwrap();
    let Some(id) = request.id else {
        return respond(stream, "202 Accepted", "");
    };
    let initialized = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "data", "version": "1"}});
    let result = match &*request.method {
        "initialize" => initialized.to_string(),
        "tools/list" => {
            let tools = results.keys();
            let tools = tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({"tools": tools.collect::<Vec<_>>()}).to_string()
        }
        "tools/call" => {
            let params = request.params.unwrap();
            let arguments = params.arguments.map_or("", RawValue::get).to_owned();
            let tool = params.name.unwrap();
            let result = results[&tool].clone();
            kept.lock().unwrap().push(ToolCall { tool, arguments });
            result
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return respond(stream, "200 OK", &answer.to_string());
        }
    };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    respond(stream, "200 OK", &answer)
}

/// The body of a POST; `Some(None)` for another method.
fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Option<String>> {
    let mut first = String::new();
    let mut length = 0;
    if stream.read_line(&mut first).ok()? == 0 {
        return None;
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(
        first
            .starts_with("POST")
            .then(|| String::from_utf8(body).unwrap()),
    )
}

fn respond(stream: &mut BufReader<TcpStream>, status: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// A hub's entry for a server at this URL.
pub(super) fn remote(url: &str) -> Value {
    json!({"url": url})
}
