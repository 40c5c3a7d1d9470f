//! The commands that speak to a running proxy, and what they share: which one is meant.

pub mod attach;
pub mod ctl;
pub mod ls;
pub mod status;

use anyhow::{Result, bail};
use mcp_proxy_transport::control::{RunningProxy, running_proxies};

use crate::run::sessions::formatting;
use mcp_proxy_wire::terminal_text::sanitize;

/// How many proxies an error names.
const SHOWN: usize = 5;

/// How a proxy is named: by the end of its session's id, by which the record's file is named too. The beginning is the time, and
/// two proxies started together share it.
pub fn short_id(session: &str) -> String {
    let letters: Vec<char> = session
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    letters[letters.len().saturating_sub(8)..].iter().collect()
}

/// The proxy called `name`, or the newest.
fn choose(name: Option<&str>) -> Result<RunningProxy> {
    let mut found = running_proxies();
    let Some(name) = name else {
        if found.is_empty() {
            bail!("no proxy is running (or it was started with --no-control)");
        }
        return Ok(found.swap_remove(0));
    };
    let wanted: Vec<_> = found.iter().filter(|one| is_called(one, name)).collect();
    match wanted.as_slice() {
        [one] => Ok((*one).clone()),
        [] if found.is_empty() => bail!("{}: no proxy is running", sanitize(name)),
        [] => bail!(
            "{}: no such proxy is running:{}",
            sanitize(name),
            lines(&found)
        ),
        several => bail!(
            "{} matches {} proxies; give more of the id:{}",
            sanitize(name),
            several.len(),
            lines(several.iter().copied())
        ),
    }
}

/// The newest hub.
fn newest_hub() -> Result<RunningProxy> {
    let is_hub = |one: &RunningProxy| one.descriptor.target.starts_with("mcp-proxy serve");
    match running_proxies().into_iter().find(is_hub) {
        Some(hub) => Ok(hub),
        None => bail!("no hub is running (start one with `mcp-proxy serve`)"),
    }
}

fn is_called(running: &RunningProxy, name: &str) -> bool {
    let begins = |id: &str| {
        id.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    !name.is_empty() && (begins(&running.descriptor.id) || begins(&running.descriptor.session))
}

fn lines<'a>(found: impl IntoIterator<Item = &'a RunningProxy>) -> String {
    let line = |running: &RunningProxy| {
        let descriptor = &running.descriptor;
        let target = formatting::cut(&sanitize(&descriptor.target), 60);
        format!(
            "\n  {}  {}  {target}",
            sanitize(&descriptor.id),
            started(&descriptor.started)
        )
    };
    found.into_iter().take(SHOWN).map(line).collect()
}

/// `2026-11-15 18:00:00` out of `2026-11-15T18:00:00.001000Z`.
fn started(stamp: &str) -> String {
    sanitize(&stamp.chars().take(19).collect::<String>().replace('T', " "))
}
