//! Answers about connections: `status` and `list`.

use bytes::Bytes;

use super::own_result::{json_result, text_result};
use super::summary::Definition;
use super::{DispatchAction, DispatchFormat, DispatchListQuery};
use crate::proxy_tool::ToolWord;
use crate::proxy_tool::{item_line, more_line};
use crate::wording::counted;
use crate::{ItemKind, PublicDefinition};
use mcp_proxy_wire::json::ObjectWriter;

/// A connection to a server, as its clients see it.
#[derive(Clone, Debug)]
pub struct DispatchConnection<'a> {
    /// `c1`, `c2` and so on.
    pub alias: &'a str,
    /// The server's name in the configuration.
    pub name: &'a str,
    /// Why its tools may be missing or out of date.
    pub problem: Option<&'a ConnectionProblem>,
    /// The `serverInfo` of its handshake, if there was one.
    pub server_info: Option<Bytes>,
    /// When it last listed its tools, in milliseconds since 1970, if it has in this run.
    pub last_refreshed_ms: Option<u64>,
    /// Its tools that this client may see.
    pub tools: Vec<DispatchTool<'a>>,
}

/// Why the tools of a connection may be missing or out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionProblem {
    /// It has never been used.
    NotStarted,
    /// It is being started.
    Starting,
    /// It failed, or cannot be used, for this reason, which has no secrets in it.
    Failed(String),
    /// It wants to know who asks. This says what to do.
    NeedsSignIn(String),
    /// A person turned it off, as this says.
    TurnedOff(String),
}

/// A connection whose tools are not known, so an answer lacks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingConnection {
    /// `c1`, `c2` and so on.
    pub alias: String,
    /// The server's name in the configuration.
    pub name: String,
    /// Why.
    pub problem: ConnectionProblem,
}

/// The member of an answer that names connections whose tools are not known.
pub(super) const SERVERS_NOT_READY: &str = "serversNotReady";

/// A tool of a connection.
#[derive(Clone, Copy, Debug)]
pub struct DispatchTool<'a> {
    /// The name that its server knows, or that the configuration gave it.
    pub name: &'a str,
    /// Its public name, only if a call by `name` alone would be ambiguous.
    pub public: Option<&'a str>,
    /// The name that lines show: its public name.
    pub line_name: &'a str,
    /// Its definition.
    pub definition: &'a PublicDefinition,
}

/// What `status` tells about the catalog.
#[derive(Clone, Copy, Debug)]
pub struct DispatchStatus<'a> {
    /// Changes whenever the names of tools do.
    pub catalog_hash: &'a str,
    /// When the catalog was made, in milliseconds since 1970.
    pub last_updated_ms: u64,
}

/// The result of a `status`.
pub fn render_status(connections: &[DispatchConnection<'_>], status: DispatchStatus<'_>) -> Bytes {
    let tools: usize = connections.iter().map(|one| one.tools.len()).sum();
    let mut answer = ObjectWriter::new();
    answer.text("action", DispatchAction::Status.as_str());
    answer.number("totalConnections", connections.len() as u64);
    answer.number("totalTools", tools as u64);
    answer.text("catalogHash", status.catalog_hash);
    answer.number("lastUpdated", status.last_updated_ms);
    answer.array(
        "connections",
        connections.iter().map(|connection| {
            let mut shown = connection.identity();
            shown.number("toolCount", connection.tools.len() as u64);
            shown.finish()
        }),
    );
    json_result(answer)
}

/// The result of a `list` of these connections, which are those that `query` selects.
pub fn render_list(connections: &[DispatchConnection<'_>], query: &DispatchListQuery) -> Bytes {
    if query.format == DispatchFormat::Text {
        return list_as_text(connections, query);
    }
    let mut answer = ObjectWriter::new();
    answer.text("action", DispatchAction::List.as_str());
    answer.number("totalConnections", connections.len() as u64);
    answer.array(
        "connections",
        connections
            .iter()
            .map(|connection| connection.listed(query).finish()),
    );
    json_result(answer)
}

/// A page of lines. What there is to say about connections comes with the first page.
fn list_as_text(connections: &[DispatchConnection<'_>], query: &DispatchListQuery) -> Bytes {
    let mut lines = Vec::new();
    let tools: usize = connections.iter().map(|one| one.tools.len()).sum();
    let mut facts = ObjectWriter::new();
    facts.text("action", DispatchAction::List.as_str());
    facts.number("totalConnections", connections.len() as u64);
    facts.number("totalTools", tools as u64);
    if query.include_tools {
        let (skipped, shown) = (query.offset, query.limit);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        let all = connections.iter().flat_map(|one| {
            one.tools.iter().map(|tool| {
                item_line(
                    Some(one.name),
                    ItemKind::Tool,
                    tool.line_name,
                    tool.definition.to_bytes(),
                )
            })
        });
        lines.extend(all.skip(skipped).take(shown));
    }
    let next = query.offset.saturating_add(lines.len() as u64);
    for connection in connections.iter().filter(|_| query.offset == 0) {
        let count = counted(connection.tools.len(), "tool");
        match connection.problem {
            Some(problem) => lines.push(format!(
                "({} has {count}: {})",
                connection.name,
                problem.words()
            )),
            None if !query.include_tools => lines.push(format!("{}  {count}", connection.name)),
            None => {}
        }
    }
    if query.include_tools && next < tools as u64 {
        lines.push(more_line(tools as u64 - next, next));
        facts.number("nextOffset", next);
    }
    if lines.is_empty() {
        lines.push("There are no tools here.".to_owned());
    }
    text_result(&lines, facts)
}

impl DispatchConnection<'_> {
    fn identity(&self) -> ObjectWriter {
        let mut shown = ObjectWriter::new();
        shown.text("alias", self.alias);
        shown.text("name", self.name);
        if let Some(problem) = self.problem {
            problem.write(&mut shown);
        }
        shown
    }

    fn listed(&self, query: &DispatchListQuery) -> ObjectWriter {
        let mut shown = self.identity();
        let is_detailed = query.format == DispatchFormat::Detail;
        if is_detailed && let Some(info) = &self.server_info {
            shown.compact("serverInfo", info);
        }
        if is_detailed && let Some(refreshed) = self.last_refreshed_ms {
            shown.number("lastRefreshed", refreshed);
        }
        if query.include_tools {
            shown.array("tools", self.tools.iter().map(|tool| tool.listed(query)));
        }
        if is_detailed || !query.include_tools || self.problem.is_some() {
            shown.number("toolCount", self.tools.len() as u64);
        }
        shown
    }
}

impl ConnectionProblem {
    /// It in words, for a line.
    fn words(&self) -> &str {
        match self {
            ConnectionProblem::NotStarted => "it has not been started",
            ConnectionProblem::Starting => "it is starting",
            ConnectionProblem::Failed(reason)
            | ConnectionProblem::NeedsSignIn(reason)
            | ConnectionProblem::TurnedOff(reason) => reason,
        }
    }

    fn write(&self, shown: &mut ObjectWriter) {
        match self {
            ConnectionProblem::NotStarted => shown.text("state", "not-started"),
            ConnectionProblem::Starting => shown.text("state", "starting"),
            ConnectionProblem::Failed(reason) => shown.text("lastError", reason),
            ConnectionProblem::NeedsSignIn(reason) => {
                shown.text("state", "needs-sign-in");
                shown.text("reason", reason);
            }
            ConnectionProblem::TurnedOff(reason) => {
                shown.text("state", "disabled");
                shown.text("reason", reason);
            }
        }
    }
}

impl MissingConnection {
    /// A line that says so.
    pub(super) fn line(&self) -> String {
        let reason = self.problem.words();
        format!("(server {} is missing: {reason})", self.name)
    }

    pub(super) fn shown(&self) -> Vec<u8> {
        let mut shown = ObjectWriter::new();
        shown.text("alias", &self.alias);
        shown.text("name", &self.name);
        self.problem.write(&mut shown);
        shown.finish()
    }
}

impl DispatchTool<'_> {
    fn listed(&self, query: &DispatchListQuery) -> Vec<u8> {
        let definition = Definition::new(self.definition.to_bytes());
        let mut shown = ObjectWriter::new();
        shown.text("name", self.name);
        if let Some(public) = self.public {
            shown.text("public", public);
        }
        definition.describe(&mut shown, query.format);
        definition.annotate(&mut shown, query.include_annotations, self.name);
        if query.include_input_schema {
            definition.copy(&mut shown, "inputSchema");
        }
        shown.finish()
    }
}
