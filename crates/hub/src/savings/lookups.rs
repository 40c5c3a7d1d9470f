//! What a model reads to find a tool that is not listed.

use bytes::Bytes;
use mcp_proxy_wire::{Message, json_string};

use super::{MeasuredCatalog, TextSize};
use crate::catalog::{CatalogEntry, CatalogView, ItemKind};
use crate::config::ExposeMode;
use crate::dispatch_tool::{self, DispatchOperation};
use crate::hub::dispatch_answers::{self, ListedConnection};
use crate::hub::search_result;
use crate::proxy_tool::{self, ProxyOperation};

/// Words of a tool's description that make a search.
pub const QUERY_WORDS: usize = 6;

/// Averages are taken over this many tools at most, evenly spread over the list.
pub const MAX_SAMPLES: usize = 200;

/// A question that shows what finding and calling one tool costs in all.
pub const EXAMPLE_QUESTION: &str = "what time is it in Tokyo";

/// An answer that a model reads to find a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupAnswer {
    /// `search` of the `proxy` tool.
    ProxySearch,
    /// The first page of `list` of the `proxy` tool.
    ProxyList,
    /// `info` of the `proxy` tool about one tool.
    ProxyInfo,
    /// `list` of the `proxy-dispatch` tool.
    DispatchList,
    /// `search` of the `proxy-dispatch` tool.
    DispatchSearch,
}

/// What such an answer costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupCost {
    /// The answer.
    pub answer: LookupAnswer,
    /// Its whole result, on average.
    pub size: TextSize,
    /// How many answers the average is of.
    pub samples: usize,
}

impl LookupAnswer {
    /// The exposure that has the tool which gives this answer.
    pub fn mode(self) -> ExposeMode {
        match self {
            LookupAnswer::ProxySearch | LookupAnswer::ProxyList | LookupAnswer::ProxyInfo => {
                ExposeMode::Proxy
            }
            LookupAnswer::DispatchList | LookupAnswer::DispatchSearch => ExposeMode::Dispatch,
        }
    }

    /// The action of that tool.
    pub fn action(self) -> &'static str {
        match self {
            LookupAnswer::ProxyList | LookupAnswer::DispatchList => "list",
            LookupAnswer::ProxyInfo => "info",
            LookupAnswer::ProxySearch | LookupAnswer::DispatchSearch => "search",
        }
    }
}

impl MeasuredCatalog {
    pub(super) fn lookups(&self, view: &CatalogView) -> Vec<LookupCost> {
        let answers = [
            (LookupAnswer::ProxySearch, self.proxy_searches(view)),
            (LookupAnswer::ProxyList, self.proxy_list(view)),
            (LookupAnswer::ProxyInfo, proxy_infos(view)),
            (
                LookupAnswer::DispatchList,
                self.dispatch(view, r#"{"action":"list"}"#),
            ),
            (LookupAnswer::DispatchSearch, self.dispatch_searches(view)),
        ];
        let costs = answers.into_iter().filter_map(|(answer, results)| {
            let samples = results.len();
            let sum: TextSize = results.iter().map(|result| TextSize::of(result)).sum();
            let size = TextSize {
                bytes: sum.bytes.checked_div(samples as u64)?,
                chars: sum.chars.checked_div(samples as u64)?,
            };
            Some(LookupCost {
                answer,
                size,
                samples,
            })
        });
        match view.count(ItemKind::Tool) {
            0 => Vec::new(),
            _ => costs.collect(),
        }
    }

    fn proxy_searches(&self, view: &CatalogView) -> Vec<Bytes> {
        let queries = sampled(view).into_iter().map(|entry| {
            let query = json_string(&search_words(&entry.definition.to_bytes(), &entry.original));
            format!(r#"{{"action":"search","query":{query}}}"#)
        });
        queries
            .filter_map(|arguments| self.proxy_search(view, &arguments))
            .collect()
    }

    fn proxy_search(&self, view: &CatalogView, arguments: &str) -> Option<Bytes> {
        let arguments = Bytes::copy_from_slice(arguments.as_bytes());
        match proxy_tool::parse_arguments(Some(&arguments), &self.proxy_tool) {
            Ok(ProxyOperation::Search(query)) => Some(search_result(view, &query, None, &[])),
            _ => None,
        }
    }

    /// What a model reads and writes to answer [`EXAMPLE_QUESTION`] with the `proxy` tool: the list, a search and a call,
    /// without what the called tool answers. `None` if no tool fits.
    pub(super) fn example(&self, list: TextSize, view: &CatalogView) -> Option<TextSize> {
        let query = json_string(EXAMPLE_QUESTION);
        let search = format!(r#"{{"action":"search","query":{query}}}"#);
        let answer = self.proxy_search(view, &search)?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).ok()?;
        let lines = answer["content"][0]["text"].as_str()?;
        let found = view.search(EXAMPLE_QUESTION, &[ItemKind::Tool], None, 1);
        let found = found.best.first().filter(|_| found.fits)?;
        let call = format!(
            r#"{{"action":"call","type":"tool","path":{},"args":{{"timezone":"Asia/Tokyo"}}}}"#,
            json_string(&found.entry.public)
        );
        let texts = [search.as_str(), lines, call.as_str()];
        let texts = texts.into_iter().map(|text| TextSize::of(text.as_bytes()));
        Some(texts.chain([list]).sum())
    }

    /// The first page, as a call gets it that asks for nothing special.
    fn proxy_list(&self, view: &CatalogView) -> Vec<Bytes> {
        let arguments = Bytes::from_static(br#"{"action":"list","type":"tool"}"#);
        match proxy_tool::parse_arguments(Some(&arguments), &self.proxy_tool) {
            Ok(ProxyOperation::List(query)) => {
                let entries: Vec<_> = view.entries(ItemKind::Tool).collect();
                vec![proxy_tool::render_list(
                    entries.into_iter(),
                    &query,
                    None,
                    &[],
                )]
            }
            _ => Vec::new(),
        }
    }

    fn dispatch_searches(&self, view: &CatalogView) -> Vec<Bytes> {
        let queries = sampled(view).into_iter().map(|entry| {
            let query = json_string(&search_words(&entry.definition.to_bytes(), &entry.original));
            format!(r#"{{"action":"search","query":{query}}}"#)
        });
        queries
            .flat_map(|arguments| self.dispatch(view, &arguments))
            .collect()
    }

    /// The answer to a call of the `proxy-dispatch` tool with these arguments.
    fn dispatch(&self, view: &CatalogView, arguments: &str) -> Vec<Bytes> {
        let arguments = Message::parse(arguments.to_owned());
        let place = Some(arguments.root());
        let parsed = dispatch_tool::parse_arguments(&arguments, place, &self.dispatch_tool);
        let answer = match parsed.map(|(operation, _)| operation) {
            Ok(DispatchOperation::List(query)) => {
                let servers = view.servers();
                let connections: Vec<_> = servers
                    .map(|(index, server)| ListedConnection::available(index, server))
                    .collect();
                Some(dispatch_answers::list(view, &connections, &query))
            }
            Ok(DispatchOperation::Search(query)) => {
                Some(dispatch_answers::search(view, &query, &[]))
            }
            _ => None,
        };
        answer.into_iter().collect()
    }
}

fn proxy_infos(view: &CatalogView) -> Vec<Bytes> {
    let entries = sampled(view).into_iter();
    entries
        .map(|entry| proxy_tool::render_info(entry, &entry.public))
        .collect()
}

fn sampled(view: &CatalogView) -> Vec<&CatalogEntry> {
    let step = view.count(ItemKind::Tool).div_ceil(MAX_SAMPLES).max(1);
    view.entries(ItemKind::Tool).step_by(step).collect()
}

/// The first words of a tool's description, or its name if it has none.
fn search_words(definition: &[u8], name: &str) -> String {
    let definition: serde_json::Value = serde_json::from_slice(definition).unwrap_or_default();
    let description = definition["description"].as_str().unwrap_or_default();
    let words: Vec<&str> = description.split_whitespace().take(QUERY_WORDS).collect();
    match words.is_empty() {
        true => name.to_owned(),
        false => words.join(" "),
    }
}
