//! The `mcp-proxy` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_proxy::run()
}
