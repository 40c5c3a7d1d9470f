//! The connections of a shell, and what the servers offer, for completion.

use std::time::Duration;

use mcp_proxy_client::{CapabilityType, ToolWord};
use mcp_proxy_wire::terminal_text::sanitize;

use crate::cancel_signal::CancelSignal;
use crate::catalog::CatalogPart;
use crate::conversation::{Conversation, ConversationOptions, ServerStream};
use crate::failure::CommandFailure;
use crate::interactive::completion::KnownNames;
use crate::near_names::did_you_mean;
use crate::text::columns;

/// The prompt waits this long for lists that have changed.
const REFRESH: Duration = Duration::from_secs(3);

/// All connections, and the one in use.
#[derive(Default)]
pub(super) struct Connections {
    open: Vec<OpenConnection>,
    current: usize,
}

struct OpenConnection {
    name: String,
    shown: String,
    conversation: Conversation,
    /// What the server offers.
    parts: Vec<CatalogPart>,
}

impl Connections {
    /// A name can be used once.
    pub(super) fn refuse_taken(&self, name: &str) -> Result<(), CommandFailure> {
        match self.open.iter().any(|one| one.name == name) {
            true => Err(CommandFailure::Mistake(format!(
                "there is a connection `{name}` already; `disconnect {name}` closes it"
            ))),
            false => Ok(()),
        }
    }

    /// Opens a connection and uses it. Says what it offers.
    pub(super) async fn open(
        &mut self,
        name: &str,
        server: ServerStream,
        options: &ConversationOptions,
        cancel: &mut CancelSignal,
    ) -> Result<String, CommandFailure> {
        self.refuse_taken(name)?;
        let shown = server.shown.clone();
        let conversation = Conversation::open(server, options, cancel).await?;
        let listing = Box::pin(async { Ok(offered(&conversation).await) });
        let parts = match cancel.or_cancelled(listing).await {
            Ok(parts) => parts,
            Err(failure) => {
                conversation.close().await;
                return Err(failure);
            }
        };
        self.open.push(OpenConnection {
            name: name.to_owned(),
            shown,
            conversation,
            parts,
        });
        self.current = self.open.len() - 1;
        Ok(self.current_about().unwrap_or_default())
    }

    /// `demo: 7 tools, 3 resources, 1 prompt`.
    pub(super) fn current_about(&self) -> Option<String> {
        let one = self.open.get(self.current)?;
        Some(format!("{}: {}", sanitize(&one.name), one.counts()))
    }

    pub(super) fn prompt(&self) -> String {
        match self.open.get(self.current) {
            Some(one) => format!("{}> ", sanitize(&one.name)),
            None => "mcp> ".to_owned(),
        }
    }

    /// The conversation in use.
    pub(super) fn current(&self) -> Result<&Conversation, CommandFailure> {
        let current = self.open.get(self.current);
        current.map(|one| &one.conversation).ok_or_else(|| {
            CommandFailure::Mistake(
                "there is no connection; `connect NAME URL` or `connect NAME -- COMMAND` opens one"
                    .to_owned(),
            )
        })
    }

    pub(super) fn select(&mut self, name: &str) -> Result<(), CommandFailure> {
        self.current = self.find(name)?;
        Ok(())
    }

    /// Closes a connection, or the one in use.
    pub(super) async fn close(&mut self, name: Option<&str>) -> Result<(), CommandFailure> {
        let place = match name {
            Some(name) => self.find(name)?,
            None => {
                self.current()?;
                self.current
            }
        };
        let closed = self.open.remove(place);
        if self.current > place || self.current == self.open.len() {
            self.current = self.current.saturating_sub(1);
        }
        closed.conversation.close().await;
        Ok(())
    }

    pub(super) async fn close_all(&mut self) {
        for one in self.open.drain(..) {
            one.conversation.close().await;
        }
    }

    /// One line for each connection; `*` marks the one in use.
    pub(super) fn table(&self) -> String {
        let rows = self.open.iter().enumerate().map(|(place, one)| {
            let mark = if place == self.current { '*' } else { ' ' };
            let about = format!("{}  {}", one.counts(), one.shown);
            (format!("{mark} {}", one.name), about)
        });
        let rows: Vec<(String, String)> = rows.collect();
        columns(&rows, None)
    }

    /// Asks the server in use again, if it said that something has changed.
    pub(super) async fn refresh(&mut self) {
        if let Some(one) = self.open.get_mut(self.current)
            && one.conversation.take_changed()
            && let Ok(parts) = tokio::time::timeout(REFRESH, offered(&one.conversation)).await
        {
            one.parts = parts;
        }
    }

    /// What can be completed.
    pub(super) fn known_names(&self) -> KnownNames {
        KnownNames {
            connections: self.open.iter().map(|one| one.name.clone()).collect(),
            parts: self
                .open
                .get(self.current)
                .map_or_else(Vec::new, |one| one.parts.clone()),
        }
    }

    fn find(&self, name: &str) -> Result<usize, CommandFailure> {
        let names = self.open.iter().map(|one| one.name.as_str());
        let found = names.clone().position(|known| known == name);
        found.ok_or_else(|| {
            let near = did_you_mean(name, names.clone());
            let hint = near.unwrap_or_else(|| match self.open.is_empty() {
                true => "there are none".to_owned(),
                false => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            });
            CommandFailure::Mistake(format!("there is no connection `{name}`; {hint}"))
        })
    }
}

impl OpenConnection {
    fn counts(&self) -> String {
        let counts = self.parts.iter().map(|part| match part.items.len() {
            1 => format!("1 {}", part.kind),
            count => format!("{count} {}s", part.kind),
        });
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// Everything that the server offers. A list that fails is empty: the command that needs it says why.
async fn offered(conversation: &Conversation) -> Vec<CatalogPart> {
    let mut parts = Vec::new();
    for &kind in CapabilityType::all() {
        let part = conversation.list(kind).await;
        parts.push(part.unwrap_or(CatalogPart {
            kind,
            items: Vec::new(),
            lacks_a_server: false,
        }));
    }
    parts
}
