//! The benchmarks behind `cargo xtask bench`: what carrying a message costs (`carry`), what a hub
//! costs (`hub`), what a relay costs (`relay`), and how well and fast its search finds tools (`search`).
//!
//! One binary holds every part, so that nothing needs installing: the canned MCP server (`canned-server`), the bare
//! copy of each shape (`floor`, `floor-hub`, `floor-echo`) and the measurements themselves. It is a tool, not a test: it judges by ratios inside
//! one run and leaves absolute figures to the reader.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a measuring tool prints its tables to stdout and its progress to stderr"
)]

mod bench_options;
mod canned;
mod canned_server;
mod carry;
mod cases;
mod contender;
mod floor;
mod hub;
mod load;
mod machine;
mod processes;
mod relay;
mod report;
mod rounds;
mod search;
mod usage;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "mcp-proxy-benches",
    about = "Measure what carrying MCP messages costs"
)]
struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measure all cases, or those named, and print the table
    Carry(carry::CarryArgs),
    /// Measure `serve`: ten servers with a hundred tools each behind one endpoint
    Hub(hub::HubArgs),
    /// Measure `relay`: messages between clients and extensions, and ten thousand of them
    Relay(relay::RelayBenchArgs),
    /// Measure the search of tools: what it finds, and how fast
    Search(search::SearchArgs),
    /// The canned MCP server that everything is measured against
    #[command(subcommand)]
    CannedServer(canned_server::CannedServerCommand),
    /// The bare copy proxy; takes the command line of `mcp-proxy proxy`, so it can stand in for it
    #[command(alias = "proxy")]
    Floor(floor::FloorArgs),
    /// The bare copy of `serve`; takes its command line, so it can stand in for it
    #[command(alias = "serve")]
    FloorHub(floor::FloorHubArgs),
    /// The bare echo of WebSocket messages
    FloorEcho,
}

fn main() -> anyhow::Result<()> {
    match BenchArgs::parse().command {
        BenchCommand::Carry(args) => carry::run(&args),
        BenchCommand::Hub(args) => hub::run(&args),
        BenchCommand::Relay(args) => relay::run(&args),
        BenchCommand::Search(args) => search::run(&args),
        BenchCommand::CannedServer(command) => canned_server::run(&command),
        BenchCommand::Floor(args) => floor::run(&args),
        BenchCommand::FloorHub(args) => floor::run_hub(&args),
        BenchCommand::FloorEcho => floor::run_echo(),
    }
}
