//! Results of servers in the form that `call` returns them in.
//!
//! A tool's result stays as it is, but for the facts in each item and an `isError` that was left out. What is not a finished result of the expected kind,
//! such as `input_required` or a task, passes unchanged.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use super::CapabilityType;
use super::facts::{Facts, META_KEY, embedded_resource};
use crate::json::{self, Edits};
use crate::tool_values::{finished, is_object};
use crate::without_nulls::push_compact_without_nulls;
use mcp_proxy_wire::json::{push_bytes, push_compact};

/// The result of calling the tool `path`.
pub fn render_tool_result(result: &Bytes, path: &str) -> Bytes {
    render_items(result, CapabilityType::Tool, path)
}

/// A result with `content` that came of calling something of this kind.
pub fn render_items(result: &Bytes, kind: CapabilityType, path: &str) -> Bytes {
    let Some((value, content)) = finished(result, "content") else {
        return result.clone();
    };
    let facts = Facts::of_call(kind, path);
    let mut edits = Edits::default();
    for item in json::elements(&value, content) {
        if is_object(&value, item) {
            edits.annotate(&value, item, &facts);
        }
    }
    say_whether_it_failed(&mut edits, &value, content);
    edits.apply(&value)
}

/// The result of reading the resource `path`: each of its contents as an embedded resource.
pub fn render_resource_result(result: &Bytes, path: &str) -> Bytes {
    let Some((value, contents)) = finished(result, "contents") else {
        return result.clone();
    };
    let Some(key) = key_of(&value, contents) else {
        return result.clone();
    };
    let facts = Facts::of_call(CapabilityType::Resource, path);
    let tail = format!(r#","annotations":{}}}"#, facts.object());
    let mut edits = Edits::default();
    edits.replace(key, *br#""content""#);
    for item in json::elements(&value, contents) {
        if is_object(&value, item) {
            edits.insert(item.start, *br#"{"type":"resource","resource":"#);
            objectify(&mut edits, &value, item);
            edits.insert(item.end, tail.as_bytes());
        }
    }
    say_whether_it_failed(&mut edits, &value, contents);
    edits.apply(&value)
}

/// `isError` is always there, as in the reference implementation.
fn say_whether_it_failed(edits: &mut Edits, value: &Message, content: Span) {
    if value.member(value.root(), "isError").is_none() {
        edits.insert(content.end, *br#","isError":false"#);
    }
}

/// The result of getting the prompt `path`: all of it as the text of one embedded resource.
pub fn render_prompt_result(result: &Bytes, path: &str) -> Bytes {
    if finished(result, "messages").is_none() {
        return result.clone();
    }
    let mut text = Vec::new();
    push_compact_without_nulls(&mut text, result);
    let mut facts = Facts::default();
    facts.text("pythonType", "GetPromptResult");
    facts.extend(Facts::of_call(CapabilityType::Prompt, path));
    facts.text("dataType", "GetPromptResult");
    embedded_resource(path, &text, &facts, &facts)
}

/// The key of the outermost member at `member`.
fn key_of(value: &Message, member: Span) -> Option<Span> {
    let members = json::members(value, value.root());
    members
        .into_iter()
        .find_map(|(key, span)| (span == member).then_some(key))
}

/// Turns text that is JSON, whatever its MIME type says, into `application/json`. The MIME type that it had is kept as
/// `contentType`. Binary contents and text that is `application/json` already stay as they are.
fn objectify(edits: &mut Edits, value: &Message, item: Span) {
    let mime_type = value.member(item, "mimeType");
    let of_json = mime_type
        .and_then(|mime_type| value.text_at(mime_type))
        .is_some_and(|mime_type| mime_type == "application/json");
    if of_json || value.member(item, "blob").is_some() {
        return;
    }
    let Some(text) = value.member(item, "text") else {
        return;
    };
    let Some(content) = string_content(value.slice(text)) else {
        return;
    };
    let Some(content) = json::parse(content.into_owned()) else {
        return;
    };
    let (mut compact, mut new_text) = (Vec::new(), Vec::new());
    push_compact(&mut compact, content.raw());
    push_bytes(&mut new_text, &compact);
    edits.replace(text, new_text);

    let mut added = String::new();
    match mime_type {
        Some(mime_type) => edits.replace(mime_type, *br#""application/json""#),
        None => added.push_str(r#""mimeType":"application/json""#),
    }
    let was = mime_type.filter(|mime_type| value.slice(*mime_type) != b"null");
    if let Some(was) = was
        && value.member(item, "contentType").is_none()
    {
        let was = String::from_utf8_lossy(value.slice(was)).into_owned();
        let mut meta = Facts::default();
        meta.raw(META_KEY, format!(r#"{{"contentType":{was}}}"#));
        edits.merge(value, item, "_meta", &meta, &mut added);
        let comma = if added.is_empty() { "" } else { "," };
        added.push_str(&format!(r#"{comma}"contentType":{was}"#));
    }
    edits.append_members(value, item, &added);
}
