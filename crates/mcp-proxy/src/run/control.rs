//! The commands that speak to a running proxy, and what they share: which one is meant.

pub mod ctl;
pub mod ls;
pub mod status;

use std::io;
use std::time::Duration;

use anyhow::{Result, bail};
use mcp_proxy_control::{HelloRequest, HelloResult};
use mcp_proxy_transport::control::{
    ControlClient, ControlClientError, RunningProxy, running_proxies,
};

use crate::printer;
use crate::run::UsageError;
use crate::run::sessions::formatting;
use mcp_proxy_wire::terminal_text::sanitize;

/// What the target of a relay begins with.
const RELAY: &str = "mcp-proxy relay";

/// A proxy that runs answers at once.
const ANSWER: Duration = Duration::from_secs(5);

/// How many proxies an error names.
const SHOWN: usize = 5;

/// How many letters of a session's id people see.
pub const ID_WIDTH: usize = 8;

/// How people see a run: by the end of its session's id, by which the record's file is named too. The beginning is the time, and
/// two runs that were started together share it.
pub fn short_id(session: &str) -> String {
    end_of_id(session, ID_WIDTH)
}

/// The last letters of a session's id.
pub fn end_of_id(session: &str, width: usize) -> String {
    let letters: Vec<char> = session
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    letters[letters.len().saturating_sub(width)..]
        .iter()
        .collect()
}

/// The proxy called `name`, or the newest.
fn choose(name: Option<&str>) -> Result<RunningProxy> {
    let none = "no proxy is running (or it was started with --no-control)";
    choose_or_newest(running_proxies(), name, none, ["proxy", "proxies"])
}

/// The relay called `name`, or the newest.
pub fn choose_relay(name: Option<&str>) -> Result<RunningProxy> {
    let is_relay = |running: &RunningProxy| running.descriptor.target.starts_with(RELAY);
    let relays = running_proxies().into_iter().filter(is_relay).collect();
    let none = format!("no relay is running (start one with `{RELAY}`)");
    choose_or_newest(relays, name, &none, ["relay", "relays"])
}

/// The one of `found` that is called `name`, or the first, which is the newest. `none` is the error if there is none at all.
fn choose_or_newest(
    mut found: Vec<RunningProxy>,
    name: Option<&str>,
    none: &str,
    what: [&str; 2],
) -> Result<RunningProxy> {
    match name {
        _ if found.is_empty() => bail!("{none}"),
        Some(name) => choose_among(&found, name, what),
        None => Ok(found.swap_remove(0)),
    }
}

/// The one of `found` that is called `name`. `what` is one of them, and several.
pub fn choose_among(found: &[RunningProxy], name: &str, what: [&str; 2]) -> Result<RunningProxy> {
    let wanted: Vec<_> = found.iter().filter(|one| is_called(one, name)).collect();
    let [one_of_them, several_of_them] = what;
    match wanted.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!(
            "{}: no such {one_of_them} is running:{}",
            sanitize(name),
            lines(found)
        ),
        several => bail!(
            "{} matches {} {several_of_them}; give more of the id:{}",
            sanitize(name),
            several.len(),
            lines(several.iter().copied())
        ),
    }
}

/// The proxy called `name`. Without a name the user is asked which one, if there are several.
pub fn choose_or_ask(name: Option<&str>) -> Result<RunningProxy> {
    let found = running_proxies();
    if name.is_some() || found.len() < 2 {
        return choose(name);
    }
    printer::say(&format!("{} proxies are running:", found.len()));
    for (place, one) in found.iter().enumerate() {
        printer::say(&format!(" {:>2}{}", place + 1, line(one)));
    }
    printer::ask("Attach to which one? [1] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    pick(found, answer.trim())
}

/// The proxy that an answer means: by its place in the list from 1, or by its id. No answer is the first.
fn pick(mut found: Vec<RunningProxy>, answer: &str) -> Result<RunningProxy> {
    let place = match answer {
        "" => Some(1),
        answer => answer.parse().ok(),
    };
    match place {
        Some(place) if (1..=found.len()).contains(&place) => Ok(found.swap_remove(place - 1)),
        // An id can be all digits too.
        _ => choose_among(&found, answer, ["proxy", "proxies"]),
    }
}

/// Whether a running proxy is a hub.
pub fn is_hub(running: &RunningProxy) -> bool {
    running.descriptor.target.starts_with("mcp-proxy serve")
}

/// The hub called `name`, or the only one.
fn choose_hub(name: Option<&str>) -> Result<RunningProxy> {
    let mut hubs: Vec<_> = running_proxies().into_iter().filter(is_hub).collect();
    match (name, hubs.len()) {
        (_, 0) => bail!("no hub is running (start one with `mcp-proxy serve`)"),
        (Some(name), _) => choose_among(&hubs, name, ["hub", "hubs"]),
        (None, 1) => Ok(hubs.swap_remove(0)),
        (None, several) => {
            let hubs = lines(&hubs);
            let text = format!("{several} hubs are running; choose one with --hub ID:{hubs}");
            Err(UsageError(text).into())
        }
    }
}

/// What a running proxy says about itself, such as where it listens.
pub async fn greet(running: &RunningProxy) -> Result<HelloResult, ControlClientError> {
    let asking = async {
        let mut client = ControlClient::connect(&running.socket).await?;
        let hello = HelloRequest {
            name: Some("client".to_owned()),
        };
        client.call(&hello).await
    };
    let answer = tokio::time::timeout(ANSWER, asking).await;
    answer.unwrap_or(Err(ControlClientError::Silent))
}

fn is_called(running: &RunningProxy, name: &str) -> bool {
    let begins = |id: &str| {
        id.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    !name.is_empty() && (begins(&running.descriptor.id) || begins(&running.descriptor.session))
}

fn lines<'a>(found: impl IntoIterator<Item = &'a RunningProxy>) -> String {
    let lines = found.into_iter().take(SHOWN);
    lines
        .map(|running| format!("\n{}", line(running)))
        .collect()
}

/// `  5e550001  2026-11-15 18:00:00  python server.py`.
pub fn line(running: &RunningProxy) -> String {
    let descriptor = &running.descriptor;
    let target = formatting::cut(&sanitize(&descriptor.target), 60);
    format!(
        "  {}  {}  {target}",
        sanitize(&descriptor.id),
        started(&descriptor.started)
    )
}

/// `2026-11-15 18:00:00` out of `2026-11-15T18:00:00.001000Z`.
fn started(stamp: &str) -> String {
    sanitize(&stamp.chars().take(19).collect::<String>().replace('T', " "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use mcp_proxy_transport::control::ProxyDescriptor;

    use super::*;

    fn running(id: &str) -> RunningProxy {
        RunningProxy {
            descriptor: ProxyDescriptor {
                id: id.to_owned(),
                pid: 1,
                session: format!("019a8888-0000-7000-8000-{id}"),
                target: "python server.py".to_owned(),
                client: "stdio".to_owned(),
                server: "stdio".to_owned(),
                record: None,
                started: String::new(),
                version: String::new(),
            },
            socket: PathBuf::from(id),
        }
    }

    #[test]
    fn a_proxy_is_picked_by_its_place_or_its_id() {
        let picked = |answer: &str| {
            let found = vec![running("5e550001"), running("63436880")];
            pick(found, answer).ok().map(|one| one.descriptor.id)
        };
        for (answer, expected) in [
            ("", Some("5e550001")),
            ("1", Some("5e550001")),
            ("2", Some("63436880")),
            ("634", Some("63436880")),
            ("5E55", Some("5e550001")),
            ("3", None),
            ("0", None),
            ("nonsense", None),
        ] {
            assert_eq!(picked(answer).as_deref(), expected, "{answer}");
        }
    }
}
