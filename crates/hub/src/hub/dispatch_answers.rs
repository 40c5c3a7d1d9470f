//! Answers of the `proxy-dispatch` tool, from the catalog and from files.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcp_proxy_spill::{ReadAnswer, ReadFacts, ReadLimit, ReadRequest};
use mcp_proxy_wire::{Era, json_string};

use super::answers::without_paths;
use super::dispatch_calls::file_refusal;
use super::lists::entry_line;
use super::work::OwnedFiles;
use super::{Hub, ServerState};
use crate::catalog::{CatalogEntry, CatalogServer, CatalogView, ItemKind, ServerIndex};
use crate::dispatch_tool::{
    self, ConnectionProblem, DispatchAction, DispatchConnection, DispatchHit, DispatchListQuery,
    DispatchParameter, DispatchSearchQuery, DispatchStatus, DispatchTool, MissingConnection,
    ReadResultFacts, ReadResultView,
};
use crate::proxy_tool::{self, CapabilityType, ProxyToolError};

/// A server as `list` and `status` show it, without its tools.
#[derive(Debug)]
pub(crate) struct ListedConnection {
    index: ServerIndex,
    alias: String,
    name: String,
    problem: Option<ConnectionProblem>,
    /// Whether its tools are known, as of now or of an earlier time.
    is_listed: bool,
    server_info: Option<Bytes>,
    last_refreshed_ms: Option<u64>,
}

impl ListedConnection {
    /// The same, if an answer lacks its tools. Nobody misses those of a server that a person turned off, unless the server was
    /// named.
    pub(super) fn missing(self, is_named: bool) -> Option<MissingConnection> {
        let is_off = matches!(self.problem, Some(ConnectionProblem::TurnedOff(_)));
        let problem = self
            .problem
            .filter(|_| !self.is_listed && (is_named || !is_off))?;
        Some(MissingConnection {
            alias: self.alias,
            name: self.name,
            problem,
        })
    }

    /// A server that is up. What it says about itself is only in detailed lists.
    pub(crate) fn available(index: ServerIndex, server: &CatalogServer) -> ListedConnection {
        ListedConnection {
            index,
            alias: server.naming().alias.clone(),
            name: server.naming().name.clone(),
            problem: None,
            is_listed: true,
            server_info: None,
            last_refreshed_ms: None,
        }
    }
}

impl Hub {
    pub(super) fn listed_connection(
        &self,
        index: ServerIndex,
        server: &CatalogServer,
    ) -> ListedConnection {
        let state = self.server(index);
        let failed = |reason: &str| Some(ConnectionProblem::Failed(without_paths(reason)));
        let problem = match (self.status_of(index).state, &state.last_error) {
            (ServerState::Ready, _) => None,
            (ServerState::Disabled(reason), _) if state.is_turned_off() => {
                Some(ConnectionProblem::TurnedOff(reason))
            }
            (ServerState::NeedsSignIn(reason), _) => {
                Some(ConnectionProblem::NeedsSignIn(without_paths(&reason)))
            }
            (ServerState::Disabled(reason) | ServerState::Failed(reason), _) => failed(&reason),
            (ServerState::Starting, _) => Some(ConnectionProblem::Starting),
            (ServerState::Stopped, _) if state.listing.is_some() => None,
            (ServerState::Stopped, Some(error)) => failed(error),
            (ServerState::Stopped, None) => Some(ConnectionProblem::NotStarted),
        };
        ListedConnection {
            problem,
            is_listed: state.listing.is_some(),
            server_info: state.description.info.clone(),
            last_refreshed_ms: state.listed_at.map(ms_since_1970),
            ..ListedConnection::available(index, server)
        }
    }
}

pub(super) fn status(view: &CatalogView, connections: &[ListedConnection]) -> Bytes {
    let status = DispatchStatus {
        catalog_hash: &view.tool_names_hash(),
        last_updated_ms: ms_since_1970(view.catalog().built()),
    };
    dispatch_tool::render_status(&with_tools(view, connections), status)
}

fn ms_since_1970(then: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let then = now.unwrap_or_default().saturating_sub(then.elapsed());
    u64::try_from(then.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn list(
    view: &CatalogView,
    connections: &[ListedConnection],
    query: &DispatchListQuery,
) -> Bytes {
    dispatch_tool::render_list(&with_tools(view, connections), query)
}

fn with_tools<'a>(
    view: &'a CatalogView,
    connections: &'a [ListedConnection],
) -> Vec<DispatchConnection<'a>> {
    let shown = connections.iter().map(|connection| DispatchConnection {
        alias: &connection.alias,
        name: &connection.name,
        problem: connection.problem.as_ref(),
        server_info: connection.server_info.clone(),
        last_refreshed_ms: connection.last_refreshed_ms,
        tools: view
            .entries(ItemKind::Tool)
            .filter(|entry| entry.server == connection.index)
            .map(|entry| DispatchTool {
                name: own_name(view, entry),
                public: ambiguous_public(view, entry),
                line_name: &entry.public,
                definition: &entry.definition,
            })
            .collect(),
    });
    shown.collect()
}

/// What a tool is called on its connection: its server's name for it, or the one that the configuration gave it.
fn own_name<'a>(view: &'a CatalogView, entry: &'a CatalogEntry) -> &'a str {
    let server = view.catalog().server(entry.server);
    match (entry.kind, server) {
        (ItemKind::Tool, Some(server)) => server.naming().renamed(&entry.original),
        _ => &entry.original,
    }
}

/// The public name of a tool whose own name does not lead to it alone.
fn ambiguous_public<'a>(view: &CatalogView, entry: &'a CatalogEntry) -> Option<&'a str> {
    let (catalog, name) = (view.catalog(), own_name(view, entry));
    let shown = |at: &usize| view.shows_entry(*at);
    if let Some(at) = catalog.find_public(entry.kind, name).filter(shown) {
        return (catalog.entry(at).public != entry.public).then_some(&*entry.public);
    }
    let same = catalog.find_original(entry.kind, name).filter(shown);
    let renamed = view.servers().filter_map(|(index, server)| {
        let original = server.naming().original(name);
        let is_renamed = entry.kind == ItemKind::Tool && original != name;
        let at = is_renamed.then(|| catalog.find_of_server(entry.kind, index, original))?;
        at.filter(shown)
    });
    (same.chain(renamed).take(2).count() > 1).then_some(&*entry.public)
}

pub(crate) fn search(
    view: &CatalogView,
    query: &DispatchSearchQuery,
    missing: &[MissingConnection],
) -> Bytes {
    let server = query
        .connection
        .as_deref()
        .and_then(|name| view.find_server(name));
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let found = view.search(&query.query, query.kind.item_kinds(), server, limit);
    let hits: Vec<DispatchHit<'_>> = found
        .best
        .into_iter()
        .filter_map(|found| {
            let entry = found.entry;
            let naming = view.catalog().server(entry.server)?.naming();
            let (name, public) = match entry.kind {
                ItemKind::Tool | ItemKind::Prompt => {
                    (own_name(view, entry), ambiguous_public(view, entry))
                }
                ItemKind::Resource | ItemKind::Template => (&*entry.public, None),
            };
            Some(DispatchHit {
                line: entry_line(view, entry),
                alias: &naming.alias,
                connection: &naming.name,
                kind: entry.kind,
                name,
                public,
                definition: &entry.definition,
                matched_fields: found.matched,
            })
        })
        .collect();
    dispatch_tool::render_search(query, found.total as u64, found.fits, &hits, missing)
}

pub(super) fn read_result(
    files: &OwnedFiles,
    file: &str,
    request: &ReadRequest,
    limit: ReadLimit,
    now: Instant,
) -> Bytes {
    let answer = match files.store.read(files.owner, file, request, limit, now) {
        Ok(answer) => answer,
        Err(error) => {
            let error = file_refusal(&error, DispatchParameter::ResultFile);
            return dispatch_tool::render_error(&error, Some(DispatchAction::ReadResult));
        }
    };
    dispatch_tool::render_read_result(&ReadResultView {
        file,
        text: answer.text.as_deref().unwrap_or_default(),
        facts: facts(request, &answer),
        truncated: answer.truncated,
    })
}

fn facts<'a>(request: &'a ReadRequest, answer: &ReadAnswer) -> ReadResultFacts<'a> {
    let (byte_size, total_lines) = (answer.byte_size, answer.total_lines);
    match (request, answer.facts) {
        (ReadRequest::Head { lines }, _) => ReadResultFacts::Head {
            lines: *lines,
            total_lines,
        },
        (ReadRequest::Tail { lines }, _) => ReadResultFacts::Tail {
            lines: *lines,
            total_lines,
        },
        (_, ReadFacts::Lines { from_line, to_line }) => ReadResultFacts::Slice {
            from_line,
            to_line,
            total_lines,
        },
        (
            ReadRequest::Grep { pattern, .. },
            ReadFacts::Matches {
                match_count,
                occurrence_count,
                returned_matches,
                reading,
            },
        ) => ReadResultFacts::Grep {
            pattern,
            match_count,
            occurrence_count,
            returned_matches,
            total_lines,
            reading,
        },
        (ReadRequest::Jq { filter }, ReadFacts::Outputs { output_count }) => ReadResultFacts::Jq {
            filter,
            output_count,
            byte_size,
        },
        (ReadRequest::Read, _) => ReadResultFacts::Read {
            byte_size,
            total_lines,
        },
        _ => ReadResultFacts::Stat {
            byte_size,
            line_count: total_lines,
        },
    }
}

/// The result of `resources/read` for a result in a file. `None` if there is no such file for this client.
pub(super) fn resource(files: &OwnedFiles, uri: &str, era: Era, now: Instant) -> Option<Bytes> {
    let (format, contents) = files.store.contents(files.owner, uri, now).ok()?;
    let text = String::from_utf8_lossy(&contents);
    let caching = match era {
        Era::Legacy => "",
        Era::Modern => r#","ttlMs":0,"cacheScope":"private""#,
    };
    let result = format!(
        r#"{{"contents":[{{"uri":{},"mimeType":"{}","text":{}}}]{caching}}}"#,
        json_string(uri),
        format.media_type(),
        json_string(&text)
    );
    Some(result.into())
}

/// The result of reading a result in a file through the `proxy` tool.
pub(super) fn proxy_resource(files: &OwnedFiles, uri: String, now: Instant) -> Bytes {
    match resource(files, &uri, Era::Legacy, now) {
        Some(result) => proxy_tool::render_resource_result(&result, &uri),
        None => proxy_tool::render_error(&ProxyToolError::NotFound {
            kind: CapabilityType::Resource,
            path: uri,
            near: Vec::new(),
        }),
    }
}
