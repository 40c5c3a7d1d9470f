//! What all servers offer, in one immutable snapshot.
//!
//! A [`Catalog`] is built from the listings of all servers, and replaced as a whole when one of them changes. Each
//! definition is the server's bytes, which the catalog shares with the listing, and what clients see in place of some of
//! them. So a definition is in memory once, and a new catalog costs only names.
//!
//! Clients look at a catalog through a [`CatalogView`]. Order is that of the configuration, and within one server that
//! of its listing, so an unrelated server changes neither names nor order.

mod build;
mod definition;
mod page;
mod requests;
mod results;
mod search;
mod view;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
pub use mcp_proxy_tool::ItemKind;
use mcp_proxy_tool::ListedItem;

pub use build::{CatalogWarning, UnusableDefinition};
pub use definition::PublicDefinition;
pub use page::{CatalogPage, CursorError};
pub use search::{FoundEntries, FoundEntry};
pub use view::{CatalogView, ChangedKinds, ListExposure, ToolExposure, ViewFilter, changed_kinds};

use crate::names::{ServerNaming, name_hash};
use crate::template::UriTemplate;
use search::SearchState;

/// A server's place in the catalog, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerIndex(pub u16);

/// What a tool says about its behaviour, in its `annotations`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint` is true.
    pub read_only: bool,
    /// `idempotentHint` is true.
    pub idempotent: bool,
}

/// One tool, resource, template or prompt.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// What it is.
    pub kind: ItemKind,
    /// Whose it is.
    pub server: ServerIndex,
    /// The name, URI or URI template that the server knows it by.
    pub original: Box<str>,
    /// The name, URI or URI template that clients know it by.
    pub public: Box<str>,
    /// The definition that clients see.
    pub definition: PublicDefinition,
    /// What a tool says about its behaviour; nothing for other kinds.
    pub hints: Hints,
}

impl ListedItem for CatalogEntry {
    fn kind(&self) -> ItemKind {
        self.kind
    }

    fn public(&self) -> &str {
        &self.public
    }

    fn definition(&self) -> Bytes {
        self.definition.to_bytes()
    }
}

/// What one server offers: the elements of its lists, as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerListing {
    /// The elements of `tools`.
    pub tools: Vec<Bytes>,
    /// The elements of `resources`.
    pub resources: Vec<Bytes>,
    /// The elements of `resourceTemplates`.
    pub templates: Vec<Bytes>,
    /// The elements of `prompts`.
    pub prompts: Vec<Bytes>,
    /// What the server says about itself, in one sentence.
    pub about: Option<String>,
}

/// How each [`CatalogServer::uri_mark`] begins.
pub(crate) const URI_MARK: &str = "#mcp-";

/// The definitions of all servers.
#[derive(Debug)]
pub struct Catalog {
    servers: Vec<CatalogServer>,
    /// By kind, then by server, then in the order of the server's listing.
    entries: Vec<CatalogEntry>,
    indexes: [KindIndex; ItemKind::ALL.len()],
    warnings: Vec<CatalogWarning>,
    search: SearchState,
    built: Instant,
}

/// One server in the catalog.
#[derive(Debug)]
pub struct CatalogServer {
    naming: Arc<ServerNaming>,
    prefix: Option<Box<str>>,
    state: ListingState,
    /// Templates that a URI can be compared with, and their entries.
    templates: Vec<(UriTemplate, usize)>,
}

/// Whether a server's listing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingState {
    /// It is in the catalog.
    Listed,
    /// The server is down, or has not been asked yet.
    Unlisted,
    /// The server is disabled, so models are not told of it.
    Disabled,
}

/// The entries of one kind, and two orders to find one in.
#[derive(Debug, Default)]
struct KindIndex {
    entries: Range<usize>,
    by_public: Vec<u32>,
    /// Entries of several servers with the same name stand next to each other, in the order of the servers.
    by_original: Vec<u32>,
    /// Names that several servers want and none has, each with the entries that want it.
    contested: Vec<(Box<str>, u32)>,
}

impl ServerListing {
    pub(crate) fn items_mut(&mut self, kind: ItemKind) -> &mut Vec<Bytes> {
        match kind {
            ItemKind::Tool => &mut self.tools,
            ItemKind::Resource => &mut self.resources,
            ItemKind::Template => &mut self.templates,
            ItemKind::Prompt => &mut self.prompts,
        }
    }

    /// The definitions of one kind.
    pub fn items(&self, kind: ItemKind) -> &[Bytes] {
        match kind {
            ItemKind::Tool => &self.tools,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
            ItemKind::Prompt => &self.prompts,
        }
    }
}

impl Catalog {
    /// The catalog of these servers, in the order of the configuration. A server without a listing is known by its
    /// names only.
    pub fn build(servers: &[(Arc<ServerNaming>, Option<Arc<ServerListing>>)]) -> Catalog {
        Catalog::build_reserving(servers, &[])
    }

    /// Like [`Catalog::build`], with tool names that no server may use because they are our own.
    pub fn build_reserving(
        servers: &[(Arc<ServerNaming>, Option<Arc<ServerListing>>)],
        reserved: &[&str],
    ) -> Catalog {
        build::build(servers, reserved)
    }

    /// Marks servers, in the order of the configuration, that are disabled.
    pub(crate) fn disable(&mut self, is_disabled: &[bool]) {
        let servers = self.servers.iter_mut().zip(is_disabled);
        for (server, _) in servers.filter(|(_, is_disabled)| **is_disabled) {
            server.state = ListingState::Disabled;
        }
    }

    /// What did not go as its server or its configuration wanted.
    pub fn warnings(&self) -> &[CatalogWarning] {
        &self.warnings
    }

    /// When it was built.
    pub fn built(&self) -> Instant {
        self.built
    }

    /// All servers, in the order of the configuration.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = (ServerIndex, &CatalogServer)> {
        let servers = self.servers.iter().enumerate();
        servers.map(|(at, server)| (server_index(at), server))
    }

    /// One server. `None` for the index of another catalog.
    pub fn server(&self, index: ServerIndex) -> Option<&CatalogServer> {
        self.servers.get(usize::from(index.0))
    }

    /// All entries of one kind, in order.
    pub fn entries(&self, kind: ItemKind) -> &[CatalogEntry] {
        let range = self.indexes[kind.position()].entries.clone();
        self.entries.get(range).unwrap_or_default()
    }

    /// How much of each kind one server offers.
    pub(crate) fn counts(&self, server: ServerIndex) -> [usize; ItemKind::ALL.len()] {
        ItemKind::ALL.map(|kind| {
            let entries = self.entries(kind);
            let start = entries.partition_point(|entry| entry.server < server);
            entries[start..].partition_point(|entry| entry.server == server)
        })
    }

    /// The entry that clients know by `public`.
    pub(crate) fn find_public(&self, kind: ItemKind, public: &str) -> Option<usize> {
        let index = &self.indexes[kind.position()].by_public;
        let found = index.binary_search_by(|at| (*self.entries[*at as usize].public).cmp(public));
        found.ok().map(|found| index[found] as usize)
    }

    /// The entries that should all have the name `public`, so that none has it.
    pub(crate) fn find_contested(
        &self,
        kind: ItemKind,
        public: &str,
    ) -> impl Iterator<Item = usize> {
        let contested = &self.indexes[kind.position()].contested;
        let start = contested.partition_point(|(name, _)| **name < *public);
        let length = contested[start..].partition_point(|(name, _)| **name == *public);
        contested[start..start + length]
            .iter()
            .map(|(_, at)| *at as usize)
    }

    /// The entries that servers know by `original`, in the order of the servers.
    pub(crate) fn find_original(
        &self,
        kind: ItemKind,
        original: &str,
    ) -> impl Iterator<Item = usize> {
        let index = &self.indexes[kind.position()].by_original;
        let name = |at: &u32| &*self.entries[*at as usize].original;
        let start = index.partition_point(|at| name(at) < original);
        let length = index[start..].partition_point(|at| name(at) == original);
        index[start..start + length].iter().map(|at| *at as usize)
    }

    /// The entry that this server knows by `original`.
    pub(crate) fn find_of_server(
        &self,
        kind: ItemKind,
        server: ServerIndex,
        original: &str,
    ) -> Option<usize> {
        self.find_original(kind, original)
            .find(|at| self.entries[*at].server == server)
    }

    pub(crate) fn entry(&self, at: usize) -> &CatalogEntry {
        &self.entries[at]
    }

    /// The entry of the first template of this server that covers `uri`, which is as the server knows it.
    pub(crate) fn find_template(&self, server: ServerIndex, uri: &str) -> Option<usize> {
        let templates = &self.server(server)?.templates;
        let covers = templates.iter().find(|(template, _)| template.matches(uri));
        covers.map(|(_, at)| *at)
    }
}

impl CatalogServer {
    /// How it is shown, as configured.
    pub fn naming(&self) -> &ServerNaming {
        &self.naming
    }

    /// What its public names begin with. It differs from the configured one if an earlier server has the same.
    pub fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// Whether its listing is known.
    pub fn state(&self) -> ListingState {
        self.state
    }

    /// What a URI of this server ends with when it would otherwise lead to another server.
    pub(crate) fn uri_mark(&self) -> String {
        format!("{URI_MARK}{}", name_hash(&[&self.naming.name]))
    }
}

/// A catalog never has more servers than fit: the rest is left out with a warning.
fn server_index(at: usize) -> ServerIndex {
    ServerIndex(u16::try_from(at).unwrap_or(u16::MAX))
}
