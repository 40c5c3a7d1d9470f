//! Which tab a client is shown as the current one: its own, whatever the extension says.

use std::sync::LazyLock;

use bytes::Bytes;
use mcp_proxy_wire::Message;
use memchr::memmem::Finder;
use serde_json::{Map, Value};

use super::extension::Extension;
use super::result_scanner::{CURRENT_TAB, ResultPart, ResultScanner};
use crate::ids::RelayConnectionId;
use crate::messages;
use crate::tabs;

static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(CURRENT_TAB));

/// Whether a part of an answer may say which tab is current. Most do not, and need not be read further.
pub(super) fn may_have_current_tab(text: &[u8]) -> bool {
    NAME.find(text).is_some() || messages::has_escaped_letters(text)
}

impl Extension {
    /// A result in which every current tab is the client's own. `None` if that is so already.
    pub(super) fn result_with_own_tab(
        &mut self,
        connection: &RelayConnectionId,
        result: &Bytes,
    ) -> Option<Bytes> {
        if !may_have_current_tab(result) {
            return None;
        }
        let mut parts = Vec::new();
        ResultScanner::default().push(result, &mut parts);
        let mut text = Vec::with_capacity(result.len());
        for part in parts {
            let bytes = match part {
                ResultPart::Plain(bytes) => bytes,
                ResultPart::Tab(shown) => self.own_tab(connection, shown),
            };
            text.extend_from_slice(&bytes);
        }
        (text != **result).then(|| text.into())
    }

    /// The same for an error and its data.
    pub(super) fn put_own_tab_into(
        &mut self,
        connection: &RelayConnectionId,
        error: &mut Map<String, Value>,
    ) {
        let mut put = |members: &mut Map<String, Value>| {
            if let Some(tab) = members.get_mut(CURRENT_TAB) {
                let own = self.own_tab(connection, Some(tab.to_string().into()));
                *tab = serde_json::from_slice(&own).unwrap_or_default();
            }
        };
        put(error);
        if let Some(Value::Object(data)) = error.get_mut("data") {
            put(data);
        }
    }

    /// What a client is shown where an answer says which tab is current: its own tab, or nothing.
    pub(super) fn own_tab(
        &mut self,
        connection: &RelayConnectionId,
        shown: Option<Bytes>,
    ) -> Bytes {
        let tab = match &shown {
            Some(shown) if shown.trim_ascii() == b"null" => return shown.clone(),
            Some(shown) => tabs::tab_of(&Message::parse(shown.clone())),
            None => None,
        };
        let known = self.connections.get_mut(connection);
        let current = known.and_then(|known| known.current.as_mut());
        match (current, tab, shown) {
            (Some(current), Some(tab), Some(shown)) if current.id == tab => {
                current.shown = shown.clone();
                shown
            }
            (Some(current), ..) => current.shown.clone(),
            (None, ..) => Bytes::from_static(b"null"),
        }
    }
}
