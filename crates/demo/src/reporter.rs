//! Progress and log lines from a running request, in both eras.
//!
//! The eras differ in who decides what is logged: a legacy session sets a level once with
//! `logging/setLevel`; a 2026-07-28 request carries its own level, and without one the server must not log.
//! Progress is the same in both: only when the request brought a token.

#![expect(
    deprecated,
    reason = "rmcp marks logging as deprecated by 2026-07-28; it is still part of both eras"
)]

use rmcp::{
    RoleServer,
    model::{
        LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    },
    service::RequestContext,
};

use crate::server::DemoServer;

/// Whether this request speaks 2026-07-28 or later.
pub fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    // Versions are dates, so they compare as text.
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Sends notifications that belong to one request.
pub struct RequestReporter<'a> {
    context: &'a RequestContext<RoleServer>,
    least: Option<LoggingLevel>,
}

impl DemoServer {
    /// The reporter for one request of this session.
    pub fn report<'a>(&self, context: &'a RequestContext<RoleServer>) -> RequestReporter<'a> {
        let least = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(self.session().log_level())
        };
        RequestReporter { context, least }
    }
}

impl RequestReporter<'_> {
    /// Sends a log line at level info, if the client wants such lines.
    ///
    /// A client that has gone away is no reason to stop the work, so a failed send is ignored here and below.
    pub async fn info(&self, text: impl Into<String>) {
        if self
            .least
            .is_some_and(|least| severity(least) <= severity(LoggingLevel::Info))
        {
            let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, text.into().into())
                .with_logger("demo");
            let _ = self.context.peer.notify_logging_message(line).await;
        }
    }

    /// Says how far the work has come, if the client asked to know.
    pub async fn progress(&self, done: u32, total: u32, text: impl Into<String>) {
        if let Some(token) = self.context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, f64::from(done))
                .with_total(f64::from(total))
                .with_message(text);
            let _ = self.context.peer.notify_progress(progress).await;
        }
    }
}

/// The order of RFC 5424, least severe first.
fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
