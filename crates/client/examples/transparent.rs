//! Lists and calls what is behind a server with a `proxy` tool, as if it were that server's own.
//!
//! ```sh
//! cargo run -p mcp-proxy-client --example transparent -- http://127.0.0.1:8080/mcp demo_add '{"a": 5, "b": 3}'
//! cargo run -p mcp-proxy-client --example transparent -- "mcp-proxy serve --listen stdio"
//! ```

#![allow(clippy::print_stdout)]

use std::error::Error;

use mcp_proxy_client::{CallOptions, ProxyClient};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let target = words
        .next()
        .ok_or("usage: transparent TARGET [TOOL [ARGUMENTS]]")?;
    let client = ProxyClient::builder()
        .transparent(true)
        .fall_back_to_native(true)
        .connect(target)
        .await?;
    match words.next() {
        None => {
            for tool in client.list_tools().await? {
                println!("tool      {}", tool.name);
            }
            for resource in client.list_resources_and_templates().await? {
                println!("resource  {}", resource.uri());
            }
            for prompt in client.list_prompts().await? {
                println!("prompt    {}", prompt.name);
            }
        }
        Some(tool) => {
            let arguments: Option<serde_json::Value> = words
                .next()
                .map(|json| serde_json::from_str(&json))
                .transpose()?;
            let options =
                CallOptions::new().progress(|progress| println!("… {}", progress.progress));
            let result = client
                .with_options(options)
                .call_tool(&tool, arguments)
                .await?;
            println!("{}", serde_json::to_string_pretty(&result)?);
        }
    }
    client.close().await;
    Ok(())
}
