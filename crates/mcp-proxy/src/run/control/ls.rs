//! `ls`: the proxies that run now.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::PeerInfo;
use mcp_proxy_transport::control::{RunningProxy, running_proxies};
use serde_json::json;
use tokio::task::JoinSet;

use super::{greet, is_hub, started};
use crate::cli::control::LsArgs;
use crate::printer;
use crate::run::runtime;
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
    let mut found = running_proxies();
    found.retain(|one| !args.hubs || is_hub(one));
    let mut out = printer::stdout_writer();
    if args.ids {
        for one in &found {
            let descriptor = &one.descriptor;
            writeln!(
                out,
                "{}\t{}",
                sanitize(&descriptor.id),
                sanitize(&descriptor.target)
            )?;
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = with_addresses(found)?;
    if args.json {
        for (one, url) in &found {
            write_json(&mut out, json_line(one, url.as_deref())?.as_bytes())?;
        }
    } else {
        table(&found, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Each with the URL where its clients connect, if it listens and says so.
fn with_addresses(found: Vec<RunningProxy>) -> Result<Vec<(RunningProxy, Option<String>)>> {
    let runtime = runtime().context("cannot start")?;
    Ok(runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (place, one) in found.iter().enumerate() {
            let one = one.clone();
            asked.spawn(async move {
                (
                    place,
                    greet(&one).await.ok().and_then(|hello| hello.listens),
                )
            });
        }
        let mut urls = vec![None; found.len()];
        for (place, url) in asked.join_all().await {
            urls[place] = url;
        }
        found.into_iter().zip(urls).collect()
    }))
}

fn table(found: &[(RunningProxy, Option<String>)], out: &mut impl Write) -> Result<()> {
    if found.is_empty() {
        writeln!(
            out,
            "No proxy is running.\n\nmcp-proxy sessions lists what was recorded."
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<8}  {:<19}  {:>7}  {:<38}  target",
        "id", "started (UTC)", "pid", "transports"
    )?;
    for (one, url) in found {
        let descriptor = &one.descriptor;
        let client = url.clone().unwrap_or_else(|| shown(&descriptor.client));
        let transports = format!("{client} ► {}", shown(&descriptor.server));
        writeln!(
            out,
            "{:<8}  {:<19}  {:>7}  {:<38}  {}",
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

fn json_line(one: &RunningProxy, url: Option<&str>) -> Result<String> {
    let mut line = serde_json::to_value(&one.descriptor)?;
    if let Some(members) = line.as_object_mut() {
        members.insert("socket".to_owned(), json!(one.socket.to_string_lossy()));
        members.insert("listens".to_owned(), json!(url));
    }
    Ok(line.to_string())
}
