//! One resolver for everything that a client or a person can name.
//!
//! In this order: the public name or URI, which is ambiguous if several servers want it; the name behind a server's prefix; a server's own name, if only one server
//! has it; a URI that a template covers; the name of a resource. A server that has not listed anything may have what is
//! asked for, so a name with its prefix leads to that server, and so does its prefix alone.

mod resources;

use std::cmp::Reverse;

use mcp_proxy_tool::near_names;

use crate::catalog::{
    CatalogEntry, CatalogServer, CatalogView, ItemKind, ListingState, ServerIndex,
};

/// What a name or URI stands for.
#[derive(Clone, Debug)]
pub enum ResolvedItem<'a> {
    /// This entry.
    Entry(&'a CatalogEntry),
    /// A resource that a template covers.
    Covered {
        /// The template.
        template: &'a CatalogEntry,
        /// The URI that the server knows.
        original: String,
    },
    /// Something that its server does not list. Either the server has no listing, or it is a resource, which need not
    /// be listed to be read.
    Unlisted {
        /// Whose it would be.
        server: ServerIndex,
        /// The name or URI that the server would know.
        original: String,
    },
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// Nothing has this name.
    #[error("{} `{name}` not found{}", kind.word(), suggestion(near))]
    NotFound {
        /// What was looked for.
        kind: ItemKind,
        /// The name or URI.
        name: String,
        /// Up to three public names that are like it.
        near: Vec<String>,
    },
    /// Several servers have it.
    #[error("{} `{name}` is ambiguous: {}", kind.word(), quoted(candidates))]
    Ambiguous {
        /// What was looked for.
        kind: ItemKind,
        /// The name or URI.
        name: String,
        /// The public names.
        candidates: Vec<String>,
    },
    /// There is no such server.
    #[error("server `{server}` not found{}", suggestion(near))]
    UnknownServer {
        /// What was given as the server.
        server: String,
        /// Up to three server names that are like it.
        near: Vec<String>,
    },
    /// Arguments of this tool are hidden or fixed, and the call has arguments that are not an object.
    #[error("the arguments of tool `{tool}` must be an object")]
    ArgumentsNotAnObject {
        /// The tool, as it was called.
        tool: String,
    },
}

impl LookupError {
    /// A stable word for the error.
    pub const fn code(&self) -> &'static str {
        match self {
            LookupError::NotFound { .. } => "not-found",
            LookupError::Ambiguous { .. } => "ambiguous",
            LookupError::UnknownServer { .. } => "unknown-server",
            LookupError::ArgumentsNotAnObject { .. } => "arguments-not-an-object",
        }
    }
}

impl<'a> ResolvedItem<'a> {
    /// Whose it is.
    pub fn server(&self) -> ServerIndex {
        match self {
            ResolvedItem::Entry(entry) => entry.server,
            ResolvedItem::Covered { template, .. } => template.server,
            ResolvedItem::Unlisted { server, .. } => *server,
        }
    }

    /// The name or URI that the server knows it by.
    pub fn original(&self) -> &str {
        match self {
            ResolvedItem::Entry(entry) => &entry.original,
            ResolvedItem::Covered { original, .. } | ResolvedItem::Unlisted { original, .. } => {
                original
            }
        }
    }

    /// The entry that describes it, if there is one.
    pub fn entry(&self) -> Option<&'a CatalogEntry> {
        match self {
            ResolvedItem::Entry(entry) => Some(entry),
            ResolvedItem::Covered { template, .. } => Some(template),
            ResolvedItem::Unlisted { .. } => None,
        }
    }
}

type Lookup<'a> = Result<ResolvedItem<'a>, LookupError>;

impl CatalogView {
    /// What `name` stands for, on the given server if there is one. For a resource or template, `name` may be a URI, a
    /// URI template or a resource's name.
    pub fn resolve(
        &self,
        kind: ItemKind,
        server: Option<&str>,
        name: &str,
    ) -> Result<ResolvedItem<'_>, LookupError> {
        let server = server.map(|text| self.require_server(text)).transpose()?;
        match (kind, server) {
            (ItemKind::Tool | ItemKind::Prompt, None) => self.resolve_name(kind, name),
            (ItemKind::Tool | ItemKind::Prompt, Some(server)) => {
                self.resolve_name_on(kind, server, name)
            }
            (ItemKind::Resource | ItemKind::Template, None) => self.resolve_uri(name),
            (ItemKind::Resource | ItemKind::Template, Some(server)) => {
                self.resolve_uri_on(server, name)
            }
        }
    }

    /// The server that is called `text`: by name, alias, or prefix with or without its separator. `default` and
    /// `primary` are the first one.
    pub fn find_server(&self, text: &str) -> Option<ServerIndex> {
        let first = |matches: &dyn Fn(&CatalogServer) -> bool| {
            let mut servers = self.servers();
            servers
                .find(|(_, server)| matches(server))
                .map(|(index, _)| index)
        };
        let is_prefix = |server: &CatalogServer| {
            let rest = server.prefix().and_then(|prefix| text.strip_prefix(prefix));
            rest.is_some_and(|rest| rest.is_empty() || rest == server.naming().separator)
        };
        first(&|server| server.naming().name == text)
            .or_else(|| first(&|server| server.naming().alias == text))
            .or_else(|| first(&is_prefix))
            .or_else(|| {
                let default = ["default", "primary"];
                let asked = default.iter().any(|word| text.eq_ignore_ascii_case(word));
                asked.then(|| first(&|_| true)).flatten()
            })
    }

    pub(crate) fn require_server(&self, text: &str) -> Result<ServerIndex, LookupError> {
        self.find_server(text)
            .ok_or_else(|| LookupError::UnknownServer {
                server: text.to_owned(),
                near: near_names(
                    text,
                    self.servers().map(|(_, server)| &*server.naming().name),
                ),
            })
    }

    fn resolve_name(&self, kind: ItemKind, name: &str) -> Lookup<'_> {
        if let Some(found) = self.visible_entry(self.catalog().find_public(kind, name)) {
            return Ok(found);
        }
        if let Some(found) = self.contested(kind, name) {
            return found;
        }
        for (index, server, rest) in self.servers_by_prefix(name) {
            if let Some(found) = self.entry_on(kind, index, rest) {
                return Ok(found);
            }
            if let Some(found) = self.unlisted_name(kind, index, server, rest, name) {
                return Ok(found);
            }
        }
        let mut bare: Vec<usize> = self
            .servers()
            .filter_map(|(index, _)| self.position_on(kind, index, name))
            .collect();
        bare.sort_unstable();
        if let Some(found) = self.only_one(kind, name, &bare) {
            return found;
        }
        let mut unprefixed = self
            .servers()
            .filter(|(_, server)| server.prefix().is_none())
            .filter_map(|(index, server)| self.unlisted_name(kind, index, server, name, name));
        match (unprefixed.next(), unprefixed.next()) {
            (Some(found), None) => Ok(found),
            _ => Err(self.not_found(kind, None, name)),
        }
    }

    fn resolve_name_on(&self, kind: ItemKind, server: ServerIndex, name: &str) -> Lookup<'_> {
        let public = self.catalog().find_public(kind, name);
        let public = public.filter(|at| self.catalog().entry(*at).server == server);
        if let Some(found) = self.visible_entry(public) {
            return Ok(found);
        }
        if let Some(found) = self.entry_on(kind, server, name) {
            return Ok(found);
        }
        let mut prefixed = self.servers_by_prefix(name).into_iter();
        let rest = prefixed
            .find(|(index, ..)| *index == server)
            .map(|(.., rest)| rest);
        if let Some(found) = rest.and_then(|rest| self.entry_on(kind, server, rest)) {
            return Ok(found);
        }
        let mounted = self.servers().find(|(index, _)| *index == server);
        mounted
            .and_then(|(_, mounted)| {
                self.unlisted_name(kind, server, mounted, rest.unwrap_or(name), name)
            })
            .ok_or_else(|| self.not_found(kind, Some(server), name))
    }

    /// The servers whose prefix and separator `name` begins with, and the rest of it; longer prefixes first. The rest of a name
    /// that is just the prefix is that name: `fetch` of `fetch` needs no prefix.
    fn servers_by_prefix<'n>(&self, name: &'n str) -> Vec<(ServerIndex, &CatalogServer, &'n str)> {
        let mut servers: Vec<_> = self
            .servers()
            .filter_map(|(index, server)| {
                let behind = name.strip_prefix(server.prefix()?)?;
                if behind.is_empty() {
                    return Some((index, server, name));
                }
                let rest = behind.strip_prefix(&*server.naming().separator)?;
                (!rest.is_empty()).then_some((index, server, rest))
            })
            .collect();
        servers.sort_by_key(|(_, server, _)| Reverse(server.prefix().map(str::len)));
        servers
    }

    /// The entry that a server calls `name`, or that was renamed to it.
    fn position_on(&self, kind: ItemKind, server: ServerIndex, name: &str) -> Option<usize> {
        let catalog = self.catalog();
        let renamed = match kind {
            ItemKind::Tool => catalog.server(server)?.naming().original(name),
            ItemKind::Resource | ItemKind::Template | ItemKind::Prompt => name,
        };
        [renamed, name]
            .into_iter()
            .find_map(|name| catalog.find_of_server(kind, server, name))
            .filter(|at| self.shows_entry(*at))
    }

    fn entry_on(
        &self,
        kind: ItemKind,
        server: ServerIndex,
        name: &str,
    ) -> Option<ResolvedItem<'_>> {
        self.visible_entry(self.position_on(kind, server, name))
    }

    fn visible_entry(&self, at: Option<usize>) -> Option<ResolvedItem<'_>> {
        let at = at.filter(|at| self.shows_entry(*at))?;
        Some(ResolvedItem::Entry(self.catalog().entry(at)))
    }

    /// What a server without a listing may have, unless the configuration or this view forbids it.
    fn unlisted_name(
        &self,
        kind: ItemKind,
        server: ServerIndex,
        mounted: &CatalogServer,
        rest: &str,
        public: &str,
    ) -> Option<ResolvedItem<'_>> {
        if mounted.state() == ListingState::Listed {
            return None;
        }
        let original = match kind {
            ItemKind::Tool => mounted.naming().original(rest),
            ItemKind::Resource | ItemKind::Template | ItemKind::Prompt => rest,
        };
        let is_seen = kind != ItemKind::Tool || self.shows_unlisted_tool(mounted, original, public);
        let allowed = mounted.naming().allows(kind, original) && is_seen;
        allowed.then(|| ResolvedItem::Unlisted {
            server,
            original: original.to_owned(),
        })
    }

    /// A name that several servers want. It is clear only to those who see just one of them.
    fn contested(&self, kind: ItemKind, name: &str) -> Option<Lookup<'_>> {
        let wanting = self.catalog().find_contested(kind, name);
        let wanting: Vec<usize> = wanting.filter(|at| self.shows_entry(*at)).collect();
        self.only_one(kind, name, &wanting)
    }

    /// The entry if there is one, an error if there are several, nothing if there is none.
    fn only_one(&self, kind: ItemKind, name: &str, found: &[usize]) -> Option<Lookup<'_>> {
        match found {
            [] => None,
            [at] => Some(Ok(ResolvedItem::Entry(self.catalog().entry(*at)))),
            _ => Some(Err(self.ambiguous(kind, name, found))),
        }
    }

    fn ambiguous(&self, kind: ItemKind, name: &str, found: &[usize]) -> LookupError {
        let public = |at: &usize| self.catalog().entry(*at).public.to_string();
        LookupError::Ambiguous {
            kind,
            name: name.to_owned(),
            candidates: found.iter().map(public).collect(),
        }
    }

    fn not_found(&self, kind: ItemKind, server: Option<ServerIndex>, name: &str) -> LookupError {
        let templates = match kind {
            ItemKind::Resource => Some(self.entries(ItemKind::Template)),
            ItemKind::Tool | ItemKind::Template | ItemKind::Prompt => None,
        };
        let names = self
            .entries(kind)
            .chain(templates.into_iter().flatten())
            .filter(|entry| server.is_none_or(|server| entry.server == server))
            .map(|entry| &*entry.public);
        LookupError::NotFound {
            kind,
            name: name.to_owned(),
            near: near_names(name, names),
        }
    }
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", quoted(near)),
    }
}

/// Some names as in a sentence: `a`, `b` or `c`.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN);
    let mut shown: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
    if let Some(more @ 1..) = names.len().checked_sub(SHOWN) {
        shown.push(format!("{more} more"));
    }
    match shown.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
