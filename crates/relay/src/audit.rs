//! What the audit log of a relay is told: who came, who used which browser, and what became of each command.
//!
//! Parameters and answers never are: they hold what people do in their browsers. Tokens never come here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Kind, Message};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::command::Command;
use crate::extension_event::AnswerBody;
use crate::fault::{Delivered, RelayFault};
use crate::ids::{ExtensionId, McpClientId, RelayConnectionId};
use crate::opening::SocketRole;
use crate::outbox::RelayClose;
use crate::policy::{FORWARD_CDP, PolicyList};
use crate::time::RelayTime;

/// The longest name of a method that is kept. Clients choose it.
const MAX_METHOD: usize = 80;

/// Takes events in the order in which they happen, before anybody else hears of them. It must not wait for long.
pub type AuditSink = Arc<dyn Fn(&[RelayAuditEvent]) + Send + Sync>;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayAuditEvent {
    /// When, in milliseconds since 1970.
    pub wall_ms: i64,
    /// Whose relay it is about, if that is known.
    pub user: Option<Arc<str>>,
    /// What.
    pub what: AuditedAction,
}

/// What happened, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditedAction {
    /// A socket, or a socket once more, has shown a good token.
    Authenticated {
        /// What it is.
        role: SocketRole,
        /// Where it came from. A socket that renews its token came before.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<SocketAddr>,
    },
    /// It has shown another, or none in time.
    Refused {
        /// What it said it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<SocketRole>,
        /// Where it came from.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<SocketAddr>,
        /// What it was told.
        reason: &'static str,
    },
    /// A browser extension has exchanged a code for a token.
    Paired {
        /// Where it came from.
        address: SocketAddr,
    },
    /// A client uses a browser from now on.
    Connected {
        /// The client.
        client: String,
        /// What ties them.
        connection: RelayConnectionId,
        /// The browser.
        extension: ExtensionId,
    },
    /// It does so no more.
    Disconnected {
        /// What tied them.
        connection: RelayConnectionId,
        /// The browser.
        extension: ExtensionId,
        /// Why.
        reason: &'static str,
    },
    /// A newer socket of the same client or extension took over.
    TakenOver(AuditedPeer),
    /// A socket is closed because its token expired, was revoked, or was followed by one that is not good.
    Closed {
        /// Whose it is.
        #[serde(flatten)]
        peer: AuditedPeer,
        /// What it was told.
        reason: &'static str,
    },
    /// The policy refused a command.
    Denied {
        /// The command.
        #[serde(flatten)]
        command: AuditedCommand,
        /// The part of the policy: `method`, `cdp` or `url`.
        policy: &'static str,
    },
    /// A command is over.
    #[serde(rename = "command")]
    Finished {
        /// The command.
        #[serde(flatten)]
        command: AuditedCommand,
        /// `ok`, `error` if the extension said so, or why it has no answer.
        outcome: &'static str,
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "as_milliseconds")]
        duration: Duration,
    },
}

/// A client or an extension, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum AuditedPeer {
    /// A client.
    Client {
        /// Its id.
        client: String,
    },
    /// An extension.
    Extension {
        /// Its id.
        extension: String,
    },
}

/// A command without its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditedCommand {
    /// Its method.
    pub method: String,
    /// The method of the Chrome DevTools Protocol that it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdp: Option<String>,
    /// Whose it is.
    pub connection: RelayConnectionId,
    /// Where it goes.
    pub extension: ExtensionId,
}

fn as_milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Collects the events of one user.
#[derive(Debug, Default)]
pub(crate) struct RelayAudit {
    is_on: bool,
    user: Arc<str>,
    events: Vec<RelayAuditEvent>,
    /// Commands that are not over, by their numbers.
    open: FxHashMap<u64, (AuditedCommand, Duration)>,
}

impl RelayAudit {
    pub(crate) fn new(user: &str, is_on: bool) -> RelayAudit {
        RelayAudit {
            is_on,
            user: user.into(),
            ..RelayAudit::default()
        }
    }

    /// What has happened since the last call.
    pub(crate) fn take(&mut self) -> Vec<RelayAuditEvent> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn connected(
        &mut self,
        client: &McpClientId,
        connection: &RelayConnectionId,
        extension: &ExtensionId,
        now: RelayTime,
    ) {
        self.note(now, || AuditedAction::Connected {
            client: client.as_str().to_owned(),
            connection: connection.clone(),
            extension: extension.clone(),
        });
    }

    /// A connection is over, and so are the commands that it waits for.
    pub(crate) fn disconnected(
        &mut self,
        connection: &RelayConnectionId,
        extension: &ExtensionId,
        reason: &'static str,
        now: RelayTime,
    ) {
        let is_its = |(command, _): &(AuditedCommand, Duration)| command.connection == *connection;
        let mut numbers: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| is_its(open))
            .map(|(number, _)| *number)
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            self.finish(
                number,
                RelayFault::Disconnected(Delivered::Unknown).reason(),
                now,
            );
        }
        self.note(now, || AuditedAction::Disconnected {
            connection: connection.clone(),
            extension: extension.clone(),
            reason,
        });
    }

    pub(crate) fn taken_over(&mut self, role: SocketRole, id: &str, now: RelayTime) {
        self.note(now, || AuditedAction::TakenOver(AuditedPeer::new(role, id)));
    }

    /// A socket is closed. Only closes caused by its token are logged.
    pub(crate) fn closed(&mut self, role: SocketRole, id: &str, close: RelayClose, now: RelayTime) {
        if let RelayClose::Unauthorized(reason) = close {
            self.note(now, || AuditedAction::Closed {
                peer: AuditedPeer::new(role, id),
                reason,
            });
        }
    }

    /// The policy has refused a command.
    pub(crate) fn denied(
        &mut self,
        method: &str,
        message: &Message,
        (connection, extension): (&RelayConnectionId, &ExtensionId),
        fault: &RelayFault,
        now: RelayTime,
    ) {
        let RelayFault::Denied { list, name } = fault else {
            return;
        };
        self.note(now, || {
            let mut command = AuditedCommand::new(method, message, connection, extension);
            let policy = match list {
                PolicyList::Methods => "method",
                PolicyList::Cdp => "cdp",
                PolicyList::Urls => "url",
            };
            // Any command can carry one.
            if *list == PolicyList::Cdp {
                command.cdp = Some(name.clone());
            }
            AuditedAction::Denied { command, policy }
        });
    }

    /// A command was forwarded.
    pub(crate) fn begin(&mut self, command: &Command, extension: &ExtensionId, now: RelayTime) {
        if self.is_on {
            let audited = AuditedCommand::new(
                &command.method,
                &command.message,
                &command.connection,
                extension,
            );
            self.open.insert(command.number, (audited, now.elapsed));
        }
    }

    /// It has an answer, or fails.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        outcome: &Result<AnswerBody, RelayFault>,
        now: RelayTime,
    ) {
        let outcome = match outcome {
            Ok(body) if body.message.kind() == Kind::Response => "ok",
            Ok(_) => "error",
            Err(fault) => fault.reason(),
        };
        self.finish(number, outcome, now);
    }

    /// A command is over.
    pub(crate) fn finish(&mut self, number: u64, outcome: &'static str, now: RelayTime) {
        if let Some((command, started)) = self.open.remove(&number) {
            self.note(now, || AuditedAction::Finished {
                command,
                outcome,
                duration: now.elapsed.saturating_sub(started),
            });
        }
    }

    fn note(&mut self, now: RelayTime, what: impl FnOnce() -> AuditedAction) {
        if self.is_on {
            self.events.push(RelayAuditEvent {
                wall_ms: now.wall_ms,
                user: Some(Arc::clone(&self.user)),
                what: what(),
            });
        }
    }
}

impl AuditedPeer {
    fn new(role: SocketRole, id: &str) -> AuditedPeer {
        let id = id.to_owned();
        match role {
            SocketRole::Client => AuditedPeer::Client { client: id },
            SocketRole::Extension => AuditedPeer::Extension { extension: id },
        }
    }
}

impl AuditedCommand {
    fn new(
        method: &str,
        message: &Message,
        connection: &RelayConnectionId,
        extension: &ExtensionId,
    ) -> AuditedCommand {
        let short = |name: &str| name.chars().take(MAX_METHOD).collect::<String>();
        let cdp = (method == FORWARD_CDP)
            .then(|| message.member(message.params()?, "method"))
            .flatten()
            .and_then(|span| message.text_at(span));
        AuditedCommand {
            method: short(method),
            cdp: cdp.map(|name| short(&name)),
            connection: connection.clone(),
            extension: extension.clone(),
        }
    }
}
