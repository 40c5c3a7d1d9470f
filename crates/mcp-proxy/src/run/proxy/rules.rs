//! The rules of a run: read at its start, and again when their file changes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use mcp_proxy_core::ProxyRun;
use mcp_proxy_core::rules::{OpenServerCallback, RulesFile, RulesServer, reload_summary};
use mcp_proxy_session::RecordEvent;
use tokio::task::JoinHandle;

use crate::config::{Config, Target};
use crate::printer;
use crate::run::UsageError;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Follows the rules file until it is dropped.
pub struct RulesWatcher(JoinHandle<()>);

impl Drop for RulesWatcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads `--rules` and follows the file. `target` is the server as the proxy shows it.
pub fn follow(config: &Config, run: &Arc<ProxyRun>, target: &str) -> Result<Option<RulesWatcher>> {
    let Some(path) = &config.rules else {
        return Ok(None);
    };
    let server = match &config.target {
        Target::Hub(_) => RulesServer::Several,
        _ => RulesServer::Only(target.to_owned()),
    };
    let read = RulesFile::open(path, server, open_server(config));
    let (file, rules) = read.map_err(|fault| UsageError(format!("--rules {fault}")))?;
    run.rules().follow(file, rules);
    warn_about_headers(config, run);
    let (config, run) = (config.clone(), Arc::clone(run));
    Ok(Some(RulesWatcher(tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            let reader = Arc::clone(&run);
            // On another thread: traffic does not wait for a slow disk or for rules that are compiled.
            let read =
                tokio::task::spawn_blocking(move || reader.rules().reload_if_changed()).await;
            if let Ok(Some(read)) = read {
                tell(&run, &read);
                warn_about_headers(&config, &run);
            }
        }
    }))))
}

/// Finds the servers that rules redirect to.
fn open_server(config: &Config) -> OpenServerCallback {
    let config = config.clone();
    Arc::new(move |name| {
        let target = config
            .target
            .other(name)
            .map_err(|error| format!("{error:#}"))?;
        let transport = target.transport();
        let other = Config {
            target,
            ..config.clone()
        };
        Ok((transport, super::control::dial(&other)))
    })
}

/// Names the rules about headers if no message is sent to a server over HTTP.
fn warn_about_headers(config: &Config, run: &ProxyRun) {
    if speaks_http(&config.target) {
        return;
    }
    let rules = run.rules().current();
    let idle: Vec<String> = rules
        .list()
        .iter()
        .filter(|rule| rule.changes_headers())
        .map(|rule| rule.name.to_string())
        .collect();
    if !idle.is_empty() {
        run.report(&format!(
            "{} can change no headers: messages to this server are not sent over HTTP",
            idle.join(", ")
        ));
    }
}

fn speaks_http(target: &Target) -> bool {
    match target {
        Target::Url { .. } => true,
        Target::Command(_) => false,
        Target::Recording(played) => played.fallback.as_deref().is_some_and(speaks_http),
        Target::Relay(_) => false,
        // Servers may be added later.
        Target::Hub(_) => true,
    }
}

fn tell(run: &ProxyRun, read: &Result<usize, String>) {
    let text = reload_summary(read);
    run.record_event(&RecordEvent::Note { text: &text });
    printer::say(&format!("mcp-proxy: {text}"));
}
