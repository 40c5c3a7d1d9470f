//! A client's request as its server gets it: the server's own name or URI, and the arguments that it is meant to have.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::{Field, Message, Span, fold_name, json_string};

use super::{Catalog, CatalogServer, ServerIndex};
use crate::json::{self, Edits};
use crate::resolve::ResolvedItem;

impl Catalog {
    /// The splices that turn a request for a public item into one that the item's server understands. They cover
    /// `params.name`, `params.uri`, `params.ref` of a completion, and `params.arguments` of a tool call. In order, for
    /// [`Message::splice_raw`]. Nothing if something is configured for the arguments, and they are not an object.
    pub fn request_edits(
        &self,
        request: &Message,
        item: &ResolvedItem<'_>,
    ) -> Option<Vec<(Span, Vec<u8>)>> {
        let mut edits = Edits::default();
        let in_reference = |name| request.member(request.span(Field::Param("ref"))?, name);
        let key = match request.method().as_deref() {
            Some("completion/complete") => in_reference("name").or_else(|| in_reference("uri")),
            Some("tools/call" | "prompts/get") => request.span(Field::Name),
            _ => request.span(Field::Uri),
        };
        let Some(key) = key else {
            return Some(Vec::new());
        };
        if request.text_at(key).as_deref() != Some(item.original()) {
            edits.replace(key, json_string(item.original()));
        }
        if request.method().as_deref() == Some("tools/call")
            && self.changes_arguments(item.server(), item.original())
        {
            let place = request.span(Field::Param("arguments"));
            let given = place.map(|place| request.raw().slice(place.range()));
            let sent = self.call_arguments(item.server(), item.original(), given.clone())?;
            match place {
                Some(place) if given.as_ref() != Some(&sent) => edits.replace(place, sent),
                Some(_) => {}
                None if &*sent == b"{}" => {}
                None => {
                    let mut member = b",\"arguments\":".to_vec();
                    member.extend_from_slice(&sent);
                    edits.replace(Span::new(key.end, key.end), member);
                }
            }
        }
        Some(edits.into_sorted())
    }

    /// Whether something is configured for the arguments of the server's tool `original`.
    fn changes_arguments(&self, server: ServerIndex, original: &str) -> bool {
        self.server(server)
            .map(CatalogServer::naming)
            .is_some_and(|naming| {
                naming.hidden_arguments.contains_key(original)
                    || naming.fixed_arguments.contains_key(original)
            })
    }

    /// The arguments to send to the server's tool `original`. They are the given bytes if nothing is configured for the tool.
    /// If something is, `null` counts as not given, and there is nothing to send if they are not an object.
    ///
    /// Hidden and fixed arguments are taken out in every spelling that a server may read as theirs.
    pub fn call_arguments(
        &self,
        server: ServerIndex,
        original: &str,
        arguments: Option<Bytes>,
    ) -> Option<Bytes> {
        let Some(naming) = self.server(server).map(CatalogServer::naming) else {
            return arguments;
        };
        let hidden = naming.hidden_arguments.get(original);
        let fixed = naming.fixed_arguments.get(original);
        if hidden.is_none() && fixed.is_none() {
            return arguments;
        }
        let given = arguments.filter(|given| given.trim_ascii() != b"null");
        let value = json::parse(given.unwrap_or(Bytes::from_static(b"{}")))?;
        let object = json::object(&value)?;
        let ours: Vec<Cow<'_, str>> = hidden
            .into_iter()
            .flatten()
            .chain(fixed.into_iter().flat_map(|fixed| fixed.keys()))
            .map(|name| fold_name(name))
            .collect();
        let ours = |name: &str| ours.contains(&fold_name(name));
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
        if !fixed.is_empty() {
            let comma = if keeps_some { "," } else { "" };
            let end = Span::new(object.end - 1, object.end - 1);
            edits.replace(end, format!("{comma}{}", fixed.join(",")));
        }
        Some(edits.apply(&value))
    }
}
