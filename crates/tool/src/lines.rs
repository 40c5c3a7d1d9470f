//! Answers for models: one line for each item, and a last line with the next step.

use bytes::Bytes;
use mcp_proxy_wire::{Message, json_string};

use super::catalog_answers::missing;
use super::facts::Facts;
use super::signature::{prompt_signature, tool_signature};
use super::{ItemKind, ListQuery, ProxyAction, SearchWords, UnavailableServer};
use crate::ToolWord;
use crate::json;
use crate::wording::{counted, first_sentence, shorten};

/// An item on one line: `git  git_log(repo_path: string, max_count?: int)  Show commit logs`.
///
/// `name` is the name or URI to use it by. The server is left out if it is not known.
pub fn item_line(server: Option<&str>, kind: ItemKind, name: &str, definition: Bytes) -> String {
    let definition = json::parse(definition).unwrap_or_else(|| Message::parse("{}"));
    let text = |member: &str| {
        let span = definition.member(definition.root(), member)?;
        let text = definition.text_at(span)?;
        (!text.trim().is_empty()).then(|| text.into_owned())
    };
    let use_by = match kind {
        ItemKind::Tool => tool_signature(name, &definition).replace(": integer", ": int"),
        ItemKind::Prompt => prompt_signature(name, &definition),
        ItemKind::Resource | ItemKind::Template => name.to_owned(),
    };
    let title = match kind {
        ItemKind::Tool | ItemKind::Prompt => text("title"),
        ItemKind::Resource | ItemKind::Template => text("name"),
    };
    let about = text("description").or(title).unwrap_or_default();
    let about = first_sentence(&about);
    let parts = [server.unwrap_or_default(), &use_by, &about];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    // What stands in a definition must not look like another line.
    let parts = parts.map(|part| part.replace(char::is_control, " "));
    parts.collect::<Vec<_>>().join("  ")
}

/// The result of a brief `list`: a page of `lines` out of `total`.
pub fn render_lines(
    query: &ListQuery,
    total: u64,
    lines: Vec<String>,
    unavailable: &[UnavailableServer],
) -> Bytes {
    let next = query.offset.saturating_add(lines.len() as u64);
    let mut lines = lines;
    if lines.is_empty() {
        lines.push(format!("There are no {}s here.", query.kind));
    }
    let names_one = query.filter_server.is_some() && total == 0;
    lines.extend(missing(unavailable, names_one));
    let mut facts = Facts::default();
    facts.text("proxyAction", ProxyAction::List.as_str());
    facts.text("proxyType", query.kind.as_str());
    facts.raw("totalCount", total.to_string());
    if next < total {
        lines.push(more_line(total - next, next));
        facts.raw("nextOffset", next.to_string());
    }
    text_result(&lines, &facts)
}

/// The result of a `search` with `total` matches, of which `lines` are the best.
pub fn render_search(
    query: &SearchWords,
    total: u64,
    fits: bool,
    mut lines: Vec<String>,
    unavailable: &[UnavailableServer],
) -> Bytes {
    let mut facts = Facts::default();
    facts.text("proxyAction", ProxyAction::Search.as_str());
    facts.text("proxyType", query.kind.as_str());
    facts.raw("totalCount", total.to_string());
    if !fits {
        facts.raw("noGoodMatch", "true");
    }
    lines = search_lines(&query.query, query.kind.as_str(), total, fits, lines);
    lines.extend(missing(
        unavailable,
        query.filter_server.is_some() && total == 0,
    ));
    text_result(&lines, &facts)
}

/// The lines of a search, with what there is to say about them. If nothing fits, few lines are enough.
pub fn search_lines(
    query: &str,
    kind: &str,
    total: u64,
    fits: bool,
    mut lines: Vec<String>,
) -> Vec<String> {
    const NEAREST: usize = 3;
    if lines.is_empty() {
        return vec![format!("No {kind} matches '{}'.", shorten(query))];
    }
    if !fits {
        lines.truncate(NEAREST);
        let found = format!("No {kind} fits '{}' well. The nearest:", shorten(query));
        lines.insert(0, found);
        return lines;
    }
    let left = total.saturating_sub(lines.len() as u64);
    if left > 0 {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        lines.push(format!("({} matched less well)", counted(left, "other")));
    }
    lines
}

/// The last line of a page that is not the last.
pub fn more_line(left: u64, next: u64) -> String {
    format!("({left} more; continue with \"offset\":{next})")
}

fn text_result(lines: &[String], facts: &Facts) -> Bytes {
    let text = json_string(&lines.join("\n"));
    let meta = facts.meta();
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false,"_meta":{{{meta}}}}}"#)
        .into()
}
