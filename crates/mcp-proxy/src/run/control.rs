//! The commands that speak to a running proxy, and what they share: which one is meant.

pub mod attach;
pub mod ctl;
pub mod ls;

use anyhow::{Result, bail};
use mcp_proxy_transport::control::{Running, running};

use crate::run::sessions::words;
use mcp_proxy_wire::visible::visible;

/// So many proxies are named in an error.
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
fn choose(name: Option<&str>) -> Result<Running> {
    let mut found = running();
    let Some(name) = name else {
        if found.is_empty() {
            bail!("no proxy is running (or it was started with --no-control)");
        }
        return Ok(found.swap_remove(0));
    };
    let wanted: Vec<_> = found.iter().filter(|one| is_called(one, name)).collect();
    match wanted.as_slice() {
        [one] => Ok((*one).clone()),
        [] if found.is_empty() => bail!("{}: no proxy is running", visible(name)),
        [] => bail!(
            "{}: no such proxy is running:{}",
            visible(name),
            lines(&found)
        ),
        several => bail!(
            "{} means {} proxies; give more of the id:{}",
            visible(name),
            several.len(),
            lines(several.iter().copied())
        ),
    }
}

fn is_called(running: &Running, name: &str) -> bool {
    let begins = |id: &str| {
        id.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    !name.is_empty() && (begins(&running.descriptor.id) || begins(&running.descriptor.session))
}

fn lines<'a>(found: impl IntoIterator<Item = &'a Running>) -> String {
    let line = |running: &Running| {
        let descriptor = &running.descriptor;
        let target = words::cut(&visible(&descriptor.target), 60);
        format!(
            "\n  {}  {}  {target}",
            visible(&descriptor.id),
            started(&descriptor.started)
        )
    };
    found.into_iter().take(SHOWN).map(line).collect()
}

/// `2026-11-15 18:00:00` out of `2026-11-15T18:00:00.001000Z`.
fn started(stamp: &str) -> String {
    visible(&stamp.chars().take(19).collect::<String>().replace('T', " "))
}
