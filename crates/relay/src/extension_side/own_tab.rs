//! Which tab a client is shown as the current one: its own, whatever the extension says.

use std::sync::LazyLock;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span};
use memchr::memmem::Finder;
use serde_json::{Map, Value};

use super::extension::Extension;
use crate::ids::RelayConnectionId;
use crate::messages;
use crate::tabs;

/// The member of an answer that says which tab is current.
const CURRENT_TAB: &str = "currentTab";

static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(CURRENT_TAB));

/// Whether a part of an answer may say which tab is current. Most do not, and need not be read further.
pub(super) fn may_have_current_tab(text: &[u8]) -> bool {
    NAME.find(text).is_some() || messages::has_escaped_letters(text)
}

impl Extension {
    /// The replacements that make every current tab in a result the client's own.
    pub(super) fn own_tab_edits(
        &mut self,
        connection: &RelayConnectionId,
        message: &Message,
        result: Span,
    ) -> Vec<(Span, Bytes)> {
        let text = message.slice(result);
        if !text.starts_with(b"{") || !may_have_current_tab(text) {
            return Vec::new();
        }
        let members = message.each_member(result).into_iter();
        let shown = members.filter(|(name, _)| name == CURRENT_TAB);
        let edit = |(_, value): (_, Span)| {
            let shown = message.raw().slice(value.range());
            let own = self.own_tab(connection, &shown);
            (own != shown).then_some((value, own))
        };
        shown.filter_map(edit).collect()
    }

    /// Replaces the current tab in an error and in its data.
    pub(super) fn put_own_tab_into(
        &mut self,
        connection: &RelayConnectionId,
        error: &mut Map<String, Value>,
    ) {
        let mut put = |members: &mut Map<String, Value>| {
            if let Some(tab) = members.get_mut(CURRENT_TAB) {
                let own = self.own_tab(connection, &tab.to_string().into());
                *tab = serde_json::from_slice(&own).unwrap_or_default();
            }
        };
        put(error);
        if let Some(Value::Object(data)) = error.get_mut("data") {
            put(data);
        }
    }

    /// What a client is shown where an answer says which tab is current: its own tab, or nothing.
    fn own_tab(&mut self, connection: &RelayConnectionId, shown: &Bytes) -> Bytes {
        if **shown == *b"null" {
            return shown.clone();
        }
        let tab = tabs::tab_of(&Message::parse(shown.clone()));
        let known = self.connections.get_mut(connection);
        match (known.and_then(|known| known.current.as_mut()), tab) {
            (Some(current), Some(tab)) if current.id == tab => {
                current.shown = shown.clone();
                shown.clone()
            }
            (Some(current), _) => current.shown.clone(),
            (None, _) => Bytes::from_static(b"null"),
        }
    }
}
