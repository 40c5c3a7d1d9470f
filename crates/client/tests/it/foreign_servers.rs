//! Proxy tools that are wrong about themselves, or of the older specification.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_proxy_client::rmcp::model::*;
use mcp_proxy_client::rmcp::service::RequestContext;
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler};
use mcp_proxy_client::{
    BatchOperation, CallOptions, CapabilityType, ClientError, ProxyClient, ProxyResponseInfo,
};
use mcp_proxy_tool::ProxyToolOptions;
use serde_json::{Value, json};

use crate::plain_server::connect;

/// What a proxy tool does wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It counts items that it does not have.
    CountsTooMany,
    /// It always returns the first page.
    IgnoresOffset,
    /// Each page has new items, for ever.
    NeverEnds,
    /// The text is not JSON.
    NotJson,
    /// The items are not tools.
    OtherItems,
    /// There is no resource in the result.
    NoResource,
}

struct FaultyServer {
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

impl ServerHandler for FaultyServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let definition = mcp_proxy_tool::definition(&ProxyToolOptions::default(), "");
        Ok(ListToolsResult {
            tools: vec![serde_json::from_slice(&definition).unwrap()],
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let offset = arguments["offset"].as_u64().unwrap();
        let items = |from: u64, count: u64| -> Vec<Value> {
            let names = (from..from + count).map(|number| format!("t{number}"));
            names
                .map(|name| json!({"name": name, "inputSchema": {}}))
                .collect()
        };
        let (items, total) = match self.fault {
            Fault::CountsTooMany => (items(offset, 3_u64.saturating_sub(offset)), 1_000_000),
            Fault::IgnoresOffset => (items(0, 5), 1_000_000),
            Fault::NeverEnds => (items(offset, 500), u64::MAX),
            _ => (vec![json!({"uri": "a://b"})], 1),
        };
        let text = match self.fault {
            Fault::NotJson => "[".to_owned(),
            _ => Value::Array(items).to_string(),
        };
        let item = match self.fault {
            Fault::NoResource => json!({"type": "text", "text": text}),
            _ => json!({"type": "resource",
                "resource": {"uri": "proxy:list/tool", "mimeType": "application/json", "text": text},
                "_meta": {"mcp-proxy/proxy": {"proxyAction": "list", "totalCount": total}}}),
        };
        let result = serde_json::from_value(json!({"content": [item], "isError": false})).unwrap();
        Ok(CallToolResponse::Complete(result))
    }
}

async fn list(fault: Fault) -> (Result<Vec<Tool>, ClientError>, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = FaultyServer {
        fault,
        calls: Arc::clone(&calls),
    };
    let client = connect(server, ProxyClient::builder().transparent(true)).await;
    (client.list_tools().await, calls.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_server_that_lies_about_its_count_does_not_keep_us() {
    let (tools, calls) = list(Fault::CountsTooMany).await;
    assert_eq!((tools.unwrap().len(), calls), (3, 2));
    let (tools, calls) = list(Fault::IgnoresOffset).await;
    assert_eq!((tools.unwrap().len(), calls), (5, 2));
    let (tools, calls) = list(Fault::NeverEnds).await;
    assert!(matches!(tools, Err(ClientError::Decode { .. })));
    assert!(calls <= 202, "{calls}");
}

#[tokio::test]
async fn what_cannot_be_decoded_is_an_error() {
    for fault in [Fault::NotJson, Fault::NoResource] {
        let (tools, _) = list(fault).await;
        assert!(
            matches!(tools, Err(ClientError::Decode { .. })),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn items_that_are_not_tools_are_left_out() {
    let (tools, _) = list(Fault::OtherItems).await;
    assert_eq!(tools.unwrap(), []);
}

/// A proxy tool of the older specification: no batches, no pages, and it refuses parameters that it does not know.
#[derive(Clone, Default)]
struct StrictServer {
    running: Arc<AtomicUsize>,
    most_running: Arc<AtomicUsize>,
}

impl ServerHandler for StrictServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = json!({"name": "proxy", "inputSchema": {"type": "object", "properties": {
            "action": {"enum": ["list", "info", "call"]}, "type": {}, "path": {}, "args": {}}}});
        Ok(ListToolsResult {
            tools: vec![serde_json::from_value(tool).unwrap()],
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let known = ["action", "type", "path", "args"];
        if arguments.keys().any(|key| !known.contains(&key.as_str())) {
            return Err(ErrorData::invalid_params("an unknown parameter", None));
        }
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        let path = arguments.get("path").and_then(Value::as_str);
        let content = match path {
            Some("refuse") => return Err(ErrorData::new(ErrorCode(-32_050), "refused", None)),
            Some(path) => json!({"type": "text", "text": path}),
            None => {
                let text = json!([{"name": "t", "inputSchema": {}}]).to_string();
                json!({"type": "resource", "resource": {"uri": "proxy:list/tool", "mimeType": "application/json", "text": text},
                    "_meta": {"mcp-proxy/proxy": {"proxyAction": "list", "totalCount": 9}}})
            }
        };
        let result = serde_json::from_value(json!({"content": [content]})).unwrap();
        Ok(CallToolResponse::Complete(result))
    }
}

#[tokio::test]
async fn a_tool_without_pages_is_asked_once_and_without_their_parameters() {
    let builder = ProxyClient::builder().transparent(true);
    let client = connect(StrictServer::default(), builder).await;
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_tool_without_batches_gets_the_operations_separately() {
    let server = StrictServer::default();
    let client = connect(server.clone(), ProxyClient::builder()).await;
    let call = |path: &str| BatchOperation::call(CapabilityType::Tool, path, None);
    let mut operations: Vec<_> = (0..40).map(|number| call(&number.to_string())).collect();
    operations[3] = call("refuse");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&seen);
    let options = CallOptions::new()
        .progress(move |progress| reports.lock().unwrap().push(progress.progress as usize));
    let batch = {
        let client = client.clone();
        async move { client.with_options(options).batch(operations).await }
    };
    let results = tokio::spawn(batch).await.unwrap().unwrap();
    assert_eq!(results.len(), 40);
    let failed = ProxyResponseInfo::of_result(&results[3]).unwrap();
    assert_eq!(results[3].is_error, Some(true));
    assert_eq!(failed.server_code, Some(-32_050));
    for (place, result) in results.iter().enumerate().filter(|(place, _)| *place != 3) {
        assert_eq!(result.content[0].as_text().unwrap().text, place.to_string());
    }
    assert_eq!(*seen.lock().unwrap(), (1..=40).collect::<Vec<_>>());
    assert!(server.most_running.load(Ordering::SeqCst) <= 16);

    let too_many = (0..101).map(|_| call("t")).collect();
    for operations in [Vec::new(), too_many] {
        let error = client.batch(operations).await.unwrap_err();
        assert!(matches!(error, ClientError::InvalidArguments(_)), "{error}");
    }
}
