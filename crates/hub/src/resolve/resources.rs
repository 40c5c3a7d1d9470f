//! Resources: by URI, by URI template, or by name.

use super::{Lookup, ResolvedItem};
use crate::catalog::{CatalogEntry, CatalogView, ItemKind, ServerIndex, URI_MARK};
use crate::{json, uri};

impl CatalogView {
    pub(super) fn resolve_uri(&self, text: &str) -> Lookup<'_> {
        let kinds = [ItemKind::Resource, ItemKind::Template];
        for kind in kinds {
            if let Some(found) = self.visible_entry(self.catalog().find_public(kind, text)) {
                return Ok(found);
            }
        }
        for kind in kinds {
            if let Some(found) = self.contested(kind, text) {
                return found;
            }
        }
        if let Some((server, original)) = self.split_server(text) {
            // A web address is not rewritten unless its server offers it, so this may be anybody's.
            match self.resource_on(server, &original) {
                Some(found) => return Ok(found),
                None if uri::is_web(text) => {}
                None => return self.unlisted_resource(server, original, text),
            }
        }
        for kind in kinds {
            let same: Vec<usize> = self
                .catalog()
                .find_original(kind, text)
                .filter(|at| self.shows_entry(*at))
                .collect();
            if let Some(found) = self.only_one(kind, text, &same) {
                return found;
            }
        }
        let covering: Vec<usize> = self
            .servers()
            .filter_map(|(index, _)| self.covering_template(index, text))
            .collect();
        // A template that is public in this very form is the one that the client has expanded.
        let is_public = |at: &usize| {
            let template = self.catalog().entry(*at);
            template.public == template.original
        };
        if let Some(at) = covering.iter().copied().find(is_public) {
            return Ok(self.covered(at, text));
        }
        match covering[..] {
            [] => self.resolve_resource_name(None, text),
            [at] => Ok(self.covered(at, text)),
            _ => Err(self.ambiguous(ItemKind::Template, text, &covering)),
        }
    }

    pub(super) fn resolve_uri_on(&self, server: ServerIndex, text: &str) -> Lookup<'_> {
        for kind in [ItemKind::Resource, ItemKind::Template] {
            let public = self.catalog().find_public(kind, text);
            let public = public.filter(|at| self.catalog().entry(*at).server == server);
            if let Some(found) = self.visible_entry(public) {
                return Ok(found);
            }
        }
        let split = self.split_server(text);
        let original = match split {
            Some((prefixed, original)) if prefixed == server => original,
            _ => text.to_owned(),
        };
        match self.resource_on(server, &original) {
            Some(found) => Ok(found),
            None if uri::has_scheme(text) => self.unlisted_resource(server, original, text),
            None => self.resolve_resource_name(Some(server), text),
        }
    }

    /// By the `name` of a resource or template, which has no prefix and need not be unique.
    fn resolve_resource_name(&self, server: Option<ServerIndex>, name: &str) -> Lookup<'_> {
        let is_named = |entry: &CatalogEntry| {
            let value = json::parse(entry.definition.to_bytes())?;
            let member = value.member(json::object(&value)?, "name")?;
            Some(value.text_at(member)? == name)
        };
        let kinds = [ItemKind::Resource, ItemKind::Template].into_iter();
        let named: Vec<usize> = kinds
            .flat_map(|kind| self.entries(kind))
            .filter(|entry| server.is_none_or(|server| entry.server == server))
            .filter(|entry| is_named(entry) == Some(true))
            .filter_map(|entry| self.catalog().find_public(entry.kind, &entry.public))
            .collect();
        if let Some(found) = self.only_one(ItemKind::Resource, name, &named) {
            return found;
        }
        // Results may name resources that are not listed. Without a prefix they can be of one server only.
        let mut servers = self.servers().filter(|(_, server)| {
            server.prefix().is_none() || (self.servers().len() == 1 && !uri::is_web(name))
        });
        match (servers.next(), servers.next()) {
            (Some((server, _)), None) if uri::has_scheme(name) => {
                self.unlisted_resource(server, name.to_owned(), name)
            }
            _ => Err(self.not_found(ItemKind::Resource, server, name)),
        }
    }

    /// The server that a URI names by its prefix or by a mark at its end, and the URI that this server knows.
    fn split_server(&self, text: &str) -> Option<(ServerIndex, String)> {
        let mut servers = self.servers().filter(|_| text.contains(URI_MARK));
        let marked = servers.find_map(|(index, server)| {
            let unmarked = text.strip_suffix(&*server.uri_mark())?;
            Some((index, server, unmarked))
        });
        if let Some((index, server, unmarked)) = marked {
            let original = match uri::split_prefix(unmarked) {
                Some((prefix, original)) if server.prefix() == Some(prefix) => original,
                _ => unmarked.to_owned(),
            };
            return Some((index, original));
        }
        let (prefix, original) = uri::split_prefix(text)?;
        let find = |same: &dyn Fn(&str) -> bool| {
            let mut servers = self.servers();
            servers
                .find(|(_, server)| server.prefix().is_some_and(same))
                .map(|(index, _)| index)
        };
        // Clients that take URIs apart write hosts in lower case.
        let server = find(&|known| known == prefix)
            .or_else(|| find(&|known| known.eq_ignore_ascii_case(prefix)))?;
        Some((server, original))
    }

    /// A listed resource of this server, or one that a template of it covers.
    fn resource_on(&self, server: ServerIndex, original: &str) -> Option<ResolvedItem<'_>> {
        let catalog = self.catalog();
        let listed = [ItemKind::Resource, ItemKind::Template]
            .into_iter()
            .find_map(|kind| catalog.find_of_server(kind, server, original));
        if let Some(at) = listed {
            return Some(ResolvedItem::Entry(catalog.entry(at)));
        }
        let template = self.covering_template(server, original)?;
        Some(self.covered(template, original))
    }

    /// The template of this server that covers a URI, unless the configuration denies that URI.
    fn covering_template(&self, server: ServerIndex, original: &str) -> Option<usize> {
        let naming = self.catalog().server(server)?.naming();
        let template = self.catalog().find_template(server, original);
        template.filter(|_| !naming.resources.denies_uri(original))
    }

    /// A resource that this server does not list but may have, unless the configuration takes it away.
    fn unlisted_resource(&self, server: ServerIndex, original: String, text: &str) -> Lookup<'_> {
        let mounted = self.catalog().server(server);
        match mounted.is_some_and(|mounted| mounted.naming().resources.permits_uri(&original)) {
            true => Ok(ResolvedItem::Unlisted { server, original }),
            false => Err(self.not_found(ItemKind::Resource, Some(server), text)),
        }
    }

    fn covered(&self, template: usize, original: &str) -> ResolvedItem<'_> {
        ResolvedItem::Covered {
            template: self.catalog().entry(template),
            original: original.to_owned(),
        }
    }
}
