//! What viewers see of the rules, and can do with them. The rules themselves are in their file: there they are changed.

use std::sync::Arc;

use mcp_proxy_session::Io;
use serde_json::{Value, json};

use super::Fault;
use crate::pipeline::Pipeline;
use crate::rules::{LiveRules, told};

/// `rules.list`
pub fn list(live: &LiveRules) -> Value {
    let file = live.file();
    let rules: Vec<Value> = live
        .now()
        .list()
        .iter()
        .map(|rule| {
            json!({
                "rule": rule.name.number,
                "name": rule.name.name,
                "line": rule.line,
                "does": rule.to_string(),
                "too_slow": rule.too_slow(),
            })
        })
        .collect();
    json!({
        "file": file.map(|file| file.path().to_string_lossy()),
        "fault": file.and_then(|file| file.fault()),
        "rules": rules,
    })
}

/// `rules.reload`
pub async fn reload(pipeline: &Arc<Pipeline>, by: &str) -> Result<Value, Fault> {
    let reader = Arc::clone(pipeline);
    // Files are read and rules compiled on another thread: traffic does not wait for them.
    let read = tokio::task::spawn_blocking(move || reader.rules().reload()).await;
    let read = read.map_err(|error| Fault::new(Fault::FAILED, error.to_string()))?;
    let Some(read) = read else {
        return Err(Fault::new(
            Fault::NOT_KEPT,
            "this run has no rules file; start it with --rules FILE",
        ));
    };
    let text = format!("{by}: {}", told(&read));
    pipeline.note(&Io::Note { text: &text });
    match read {
        Ok(count) => Ok(json!({"rules": count})),
        Err(fault) => Err(Fault::new(Fault::FAILED, fault)),
    }
}
