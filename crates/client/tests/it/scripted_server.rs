//! A legacy server whose answers are texts that a test chooses, over each transport.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use mcp_proxy_client::{ProxyClient, ProxyClientBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::http::{Body, listen};

/// The answer to a request, or nothing. `ID` stands for the request's id.
pub(crate) type Script = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// How the answers travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Lines,
    JsonBodies,
    EventStreams,
}

pub(crate) const CARRIERS: [Carrier; 3] =
    [Carrier::Lines, Carrier::JsonBodies, Carrier::EventStreams];

/// Answers everything but the opening with `answer`.
pub(crate) fn always(answer: impl Into<String>) -> Script {
    let answer = answer.into();
    Arc::new(move |_| Some(answer.clone()))
}

/// A client of a server with this script. It fails in the end, if the client does not wait for less.
pub(crate) async fn connect(
    carrier: Carrier,
    script: Script,
    builder: ProxyClientBuilder,
) -> ProxyClient {
    let builder = builder.timeout(Duration::from_secs(60));
    if carrier == Carrier::Lines {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(answer_lines(theirs, script));
        let (reader, writer) = tokio::io::split(ours);
        return builder.connect_stream(reader, writer).await.unwrap();
    }
    let (address, _) =
        listen(move |request| answer_request(request, carrier, script.clone())).await;
    builder
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap()
}

async fn answer_lines(stream: tokio::io::DuplexStream, script: Script) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(answer) = answer(&serde_json::from_str(&line).unwrap(), &script) {
            let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
        }
    }
}

async fn answer_request(
    request: Request<Incoming>,
    carrier: Carrier,
    script: Script,
) -> Response<Body> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(answer) = answer(&message, &script) else {
        let nothing = Response::builder().status(StatusCode::ACCEPTED);
        return nothing.body(Full::default().boxed()).unwrap();
    };
    let (content_type, body) = match carrier {
        Carrier::EventStreams => ("text/event-stream", format!("data: {answer}\n\n")),
        _ => ("application/json", answer),
    };
    let response = Response::builder().header("content-type", content_type);
    response.body(Full::from(body).boxed()).unwrap()
}

fn answer(message: &Value, script: &Script) -> Option<String> {
    let id = message.get("id")?;
    let text = match message["method"].as_str()? {
        "server/discover" => {
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"unknown"}}"#.to_owned()
        }
        "initialize" => json!({"jsonrpc": "2.0", "id": "ID", "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "scripted", "version": "1"}}})
        .to_string()
        .replace("\"ID\"", "ID"),
        _ => script(message)?,
    };
    Some(text.replacen("ID", &id.to_string(), 1))
}
