//! Bare copy proxies, one for each shape: the least that a proxy written in Rust can do on this machine.
//!
//! They show how much of a missed ratio is the machine's. No limits, no checks, no record, no supervision: none of this
//! is a model for the product. The command line is that of `mcp-proxy proxy` as far as the benchmark uses it.

mod echo;
mod http_to_http;
mod http_to_stdio;
mod hub;
mod outbox;
mod pipes;
mod process;
mod stdio_to_http;
mod stdio_to_stdio;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;

pub use hub::FloorHubArgs;

use crate::processes;

#[derive(Args)]
pub struct FloorArgs {
    /// Accepted as the proxy's flag; the target already says it
    #[arg(long)]
    transport: Option<String>,
    /// The HTTP server to copy to
    #[arg(long)]
    target_url: Option<String>,
    /// Where clients come from
    #[arg(long, value_enum)]
    listen: FloorListen,
    /// Accepted as the proxy's flag; a free port is taken in any case
    #[arg(long)]
    listen_port: Option<u16>,
    /// Accepted and true: nothing is recorded here
    #[arg(long)]
    no_record: bool,
    /// Accepted and true: nobody can watch
    #[arg(long)]
    no_control: bool,
    /// Accepted and ignored, so that the whole benchmark runs with this as a stand-in
    #[arg(long)]
    session_file: Option<PathBuf>,
    /// Accepted and ignored
    #[arg(long)]
    durability: Option<String>,
    /// The stdio server to copy to
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum FloorListen {
    Http,
    Stdio,
}

pub fn run(args: &FloorArgs) -> Result<()> {
    processes::end_with_parent();
    match (args.listen, &args.target_url) {
        (FloorListen::Http, Some(url)) => {
            let (address, _) = split_url(url)?;
            on_one_thread(http_to_http::serve(address))
        }
        (FloorListen::Stdio, Some(url)) => {
            let (address, path) = split_url(url)?;
            on_one_thread(stdio_to_http::relay(address, path))
        }
        (_, None) if args.command.is_empty() => bail!("give --target-url URL or -- COMMAND"),
        (FloorListen::Http, None) => on_one_thread(http_to_stdio::serve(args.command.clone())),
        (FloorListen::Stdio, None) => on_one_thread(stdio_to_stdio::relay(&args.command)),
    }
}

/// The bare copy in front of several servers.
pub fn run_hub(args: &FloorHubArgs) -> Result<()> {
    processes::end_with_parent();
    on_one_thread(hub::serve(args.servers()?))
}

/// The bare echo of WebSocket messages.
pub fn run_echo() -> Result<()> {
    processes::end_with_parent();
    on_one_thread(echo::serve())
}

/// Splits `http://ADDRESS/PATH`; only loopback addresses are ever given here.
pub fn split_url(url: &str) -> Result<(SocketAddr, String)> {
    let rest = url
        .strip_prefix("http://")
        .with_context(|| format!("{url} is not an http URL"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = host
        .parse()
        .with_context(|| format!("{host} is not an address and port"))?;
    Ok((address, format!("/{path}")))
}

/// One thread and no `Send` bounds: a hand-over between threads costs more than all the work done here.
fn on_one_thread(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

async fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
