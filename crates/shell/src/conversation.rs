//! A conversation with one server: opened on a stream, used by commands, closed with everything behind it.

// Logging is deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_proxy_client::rmcp::model::{LoggingLevel, ServerNotification};
use mcp_proxy_client::{CapabilityType, ClientError, ProxyClient};
use mcp_proxy_wire::terminal_text::sanitize;
use serde_json::Value;
use tokio::io::DuplexStream;

use crate::catalog::{CatalogItem, CatalogPart};
use crate::command::{self, ClientCommand};
use crate::failure::CommandFailure;
use crate::output::{CommandOutput, SayLine};
use crate::progress::ProgressLine;
use crate::questions::Questions;

/// The end of a conversation waits this long for the server.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// The way to a server.
pub struct ServerStream {
    /// Messages, one on each line.
    pub stream: DuplexStream,
    /// Resolves when everything behind the stream has ended: processes, sessions. Says what went wrong, if anything did.
    pub ended: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    /// The server, as it may be shown.
    pub shown: String,
}

/// How a conversation is led.
#[derive(Clone)]
pub struct ConversationOptions {
    /// The lists and methods of the server itself, not what is behind its `proxy` tool.
    pub raw: bool,
    /// How long to wait for the opening and for each answer.
    pub timeout: Duration,
    /// Where log messages of the server go; `None`: nowhere.
    pub log: Option<SayLine>,
}

/// An open conversation.
pub struct Conversation {
    pub(crate) client: ProxyClient,
    pub(crate) progress: Arc<ProgressLine>,
    pub(crate) timeout: Duration,
    questions: Questions,
    /// The server said that one of its lists has changed.
    changed: Arc<AtomicBool>,
    ended: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
}

impl Conversation {
    /// Opens it.
    pub async fn open(
        server: ServerStream,
        options: &ConversationOptions,
    ) -> Result<Conversation, CommandFailure> {
        let progress = Arc::new(ProgressLine::default());
        let questions = Questions::new(server.shown.clone(), Arc::clone(&progress));
        let changed = Arc::new(AtomicBool::new(false));
        let asked = questions.clone();
        let (seen, line, log) = (
            Arc::clone(&changed),
            Arc::clone(&progress),
            options.log.clone(),
        );
        let builder = ProxyClient::builder()
            .transparent(!options.raw)
            .fall_back_to_native(true)
            .timeout(options.timeout)
            .client_info("mcp-proxy", env!("CARGO_PKG_VERSION"))
            .elicitation(move |params| {
                let asked = asked.clone();
                async move { Ok(asked.answer(params).await) }
            })
            .on_notification(move |notification| {
                hear(&notification, &seen, &line, log.as_deref());
            });
        let builder = match options.log {
            Some(_) => builder.log_level(LoggingLevel::Info),
            None => builder,
        };
        let (reader, writer) = tokio::io::split(server.stream);
        let client = match builder.connect_stream(reader, writer).await {
            Ok(client) => client,
            Err(error) => {
                // The way to the server knows best what is wrong with it.
                let ended = tokio::time::timeout(CLOSE_DEADLINE, server.ended).await;
                let reason = ended.ok().flatten().unwrap_or_else(|| reason(&error));
                let text = format!("cannot connect to {}: {}", server.shown, sanitize(&reason));
                return Err(CommandFailure::Unreachable(text));
            }
        };
        Ok(Conversation {
            client,
            progress,
            questions,
            changed,
            timeout: options.timeout,
            ended: server.ended,
        })
    }

    /// Runs a command. Ctrl-C cancels it; the conversation continues.
    pub async fn run(
        &self,
        command: &ClientCommand,
        screen: &mut CommandOutput,
    ) -> Result<(), CommandFailure> {
        let running = self.questions.begin();
        let outcome = tokio::select! {
            outcome = command::run(command, self, screen) => outcome,
            _ = tokio::signal::ctrl_c() => Err(CommandFailure::Cancelled),
        };
        drop(running);
        self.progress.clear();
        outcome
    }

    /// Ends it, and waits until nothing of the server is left.
    pub async fn close(self) {
        let closing = async {
            self.client.close().await;
            self.ended.await;
        };
        let _ = tokio::time::timeout(CLOSE_DEADLINE, closing).await;
    }

    /// Whether the server's lists have changed since this was last asked.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Everything of one kind that the server offers.
    pub(crate) async fn list(&self, kind: CapabilityType) -> Result<CatalogPart, CommandFailure> {
        let definitions = match kind {
            CapabilityType::Tool => values(self.client.list_tools().await?),
            CapabilityType::Prompt => values(self.client.list_prompts().await?),
            CapabilityType::Resource => values(self.client.list_resources_and_templates().await?),
        };
        let items = definitions.into_iter();
        Ok(CatalogPart {
            kind,
            items: items
                .map(|definition| CatalogItem::new(kind, definition))
                .collect(),
        })
    }
}

/// What the server says by itself: that its lists have changed, and what it logs.
fn hear(
    notification: &ServerNotification,
    changed: &AtomicBool,
    progress: &ProgressLine,
    log: Option<&(dyn Fn(&str) + Send + Sync)>,
) {
    match notification {
        ServerNotification::ToolListChangedNotification(_)
        | ServerNotification::PromptListChangedNotification(_)
        | ServerNotification::ResourceListChangedNotification(_) => {
            changed.store(true, Ordering::Relaxed);
        }
        ServerNotification::LoggingMessageNotification(message) => {
            if let Some(log) = log {
                let message = serde_json::to_value(&message.params).unwrap_or_default();
                progress.clear();
                log(&log_line(&message));
            }
        }
        _ => {}
    }
}

/// `[info] logger: text`.
fn log_line(message: &Value) -> String {
    let level = message["level"].as_str().unwrap_or("log");
    let data = match &message["data"] {
        Value::String(text) => text.clone(),
        data => data.to_string(),
    };
    let line = match message["logger"].as_str() {
        Some(logger) => format!("[{level}] {logger}: {data}"),
        None => format!("[{level}] {data}"),
    };
    sanitize(&line)
}

/// Why there is no conversation, without the words that the caller has said already.
fn reason(error: &ClientError) -> String {
    let text = error.with_causes();
    match text.strip_prefix(&format!("{error}: ")) {
        Some(causes) => causes.to_owned(),
        None => text,
    }
}

fn values(items: Vec<impl serde::Serialize>) -> Vec<Value> {
    let values = items.iter().map(serde_json::to_value);
    values.filter_map(Result::ok).collect()
}
