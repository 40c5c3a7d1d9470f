//! URIs in what a server sends, as clients know them, so that a client can read what it is told about.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, json_string};

use super::{Catalog, CatalogServer, ItemKind, ServerIndex, URI_MARK};
use crate::json::{self, Edits};
use crate::uri;

impl Catalog {
    /// The public form of a URI that this server sent, or `None` if it stays as it is. Its inverse is
    /// [`CatalogView::resolve`](crate::CatalogView::resolve).
    pub fn publish_uri(&self, server: ServerIndex, uri: &str) -> Option<String> {
        if let Some(at) = self.find_of_server(ItemKind::Resource, server, uri) {
            return Some(self.entry(at).public.to_string());
        }
        let mounted = self.server(server)?;
        let template = self.find_template(server, uri);
        if template.is_none() && uri::is_web(uri) {
            return None;
        }
        let prefix = mounted.prefix();
        let prefixed = prefix.and_then(|prefix| uri::add_prefix(uri, prefix));
        let mark = mounted.uri_mark();
        let template_is_marked = template.is_some_and(|at| self.entry(at).public.ends_with(&mark));
        let public = prefixed.as_deref().unwrap_or(uri);
        if template_is_marked || self.leads_elsewhere(mounted, public) {
            return Some(format!("{public}{mark}"));
        }
        prefixed
    }

    /// The splices that make the URIs in a server's result public. `result` is where the result stands: that of a tool
    /// call, of `resources/read` or of `prompts/get`. In order, for [`Message::splice_raw`].
    pub fn result_edits(
        &self,
        server: ServerIndex,
        message: &Message,
        result: Span,
    ) -> Vec<(Span, Vec<u8>)> {
        let mut edits = Edits::default();
        // Most results are texts without any URI, and some are large.
        if memchr::memmem::find(message.slice(result), b"uri").is_none() {
            return Vec::new();
        }
        if let Some(contents) = message.member(result, "contents") {
            for content in json::elements(message, contents) {
                self.publish_member(server, message, content, &mut edits);
            }
        }
        if let Some(content) = message.member(result, "content") {
            self.publish_content(server, message, content, &mut edits);
        }
        if let Some(messages) = message.member(result, "messages") {
            for each in json::elements(message, messages) {
                if let Some(content) = message.member(each, "content") {
                    self.publish_content(server, message, content, &mut edits);
                }
            }
        }
        edits.into_sorted()
    }

    /// A server's result with public URIs; see [`Catalog::result_edits`].
    pub fn publish_result(&self, server: ServerIndex, result: &Bytes) -> Bytes {
        let Some(value) = json::parse(result.clone()) else {
            return result.clone();
        };
        let Some(object) = json::object(&value) else {
            return result.clone();
        };
        let mut edits = Edits::default();
        for (span, new) in self.result_edits(server, &value, object) {
            edits.replace(span, new);
        }
        edits.apply(&value)
    }

    /// The same for the `params.uri` of a server's notification, as in `notifications/resources/updated`.
    pub fn notification_edits(
        &self,
        server: ServerIndex,
        notification: &Message,
    ) -> Vec<(Span, Vec<u8>)> {
        let mut edits = Edits::default();
        if let Some(params) = notification.params() {
            self.publish_member(server, notification, params, &mut edits);
        }
        edits.into_sorted()
    }

    /// Whether a client that reads `public` would reach another server than this one, which does not list it.
    fn leads_elsewhere(&self, server: &CatalogServer, public: &str) -> bool {
        let is_listed = |kind: ItemKind| {
            let found = self
                .find_public(kind, public)
                .map(|at| self.entry(at).server);
            found.is_some_and(|owner| {
                let owner = self.server(owner);
                kind == ItemKind::Resource
                    || owner.is_some_and(|owner| !std::ptr::eq(owner, server))
            })
        };
        if public.contains(URI_MARK)
            || is_listed(ItemKind::Resource)
            || is_listed(ItemKind::Template)
        {
            return true;
        }
        if !uri::takes_prefix(public) {
            // Nothing in it says whose it is.
            let is_alone = self.servers.len() == 1;
            return !is_alone && uri::has_scheme(public) && !uri::is_self_contained(public);
        }
        if server.prefix().is_some() {
            return false;
        }
        let first_segment = uri::split_prefix(public).map(|(segment, _)| segment);
        self.servers.iter().any(|other| match other.prefix() {
            Some(prefix) => first_segment.is_some_and(|first| first.eq_ignore_ascii_case(prefix)),
            None => !std::ptr::eq(other, server),
        })
    }

    /// A content item, or an array of them.
    fn publish_content(
        &self,
        server: ServerIndex,
        message: &Message,
        content: Span,
        edits: &mut Edits,
    ) {
        let items = match message.slice(content).first() {
            Some(b'[') => json::elements(message, content),
            _ => vec![content],
        };
        for item in items {
            let kind = message.member(item, "type");
            match kind.and_then(|kind| message.text_at(kind)).as_deref() {
                Some("resource_link") => self.publish_member(server, message, item, edits),
                Some("resource") => {
                    if let Some(resource) = message.member(item, "resource") {
                        self.publish_member(server, message, resource, edits);
                    }
                }
                _ => {}
            }
        }
    }

    /// The member `uri` of an object.
    fn publish_member(
        &self,
        server: ServerIndex,
        message: &Message,
        object: Span,
        edits: &mut Edits,
    ) {
        let Some(place) = message.member(object, "uri") else {
            return;
        };
        let public = message
            .text_at(place)
            .and_then(|uri| self.publish_uri(server, &uri));
        if let Some(public) = public {
            edits.replace(place, json_string(&public));
        }
    }
}
