//! What viewers see of the rules, and can do with them. The rules themselves are in their file: there they are changed.

use std::sync::Arc;

use mcp_proxy_control::{Fault, RuleRow, RulesListResult, RulesReloadResult};
use mcp_proxy_session::RecordEvent;

use super::RunServer;
use crate::proxy_run::ProxyRun;
use crate::rules::{LiveRules, Rule, reload_summary};

/// `rules.list`, for one server if one is named.
pub(super) fn list(live: &LiveRules, server: Option<&RunServer>) -> RulesListResult {
    let file = live.file();
    let now = live.current();
    let rules = match server {
        Some(server) => rows(now.for_server(&server.target).list()),
        None => rows(now.list()),
    };
    RulesListResult {
        file: file.map(|file| file.path().to_string_lossy().into_owned()),
        fault: file.and_then(|file| file.fault()),
        rules,
    }
}

fn rows(rules: &[Rule]) -> Vec<RuleRow> {
    let row = |rule: &Rule| RuleRow {
        rule: rule.name.number,
        name: rule.name.name.clone(),
        line: rule.line,
        does: rule.to_string(),
        too_slow: rule.too_slow(),
    };
    rules.iter().map(row).collect()
}

/// `rules.reload`
pub(super) async fn reload(run: &Arc<ProxyRun>, by: &str) -> Result<RulesReloadResult, Fault> {
    let reader = Arc::clone(run);
    // Files are read and rules compiled on another thread: traffic does not wait for them.
    let read = tokio::task::spawn_blocking(move || reader.rules().reload()).await;
    let read = read.map_err(|error| Fault::new(Fault::FAILED, error.to_string()))?;
    let Some(read) = read else {
        return Err(Fault::new(
            Fault::NOT_KEPT,
            "this run has no rules file; start it with --rules FILE",
        ));
    };
    let text = format!("{by}: {}", reload_summary(&read));
    run.record_event(&RecordEvent::Note { text: &text });
    match read {
        Ok(rules) => Ok(RulesReloadResult { rules }),
        Err(fault) => Err(Fault::new(Fault::FAILED, fault)),
    }
}
