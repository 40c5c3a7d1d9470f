//! The header arguments (`x-mcp-header`) of a server's tools: as it has listed them, or as calls of theirs show them.
//!
//! One for each server, shared by all that speak to it: who says something in a client's place has often not seen the list.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use mcp_proxy_wire::headers::{MCP_PARAM_PREFIX, ParamHeader, infer_param_headers, param_headers};
use mcp_proxy_wire::{Field, Message, Span};
use rustc_hash::FxHashMap;

/// Tools that are known from calls only; names of clients' own making must not fill the memory.
const CALLED: usize = 4_096;

/// What is known, by tool.
#[derive(Default)]
pub struct ToolHeaders(Mutex<FxHashMap<String, ToolHeaderSource>>);

enum ToolHeaderSource {
    /// By the last `tools/list` answers.
    Listed(Vec<ParamHeader>),
    /// By what clients sent.
    Called(Vec<ParamHeader>),
}

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
        let mut known = self.known();
        for tool in tools {
            let whole = Span::new(0, tool.len());
            let name = tool
                .member(whole, "name")
                .and_then(|name| tool.text_at(name));
            if let (Some(name), Some(schema)) = (name, tool.member(whole, "inputSchema")) {
                let params = param_headers(tool.slice(schema));
                known.insert(name.into_owned(), ToolHeaderSource::Listed(params));
            }
        }
    }

    /// The same for an answer that nobody has parsed: nearly none of them has such arguments.
    pub fn note_raw(&self, answer: &Bytes) {
        if has_headers(answer) {
            self.note(&Message::parse(answer.clone()));
        }
    }

    /// Reads a call with the headers that it came with. A list says it better, so this is for tools that none has named.
    pub fn note_call(&self, headers: &HeaderMap, call: &Message) {
        let is_param = |name: &http::HeaderName| name.as_str().starts_with(MCP_PARAM_PREFIX);
        if !headers.keys().any(is_param) {
            return;
        }
        let Some(name) = tool_of(call) else {
            return;
        };
        let mut known = self.known();
        let room = known.len() < CALLED;
        let params = match known.get_mut(name.as_ref()) {
            Some(ToolHeaderSource::Listed(_)) => return,
            Some(ToolHeaderSource::Called(params)) => params,
            None if room => {
                let called = known.entry(name.into_owned());
                let (ToolHeaderSource::Called(params) | ToolHeaderSource::Listed(params)) =
                    called.or_insert(ToolHeaderSource::Called(Vec::new()));
                params
            }
            None => return,
        };
        for shown in infer_param_headers(headers, call) {
            params.retain(|param| param.name != shown.name);
            params.push(shown);
        }
    }

    /// The header arguments of the tool that a message calls.
    pub fn of(&self, message: &Message) -> Vec<ParamHeader> {
        let known = self.known();
        if known.is_empty() {
            return Vec::new();
        }
        match tool_of(message).and_then(|name| known.get(name.as_ref())) {
            Some(ToolHeaderSource::Listed(params) | ToolHeaderSource::Called(params)) => {
                params.clone()
            }
            None => Vec::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, FxHashMap<String, ToolHeaderSource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tool that a message calls.
fn tool_of(message: &Message) -> Option<Cow<'_, str>> {
    let calls = message.method().as_deref() == Some("tools/call");
    message.text(Field::Name).filter(|_| calls)
}

fn has_headers(answer: &[u8]) -> bool {
    memchr::memmem::find(answer, b"x-mcp-header").is_some()
}
