//! What is wrong without making a call fail.

use std::fmt;
use std::sync::Arc;

use mcp_proxy_tool::CapabilityType;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::ProxyClient;
use crate::transport::{SkippedDefinition, decode_item};

/// Called with each warning.
pub(crate) type WarningHandler = Arc<dyn Fn(ClientWarning) + Send + Sync>;

/// Something that a program may want to tell its user. See
/// [`ProxyClientBuilder::on_warning`](crate::ProxyClientBuilder::on_warning).
///
/// ```
/// use mcp_proxy_client::{ClientWarning, ProxyClient};
///
/// let builder = ProxyClient::builder().on_warning(|warning| match warning {
///     ClientWarning::SkippedDefinition { name: Some(name), .. } => eprintln!("without {name}"),
///     warning => eprintln!("{warning}"),
/// });
/// # let _ = builder;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientWarning {
    /// A definition in a list cannot be decoded. The others are there.
    #[non_exhaustive]
    SkippedDefinition {
        /// The type of list.
        kind: CapabilityType,
        /// The name or URI, if it has one.
        name: Option<String>,
        /// What is wrong with it.
        reason: String,
    },
    /// A server behind this one is not available, so what it offers is missing from a list, or old.
    #[non_exhaustive]
    UnavailableServer {
        /// Its name.
        server: String,
        /// Why, if the answer says so.
        reason: Option<String>,
        /// A person turned it off, so nothing is wrong.
        is_turned_off: bool,
    },
}

impl ProxyClient {
    pub(crate) fn warn_of_skipped(&self, kind: CapabilityType, skipped: SkippedDefinition) {
        self.warn(ClientWarning::SkippedDefinition {
            kind,
            name: skipped.name,
            reason: skipped.reason,
        });
    }

    /// Warns of a server that an answer describes with its `name` and perhaps a reason.
    pub(crate) fn warn_of_unavailable(&self, server: &Value) {
        let text = |member: &str| Some(server.get(member)?.as_str()?.to_owned());
        if let Some(name) = text("name").or_else(|| text("server")) {
            self.warn(ClientWarning::UnavailableServer {
                server: name,
                reason: ["reason", "lastError", "state"].into_iter().find_map(text),
                is_turned_off: text("state").as_deref() == Some("disabled"),
            });
        }
    }

    /// The definitions that are what they should be. The others are told of.
    pub(crate) fn decode_definitions<T: DeserializeOwned>(
        &self,
        kind: CapabilityType,
        items: &[Value],
    ) -> Vec<T> {
        let decoded = items.iter().filter_map(|item| {
            decode_item(item)
                .map_err(|skipped| self.warn_of_skipped(kind, skipped))
                .ok()
        });
        decoded.collect()
    }

    fn warn(&self, warning: ClientWarning) {
        if let Some(handler) = &self.inner.on_warning {
            handler(warning);
        }
    }
}

impl fmt::Display for ClientWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientWarning::SkippedDefinition { kind, name, reason } => {
                let name = name.as_deref().unwrap_or("without a name");
                write!(f, "the {kind} {name} is left out: {reason}")
            }
            ClientWarning::UnavailableServer { server, reason, .. } => {
                write!(f, "the server {server} is not available")?;
                match reason {
                    Some(reason) => write!(f, ": {reason}"),
                    None => Ok(()),
                }
            }
        }
    }
}
