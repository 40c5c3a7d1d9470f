//! A server on the standard streams whose tools are found and called through one `proxy` tool.
//!
//! ```sh
//! cargo run -p mcp-proxy-client --example transparent -- "cargo run -q -p mcp-proxy-client --example wrap_server"
//! ```

use std::error::Error;

use mcp_proxy_client::ProxyTool;
use mcp_proxy_client::rmcp;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

#[derive(Clone)]
struct Calculator;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: f64,
    b: f64,
}

#[tool_router]
impl Calculator {
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Multiply two numbers")]
    fn multiply(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        (a * b).to_string()
    }
}

#[tool_handler]
impl ServerHandler for Calculator {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ProxyTool::new(Calculator).hide_other_tools();
    let running = server.serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}
