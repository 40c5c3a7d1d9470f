//! The answer to `call`: what the server returned, or where it was written.
//!
//! The server's result stays as it is, but for a member of `_meta` that says what was called. What is not a finished
//! result, such as `input_required` or a task, passes unchanged.

use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_spill::{PREVIEW_CHARS, ResultShape, SpillFormat, SpilledResult};
use mcp_proxy_wire::{Message, Span};

use super::own_result::{estimated_tokens, push_text_item};
use super::{DispatchAction, DispatchArguments};
use crate::json::{self, Edits};
use crate::proxy_tool::DISPATCH_META_KEY;
use crate::proxy_tool::ToolWord;
use crate::tool_values::{finished, is_finished, is_object};
use crate::wording::{counted, shorten};
use mcp_proxy_wire::json::ObjectWriter;

/// Arguments of more bytes are not repeated in the answer.
const MAX_ECHO: usize = 1024;

/// What the keys of a stored result may take, and they and the preview together, in bytes of JSON. A chain of three calls over
/// large results should cost less than 2 KB in all, whatever the results look like.
const MAX_KEYS: usize = 60;
const MAX_DETAILS: usize = 165;

/// A call that a server answered.
#[derive(Clone, Copy, Debug)]
pub struct DispatchedCall<'a> {
    /// The alias of the connection.
    pub alias: &'a str,
    /// The server's name in the configuration.
    pub connection: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// What it was called with.
    pub arguments: &'a DispatchArguments,
    /// Why its result is not in a file although it should be.
    pub not_stored: Option<&'a str>,
}

/// A result that was stored.
#[derive(Clone, Debug)]
pub struct DispatchSpilledCall {
    /// The file, and how it begins.
    pub result: SpilledResult,
    /// Why it was stored.
    pub reason: DispatchSpillReason,
}

/// Why a result was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchSpillReason {
    /// The call asked for it.
    Requested,
    /// It was larger than this.
    Exceeded {
        /// The threshold.
        bytes: u64,
        /// The size of the result as its server sent it. The file may be smaller.
        sent: u64,
    },
}

/// What a call's answer says next to the `result` in a server's answer. Nothing if that is not a finished result.
pub fn call_edits(answer: &Message, result: Span, call: &DispatchedCall<'_>) -> Option<Edits> {
    if !is_object(answer, result) {
        return None;
    }
    let names = ["resultType", "content", "_meta"];
    let [kind, content, meta] = answer.members(result, names);
    let content = content.filter(|content| is_finished(answer, kind, *content))?;
    let mut facts = call.facts();
    let size = content.len();
    facts.number("estimatedTokens", estimated_tokens(size as u64));
    if let Some(reason) = call.not_stored {
        facts.text("resultNotStored", reason);
    }
    let mut edits = Edits::default();
    add_facts(&mut edits, answer, result, meta, facts);
    Some(edits)
}

/// The result of a call that a server answered with this `result`.
pub fn render_call(result: &Bytes, call: &DispatchedCall<'_>) -> Bytes {
    let edits = json::parse(result.clone()).and_then(|value| {
        let edits = call_edits(&value, value.root(), call)?;
        Some(edits.apply(&value))
    });
    edits.unwrap_or_else(|| result.clone())
}

/// The answer to a call with this `result`, which was stored.
pub fn render_spilled_call(
    result: &Bytes,
    call: &DispatchedCall<'_>,
    spilled: &DispatchSpilledCall,
) -> Bytes {
    let Some((value, content)) = finished(result, "content") else {
        return result.clone();
    };
    let mut facts = call.facts();
    facts.text("resultFormat", spilled.result.format.as_str());
    facts.text("resultFile", &spilled.result.handle);
    if matches!(spilled.reason, DispatchSpillReason::Exceeded { .. }) {
        facts.raw("autoSpilled", b"true");
    }
    facts.number("byteSize", spilled.result.byte_size);
    let mut edits = Edits::default();
    edits.replace(content, spilled.content(spilled.parts_hint()));
    let root = value.root();
    edits.remove(json::member_cuts(&value, root, |name| {
        name == "structuredContent"
    }));
    let meta = value.member(root, "_meta");
    add_facts(&mut edits, &value, root, meta, facts);
    edits.apply(&value)
}

/// Puts the facts into the `_meta` of the object at `result`, next to what its server says there.
fn add_facts(
    edits: &mut Edits,
    value: &Message,
    result: Span,
    meta: Option<Span>,
    facts: ObjectWriter,
) {
    let mut own = ObjectWriter::new();
    own.object(DISPATCH_META_KEY, facts);
    let own = own.finish();
    let Some(meta) = meta else {
        // There is a member before it: a result without content does not come here.
        let mut member = br#","_meta":"#.to_vec();
        member.extend_from_slice(&own);
        return edits.insert(result.end - 1, member);
    };
    if !is_object(value, meta) {
        return edits.replace(meta, own);
    }
    // A server that is a hub itself has facts of its own.
    let servers = json::member_cuts(value, meta, |name| name == DISPATCH_META_KEY);
    let has_others = json::members(value, meta).len() > servers.len();
    edits.remove(servers);
    let mut member = own;
    member.remove(0);
    member.pop();
    if has_others {
        member.push(b',');
    }
    edits.insert(meta.start + 1, member);
}

impl DispatchedCall<'_> {
    fn facts(&self) -> ObjectWriter {
        let mut connection = ObjectWriter::new();
        connection.text("alias", self.alias);
        connection.text("name", self.connection);
        let mut facts = ObjectWriter::new();
        facts.text("action", DispatchAction::Call.as_str());
        facts.object("connection", connection);
        facts.text("tool", self.tool);
        match self.arguments {
            DispatchArguments::None => facts.raw("arguments", b"{}"),
            DispatchArguments::Inline(arguments) if arguments.len() <= MAX_ECHO => {
                facts.compact("arguments", arguments);
            }
            DispatchArguments::Inline(arguments) => {
                facts.number("argumentsOmitted", arguments.len() as u64);
            }
            DispatchArguments::File(file) => {
                let mut from = ObjectWriter::new();
                from.text("_fromFile", file);
                facts.object("arguments", from);
            }
        }
        facts
    }
}

impl DispatchSpilledCall {
    /// A description for models, with a hint how to read on. There is no link: it ends the run of some clients, and makes
    /// others drop the description.
    pub(crate) fn content(&self, hint: &str) -> Vec<u8> {
        let mut content = vec![b'['];
        push_text_item(&mut content, self.text(hint).as_bytes());
        content.push(b']');
        content
    }

    /// How a caller of the dispatcher reads on.
    fn parts_hint(&self) -> &'static str {
        match self.result.format {
            SpillFormat::Json | SpillFormat::Toon => {
                "Read parts of it with action='readresult': op='jq', 'grep', 'head' or 'slice'."
            }
            SpillFormat::Text => {
                "Read parts of it with action='readresult': op='grep', 'head', 'tail' or 'slice'."
            }
        }
    }

    fn text(&self, hint: &str) -> String {
        let (file, size) = (&self.result.handle, self.result.byte_size);
        let format = match self.result.format {
            SpillFormat::Json => "JSON",
            SpillFormat::Toon => "TOON",
            SpillFormat::Text => "text",
        };
        let tokens = self.result.estimated_tokens();
        let kept_for = long_time(self.result.kept_for);
        let lines = usize::try_from(self.result.line_count).unwrap_or(usize::MAX);
        let lines = counted(lines, "line");
        let beginning = match self.reason {
            DispatchSpillReason::Requested => {
                format!("Result written to temporary {format} file: {file}")
            }
            DispatchSpillReason::Exceeded { bytes, .. } => format!(
                "Result auto-spilled to temporary {format} file (exceeded {bytes} bytes): {file}"
            ),
        };
        let shape = match &self.result.shape {
            ResultShape::Object { keys, key_count } => {
                format!("Top-level keys: [{}]\n", shown_keys(keys, *key_count))
            }
            ResultShape::Array { length } => {
                format!("Result is an array with {length} element(s).\n")
            }
            ResultShape::Other => String::new(),
        };
        // A file that is smaller than what was exceeded would look like a mistake.
        let sent = match self.reason {
            DispatchSpillReason::Exceeded { bytes, sent } if size <= bytes => {
                format!("; {sent} bytes as sent")
            }
            _ => String::new(),
        };
        let preview = fitting(
            &self.result.preview,
            MAX_DETAILS.saturating_sub(escaped_length(&shape) + sent.len()),
        );
        let more = match preview.chars().count() < PREVIEW_CHARS
            && preview.len() == self.result.preview.len()
        {
            true => "",
            false => "...",
        };
        format!(
            "{beginning} (kept for {kept_for}).\n\
             Size: {size} bytes (~{tokens} tokens), {lines}{sent}.\n\
             {hint}\n\
             {shape}Preview: {preview}{more}"
        )
    }
}

/// `1 hour`, `90 minutes` or `30 seconds`
fn long_time(time: Duration) -> String {
    let units = [(3600, "hour"), (60, "minute"), (1, "second")];
    let seconds = time.as_secs();
    let whole = units.iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, word) = whole.unwrap_or(&(1, "second"));
    counted(usize::try_from(seconds / unit).unwrap_or(usize::MAX), word)
}

/// The first keys, and how many more there are.
fn shown_keys(keys: &[String], count: u64) -> String {
    let mut shown = String::new();
    let mut number = 0;
    for key in keys {
        let key = shorten(key);
        let separator = if number == 0 { "" } else { ", " };
        let next = format!("{separator}{key}");
        if escaped_length(&shown) + escaped_length(&next) > MAX_KEYS {
            break;
        }
        shown.push_str(&next);
        number += 1;
    }
    if number == 0
        && let Some(first) = keys.first()
    {
        // A part of it is better than nothing.
        shown.push_str(fitting(first, MAX_KEYS));
        shown.push('…');
        number = 1;
    }
    match count.saturating_sub(number) {
        0 => shown,
        more => format!("{shown}, {more} more"),
    }
}

/// The longest beginning of `text` that takes at most this many bytes in a JSON string.
fn fitting(text: &str, most: usize) -> &str {
    let mut length = 0;
    for (at, character) in text.char_indices() {
        length += escaped_character(character);
        if length > most {
            return &text[..at];
        }
    }
    text
}

fn escaped_length(text: &str) -> usize {
    text.chars().map(escaped_character).sum()
}

/// How many bytes a character takes in a JSON string.
fn escaped_character(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}
