//! The rules of a run: read at its start, and again when their file changes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use mcp_proxy_core::Pipeline;
use mcp_proxy_core::rules::{OpenServer, RulesFile, told};
use mcp_proxy_session::Io;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::printer;
use crate::run::Usage;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Follows the rules file until it is dropped.
pub struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads `--rules` and follows the file. `target` is the server as the proxy shows it.
pub fn follow(
    config: &Config,
    pipeline: &Arc<Pipeline>,
    target: &str,
) -> Result<Option<Following>> {
    let Some(path) = &config.rules else {
        return Ok(None);
    };
    let read = RulesFile::open(path, target, open_server(config));
    let (file, rules) = read.map_err(|fault| Usage(format!("--rules {fault}")))?;
    pipeline.rules().follow(file, rules);
    let pipeline = Arc::clone(pipeline);
    Ok(Some(Following(tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            let reader = Arc::clone(&pipeline);
            // On another thread: traffic does not wait for a slow disk or for rules that are compiled.
            let read = tokio::task::spawn_blocking(move || reader.rules().look()).await;
            if let Ok(Some(read)) = read {
                tell(&pipeline, &read);
            }
        }
    }))))
}

/// Finds the servers that rules redirect to.
fn open_server(config: &Config) -> OpenServer {
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

fn tell(pipeline: &Pipeline, read: &Result<usize, String>) {
    let text = told(read);
    pipeline.note(&Io::Note { text: &text });
    printer::say(&format!("mcp-proxy: {text}"));
}
