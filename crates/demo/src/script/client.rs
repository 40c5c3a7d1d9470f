//! The scripted client's side of what a server may start: log lines, progress, and a question.

#![expect(
    deprecated,
    reason = "rmcp marks logging as deprecated by 2026-07-28; it is still part of both eras"
)]

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        Implementation, LoggingMessageNotificationParam, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::json;
use tokio::sync::watch;

/// How many notifications have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotificationCounts {
    pub(super) progress: usize,
    pub(super) log_lines: usize,
}

/// Somebody called Ada, who answers questions at once.
pub(super) struct ScriptedPerson {
    heard: watch::Sender<NotificationCounts>,
}

impl ScriptedPerson {
    pub(super) fn new() -> (ScriptedPerson, watch::Receiver<NotificationCounts>) {
        let (heard, hears) = watch::channel(NotificationCounts::default());
        (ScriptedPerson { heard }, hears)
    }
}

impl ClientHandler for ScriptedPerson {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        let name = Implementation::new("mcp-proxy-demo-client", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.send_modify(|heard| heard.progress += 1);
    }

    async fn on_logging_message(
        &self,
        _: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.send_modify(|heard| heard.log_lines += 1);
    }
}
