//! What an answer says about itself.
//!
//! The facts are in `annotations`, where clients of the pattern look. Answers of the proxy itself have them again in `_meta`,
//! because most SDKs drop annotations that they do not know. The items of a server's result do not: their facts only repeat
//! what was asked for, and many agents show all of it to their models.

use std::fmt::Write as _;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, json_string, string_content};

use super::{CapabilityType, ProxyAction};
use crate::ToolWord;
use crate::json::{self, Edits};
use mcp_proxy_wire::json::push_bytes;

/// The member of `_meta` with the facts about an answer.
pub const META_KEY: &str = "mcp-proxy/proxy";

/// The member of `_meta` with the facts about an answer of the `proxy-dispatch` tool.
pub const DISPATCH_META_KEY: &str = "mcp-proxy/dispatch";

/// What facts are called, those of a server's result and those of other answers.
const FACTS: [&str; 10] = [
    "pythonType",
    "many",
    "proxyAction",
    "proxyType",
    "proxyPath",
    "dataType",
    "isArray",
    "totalCount",
    "offset",
    "limit",
];

/// JSON members in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(Vec<(&'static str, String)>);

/// A tool result with one embedded resource: `json` as the text of `proxy:<path>`.
pub(super) fn embedded_resource(path: &str, json: &[u8], facts: &Facts, meta: &Facts) -> Bytes {
    embedded_resource_and_text(path, json, facts, meta, None)
}

/// The same, with a second item for those who read only texts.
pub(super) fn embedded_resource_and_text(
    path: &str,
    json: &[u8],
    facts: &Facts,
    meta: &Facts,
    text: Option<&str>,
) -> Bytes {
    let mut result = br#"{"content":[{"type":"resource","resource":{"uri":"#.to_vec();
    push_bytes(&mut result, uri(path).as_bytes());
    result.extend_from_slice(br#","mimeType":"application/json","text":"#);
    push_bytes(&mut result, json);
    result.push(b'}');
    result.extend_from_slice(facts.annotations_and_meta(meta).as_bytes());
    result.push(b'}');
    if let Some(text) = text {
        result.extend_from_slice(br#",{"type":"text","text":"#);
        push_bytes(&mut result, text.as_bytes());
        result.push(b'}');
    }
    result.extend_from_slice(br#"],"isError":false}"#);
    result.into()
}

/// `path` with the scheme `proxy`. What a URI cannot contain, such as spaces in names and the braces of templates, is
/// percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::from("proxy:");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

impl Facts {
    /// The facts about an item of a call's result. The order is the one that clients know.
    pub(super) fn of_call(kind: CapabilityType, path: &str) -> Facts {
        let mut facts = Facts::default();
        facts.text("proxyType", kind.as_str());
        facts.text("proxyAction", ProxyAction::Call.as_str());
        facts.text("proxyPath", path);
        facts
    }

    pub(super) fn text(&mut self, name: &'static str, value: &str) {
        self.0.push((name, json_string(value)));
    }

    pub(super) fn raw(&mut self, name: &'static str, json: impl Into<String>) {
        self.0.push((name, json.into()));
    }

    pub(super) fn extend(&mut self, others: Facts) {
        self.0.extend(others.0);
    }

    /// All of them as one object.
    pub(super) fn object(&self) -> String {
        format!("{{{}}}", self.members())
    }

    /// Our member of a `_meta` object.
    pub(super) fn meta(&self) -> String {
        format!("\"{META_KEY}\":{}", self.object())
    }

    /// `annotations` and `_meta` as the last members of an item that has neither.
    pub(super) fn annotations_and_meta(&self, meta: &Facts) -> String {
        format!(
            r#","annotations":{},"_meta":{{{}}}"#,
            self.object(),
            meta.meta()
        )
    }

    fn members(&self) -> String {
        let mut members = String::new();
        for (name, value) in &self.0 {
            let comma = if members.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(members, "{comma}\"{name}\":{value}");
        }
        members
    }
}

/// How facts get into a JSON text.
impl Edits {
    /// Puts `facts` into the annotations of the object at `item`. Those of a proxy behind this one are replaced.
    pub(super) fn annotate(&mut self, value: &Message, item: Span, facts: &Facts) {
        let meta = value.member(item, "_meta");
        if let Some(others) = meta.and_then(|meta| value.member(meta, META_KEY)) {
            self.replace(others, facts.object());
        }
        let mut missing = String::new();
        self.merge(value, item, "annotations", facts, &mut missing);
        self.append_members(value, item, &missing);
    }

    /// Takes our facts out of the annotations of the object at `item`.
    pub(super) fn remove_annotations(&mut self, value: &Message, item: Span) {
        let Some(annotations) = value.member(item, "annotations") else {
            return;
        };
        let is_ours = |key: &str| FACTS.contains(&key);
        let members = json::members(value, annotations);
        let all_ours = members
            .iter()
            .all(|(key, _)| is_ours(&json::key_text(value, *key)));
        match all_ours {
            true => self.remove(json::member_cuts(value, item, |key| key == "annotations")),
            false => self.remove(json::member_cuts(value, annotations, is_ours)),
        }
    }

    /// Puts `facts` into the object that is the member `name` of `item`, behind what is there. If there is no such member,
    /// it is added to `missing`. A member of some other type is left alone.
    pub(super) fn merge(
        &mut self,
        value: &Message,
        item: Span,
        name: &str,
        facts: &Facts,
        missing: &mut String,
    ) {
        let Some(member) = value.member(item, name) else {
            let comma = if missing.is_empty() { "" } else { "," };
            let _ = write!(missing, "{comma}\"{name}\":{}", facts.object());
            return;
        };
        match value.slice(member).first() {
            Some(b'{') => self.merge_members(value, member, facts),
            Some(b'n') => self.replace(member, facts.object()),
            _ => {}
        }
    }

    /// A fact that the object has already is replaced where it stands.
    fn merge_members(&mut self, value: &Message, object: Span, facts: &Facts) {
        let members = json::members(value, object);
        let mut new = Facts::default();
        for (name, fact) in &facts.0 {
            let is_this = |key: Span| {
                string_content(value.slice(key)).is_some_and(|key| *key == *name.as_bytes())
            };
            let mut known = members.iter().filter(|(key, _)| is_this(*key)).peekable();
            if known.peek().is_none() {
                new.raw(name, fact.clone());
            }
            for (_, old) in known {
                self.replace(*old, fact.as_bytes());
            }
        }
        self.append_members(value, object, &new.members());
    }

    /// Adds members, separated by commas, to the end of the object at `object`.
    pub(super) fn append_members(&mut self, value: &Message, object: Span, members: &str) {
        if members.is_empty() {
            return;
        }
        let is_empty = value
            .slice(Span::new(object.start + 1, object.end - 1))
            .trim_ascii()
            .is_empty();
        let comma = if is_empty { "" } else { "," };
        self.insert(object.end - 1, format!("{comma}{members}"));
    }
}
