//! A conversation with one server: opened on a stream, used by commands, closed with everything behind it.

// Logging is deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_proxy_client::rmcp::model::{LoggingLevel, ServerNotification};
use mcp_proxy_client::{CapabilityType, ClientError, ClientWarning, ConnectError, ProxyClient};
use mcp_proxy_wire::terminal_text::sanitize;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::oneshot;

use crate::cancel_signal::CancelSignal;
use crate::catalog::{CatalogItem, CatalogPart};
use crate::command::{self, ClientCommand};
use crate::failure::{CommandFailure, without_repetition};
use crate::output::{CommandOutput, SayLine};
use crate::progress::ProgressLine;
use crate::questions::Questions;

/// The end of a conversation waits this long for the server.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);
/// What a server has to take in that a call is cancelled, before a conversation that has failed ends.
const CANCEL_DEADLINE: Duration = Duration::from_millis(200);
/// A conversation that could not be opened waits this long for the reason.
const REASON_DEADLINE: Duration = Duration::from_secs(1);

/// The codes of errors that come from this program.
const OWN_CODES: RangeInclusive<i64> = -31099..=-31000;

/// Other tasks get this many turns to tell the server that a call is cancelled. A few are enough.
const CANCEL_TURNS: usize = 64;

/// The way to a server.
pub struct ServerStream {
    /// Messages, one on each line.
    pub stream: DuplexStream,
    /// Ends what is behind the stream without waiting for open answers, when it is used or dropped.
    pub stop: oneshot::Sender<()>,
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
    /// Where warnings about what the server sends go.
    pub warn: SayLine,
}

/// An open conversation.
pub struct Conversation {
    pub(crate) client: ProxyClient,
    pub(crate) progress: Arc<ProgressLine>,
    pub(crate) timeout: Duration,
    questions: Questions,
    /// The server said that one of its lists has changed.
    changed: Arc<AtomicBool>,
    /// The last list said that a server is not available.
    lacks_a_server: Arc<AtomicBool>,
    /// What the last list said about servers that are not available.
    unavailable: Arc<Mutex<Vec<String>>>,
    warn: SayLine,
    is_verbose: bool,
    stop: oneshot::Sender<()>,
    ended: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
}

impl Conversation {
    /// Opens it.
    pub async fn open(
        server: ServerStream,
        options: &ConversationOptions,
        cancel: &mut CancelSignal,
    ) -> Result<Conversation, CommandFailure> {
        let progress = Arc::new(ProgressLine::default());
        let questions = Questions::new(server.shown.clone(), Arc::clone(&progress));
        let changed = Arc::new(AtomicBool::new(false));
        let asked = questions.clone();
        let lacks_a_server = Arc::new(AtomicBool::new(false));
        let missed = Arc::clone(&lacks_a_server);
        let unavailable = Arc::new(Mutex::new(Vec::new()));
        let held = Arc::clone(&unavailable);
        let (warn, verbose) = (Arc::clone(&options.warn), options.log.is_some());
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
            .on_warning(move |warning| {
                let text = sanitize(&warning.to_string());
                match warning {
                    ClientWarning::UnavailableServer { is_turned_off, .. } => {
                        missed.fetch_or(!is_turned_off, Ordering::Relaxed);
                        if verbose || !is_turned_off {
                            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                            held.push(text);
                        }
                    }
                    _ => warn(&text),
                }
            })
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
        let ServerStream {
            stream,
            stop,
            mut ended,
            shown,
        } = server;
        let (reader, writer) = tokio::io::split(stream);
        let connecting = Box::pin(async { Ok(builder.connect_stream(reader, writer).await) });
        let error = match cancel.or_cancelled(connecting).await {
            Ok(Ok(client)) => {
                return Ok(Conversation {
                    client,
                    progress,
                    questions,
                    changed,
                    lacks_a_server,
                    unavailable,
                    warn: Arc::clone(&options.warn),
                    is_verbose: verbose,
                    timeout: options.timeout,
                    stop,
                    ended,
                });
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        let unreachable = |reason: String| {
            let reason = sanitize(without_repetition(&reason, &shown));
            CommandFailure::Unreachable(format!("cannot connect to {shown}: {reason}"))
        };
        let failure = match error {
            None => CommandFailure::Cancelled,
            // The way to the server knows best what is wrong with it.
            Some(error) => match tokio::time::timeout(REASON_DEADLINE, &mut ended).await {
                Ok(known) => return Err(unreachable(known.unwrap_or_else(|| reason(&error)))),
                Err(_) => unreachable(reason(&error)),
            },
        };
        drop(stop);
        let ending = async { Ok(tokio::time::timeout(CLOSE_DEADLINE, ended).await) };
        // A second Ctrl-C does not wait for the server.
        let _ = cancel.or_cancelled(ending).await;
        Err(failure)
    }

    /// Runs a command. Ctrl-C cancels it; the conversation continues.
    pub async fn run(
        &self,
        command: &ClientCommand,
        screen: &mut CommandOutput,
        cancel: &mut CancelSignal,
    ) -> Result<(), CommandFailure> {
        let running = self.questions.begin();
        let outcome = cancel
            .or_cancelled(Box::pin(command::run(command, self, screen)))
            .await;
        drop(running);
        self.progress.clear();
        if outcome.is_err() {
            // The client library tells the server in a task of its own, which must not meet a closed conversation.
            for _ in 0..CANCEL_TURNS {
                tokio::task::yield_now().await;
            }
        }
        outcome
    }

    /// Ends it, and waits until nothing of the server is left.
    pub async fn close(self) {
        self.end(CLOSE_DEADLINE).await;
    }

    /// Ends it after a command that has failed. The server may still work on the call, and nobody waits for that.
    pub async fn abandon(self) {
        self.end(CANCEL_DEADLINE).await;
    }

    /// Ends it. If the server has not ended by itself within `patience`, it is stopped.
    async fn end(self, patience: Duration) {
        let mut ended = self.ended;
        let closing = async {
            self.client.close().await;
            (&mut ended).await;
        };
        if tokio::time::timeout(patience, closing).await.is_err() {
            drop(self.stop);
            let _ = tokio::time::timeout(CLOSE_DEADLINE, ended).await;
        }
    }

    /// Whether the server's lists have changed since this was last asked.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Everything of one kind that the server offers. Says which servers are not available.
    pub(crate) async fn list(&self, kind: CapabilityType) -> Result<CatalogPart, CommandFailure> {
        let part = self.list_quietly(kind).await;
        self.say_unavailable();
        part
    }

    /// Everything of one kind that the server offers, for a command that may not need all of it.
    pub(crate) async fn list_quietly(
        &self,
        kind: CapabilityType,
    ) -> Result<CatalogPart, CommandFailure> {
        self.lacks_a_server.store(false, Ordering::Relaxed);
        self.take_unavailable();
        let definitions = match kind {
            CapabilityType::Tool => values(self.client.list_tools().await?),
            CapabilityType::Prompt => values(self.client.list_prompts().await?),
            CapabilityType::Resource => values(self.client.list_resources_and_templates().await?),
        };
        let items = definitions.into_iter();
        Ok(CatalogPart {
            kind,
            lacks_a_server: self.lacks_a_server.load(Ordering::Relaxed),
            items: items
                .map(|definition| CatalogItem::new(kind, definition))
                .collect(),
        })
    }

    /// Whether the user wants to know everything.
    pub(crate) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// Says which servers were not available for the last list.
    pub(crate) fn say_unavailable(&self) {
        for text in self.take_unavailable() {
            (self.warn)(&text);
        }
    }

    fn take_unavailable(&self) -> Vec<String> {
        let held = self.unavailable.lock();
        std::mem::take(&mut held.unwrap_or_else(PoisonError::into_inner))
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
    // Our own link says what is wrong with the server; the server has refused nothing.
    if let ClientError::Connect {
        source: ConnectError::Refused { code, message, .. },
        ..
    } = error
        && OWN_CODES.contains(code)
    {
        return message.clone();
    }
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
