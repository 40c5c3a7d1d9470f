//! Answers that come from the catalog: `list` and `info`.

use bytes::Bytes;
use mcp_proxy_wire::{Message, json_string};

use super::facts::{Facts, embedded_resource, embedded_resource_and_text};
use super::{CapabilityType, ListQuery, ProxyAction};
use crate::ToolWord;
use crate::without_nulls::push_compact_without_nulls;
use crate::{ItemKind, json};

/// Something that a list can show.
pub trait ListedItem {
    /// What it is.
    fn kind(&self) -> ItemKind;
    /// The name or URI that clients use.
    fn public(&self) -> &str;
    /// Its definition under that name or URI, a JSON object.
    fn definition(&self) -> Bytes;
}

/// A server that is not up, so that its items are missing from a list or are those of an earlier time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableServer {
    /// Its name in the configuration.
    pub server: String,
    /// Why, in a few words without internal details.
    pub reason: String,
    /// Its items are in the list, as they were.
    pub stale: bool,
    /// What kind of reason that is.
    pub state: UnavailableState,
}

/// Why a server is not up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnavailableState {
    /// It is starting, waits for its first call, or has failed.
    Down,
    /// It wants to know who asks, and nobody has signed in.
    NeedsSignIn,
    /// A person turned it off, so nobody misses it.
    TurnedOff,
}

/// The result of a `list`: the page of `entries` that `query` asks for.
///
/// If [`ListQuery::filter_server`] names a server, `is_selected` says what is of it. Otherwise items match whose name or
/// URI begins with it.
pub fn render_list<'a, T: ListedItem + 'a>(
    entries: impl Iterator<Item = &'a T> + Clone,
    query: &ListQuery,
    is_selected: Option<&dyn Fn(&T) -> bool>,
    unavailable: &[UnavailableServer],
) -> Bytes {
    let (page, total) = page_of(entries, query, is_selected);
    let end = query.offset.saturating_add(u64::from(query.limit));
    let mut text = vec![b'['];
    for entry in page {
        if text.len() > 1 {
            text.push(b',');
        }
        push_compact_without_nulls(&mut text, &entry.definition());
    }
    text.push(b']');
    let mut facts = Facts::default();
    facts.text("pythonType", python_type(query.kind));
    facts.raw("many", "true");
    facts.text("proxyAction", ProxyAction::List.as_str());
    facts.text("proxyType", query.kind.as_str());
    facts.raw("totalCount", total.to_string());
    facts.raw("offset", query.offset.to_string());
    facts.raw("limit", query.limit.to_string());
    facts.text("dataType", data_type(query.kind));
    facts.raw("isArray", "true");
    let mut meta = facts.clone();
    if end < total {
        meta.raw("nextOffset", end.to_string());
    }
    if !unavailable.is_empty() {
        meta.raw("unavailable", servers(unavailable));
    }
    let path = format!("list/{}", query.kind);
    let missing = missing(unavailable, query.filter_server.is_some() && total == 0);
    embedded_resource_and_text(&path, &text, &facts, &meta, missing.as_deref())
}

/// Which servers are missing from a list. Few models see what `_meta` says about them. `names_one` says that nothing was found
/// on a server that was asked for by its name: then it matters that somebody turned it off.
pub(super) fn missing(unavailable: &[UnavailableServer], names_one: bool) -> Option<String> {
    let missing = unavailable.iter().filter(|server| {
        !server.stale && (names_one || server.state != UnavailableState::TurnedOff)
    });
    let missing: Vec<String> = missing
        .map(|server| format!("{} ({})", server.server, server.reason))
        .collect();
    let servers = missing.join(", ");
    (!missing.is_empty()).then(|| format!("Not listed, because unavailable: {servers}."))
}

/// The page of `entries` that `query` asks for, and how many match in all. `is_selected` is as for [`render_list`].
pub fn page_of<'a, T: ListedItem + 'a>(
    entries: impl Iterator<Item = &'a T> + Clone,
    query: &ListQuery,
    is_selected: Option<&dyn Fn(&T) -> bool>,
) -> (Vec<&'a T>, u64) {
    let (mut page, mut total) = (Vec::new(), 0);
    let end = query.offset.saturating_add(u64::from(query.limit));
    for &kind in query.kind.item_kinds() {
        let matching = entries
            .clone()
            .filter(|entry| entry.kind() == kind && matches(*entry, query, is_selected));
        for entry in matching {
            if (query.offset..end).contains(&total) {
                page.push(entry);
            }
            total += 1;
        }
    }
    (page, total)
}

/// The result of an `info`: the definition of `entry`, which was found by `path`.
pub fn render_info(entry: &impl ListedItem, path: &str) -> Bytes {
    let kind = CapabilityType::from(entry.kind());
    let mut text = Vec::new();
    push_compact_without_nulls(&mut text, &entry.definition());
    let mut facts = Facts::default();
    facts.text("pythonType", python_type(kind));
    facts.raw("many", "false");
    facts.text("proxyAction", ProxyAction::Info.as_str());
    facts.text("proxyType", kind.as_str());
    facts.text("proxyPath", path);
    facts.text(
        "dataType",
        match entry.kind() {
            ItemKind::Tool => "Tool",
            ItemKind::Resource => "Resource",
            ItemKind::Template => "ResourceTemplate",
            ItemKind::Prompt => "Prompt",
        },
    );
    facts.raw("isArray", "false");
    embedded_resource(&format!("info/{kind}/{path}"), &text, &facts, &facts)
}

/// The name by which clients of the reference implementation decode the data. They know resources only by this union,
/// also where it is a single one.
fn python_type(kind: CapabilityType) -> &'static str {
    match kind {
        CapabilityType::Tool => "Tool",
        CapabilityType::Resource => "mcp.types.Resource | mcp.types.ResourceTemplate",
        CapabilityType::Prompt => "Prompt",
    }
}

/// The same in the form of the specification for other languages.
fn data_type(kind: CapabilityType) -> &'static str {
    match kind {
        CapabilityType::Tool => "Tool",
        CapabilityType::Resource => "Resource|ResourceTemplate",
        CapabilityType::Prompt => "Prompt",
    }
}

fn servers(unavailable: &[UnavailableServer]) -> String {
    let servers: Vec<String> = unavailable
        .iter()
        .map(|unavailable| {
            let server = json_string(&unavailable.server);
            let reason = json_string(&unavailable.reason);
            let stale = if unavailable.stale {
                r#","stale":true"#
            } else {
                ""
            };
            let state = match unavailable.state {
                UnavailableState::Down => "",
                UnavailableState::NeedsSignIn => r#","state":"needs-sign-in""#,
                UnavailableState::TurnedOff => r#","state":"disabled""#,
            };
            format!(r#"{{"server":{server},"reason":{reason}{state}{stale}}}"#)
        })
        .collect();
    format!("[{}]", servers.join(","))
}

fn matches<T: ListedItem>(
    entry: &T,
    query: &ListQuery,
    is_selected: Option<&dyn Fn(&T) -> bool>,
) -> bool {
    let server = match (is_selected, &query.filter_server) {
        (Some(is_selected), _) => is_selected(entry),
        (None, Some(prefix)) => begins_with(entry, prefix),
        (None, None) => true,
    };
    let filter = &query.filter;
    server
        && filter
            .prefix
            .as_ref()
            .is_none_or(|prefix| begins_with(entry, prefix))
        && (filter.tags.is_empty() || has_any_tag(entry, &filter.tags))
}

/// Whether the name begins with `prefix`, or for a resource the name or the URI.
fn begins_with(entry: &impl ListedItem, prefix: &str) -> bool {
    entry.public().starts_with(prefix)
        || (matches!(entry.kind(), ItemKind::Resource | ItemKind::Template)
            && json::parse(entry.definition()).is_some_and(|definition| {
                let name = definition.member(definition.root(), "name");
                name.and_then(|name| definition.text_at(name))
                    .is_some_and(|name| name.starts_with(prefix))
            }))
}

/// Tags are in `_meta.tags`, or where FastMCP puts them.
fn has_any_tag(entry: &impl ListedItem, tags: &[String]) -> bool {
    let Some(definition) = json::parse(entry.definition()) else {
        return false;
    };
    let Some(meta) = definition.member(definition.root(), "_meta") else {
        return false;
    };
    // FastMCP 2 wrote an underscore in front of its name.
    let of_fastmcp = ["fastmcp", "_fastmcp"]
        .into_iter()
        .filter_map(|name| definition.member(meta, name));
    std::iter::once(meta)
        .chain(of_fastmcp)
        .filter_map(|holder| definition.member(holder, "tags"))
        .flat_map(|array| json::elements(&definition, array))
        .any(|tag| is_one_of(&definition, tag, tags))
}

fn is_one_of(definition: &Message, tag: mcp_proxy_wire::Span, tags: &[String]) -> bool {
    definition
        .text_at(tag)
        .is_some_and(|tag| tags.iter().any(|wanted| *wanted == tag))
}
