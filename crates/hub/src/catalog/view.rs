//! What one kind of client sees of a catalog: some servers, some tools, and which of them are listed natively.

use std::sync::Arc;

use bytes::Bytes;

use super::page::PreparedList;
use super::{
    Catalog, CatalogEntry, CatalogPage, CatalogServer, CursorError, ItemKind, ListingState,
    ServerIndex,
};
use crate::names::{NaturalName, matches_any, name_hash};
use crate::own_tool::{OwnTool, servers_text};

/// Which part of a catalog is seen, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFilter {
    /// The servers, by configured name. `None` means all of them.
    pub servers: Option<Vec<String>>,
    /// Globs over public names: only matching tools are seen; all, if there is no list.
    pub allow: Option<Vec<String>>,
    /// Globs over public names: matching tools are not seen, even if they are allowed.
    pub deny: Vec<String>,
    /// Which of the tools `tools/list` shows. The others can be called through the `proxy` tool.
    pub tools: ToolExposure,
    /// Globs over public names: tools that are listed in any case, next to those that their server pins.
    pub pinned: Vec<String>,
    /// Whether `resources/list` and `resources/templates/list` show the resources.
    pub resources: ListExposure,
    /// Whether `prompts/list` shows the prompts.
    pub prompts: ListExposure,
    /// Our own tools, whose definitions come first.
    pub own_tools: Vec<OwnTool>,
    /// How many definitions a page has. Our own tools come on top.
    pub page_size: usize,
}

/// Which tools are listed natively.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolExposure {
    /// All of them.
    #[default]
    All,
    /// None but those that are pinned.
    None,
}

/// Whether a list shows what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListExposure {
    /// It does.
    #[default]
    Listed,
    /// It is empty.
    Empty,
}

/// A catalog as one kind of client sees it, with its lists prepared.
#[derive(Debug)]
pub struct CatalogView {
    catalog: Arc<Catalog>,
    filter: ViewFilter,
    /// In the order of the catalog.
    servers: Vec<ServerIndex>,
    /// The entries that are seen, in ascending order, for each kind.
    visible: [Vec<u32>; ItemKind::ALL.len()],
    lists: [PreparedList; ItemKind::ALL.len()],
}

/// The lists that a client has to fetch again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedKinds {
    /// `notifications/tools/list_changed` is due.
    pub tools: bool,
    /// `notifications/resources/list_changed` is due, for resources or templates.
    pub resources: bool,
    /// `notifications/prompts/list_changed` is due.
    pub prompts: bool,
}

impl Default for ViewFilter {
    fn default() -> ViewFilter {
        ViewFilter {
            servers: None,
            allow: None,
            deny: Vec::new(),
            tools: ToolExposure::All,
            pinned: Vec::new(),
            resources: ListExposure::Listed,
            prompts: ListExposure::Listed,
            own_tools: Vec::new(),
            page_size: 1000,
        }
    }
}

impl Catalog {
    /// The part of the catalog that `filter` lets through, with its lists prepared.
    pub fn view(self: &Arc<Self>, filter: &ViewFilter) -> CatalogView {
        let servers: Vec<ServerIndex> = self
            .servers()
            .filter(|(_, server)| filter.shows_server(server))
            .map(|(index, _)| index)
            .collect();
        let visible = ItemKind::ALL.map(|kind| {
            self.select(kind, |entry| {
                servers.binary_search(&entry.server).is_ok()
                    && filter.shows(entry, self.server(entry.server))
            })
        });
        let lists = ItemKind::ALL.map(|kind| {
            let entries = &visible[kind.position()];
            let listed = entries.iter().copied().filter(|at| {
                let entry = self.entry(*at as usize);
                filter.lists(entry, self.server(entry.server))
            });
            let own = match kind {
                ItemKind::Tool => self.own_definitions(filter, &servers),
                ItemKind::Resource | ItemKind::Template | ItemKind::Prompt => Vec::new(),
            };
            PreparedList::new(self, kind, own, listed.collect(), filter.page_size)
        });
        CatalogView {
            catalog: self.clone(),
            filter: filter.clone(),
            servers,
            visible,
            lists,
        }
    }

    fn own_definitions(&self, filter: &ViewFilter, servers: &[ServerIndex]) -> Vec<Bytes> {
        let servers = servers.iter().filter_map(|index| {
            let listing = self.search.listings.get(usize::from(index.0));
            let about = listing.and_then(|listing| listing.as_ref()?.about.as_deref());
            let server = self.server(*index)?;
            (server.state() != ListingState::Disabled).then_some((server, about))
        });
        let servers = servers_text(servers);
        let tools = filter.own_tools.iter();
        tools.map(|tool| tool.definition(&servers)).collect()
    }

    fn select(&self, kind: ItemKind, chosen: impl Fn(&CatalogEntry) -> bool) -> Vec<u32> {
        let range = self.indexes[kind.position()].entries.clone();
        range
            .filter(|at| chosen(self.entry(*at)))
            .filter_map(|at| u32::try_from(at).ok())
            .collect()
    }
}

impl CatalogView {
    /// The whole catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The servers that are seen, in order.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = (ServerIndex, &CatalogServer)> {
        let server = |index: &ServerIndex| (*index, &self.catalog.servers[usize::from(index.0)]);
        self.servers.iter().map(server)
    }

    /// Whether this server is seen.
    pub fn shows_server(&self, server: ServerIndex) -> bool {
        self.servers.binary_search(&server).is_ok()
    }

    /// Everything of one kind that can be used, in order, listed or not.
    pub fn entries(&self, kind: ItemKind) -> impl ExactSizeIterator<Item = &CatalogEntry> {
        let visible = self.visible[kind.position()].iter();
        visible.map(|at| self.catalog.entry(*at as usize))
    }

    /// How much of one kind can be used, listed or not.
    pub fn count(&self, kind: ItemKind) -> usize {
        self.visible[kind.position()].len()
    }

    /// A short text that changes when the names of the tools do.
    pub fn tool_names_hash(&self) -> String {
        let mut names: Vec<&str> = self
            .entries(ItemKind::Tool)
            .map(|entry| &*entry.public)
            .collect();
        names.sort_unstable();
        name_hash(&names)
    }

    /// How much of one kind is listed natively, our own tools included.
    pub fn listed_count(&self, kind: ItemKind) -> usize {
        self.lists[kind.position()].len()
    }

    /// Whether something of this kind and server is listed natively.
    pub(crate) fn lists_server(&self, kind: ItemKind, server: ServerIndex) -> bool {
        let about = self.catalog.server(server);
        let mut entries = self.entries(kind).filter(|entry| entry.server == server);
        entries.any(|entry| self.filter.lists(entry, about))
    }

    /// A page of the native list: the first one, or the one that a cursor leads to.
    pub fn page(&self, kind: ItemKind, cursor: Option<&str>) -> Result<CatalogPage, CursorError> {
        self.lists[kind.position()].page(&self.catalog, cursor)
    }

    /// Whether a tool that a server does not list would be seen. `asked` is the name that was asked for.
    pub(crate) fn shows_unlisted_tool(
        &self,
        server: &CatalogServer,
        original: &str,
        asked: &str,
    ) -> bool {
        let name = server.natural_name(ItemKind::Tool, original);
        self.filter.shows_tool(asked, &name)
    }

    pub(crate) fn shows_entry(&self, at: usize) -> bool {
        let kind = self.catalog.entry(at).kind;
        let visible = &self.visible[kind.position()];
        u32::try_from(at).is_ok_and(|at| visible.binary_search(&at).is_ok())
    }
}

/// Which native lists differ between two views of the same client.
pub fn changed_kinds(old: &CatalogView, new: &CatalogView) -> ChangedKinds {
    let differs = |kind: ItemKind| {
        let (old_list, new_list) = (&old.lists[kind.position()], &new.lists[kind.position()]);
        old_list.differs(&old.catalog, new_list, &new.catalog)
    };
    ChangedKinds {
        tools: differs(ItemKind::Tool),
        resources: differs(ItemKind::Resource) || differs(ItemKind::Template),
        prompts: differs(ItemKind::Prompt),
    }
}

impl ViewFilter {
    fn shows_server(&self, server: &CatalogServer) -> bool {
        match &self.servers {
            Some(servers) => servers.iter().any(|name| *name == server.naming().name),
            None => true,
        }
    }

    fn shows(&self, entry: &CatalogEntry, server: Option<&CatalogServer>) -> bool {
        let name = tool_name(entry, server);
        name.is_none_or(|name| self.shows_tool(&entry.public, &name))
    }

    /// Whether a tool is seen, if its server is. A rule may name it with the prefix once more. A name that it wants but does not
    /// have because others want it too is refused to it, and gives it nothing.
    fn shows_tool(&self, public: &str, name: &NaturalName) -> bool {
        let known = |globs: &Vec<String>| {
            let doubled = name.doubled.as_deref();
            matches_any(globs, public) || doubled.is_some_and(|name| matches_any(globs, name))
        };
        let is_allowed = self.allow.as_ref().is_none_or(known);
        is_allowed && !known(&self.deny) && !matches_any(&self.deny, &name.wanted)
    }

    fn lists(&self, entry: &CatalogEntry, server: Option<&CatalogServer>) -> bool {
        match entry.kind {
            ItemKind::Tool => self.tools == ToolExposure::All || self.pins(entry, server),
            ItemKind::Resource | ItemKind::Template => self.resources == ListExposure::Listed,
            ItemKind::Prompt => self.prompts == ListExposure::Listed,
        }
    }

    fn pins(&self, entry: &CatalogEntry, server: Option<&CatalogServer>) -> bool {
        let by_server =
            |server: &CatalogServer| matches_any(&server.naming().pinned, &entry.original);
        let doubled = || tool_name(entry, server).and_then(|name| name.doubled);
        matches_any(&self.pinned, &entry.public)
            || server.is_some_and(by_server)
            || (!self.pinned.is_empty()
                && doubled().is_some_and(|doubled| matches_any(&self.pinned, &doubled)))
    }
}

/// The names that a tool should have; nothing for other kinds.
fn tool_name(entry: &CatalogEntry, server: Option<&CatalogServer>) -> Option<NaturalName> {
    let server = server.filter(|_| entry.kind == ItemKind::Tool)?;
    Some(server.natural_name(entry.kind, &entry.original))
}
