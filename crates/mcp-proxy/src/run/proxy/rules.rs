//! The rules of a run: read at its start, and again when their file changes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use mcp_proxy_core::Pipeline;
use mcp_proxy_core::rules::RulesFile;
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
    let (file, rules) =
        RulesFile::open(path, target).map_err(|fault| Usage(format!("--rules {fault}")))?;
    pipeline.rules().follow(file, rules);
    let pipeline = Arc::clone(pipeline);
    Ok(Some(Following(tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(read) = pipeline.rules().look() {
                tell(&pipeline, &read);
            }
        }
    }))))
}

fn tell(pipeline: &Pipeline, read: &Result<usize, String>) {
    let text = match read {
        Ok(count) => format!("rules read again, {count} now"),
        Err(fault) => format!("rules stay as they were: {fault}"),
    };
    pipeline.note(&Io::Note { text: &text });
    printer::say(&format!("mcp-proxy: {text}"));
}
