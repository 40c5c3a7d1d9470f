//! Arguments of a call as the server gets them: without the hidden ones, with the fixed ones.

use bytes::Bytes;
use mcp_proxy_wire::{Span, json_string};

use super::{Catalog, ServerIndex};
use crate::json::{self, Edits};

impl Catalog {
    /// The arguments to send to the server's tool `original`. They are the given bytes if nothing is configured for the
    /// tool, or if they are not an object.
    pub fn call_arguments(
        &self,
        server: ServerIndex,
        original: &str,
        arguments: Option<Bytes>,
    ) -> Option<Bytes> {
        let Some(naming) = self.server(server).map(super::CatalogServer::naming) else {
            return arguments;
        };
        let hidden = naming.hidden_arguments.get(original);
        let fixed = naming.fixed_arguments.get(original);
        if hidden.is_none() && fixed.is_none() {
            return arguments;
        }
        let given = arguments
            .clone()
            .unwrap_or_else(|| Bytes::from_static(b"{}"));
        let Some(value) = json::parse(given) else {
            return arguments;
        };
        let Some(object) = json::object(&value) else {
            return arguments;
        };
        let ours = |name: &str| {
            hidden.is_some_and(|hidden| hidden.iter().any(|hidden| hidden == name))
                || fixed.is_some_and(|fixed| fixed.contains_key(name))
        };
        let members = json::members(&value, object);
        let keeps_some = members
            .iter()
            .any(|(key, _)| !ours(&json::key_text(&value, *key)));
        let mut edits = Edits::default();
        edits.remove(json::member_cuts(&value, object, ours));
        let fixed: Vec<String> = fixed
            .into_iter()
            .flatten()
            .map(|(name, json)| format!("{}:{json}", json_string(name)))
            .collect();
        if fixed.is_empty() && arguments.is_none() {
            return None;
        }
        if !fixed.is_empty() {
            let comma = if keeps_some { "," } else { "" };
            let end = Span::new(object.end - 1, object.end - 1);
            edits.replace(end, format!("{comma}{}", fixed.join(",")));
        }
        Some(edits.apply(&value))
    }
}
