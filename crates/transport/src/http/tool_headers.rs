//! The header arguments (`x-mcp-header`) of the tools that a server has listed.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use mcp_proxy_wire::headers::{ParamHeader, param_headers};
use mcp_proxy_wire::{Field, Message, Span};
use rustc_hash::FxHashMap;

/// What the last `tools/list` answers said, by tool.
#[derive(Default)]
pub struct ToolHeaders(Mutex<FxHashMap<String, Vec<ParamHeader>>>);

impl ToolHeaders {
    /// Reads a `tools/list` answer.
    pub fn note(&self, answer: &Message) {
        if !has_headers(answer.raw()) {
            return;
        }
        let Some(tools) = answer.span(Field::ResultField("tools")) else {
            return;
        };
        let Some(tools) = Message::parse(answer.raw().slice(tools.start..tools.end)).parts() else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let whole = Span::new(0, tool.len());
            let name = tool
                .member(whole, "name")
                .and_then(|name| tool.text_at(name));
            if let (Some(name), Some(schema)) = (name, tool.member(whole, "inputSchema")) {
                known.insert(name.into_owned(), param_headers(tool.slice(schema)));
            }
        }
    }

    /// The same for an answer that nobody has parsed: nearly none of them has such arguments.
    pub fn note_raw(&self, answer: &Bytes) {
        if has_headers(answer) {
            self.note(&Message::parse(answer.clone()));
        }
    }

    /// The header arguments of the tool that a message calls.
    pub fn of(&self, message: &Message) -> Vec<ParamHeader> {
        if message.method().as_deref() != Some("tools/call") {
            return Vec::new();
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return Vec::new();
        }
        let name = message.text(Field::Name);
        name.and_then(|name| known.get(name.as_ref()).cloned())
            .unwrap_or_default()
    }
}

fn has_headers(answer: &[u8]) -> bool {
    memchr::memmem::find(answer, b"x-mcp-header").is_some()
}
