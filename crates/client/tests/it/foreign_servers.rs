//! Proxy tools that are wrong about themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_proxy_client::rmcp::model::*;
use mcp_proxy_client::rmcp::service::RequestContext;
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler};
use mcp_proxy_client::{ClientError, ProxyClient, ProxyToolOptions};
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
        let definition = mcp_proxy_tool::definition(&ProxyToolOptions::default());
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
    for fault in [Fault::NotJson, Fault::OtherItems, Fault::NoResource] {
        let (tools, _) = list(fault).await;
        assert!(
            matches!(tools, Err(ClientError::Decode { .. })),
            "{fault:?}"
        );
    }
}
