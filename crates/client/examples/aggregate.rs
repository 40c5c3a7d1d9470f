//! Two servers as one: the tools of both under a prefix, and the `proxy` tool to find them with.
//!
//! ```sh
//! cargo run -p mcp-proxy-client --example aggregate -- "mcp-proxy demo-server stdio" http://127.0.0.1:8080/mcp
//! ```

use std::error::Error;

use mcp_proxy_client::rmcp;
use mcp_proxy_client::{ClientError, ProxyClient, ProxyTool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};

/// Each server with the prefix of its tools.
struct Aggregate {
    servers: Vec<(String, ProxyClient)>,
}

impl ServerHandler for Aggregate {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::default();
        for (prefix, server) in &self.servers {
            for mut tool in server.list_tools().await.map_err(to_protocol)? {
                tool.name = format!("{prefix}_{}", tool.name).into();
                list.tools.push(tool);
            }
        }
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let found = self.servers.iter().find_map(|(prefix, server)| {
            let name = request.name.strip_prefix(prefix)?.strip_prefix('_')?;
            Some((server, name))
        });
        let Some((server, name)) = found else {
            let message = format!("tool {} not found", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let result = server.call_tool(name, &request.arguments).await;
        result.map(CallToolResponse::Complete).map_err(to_protocol)
    }
}

fn to_protocol(error: ClientError) -> ErrorData {
    match error {
        ClientError::Protocol {
            code,
            message,
            data,
            ..
        } => {
            let code = i32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
            ErrorData::new(ErrorCode(code), message, data)
        }
        error => ErrorData::internal_error(error.with_causes(), None),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut servers = Vec::new();
    for (target, prefix) in std::env::args().skip(1).zip(["first", "second"]) {
        let client = ProxyClient::builder()
            .transparent(true)
            .fall_back_to_native(true);
        servers.push((prefix.to_owned(), client.connect(target).await?));
    }
    if servers.len() < 2 {
        return Err("usage: aggregate TARGET TARGET".into());
    }
    let server = ProxyTool::new(Aggregate { servers });
    let running = Box::pin(server.serve(rmcp::transport::stdio())).await?;
    running.waiting().await?;
    Ok(())
}
