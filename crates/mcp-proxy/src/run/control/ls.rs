//! `ls`: the proxies that run now.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_session::PeerInfo;
use mcp_proxy_transport::control::{Running, running};
use serde_json::json;

use super::started;
use crate::cli::control::LsArgs;
use crate::printer;
use crate::run::sessions::inspect::write_json;
use crate::run::sessions::{quiet_pipe, words};
use mcp_proxy_wire::visible::visible;

/// A command or URL is shown up to here.
const TARGET: usize = 60;

/// Lists them.
pub fn run(args: &LsArgs) -> Result<ExitCode> {
    quiet_pipe(list(args))
}

fn list(args: &LsArgs) -> Result<ExitCode> {
    let found = running();
    let mut out = printer::out();
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

fn table(found: &[Running], out: &mut impl Write) -> Result<()> {
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
            visible(&descriptor.id),
            started(&descriptor.started),
            descriptor.pid,
            visible(&transports),
            words::cut(&visible(&descriptor.target), TARGET),
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

fn json_line(one: &Running) -> Result<String> {
    let mut line = serde_json::to_value(&one.descriptor)?;
    if let Some(members) = line.as_object_mut() {
        members.insert("socket".to_owned(), json!(one.socket.to_string_lossy()));
    }
    Ok(line.to_string())
}
