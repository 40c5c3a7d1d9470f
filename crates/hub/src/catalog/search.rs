//! Finding entries by what people call them.
//!
//! Each server's entries of one kind are a segment. Segments are kept from one catalog to the next, so a server that changes
//! costs only its own. The index is made when it is first needed.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_proxy_search::{SearchDocument, SearchField, SearchIndex, SearchQuery, SearchSegment};
use serde_json::Value;

use super::{
    Catalog, CatalogEntry, CatalogView, ItemKind, ServerIndex, ServerListing, server_index,
};
use crate::names::ServerNaming;

/// How deep names are looked for in an `outputSchema`, and how many are indexed.
const OUTPUT_DEPTH: usize = 4;
const MOST_OUTPUT_NAMES: usize = 64;

/// Something that a search found.
#[derive(Clone, Debug)]
pub struct FoundEntry<'a> {
    /// The entry.
    pub entry: &'a CatalogEntry,
    /// The members of its definition in which words were found.
    pub matched: Vec<&'static str>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct FoundEntries<'a> {
    /// All matches, also those that were not asked for.
    pub total: usize,
    /// Whether the best of them has enough of what was asked for.
    pub fits: bool,
    /// The best of them, in order.
    pub best: Vec<FoundEntry<'a>>,
}

/// The index of one catalog.
#[derive(Debug)]
pub(super) struct CatalogSearch {
    index: Arc<SearchIndex>,
    /// The entries of each segment.
    segments: Vec<Range<usize>>,
}

/// What the next catalog can use again.
#[derive(Debug, Default)]
pub(super) struct SearchSegments(Mutex<KnownSegments>);

#[derive(Clone, Debug, Default)]
struct KnownSegments {
    servers: Vec<ServerSegments>,
    index: Option<Arc<SearchIndex>>,
}

#[derive(Clone, Debug)]
struct ServerSegments {
    naming: Arc<ServerNaming>,
    listing: Option<Arc<ServerListing>>,
    segments: [Arc<SearchSegment>; ItemKind::ALL.len()],
}

/// The part of a catalog that makes searches possible.
#[derive(Debug, Default)]
pub(super) struct SearchState {
    /// What each server offers, as the catalog was built from it.
    pub(super) listings: Vec<Option<Arc<ServerListing>>>,
    known: Arc<SearchSegments>,
    made: OnceLock<CatalogSearch>,
}

impl SearchState {
    pub(super) fn new(listings: Vec<Option<Arc<ServerListing>>>) -> SearchState {
        SearchState {
            listings,
            ..SearchState::default()
        }
    }
}

impl Catalog {
    /// Whether a search can begin at once.
    pub fn is_search_ready(&self) -> bool {
        self.search.made.get().is_some()
    }

    /// Makes the index, which takes a while with thousands of entries.
    pub fn prepare_search(&self) {
        self.search_index();
    }

    /// Takes over what an earlier catalog has indexed.
    pub(crate) fn search_like(&mut self, earlier: &Catalog) {
        self.search.known = Arc::clone(&earlier.search.known);
    }

    fn search_index(&self) -> &CatalogSearch {
        self.search.made.get_or_init(|| {
            let known = self.search.known.lock().clone();
            let servers = self.server_segments(&known.servers);
            let (mut places, mut segments) = (Vec::new(), Vec::new());
            for (at, server) in servers.iter().enumerate() {
                for kind in ItemKind::ALL {
                    places.push(self.entries_of(kind, server_index(at)));
                    segments.push(Arc::clone(&server.segments[kind.position()]));
                }
            }
            let index = Arc::new(match known.index {
                Some(old) => old.updated(segments),
                None => SearchIndex::new(segments),
            });
            *self.search.known.lock() = KnownSegments {
                servers,
                index: Some(Arc::clone(&index)),
            };
            CatalogSearch {
                index,
                segments: places,
            }
        })
    }

    /// The segments of all servers. Those of servers that did not change are taken from the last index.
    fn server_segments(&self, known: &[ServerSegments]) -> Vec<ServerSegments> {
        let servers = self.servers.iter().zip(&self.search.listings).enumerate();
        servers
            .map(|(at, (server, listing))| {
                let is_same = |old: &&ServerSegments| {
                    Arc::ptr_eq(&old.naming, &server.naming)
                        && match (&old.listing, listing) {
                            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                            (None, None) => true,
                            _ => false,
                        }
                };
                known
                    .iter()
                    .find(is_same)
                    .cloned()
                    .unwrap_or_else(|| ServerSegments {
                        naming: Arc::clone(&server.naming),
                        listing: listing.clone(),
                        segments: ItemKind::ALL.map(|kind| {
                            let entries = self.entries_of(kind, server_index(at));
                            Arc::new(segment(&self.entries[entries], &server.naming))
                        }),
                    })
            })
            .collect()
    }

    /// Where the entries of one server stand.
    fn entries_of(&self, kind: ItemKind, server: ServerIndex) -> Range<usize> {
        let all = self.indexes[kind.position()].entries.clone();
        let entries = &self.entries[all.clone()];
        let start = entries.partition_point(|entry| entry.server < server);
        let end = entries.partition_point(|entry| entry.server <= server);
        all.start + start..all.start + end
    }
}

impl CatalogView {
    /// What matches the words best, of these kinds and on this server only if one is given.
    pub fn search(
        &self,
        text: &str,
        kinds: &[ItemKind],
        server: Option<ServerIndex>,
        limit: usize,
    ) -> FoundEntries<'_> {
        let catalog = self.catalog();
        let search = catalog.search_index();
        let place = |segment: usize, document: usize| {
            let entries = search.segments.get(segment)?;
            let at = entries.start + document;
            entries.contains(&at).then_some(at)
        };
        let is_visible = |segment: usize, document: usize| {
            let kind = ItemKind::ALL[segment % ItemKind::ALL.len()];
            kinds.contains(&kind)
                && server
                    .is_none_or(|server| usize::from(server.0) == segment / ItemKind::ALL.len())
                && place(segment, document).is_some_and(|at| self.shows_entry(at))
        };
        let query = SearchQuery { text, limit };
        let results = search.index.search(&query, &is_visible);
        let hits = results.hits.iter();
        FoundEntries {
            total: results.total,
            fits: results.fits,
            best: hits
                .filter_map(|hit| {
                    let entry = catalog.entry(place(hit.segment, hit.document)?);
                    Some(FoundEntry {
                        entry,
                        matched: matched_members(entry, &hit.matched),
                    })
                })
                .collect(),
        }
    }
}

impl SearchSegments {
    fn lock(&self) -> std::sync::MutexGuard<'_, KnownSegments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The members of a definition that have words of the query.
fn matched_members(entry: &CatalogEntry, matched: &[SearchField]) -> Vec<&'static str> {
    let fields = matched.iter().map(|field| match (field, entry.kind) {
        (SearchField::Annotations, ItemKind::Resource) => "uri",
        (SearchField::Annotations, ItemKind::Template) => "uriTemplate",
        (SearchField::Annotations, _) => other_member(entry),
        (field, _) => field.as_str(),
    });
    fields.collect()
}

/// Where the words of [`SearchDocument::other`] stand in the definition of a tool or prompt.
fn other_member(entry: &CatalogEntry) -> &'static str {
    let definition: Value =
        serde_json::from_slice(&entry.definition.to_bytes()).unwrap_or_default();
    match &definition {
        definition if definition["annotations"]["title"].is_string() => "annotations.title",
        definition if definition["_meta"].is_object() => "_meta",
        _ => "outputSchema",
    }
}

/// The names of the properties in a schema, and in what they hold.
fn collect_names<'a>(schema: &'a Value, depth: usize, names: &mut Vec<&'a str>) {
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        if names.len() == MOST_OUTPUT_NAMES {
            return;
        }
        names.push(name);
        if depth > 0 {
            collect_names(property, depth - 1, names);
        }
    }
    if depth > 0 && schema["items"].is_object() {
        collect_names(&schema["items"], depth - 1, names);
    }
}

fn segment(entries: &[CatalogEntry], server: &ServerNaming) -> SearchSegment {
    let definitions: Vec<Value> = entries
        .iter()
        .map(|entry| serde_json::from_slice(&entry.definition.to_bytes()).unwrap_or_default())
        .collect();
    let documents = entries.iter().zip(&definitions);
    SearchSegment::new(documents.map(|(entry, definition)| document(entry, definition, server)))
}

fn document<'a>(
    entry: &'a CatalogEntry,
    definition: &'a Value,
    server: &'a ServerNaming,
) -> SearchDocument<'a> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let title = definition["title"].as_str();
    let name = match entry.kind {
        ItemKind::Tool => server.renamed(&entry.original),
        ItemKind::Prompt => &*entry.original,
        ItemKind::Resource | ItemKind::Template => text(&definition["name"]),
    };
    let uri = match entry.kind {
        ItemKind::Resource | ItemKind::Template => Some(&*entry.original),
        ItemKind::Tool | ItemKind::Prompt => None,
    };
    let properties = definition["inputSchema"]["properties"].as_object();
    let properties = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), text(&schema["description"])));
    let mut outputs = Vec::new();
    collect_names(&definition["outputSchema"], OUTPUT_DEPTH, &mut outputs);
    let arguments = definition["arguments"].as_array();
    let arguments = arguments
        .into_iter()
        .flatten()
        .map(|argument| (text(&argument["name"]), text(&argument["description"])));
    let tags = [
        &definition["_meta"]["tags"],
        &definition["_meta"]["fastmcp"]["tags"],
    ];
    let tags = tags
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str);
    SearchDocument {
        name,
        title,
        server: &server.name,
        description: text(&definition["description"]),
        parameters: properties.chain(arguments).collect(),
        other: definition["annotations"]["title"]
            .as_str()
            .into_iter()
            .chain(tags)
            .chain(outputs)
            .chain(uri)
            .collect(),
    }
}
