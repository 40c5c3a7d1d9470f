//! Tabs: which commands need one, which name one, and whose each is.
//!
//! Extensions know one attached tab, or one for each connection, and some forget whose it was. So the relay keeps count: a
//! connection owns the tabs that it opened or selected, and nobody else's commands reach them.

mod references;

use bytes::Bytes;
use mcp_proxy_wire::{Field, Message, Span};
use rustc_hash::FxHashMap;

pub(crate) use self::references::{NamedTabs, TabReference};
use crate::fault::RelayFault;
use crate::ids::RelayConnectionId;

/// A tab, by the number or name that its extension gave it. The number 5 and the string "5" are one tab, as they are to
/// JavaScript in most places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TabId(Box<str>);

/// The longest number that JavaScript reads without rounding it to another.
pub(crate) const MAX_DIGITS: usize = 15;

/// A tab in the extension's list of all tabs.
#[derive(Clone, Debug)]
pub(crate) struct ListedTab {
    pub(crate) id: TabId,
    /// The id as the extension wrote it: a number or a string.
    token: Bytes,
}

/// What a method has to do with tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TabUse {
    /// Opens a tab, which is then the connection's.
    Opens,
    /// Attaches to a tab that nobody else owns, which is then the connection's.
    Selects,
    /// Brings a tab that nobody else owns to the front.
    Activates,
    /// Closes a tab of the connection.
    Closes,
    /// Lists all tabs.
    Lists,
    /// Is about the browser and not about a tab.
    Browser,
    /// Works on the connection's tab. Methods that the relay does not know do.
    Works,
}

/// Who owns which tab of one extension.
#[derive(Debug, Default)]
pub(crate) struct TabOwners(FxHashMap<TabId, RelayConnectionId>);

/// The tab that a connection works on, with what its extension last said about it.
#[derive(Clone, Debug)]
pub(crate) struct CurrentTab {
    pub(crate) id: TabId,
    pub(crate) shown: Bytes,
}

impl TabUse {
    /// What a command does. Only a list without conditions is a list of all tabs.
    pub(crate) fn of_command(method: &str, message: &Message) -> TabUse {
        let params = message.params().map(|span| message.slice(span));
        let is_plain = params.is_none_or(|params| {
            let inside = params
                .strip_prefix(b"{")
                .and_then(|rest| rest.strip_suffix(b"}"));
            inside.is_some_and(|inside| inside.trim_ascii().is_empty())
        });
        match TabUse::of(method) {
            TabUse::Lists if !is_plain => TabUse::Browser,
            tab_use => tab_use,
        }
    }

    fn of(method: &str) -> TabUse {
        match method {
            "createTab" | "openTestPage" => TabUse::Opens,
            "selectTab" => TabUse::Selects,
            "activateTab" => TabUse::Activates,
            "closeTab" => TabUse::Closes,
            "getTabs" => TabUse::Lists,
            "listExtensions" | "reloadExtensions" | "reloadSelf" | "get_build_info"
            | "get_debug_storage" => TabUse::Browser,
            _ => TabUse::Works,
        }
    }

    /// Whether a command is refused if its connection has no tab.
    pub(crate) fn needs_own(self) -> bool {
        matches!(self, TabUse::Works | TabUse::Closes)
    }

    /// Whether the connection may have one tab more when the command is answered. Commands that need a tab wait for that.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, TabUse::Opens | TabUse::Selects)
    }

    /// Whether it depends on the tab that the extension is attached to, or changes it.
    pub(crate) fn uses_debugger(self) -> bool {
        !matches!(self, TabUse::Lists | TabUse::Browser)
    }

    /// Whether the extension may be attached to another tab afterwards.
    pub(crate) fn moves_debugger(self) -> bool {
        matches!(self, TabUse::Opens | TabUse::Selects | TabUse::Activates)
    }

    /// Whether it may name a tab that nobody owns.
    fn reaches_unowned(self) -> bool {
        matches!(self, TabUse::Selects | TabUse::Activates)
    }
}

impl TabId {
    /// The tab that a command names. Other spellings of a number, such as `5.0`, are none: an extension would take them for
    /// the same tab, and the relay for another.
    fn named(message: &Message, span: Span) -> Option<TabId> {
        let token = message.slice(span);
        let is_number = token.len() <= MAX_DIGITS && token.iter().all(u8::is_ascii_digit);
        (is_number || token.starts_with(b"\"")).then(|| TabId::at(message, span))
    }

    fn at(message: &Message, span: Span) -> TabId {
        let text = message.text_at(span);
        let token = || String::from_utf8_lossy(message.slice(span));
        TabId(text.unwrap_or_else(token).into())
    }
}

impl TabOwners {
    pub(crate) fn claim(&mut self, tab: TabId, connection: &RelayConnectionId) {
        self.0.insert(tab, connection.clone());
    }

    pub(crate) fn release(&mut self, tab: &TabId) {
        self.0.remove(tab);
    }

    pub(crate) fn release_all(&mut self, connection: &RelayConnectionId) {
        self.0.retain(|_, owner| owner != connection);
    }

    pub(crate) fn owner(&self, tab: &TabId) -> Option<&RelayConnectionId> {
        self.0.get(tab)
    }

    /// The owner of the tab whose id stands at `span`.
    pub(crate) fn owner_at(&self, message: &Message, span: Span) -> Option<&RelayConnectionId> {
        self.owner(&TabId::at(message, span))
    }

    pub(crate) fn has_any(&self, connection: &RelayConnectionId) -> bool {
        self.0.values().any(|owner| owner == connection)
    }

    /// Checks whether a command of `connection` may name `tab`.
    pub(crate) fn check(
        &self,
        tab: &TabId,
        connection: &RelayConnectionId,
        tab_use: TabUse,
    ) -> Result<(), RelayFault> {
        match self.owner(tab) {
            Some(owner) if owner == connection => Ok(()),
            None if tab_use.reaches_unowned() => Ok(()),
            _ => Err(RelayFault::ForeignTab),
        }
    }

    /// Forgets tabs that the extension does not have any more.
    pub(crate) fn keep_only(&mut self, existing: &[Option<ListedTab>]) {
        self.0.retain(|tab, _| is_listed(tab, existing));
    }
}

/// The tab that an answer to `createTab` or `selectTab` is about: `result.tab.id` or `result.tabId`.
pub(crate) fn answered_tab(answer: &Message) -> Option<CurrentTab> {
    if let Some(tab) = answer.span(Field::ResultField("tab"))
        && let Some(id) = answer.member(tab, "id")
    {
        return Some(CurrentTab {
            id: TabId::at(answer, id),
            shown: Bytes::copy_from_slice(answer.slice(tab)),
        });
    }
    let id = answer.span(Field::ResultField("tabId"))?;
    let token = answer.slice(id);
    let shown = [br#"{"id":"#, token, b"}"].concat();
    Some(CurrentTab {
        id: TabId::at(answer, id),
        shown: shown.into(),
    })
}

/// Whether a tab is in a list of all tabs.
pub(crate) fn is_listed(tab: &TabId, listed: &[Option<ListedTab>]) -> bool {
    listed.iter().flatten().any(|listed| listed.id == *tab)
}

/// The tabs that `getTabs` lists, by index. A tab without an id keeps its place, and can never be anybody's.
pub(crate) fn listed_tabs(answer: &Message) -> Option<Vec<Option<ListedTab>>> {
    let tabs = answer.span(Field::ResultField("tabs"))?;
    let listed: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(answer.slice(tabs)).ok()?;
    let ids = listed.into_iter().map(|tab| {
        let tab = Message::parse(Bytes::copy_from_slice(tab.get().as_bytes()));
        let id = tab.member(tab.root(), "id")?;
        Some(ListedTab {
            id: TabId::at(&tab, id),
            token: tab.raw().slice(id.range()),
        })
    });
    Some(ids.collect())
}

/// The parameters of a command that names a tab by its index, with the id of that tab next to it. An extension that reads
/// `tabId` acts on exactly this tab; the published ones need the index.
pub(crate) fn params_with_id(message: &Message, params: Span, tab: &ListedTab) -> Bytes {
    let raw = message.raw();
    match message.member(params, "tabId") {
        // Only `null` can stand there without naming a tab.
        Some(null) => [
            &raw[params.start..null.start],
            &tab.token,
            &raw[null.end..params.end],
        ]
        .concat(),
        None => {
            // An index stands behind it.
            let rest = &raw[params.start + 1..params.end];
            [b"{\"tabId\":", &tab.token[..], b",", rest].concat()
        }
    }
    .into()
}

/// The id of a tab that an extension describes, if it gives one.
pub(crate) fn tab_of(description: &Message) -> Option<TabId> {
    let id = description.member(description.root(), "id")?;
    Some(TabId::at(description, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_ids_in_order() {
        let answer = r#"{"id":1,"result":{"tabs":[{"id":7,"title":"a"},{"title":"b"},{"id":9}]}}"#;
        let listed = listed_tabs(&Message::parse(answer)).unwrap();
        let ids: Vec<Option<&str>> = listed
            .iter()
            .map(|tab| tab.as_ref().map(|tab| &*tab.id.0))
            .collect();
        assert_eq!(ids, [Some("7"), None, Some("9")]);
    }

    #[test]
    fn the_id_of_a_tab_is_added_next_to_its_index() {
        let tab = ListedTab {
            id: TabId("7".into()),
            token: Bytes::from_static(b"7"),
        };
        for (params, expected) in [
            (r#"{"index":1}"#, r#"{"tabId":7,"index":1}"#),
            (r#"{ "index":1}"#, r#"{"tabId":7, "index":1}"#),
            (
                r#"{"index":1,"tabId":null,"x":2}"#,
                r#"{"index":1,"tabId":7,"x":2}"#,
            ),
            (r#"{"tabId":null ,"index":1}"#, r#"{"tabId":7 ,"index":1}"#),
            (r#"{"index":1,"tabId":null}"#, r#"{"index":1,"tabId":7}"#),
        ] {
            let text = format!(r#"{{"id":1,"method":"m","params":{params}}}"#);
            let message = Message::parse(text);
            let written = params_with_id(&message, message.params().unwrap(), &tab);
            assert_eq!(written, expected);
        }
    }
}
