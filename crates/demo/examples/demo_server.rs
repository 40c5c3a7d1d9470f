//! The demo server with all fixtures as a program of its own: `demo_server stdio` or `demo_server http PORT`.

use mcp_proxy_demo::{DemoContent, serve_http, serve_stdio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => serve_stdio(DemoContent::WithFixtures).await?,
        ["http", port] => {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            announce(&format!(
                "listening on http://{}/mcp",
                listener.local_addr()?
            ))?;
            let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
            serve_http(DemoContent::WithFixtures, listener, shutdown).await?;
        }
        _ => return Err("usage: demo_server stdio | demo_server http PORT".into()),
    }
    Ok(())
}

/// Standard output belongs to MCP, so that a person reads on standard error.
fn announce(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(std::io::stderr(), "{line}")
}
