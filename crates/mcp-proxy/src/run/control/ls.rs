//! `ls`: the proxies that run now.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_session::PeerInfo;
use mcp_proxy_transport::control::{RunningProxy, running_proxies};
use serde_json::json;

use super::started;
use crate::cli::control::LsArgs;
use crate::printer;
use crate::run::sessions::inspect::write_json;
use crate::run::sessions::{formatting, ignore_broken_pipe};
use mcp_proxy_wire::terminal_text::sanitize;

/// A command or URL is shown up to here.
const TARGET: usize = 60;

/// Lists them.
pub fn run(args: &LsArgs) -> Result<ExitCode> {
    ignore_broken_pipe(list(args))
}

fn list(args: &LsArgs) -> Result<ExitCode> {
    let found = running_proxies();
    let mut out = printer::stdout_writer();
    if args.json {
        for one in &found {
            write_json(&mut out, json_line(one)?.as_bytes())?;
        }
    } else {
        table(&found, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(found: &[RunningProxy], out: &mut impl Write) -> Result<()> {
    if found.is_empty() {
        writeln!(
            out,
            "No proxy is running.\n\nmcp-proxy sessions lists what was recorded."
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<8}  {:<19}  {:>7}  {:<33}  target",
        "id", "started (UTC)", "pid", "transports"
    )?;
    for one in found {
        let descriptor = &one.descriptor;
        let transports = [&descriptor.client, &descriptor.server].map(|word| shown(word));
        let transports = transports.join(" ► ");
        writeln!(
            out,
            "{:<8}  {:<19}  {:>7}  {:<33}  {}",
            sanitize(&descriptor.id),
            started(&descriptor.started),
            descriptor.pid,
            sanitize(&transports),
            formatting::cut(&sanitize(&descriptor.target), TARGET),
        )?;
    }
    Ok(())
}

/// A transport as inspect and sessions show it too.
fn shown(transport: &str) -> String {
    match transport.parse() {
        Ok(transport) => PeerInfo::new(transport).to_string(),
        Err(_) => transport.to_owned(),
    }
}

fn json_line(one: &RunningProxy) -> Result<String> {
    let mut line = serde_json::to_value(&one.descriptor)?;
    if let Some(members) = line.as_object_mut() {
        members.insert("socket".to_owned(), json!(one.socket.to_string_lossy()));
    }
    Ok(line.to_string())
}
