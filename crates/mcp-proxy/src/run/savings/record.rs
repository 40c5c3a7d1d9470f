//! What a record says about definitions and results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use anyhow::Result;
use mcp_proxy_hub::config::ExposeMode;
use mcp_proxy_hub::savings::{MeasuredCall, TextSize, spilled_size};
use mcp_proxy_hub::{DeclaredOutput, ItemKind, ServerListing, ServerNaming};
use mcp_proxy_session::{Row, SessionRecord, UNNAMED_SERVER};
use mcp_proxy_wire::{Field, Kind, Message, Transport};

use crate::run::serve::HUB;
use crate::run::sessions::{record_lookup, report_damage};

/// The thresholds that are tried: 10K and 50K, as `--spill-threshold` understands them.
pub(super) const THRESHOLDS: [u64; 2] = [10 << 10, 50 << 10];

/// Figures of one record.
#[derive(Default)]
pub(super) struct RecordFigures {
    pub(super) id: String,
    /// Calls of tools by clients.
    pub(super) calls: u64,
    /// How many different tools of servers were called.
    pub(super) tools_used: usize,
    /// Answers to `tools/list` that clients got.
    pub(super) lists: AnswerTotal,
    /// Results of calls that clients got.
    pub(super) results: AnswerTotal,
    /// Calls that servers answered, as they would have been with each exposure: parameters and results.
    pub(super) exposed: Vec<(ExposeMode, AnswerTotal)>,
    pub(super) spills: Vec<SpillFigures>,
    /// Bodies that the record does not have.
    pub(super) missing: u64,
    /// The last complete list of each server.
    pub(super) definitions: Vec<(Arc<ServerNaming>, Arc<ServerListing>)>,
}

/// Several answers together: the JSON of their results.
#[derive(Clone, Copy, Default)]
pub(super) struct AnswerTotal {
    pub(super) count: u64,
    pub(super) size: TextSize,
}

/// What a threshold would have kept out of the context.
#[derive(Clone, Copy)]
pub(super) struct SpillFigures {
    pub(super) threshold: u64,
    /// Results above it.
    pub(super) results: u64,
    /// Those results, less the previews that take their place.
    pub(super) kept_out: TextSize,
}

/// What is known of a record while it is read.
struct RecordReader<'a> {
    session: &'a SessionRecord,
    /// Connections from the hub to its servers. Those of its clients are the others.
    to_servers: HashSet<u32>,
    figures: RecordFigures,
    listings: BTreeMap<String, ServerListing>,
    /// Tools that say what their results look like.
    declaring: HashSet<(String, String)>,
    /// The servers' tools that a client's call led to.
    led_to: HashMap<u64, Vec<(String, String)>>,
}

impl RecordFigures {
    /// Reads the record called `name`.
    pub(super) fn read(name: &str) -> Result<RecordFigures> {
        let path = record_lookup::find(name)?;
        let session = SessionRecord::open_session(&path)?;
        let mut reader = RecordReader::new(&session);
        reader.read_requests();
        reader.read_lists();
        reader.read_results();
        reader.read_exposed_calls();
        report_damage(&session);
        Ok(reader.finish())
    }
}

impl<'a> RecordReader<'a> {
    fn new(session: &'a SessionRecord) -> RecordReader<'a> {
        let is_from_hub = |client: &mcp_proxy_session::PeerInfo| {
            client.transport == Transport::InProcess && client.name.as_deref() == Some(HUB)
        };
        let connections = session.connections();
        RecordReader {
            to_servers: connections
                .filter(|connection| connection.client.as_ref().is_some_and(is_from_hub))
                .map(|connection| connection.number)
                .collect(),
            figures: RecordFigures {
                id: session.header().id.clone(),
                spills: THRESHOLDS
                    .map(|threshold| SpillFigures {
                        threshold,
                        results: 0,
                        kept_out: TextSize::default(),
                    })
                    .into(),
                exposed: [ExposeMode::All, ExposeMode::Proxy, ExposeMode::Dispatch]
                    .map(|mode| (mode, AnswerTotal::default()))
                    .into(),
                ..RecordFigures::default()
            },
            session,
            listings: BTreeMap::new(),
            declaring: HashSet::new(),
            led_to: HashMap::new(),
        }
    }

    /// Which tools were called, by whom.
    fn read_requests(&mut self) {
        let session = self.session;
        let mut used = BTreeSet::new();
        for row in session.rows() {
            if row.kind() != Kind::Request || session.method(row) != Some("tools/call") {
                continue;
            }
            self.figures.calls += u64::from(self.is_of_client(row));
            if self.is_of_server(row) {
                let name = session.name(row).unwrap_or_default().to_owned();
                let tool = (self.server_name(row), name);
                let cause = row.parent().unwrap_or(row.sequence());
                self.led_to.entry(cause).or_default().push(tool.clone());
                used.insert(tool);
            }
        }
        self.figures.tools_used = used.len();
    }

    fn read_lists(&mut self) {
        let session = self.session;
        for (request, index) in self.answers("tools/list") {
            let (Some(asked), Some(row)) = (session.row(request), session.row(index)) else {
                continue;
            };
            let Some(answer) = self.load(index) else {
                continue;
            };
            let Some(result) = answer.result() else {
                continue;
            };
            if self.is_of_client(row) {
                self.figures.lists.add(answer.slice(result));
            }
            if self.is_of_server(asked) {
                let is_first = self
                    .load(request)
                    .is_none_or(|request| request.text(Field::Param("cursor")).is_none());
                let listing = self.listings.entry(self.server_name(row)).or_default();
                if is_first {
                    *listing = ServerListing::default();
                }
                listing.add_page(ItemKind::Tool, &answer, result);
            }
        }
        for (server, listing) in &self.listings {
            let declaring = listing
                .tools
                .iter()
                .filter(|tool| DeclaredOutput::of(tool) == DeclaredOutput::Schema)
                .filter_map(|tool| serde_json::from_slice::<serde_json::Value>(tool).ok())
                .filter_map(|tool| Some((server.clone(), tool["name"].as_str()?.to_owned())));
            self.declaring.extend(declaring);
        }
    }

    fn read_results(&mut self) {
        for (request, index) in self.answers("tools/call") {
            let rows = (self.session.row(request), self.session.row(index));
            let (Some(asked), Some(row)) = rows else {
                continue;
            };
            if !self.is_of_client(row) {
                continue;
            }
            let declared = self.declared_output(asked.sequence());
            let Some(answer) = self.load(index) else {
                continue;
            };
            let Some(result) = answer.result() else {
                continue;
            };
            let size = self.figures.results.add(answer.slice(result));
            for spill in &mut self.figures.spills {
                if let Some(preview) = spilled_size(&answer, spill.threshold, declared) {
                    spill.results += 1;
                    spill.kept_out += size.saturating_sub(preview);
                }
            }
        }
    }

    /// What calls would have cost with each exposure, from what servers were asked and what they answered.
    fn read_exposed_calls(&mut self) {
        for (request, index) in self.answers("tools/call") {
            let Some(row) = self.session.row(request) else {
                continue;
            };
            if !self.is_of_server(row) {
                continue;
            }
            let naming = self.naming(&self.server_name(row));
            let tool = self.session.name(row).unwrap_or_default().to_owned();
            let (Some(request), Some(answer)) = (self.load(request), self.load(index)) else {
                continue;
            };
            let Some(result) = answer.result() else {
                continue;
            };
            let arguments = request.span(Field::Param("arguments"));
            let call = MeasuredCall {
                server: &naming,
                tool: &tool,
                arguments: arguments.map_or(b"{}", |span| request.slice(span)),
                result: answer.raw().slice(result.range()),
            };
            for (mode, total) in &mut self.figures.exposed {
                total.count += 1;
                total.size += call.size(*mode);
            }
        }
    }

    /// How the hub would call what this server has.
    fn naming(&self, server: &str) -> ServerNaming {
        let place = self.listings.keys().position(|known| known == server);
        let alias = format!("c{}", place.unwrap_or(0) + 1);
        let mut naming = ServerNaming::new(server, alias);
        if self.to_servers.is_empty() {
            // Its clients saw the names as they are.
            naming.prefix = None;
        }
        naming
    }

    fn finish(self) -> RecordFigures {
        let definitions = self.listings.iter().map(|(name, listing)| {
            let naming = Arc::new(self.naming(name));
            (naming, Arc::new(listing.clone()))
        });
        let definitions = definitions.collect();
        RecordFigures {
            definitions,
            ..self.figures
        }
    }

    /// The answers to requests of this method that were delivered: the rows of the request and of the answer.
    fn answers(&self, method: &str) -> Vec<(usize, usize)> {
        let session = self.session;
        let rows = session.rows().iter().enumerate();
        rows.filter(|(_, row)| row.kind() == Kind::Response)
            .filter(|(_, row)| !(row.is_undelivered() || row.is_dropped() || row.is_duplicate()))
            .filter_map(|(index, row)| Some((row.peer()?, index)))
            .filter(|(request, _)| {
                let request = session.row(*request);
                request.is_some_and(|row| session.method(row) == Some(method))
            })
            .collect()
    }

    fn load(&mut self, index: usize) -> Option<Message> {
        let message = self.session.message(index).ok();
        let body = message.and_then(|message| message.raw.load().ok());
        let body = body.filter(|body| !body.is_empty());
        self.figures.missing += u64::from(body.is_none());
        body.map(Message::parse)
    }

    /// Whether a client of the proxy or of the hub is at one end.
    fn is_of_client(&self, row: &Row) -> bool {
        !self.to_servers.contains(&row.connection())
    }

    /// Whether a server is at the other end, and not the hub.
    fn is_of_server(&self, row: &Row) -> bool {
        self.to_servers.is_empty() || self.to_servers.contains(&row.connection())
    }

    fn server_name(&self, row: &Row) -> String {
        let name = self.session.server_name(row.connection());
        name.map_or_else(|| UNNAMED_SERVER.to_owned(), |name| name.into_owned())
    }

    fn declared_output(&self, call: u64) -> DeclaredOutput {
        let tools = self.led_to.get(&call);
        let declares = |tool: &(String, String)| self.declaring.contains(tool);
        match tools.is_some_and(|tools| tools.iter().any(declares)) {
            true => DeclaredOutput::Schema,
            false => DeclaredOutput::Nothing,
        }
    }
}

impl AnswerTotal {
    fn add(&mut self, result: &[u8]) -> TextSize {
        let size = TextSize::of(result);
        self.count += 1;
        self.size += size;
        size
    }
}
