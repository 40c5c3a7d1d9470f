//! Servers at a URL, in both eras.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mcp_proxy_client::rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use mcp_proxy_client::rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use mcp_proxy_client::{
    CallOptions, CapabilityType, ClientError, ConnectError, ProxyClient, ProxyTool,
};
use serde_json::{Value, json};

use crate::plain_server::{FILLERS, PlainServer, legacy, modern, object};

pub(crate) type Body = BoxBody<Bytes, std::convert::Infallible>;

/// What arrived: the method, the path, and the value of `x-key`.
pub(crate) type Seen = Arc<Mutex<Vec<(Method, String, Option<String>)>>>;

/// Answers each request with `answer`.
pub(crate) async fn listen<F, A>(answer: A) -> (SocketAddr, Seen)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answer, log) = (answer.clone(), Arc::clone(&log));
            let service = service_fn(move |request: Request<Incoming>| {
                let key = request
                    .headers()
                    .get("x-key")
                    .map(|key| key.to_str().unwrap().to_owned());
                let path = request.uri().path().to_owned();
                log.lock()
                    .unwrap()
                    .push((request.method().clone(), path, key));
                let answer = answer(request);
                async move { Ok::<_, std::convert::Infallible>(answer.await) }
            });
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, seen)
}

/// rmcp's own HTTP server with the tool, at `/mcp`. Another path is redirected there.
async fn rmcp_server() -> (SocketAddr, Seen) {
    let factory = || Ok(ProxyTool::new(PlainServer::default()).into_handler());
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(factory, sessions, StreamableHttpServerConfig::default());
    listen(move |request| {
        let service = service.clone();
        async move {
            if request.uri().path() != "/mcp" {
                let redirect = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
                let redirect = redirect.header("location", "/mcp");
                return redirect.body(Full::default().boxed()).unwrap();
            }
            mcp_proxy_client::write_annotations(service.handle(request).await).map(BodyExt::boxed)
        }
    })
    .await
}

#[tokio::test]
async fn a_server_of_either_era_is_used_over_http() {
    let (address, _) = rmcp_server().await;
    let builder = || ProxyClient::builder().transparent(true);
    for builder in [
        builder(),
        builder().lifecycle(legacy()),
        builder().lifecycle(modern()),
    ] {
        let client = builder
            .connect(format!("http://{address}/mcp"))
            .await
            .unwrap();
        assert_eq!(client.list_tools().await.unwrap().len(), FILLERS + 7);
        let arguments = Some(object(json!({"a": 1, "b": 2})));
        let sum = client.call_tool("add", arguments).await.unwrap();
        assert_eq!(sum.structured_content, Some(json!({"sum": 3.0})));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        let options = CallOptions::new().progress(move |progress| {
            reports.lock().unwrap().push(progress.progress);
        });
        client
            .with_options(options)
            .call_tool("count", ())
            .await
            .unwrap();
        assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0]);
        let error = client.call_tool("refuse", ()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Protocol { code: -32_050, .. }),
            "{error}"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn the_tool_annotates_its_answers_over_http() {
    let (address, _) = rmcp_server().await;
    let builder = ProxyClient::builder().transparent(true).lifecycle(modern());
    let client = builder
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap();
    let arguments = json!({"action": "list", "type": "tool", "limit": 1});
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "proxy",
        "arguments": arguments, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"}}}});
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::post("/mcp")
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "proxy")
        .body(Full::<Bytes>::from(call.to_string()))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let message = text
        .lines()
        .find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(line)
                .ok()
                .filter(|message| message["id"] == 5)
        })
        .unwrap_or_else(|| panic!("{text}"));
    let annotations = &message["result"]["content"][0]["annotations"];
    assert_eq!(annotations["pythonType"], "Tool", "{message}");
    assert_eq!(annotations["totalCount"], FILLERS + 7);
    client.close().await;
}

#[tokio::test]
async fn headers_are_sent_redirects_followed_and_sessions_ended() {
    let (address, seen) = rmcp_server().await;
    let builder = ProxyClient::builder()
        .lifecycle(legacy())
        .header("X-Key", "k1");
    let client = builder
        .connect(format!("http://{address}/elsewhere"))
        .await
        .unwrap();
    client.list_prompts().await.unwrap();
    client.close().await;
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter().all(|(_, _, key)| key.as_deref() == Some("k1")),
        "{seen:?}"
    );
    assert!(
        seen.iter()
            .any(|(method, path, _)| *method == Method::DELETE && path == "/mcp"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_port_without_a_server_is_an_error_with_its_causes() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = ProxyClient::connect(format!("http://{address}/mcp"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            &error,
            ClientError::Connect {
                source: ConnectError::Unreachable(_),
                ..
            }
        ),
        "{error}"
    );
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let refused = cause.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let error = ProxyClient::connect("http://[broken").await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

/// Why a client cannot connect to a server that answers everything like this.
async fn refusal(
    status: StatusCode,
    content_type: &'static str,
    body: &'static str,
) -> ClientError {
    let (address, _) = listen(move |_| async move {
        let page = Response::builder()
            .status(status)
            .header("www-authenticate", "Bearer realm=\"secret\"")
            .header("content-type", content_type);
        page.body(Full::from(body).boxed()).unwrap()
    })
    .await;
    ProxyClient::builder()
        .header("Authorization", "Bearer secret")
        .connect(format!("http://user:secret@{address}/mcp?key=secret"))
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_status_that_says_no_is_in_the_error() {
    let mut texts = Vec::new();
    for code in [400, 401, 403, 404, 405, 429, 500, 503] {
        for (content_type, body) in [
            ("text/html", "<html>secret</html>"),
            ("application/json", "{\"detail\":\"secret\"}"),
            ("text/plain", ""),
        ] {
            let status = StatusCode::from_u16(code).unwrap();
            let error = refusal(status, content_type, body).await;
            let ClientError::Connect { source, .. } = &error else {
                panic!("{error}");
            };
            assert!(
                matches!(source, ConnectError::Http { status, .. } if *status == code),
                "{code} {content_type} {source:?}"
            );
            let text = error.with_causes();
            assert!(!text.contains("secret"), "{text}");
            if body.is_empty() {
                texts.push(source.to_string());
            }
        }
    }
    insta::assert_snapshot!(texts.join("\n"));
}

#[tokio::test]
async fn a_page_that_is_not_mcp_is_named() {
    let error = refusal(StatusCode::OK, "text/html; charset=utf-8", "<html>").await;
    assert!(
        matches!(
            &error,
            ClientError::Connect {
                source: ConnectError::WebPage,
                ..
            }
        ),
        "{error:?}"
    );
    let error = refusal(StatusCode::OK, "text/plain", "hello").await;
    assert!(
        matches!(
            &error,
            ClientError::Connect {
                source: ConnectError::NotMcp { .. },
                ..
            }
        ),
        "{error:?}"
    );
    let error = refusal(StatusCode::OK, "application/json", "{\"ok\":true}").await;
    assert!(
        matches!(
            &error,
            ClientError::Connect {
                source: ConnectError::Decode { .. },
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_request_that_fails_leaves_the_conversation_open() {
    let failures = Arc::new(Mutex::new(1));
    let (address, _) = listen(move |request| {
        let failures = Arc::clone(&failures);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("initialize") => {
                    json!({"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}},
                    "serverInfo": {"name": "t", "version": "1"}})
                }
                Some("prompts/list") if *failures.lock().unwrap() > 0 => {
                    *failures.lock().unwrap() -= 1;
                    let down = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
                    return down.body(Full::default().boxed()).unwrap();
                }
                Some("prompts/list") => json!({"prompts": [{"name": "p"}]}),
                _ => {
                    let accepted = Response::builder().status(StatusCode::ACCEPTED);
                    return accepted.body(Full::default().boxed()).unwrap();
                }
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let response = Response::builder().header("content-type", "application/json");
            response
                .body(Full::from(answer.to_string()).boxed())
                .unwrap()
        }
    })
    .await;
    let client = ProxyClient::builder()
        .lifecycle(legacy())
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap();
    let error = client.list_prompts().await.unwrap_err();
    assert!(matches!(error, ClientError::Transport(_)), "{error:?}");
    assert!(
        error.with_causes().contains("503"),
        "{}",
        error.with_causes()
    );
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
}

/// A legacy server that writes its facts only into annotations, as an event stream, with a page of one tool.
async fn annotating_server(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let arguments = &message["params"]["arguments"];
    let offset = arguments["offset"].as_u64().unwrap_or(0);
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "annotating", "version": "1"}})
        }
        Some("tools/list") => {
            json!({"tools": [{"name": "proxy", "inputSchema": {"type": "object", "properties":
            {"action": {"enum": ["list", "info", "call"]}, "type": {}, "path": {}, "args": {}, "limit": {}, "offset": {}}}}]})
        }
        Some("tools/call") if arguments["action"] == "list" => {
            let tool = json!([{"name": format!("t{offset}"), "title": null, "inputSchema": {}, "annotations": null,
                "meta": {"from": "python"}}]);
            json!({"content": [{"type": "resource",
                "resource": {"uri": "proxy:list/tool", "mimeType": "application/json", "text": tool.to_string()},
                "annotations": {"pythonType": "Tool", "many": true, "proxyAction": "list", "proxyType": "tool",
                    "totalCount": 3, "offset": offset, "limit": 1}}], "isError": false})
        }
        Some("tools/call") => json!({"content": [{"type": "resource",
            "resource": {"uri": "a://b", "mimeType": "application/json", "text": "{}", "contentType": "text/x-odd"},
            "annotations": {"proxyType": "resource", "proxyAction": "call", "proxyPath": "a://b"}}], "isError": false}),
        Some("server/discover") => {
            let error = json!({"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no session"}});
            let answer = Response::builder().status(StatusCode::BAD_REQUEST);
            let answer = answer.header("content-type", "application/json");
            return answer.body(Full::from(error.to_string()).boxed()).unwrap();
        }
        _ => {
            return Response::builder()
                .status(StatusCode::ACCEPTED)
                .body(Full::default().boxed())
                .unwrap();
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let event = format!(": hello\r\nevent: message\r\ndata: {answer}\r\n\r\n");
    let response = Response::builder().header("content-type", "text/event-stream; charset=utf-8");
    response.body(Full::from(event).boxed()).unwrap()
}

#[tokio::test]
async fn facts_that_are_only_in_annotations_are_kept() {
    let (address, _) = listen(annotating_server).await;
    let builder = ProxyClient::builder().transparent(true);
    let client = builder
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap();
    let tools = client.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["t0", "t1", "t2"]);
    assert_eq!(tools[0].meta.as_ref().unwrap()["from"], "python");
    let read = client.read_resource("a://b").await.unwrap();
    let mime_type = serde_json::to_value(&read.contents[0]).unwrap()["mimeType"].clone();
    assert_eq!(mime_type, "text/x-odd");
    // A batch, which this server does not know, is sent in parts.
    let operations = vec![mcp_proxy_client::BatchOperation::list(CapabilityType::Tool); 3];
    assert_eq!(client.batch(operations).await.unwrap().len(), 3);
    client.close().await;
}
