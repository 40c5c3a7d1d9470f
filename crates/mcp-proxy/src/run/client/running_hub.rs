//! The running hub that a command uses: the one that is named, or the only one.

use mcp_proxy_shell::CommandFailure;
use mcp_proxy_transport::control::{RunningProxy, running_proxies};

use crate::cli::client::UsedServerArgs;
use crate::printer;
use crate::run::control::{choose_among, greet, is_hub, line};

const NO_HUB: &str = "no hub is running: start one with `mcp-proxy serve`, or name a server with --url URL, --config FILE \
                      or -- COMMAND";

/// A hub that listens.
pub(super) struct FoundHub {
    /// As `mcp-proxy ls` shows it.
    pub(super) id: String,
    /// The flags that reach it: its URL, and its token.
    pub(super) server: UsedServerArgs,
}

/// Finds it.
pub(super) async fn find(server: &UsedServerArgs) -> Result<FoundHub, CommandFailure> {
    let mut hubs: Vec<RunningProxy> = running_proxies().into_iter().filter(is_hub).collect();
    if hubs.is_empty() {
        return Err(CommandFailure::Unreachable(NO_HUB.to_owned()));
    }
    if let Some(id) = &server.hub {
        let chosen = choose_among(&hubs, id, ["hub", "hubs"]);
        let chosen = chosen.map_err(|error| CommandFailure::Mistake(format!("--hub {error:#}")))?;
        hubs = vec![chosen];
    }
    let mut listening = Vec::new();
    let mut silent = None;
    for hub in &hubs {
        match greet(hub).await {
            Ok(hello) => listening.extend(hello.listens.map(|url| (hub, url, hello.token_file))),
            Err(error) => silent = Some((hub, error)),
        }
    }
    let (hub, url, token_file) = match (listening.len(), silent) {
        (1, None) => listening.remove(0),
        (1, Some((other, error))) => {
            let (one, other) = (&listening[0].0.descriptor.id, &other.descriptor.id);
            printer::say(&format!("mcp-proxy: hub {other}: {error}; using hub {one}"));
            listening.remove(0)
        }
        (0, Some((hub, error))) => {
            let text = format!("cannot ask the running hub {}: {error}", hub.descriptor.id);
            return Err(CommandFailure::Unreachable(text));
        }
        (0, None) => return Err(only_stdio(&hubs)),
        (several, _) => {
            let lines = listening
                .iter()
                .map(|(hub, url, _)| format!("\n{}  {url}", line(hub)));
            let hubs: String = lines.collect();
            let text = format!("{several} hubs are running; choose one with --hub ID:{hubs}");
            return Err(CommandFailure::Mistake(text));
        }
    };
    let mut used = UsedServerArgs {
        url: Some(url),
        ..server.clone()
    };
    let is_given = |line: &String| line.to_lowercase().starts_with("authorization:");
    if let Some(path) = token_file
        && !used.header.iter().any(is_given)
    {
        let token = std::fs::read_to_string(&path).map_err(|error| {
            let text = format!(
                "cannot read the token of the running hub {} from {}: {error}",
                hub.descriptor.id,
                path.display()
            );
            CommandFailure::Unreachable(text)
        })?;
        used.header
            .push(format!("Authorization: Bearer {}", token.trim()));
    }
    Ok(FoundHub {
        id: hub.descriptor.id.clone(),
        server: used,
    })
}

fn only_stdio(hubs: &[RunningProxy]) -> CommandFailure {
    let (subject, verb) = match hubs {
        [one] => (format!("hub {}", one.descriptor.id), "serves"),
        several => (format!("{} running hubs", several.len()), "each serve"),
    };
    CommandFailure::Unreachable(format!(
        "the running {subject} {verb} one client over stdio, and others cannot reach it: start one with `mcp-proxy serve \
         --listen http`, or name a server with --url URL, --config FILE or -- COMMAND"
    ))
}
