//! From listings to a catalog: public names, collisions, and definitions in their public form.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::definition::{MAX_DEFINITION_DEPTH, ReadDefinition};
use super::search::SearchState;
use super::{
    Catalog, CatalogEntry, CatalogServer, ItemKind, KindIndex, ListingState, ServerIndex,
    ServerListing, definition, server_index,
};
use crate::names::{NaturalName, ServerNaming, name_hash, with_suffix};
use crate::template::UriTemplate;
use crate::uri;

/// Something in a listing or in the configuration that could not be taken as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CatalogWarning {
    /// Two servers have the same prefix.
    #[error("server `{server}`: the prefix `{wanted}` is taken, so its names begin with `{given}`")]
    PrefixTaken {
        /// The later of the two servers.
        server: String,
        /// The prefix that both want.
        wanted: String,
        /// The prefix that it has instead.
        given: String,
    },
    /// Two definitions would have the same public name.
    #[error("server `{server}`: the {} name `{wanted}` is taken, so `{original}` is shown as `{given}`", kind.word())]
    NameTaken {
        /// One of the servers.
        server: String,
        /// What it is.
        kind: ItemKind,
        /// What the server calls it.
        original: String,
        /// The public name that is taken.
        wanted: String,
        /// The public name that it has instead.
        given: String,
    },
    /// The same name twice in one listing. Only the first can be called.
    #[error("server `{server}` lists the {} `{original}` twice; the second is left out", kind.word())]
    Duplicate {
        /// The server.
        server: String,
        /// What it is.
        kind: ItemKind,
        /// What the server calls it.
        original: String,
    },
    /// Not a definition.
    #[error("server `{server}`: {} {position} is left out: {problem}", kind.word())]
    Unusable {
        /// The server.
        server: String,
        /// What it should be.
        kind: ItemKind,
        /// Its place in the listing, counted from 1.
        position: usize,
        /// What is wrong with it.
        problem: UnusableDefinition,
    },
    /// More servers than a catalog can hold.
    #[error("{0} servers are left out: there are too many")]
    TooManyServers(usize),
}

impl CatalogWarning {
    /// The server that it is about.
    pub fn server(&self) -> Option<&str> {
        match self {
            CatalogWarning::PrefixTaken { server, .. }
            | CatalogWarning::NameTaken { server, .. }
            | CatalogWarning::Duplicate { server, .. }
            | CatalogWarning::Unusable { server, .. } => Some(server),
            CatalogWarning::TooManyServers(_) => None,
        }
    }
}

/// What is wrong with a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UnusableDefinition {
    /// It is not a JSON object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// The member that it is known by is missing, empty or not a string.
    #[error("it has no `{0}`")]
    NoName(&'static str),
    /// Clients that cannot read it would lose the whole list.
    #[error("it is nested more than {MAX_DEFINITION_DEPTH} levels deep")]
    TooDeep,
}

type MountedServer = (Arc<ServerNaming>, Option<Arc<ServerListing>>);

/// The entries of one kind so far.
struct KindBuilder<'a> {
    kind: ItemKind,
    entries: &'a mut Vec<CatalogEntry>,
    warnings: &'a mut Vec<CatalogWarning>,
    taken: FxHashSet<Box<str>>,
    /// Names that several servers want. None of them gets one, so what a name means does not depend on who is up.
    contested: FxHashSet<Box<str>>,
    contestants: Vec<(Box<str>, u32)>,
}

/// A definition that becomes an entry, and the public name that it should have.
struct NamedDefinition {
    read: ReadDefinition,
    name: NaturalName,
}

impl NamedDefinition {
    /// The names that must not mean anything else.
    fn claims(&self) -> impl Iterator<Item = &str> {
        let NaturalName { wanted, doubled } = &self.name;
        std::iter::once(wanted).chain(doubled).map(String::as_str)
    }
}

pub(super) fn build(mounted: &[MountedServer], reserved: &[&str]) -> Catalog {
    let mut warnings = Vec::new();
    let limit = usize::from(u16::MAX);
    if mounted.len() > limit {
        warnings.push(CatalogWarning::TooManyServers(mounted.len() - limit));
    }
    let mounted = &mounted[..mounted.len().min(limit)];
    let mut servers = prefixed_servers(mounted, &mut warnings);
    let mut entries = Vec::with_capacity(count_definitions(mounted));
    let indexes = ItemKind::ALL.map(|kind| {
        let start = entries.len();
        let mut builder = KindBuilder {
            kind,
            entries: &mut entries,
            warnings: &mut warnings,
            taken: FxHashSet::default(),
            contested: FxHashSet::default(),
            contestants: Vec::new(),
        };
        if kind == ItemKind::Tool {
            builder
                .taken
                .extend(reserved.iter().map(|name| (*name).into()));
        }
        let listings = mounted.iter().map(|(_, listing)| listing.as_deref());
        let named: Vec<Vec<NamedDefinition>> = servers
            .iter()
            .zip(listings)
            .map(|(server, listing)| builder.read_server(server, listing))
            .collect();
        builder.contested = contested_names(&named);
        for (at, definitions) in named.into_iter().enumerate() {
            builder.add_server(&servers[at], server_index(at), definitions);
        }
        let mut contestants = builder.contestants;
        contestants.sort_unstable();
        index_entries(&entries, start, contestants)
    });
    let templates = indexes[ItemKind::Template.position()].entries.clone();
    for at in templates {
        let entry = &entries[at];
        if let Some(template) = UriTemplate::parse(&entry.original) {
            servers[usize::from(entry.server.0)]
                .templates
                .push((template, at));
        }
    }
    Catalog {
        servers,
        entries,
        indexes,
        warnings,
        built: Instant::now(),
        search: SearchState::new(mounted.iter().map(|(_, listing)| listing.clone()).collect()),
    }
}

/// Prefixes depend on the configuration alone, never on which servers are up.
fn prefixed_servers(
    mounted: &[MountedServer],
    warnings: &mut Vec<CatalogWarning>,
) -> Vec<CatalogServer> {
    let mut taken = FxHashSet::default();
    let mut servers = Vec::with_capacity(mounted.len());
    for (naming, listing) in mounted {
        let wanted = naming.prefix.as_deref().unwrap_or_default();
        // It has to stand in URIs as one segment.
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let wanted: String = wanted.chars().filter(fits).collect();
        let mut prefix = wanted.clone();
        if !prefix.is_empty() && !taken.insert(prefix.clone()) {
            prefix = format!("{wanted}-{}", name_hash(&[&naming.name]));
            taken.insert(prefix.clone());
            warnings.push(CatalogWarning::PrefixTaken {
                server: naming.name.clone(),
                wanted,
                given: prefix.clone(),
            });
        }
        servers.push(CatalogServer {
            naming: naming.clone(),
            prefix: (!prefix.is_empty()).then(|| prefix.into()),
            state: match listing {
                Some(_) => ListingState::Listed,
                None => ListingState::Unlisted,
            },
            templates: Vec::new(),
        });
    }
    servers
}

fn count_definitions(mounted: &[MountedServer]) -> usize {
    let listings = mounted.iter().filter_map(|(_, listing)| listing.as_ref());
    let counts = listings.map(|listing| ItemKind::ALL.map(|kind| listing.items(kind).len()));
    counts.flatten().sum()
}

/// The names that more than one server claims, and those that two definitions of one server claim because one of them already
/// has the prefix: `git_log` and `log` of `git`.
fn contested_names(named: &[Vec<NamedDefinition>]) -> FxHashSet<Box<str>> {
    let mut claimed: FxHashMap<&str, (usize, &NamedDefinition)> = FxHashMap::default();
    let mut contested = FxHashSet::default();
    for (server, definitions) in named.iter().enumerate() {
        for definition in definitions {
            for name in definition.claims() {
                let (first_server, first) = *claimed.entry(name).or_insert((server, definition));
                let is_own = std::ptr::eq(first, definition);
                let has_prefix = [first, definition].map(|one| one.name.doubled.is_some());
                if first_server != server || (!is_own && has_prefix.contains(&true)) {
                    contested.insert(name.into());
                }
            }
        }
    }
    contested
}

fn index_entries(
    entries: &[CatalogEntry],
    start: usize,
    contested: Vec<(Box<str>, u32)>,
) -> KindIndex {
    let added = start..entries.len();
    let numbers = added.clone().filter_map(|at| u32::try_from(at).ok());
    let mut by_public: Vec<u32> = numbers.collect();
    let mut by_original = by_public.clone();
    by_public.sort_unstable_by_key(|at| &*entries[*at as usize].public);
    by_original.sort_unstable_by_key(|at| (&*entries[*at as usize].original, *at));
    KindIndex {
        entries: added,
        by_public,
        by_original,
        contested,
    }
}

impl KindBuilder<'_> {
    /// What a server lists, without what cannot be used or is not allowed.
    fn read_server(
        &mut self,
        server: &CatalogServer,
        listing: Option<&ServerListing>,
    ) -> Vec<NamedDefinition> {
        let items = listing.map_or(&[][..], |listing| listing.items(self.kind));
        let mut named = Vec::with_capacity(items.len());
        let mut seen = FxHashSet::default();
        for (at, item) in items.iter().enumerate() {
            let read = match definition::read(self.kind, item) {
                Ok(read) => read,
                Err(problem) => {
                    self.warnings.push(CatalogWarning::Unusable {
                        server: server.naming.name.clone(),
                        kind: self.kind,
                        position: at + 1,
                        problem,
                    });
                    continue;
                }
            };
            if !server.naming.allows(self.kind, &read.original) {
                continue;
            }
            if !seen.insert(read.original.clone()) {
                self.warnings.push(CatalogWarning::Duplicate {
                    server: server.naming.name.clone(),
                    kind: self.kind,
                    original: read.original.into(),
                });
                continue;
            }
            let name = server.natural_name(self.kind, &read.original);
            named.push(NamedDefinition { read, name });
        }
        named
    }

    /// Adds what a server lists.
    fn add_server(
        &mut self,
        server: &CatalogServer,
        index: ServerIndex,
        definitions: Vec<NamedDefinition>,
    ) {
        for definition in definitions {
            self.note_contested(&definition);
            let NamedDefinition { read, name } = definition;
            let public = self.choose_public(server, &read.original, name);
            self.entries.push(CatalogEntry {
                kind: self.kind,
                server: index,
                definition: read.publish(self.kind, &public, server),
                original: read.original,
                public,
                hints: read.hints,
            });
        }
    }

    /// Remembers who claims a name that is nobody's.
    fn note_contested(&mut self, definition: &NamedDefinition) {
        let Ok(place) = u32::try_from(self.entries.len()) else {
            return;
        };
        for name in definition.claims() {
            if self.contested.contains(name) {
                self.contestants.push((name.into(), place));
            }
        }
    }

    /// Whether nobody else has or claims the name. Then it is taken.
    fn take(&mut self, name: &str) -> bool {
        !self.contested.contains(name) && self.taken.insert(name.into())
    }

    /// The public name that is free: the natural one, the one with the prefix once more, or one with a suffix that depends
    /// only on the server.
    fn choose_public(
        &mut self,
        server: &CatalogServer,
        original: &str,
        name: NaturalName,
    ) -> Box<str> {
        let NaturalName { wanted, doubled } = name;
        if self.take(&wanted) {
            return wanted.into();
        }
        let given = match doubled.filter(|doubled| self.take(doubled)) {
            Some(doubled) => doubled,
            None => self.suffixed(server, original, &wanted),
        };
        self.warnings.push(CatalogWarning::NameTaken {
            server: server.naming.name.clone(),
            kind: self.kind,
            original: original.to_owned(),
            wanted,
            given: given.clone(),
        });
        given.into()
    }

    fn suffixed(&mut self, server: &CatalogServer, original: &str, wanted: &str) -> String {
        let mut given = wanted.to_owned();
        let mut salt = String::new();
        // A contested name itself is nobody's.
        while given == *wanted || !self.take(&given) {
            given = match self.kind {
                ItemKind::Tool | ItemKind::Prompt => {
                    let suffix = name_hash(&[&server.naming.name, original, &salt]);
                    with_suffix(wanted, &suffix)
                }
                ItemKind::Resource | ItemKind::Template => given + &server.uri_mark(),
            };
            salt.push('+');
        }
        given
    }
}

impl CatalogServer {
    /// What something should be called in public.
    pub(crate) fn natural_name(&self, kind: ItemKind, original: &str) -> NaturalName {
        let naming = &self.naming;
        let plain = |wanted: String| NaturalName {
            wanted,
            doubled: None,
        };
        match (kind, self.prefix()) {
            (ItemKind::Tool, prefix) => naming.natural_name(prefix, naming.renamed(original)),
            (ItemKind::Prompt, prefix) => naming.natural_name(prefix, original),
            (ItemKind::Resource | ItemKind::Template, Some(prefix)) => {
                plain(uri::add_prefix(original, prefix).unwrap_or_else(|| original.to_owned()))
            }
            (ItemKind::Resource | ItemKind::Template, None) => plain(original.to_owned()),
        }
    }
}
