//! What a model reads to find a tool that is not listed.

use bytes::Bytes;
use mcp_proxy_wire::{Message, json_string};

use super::{MeasuredCatalog, TextSize};
use crate::catalog::{CatalogEntry, CatalogView, ItemKind};
use crate::config::ExposeMode;
use crate::dispatch_tool::{self, DispatchOperation};
use crate::hub::dispatch_answers::{self, ListedConnection};
use crate::proxy_tool::{self, ProxyOperation};

/// Words of a tool's description that make a search.
pub const QUERY_WORDS: usize = 6;

/// Averages are taken over this many tools at most, evenly spread over the list.
pub const MAX_SAMPLES: usize = 200;

/// An answer that a model reads to find a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupAnswer {
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
            LookupAnswer::ProxyList | LookupAnswer::ProxyInfo => ExposeMode::Proxy,
            LookupAnswer::DispatchList | LookupAnswer::DispatchSearch => ExposeMode::Dispatch,
        }
    }

    /// The action of that tool.
    pub fn action(self) -> &'static str {
        match self {
            LookupAnswer::ProxyList | LookupAnswer::DispatchList => "list",
            LookupAnswer::ProxyInfo => "info",
            LookupAnswer::DispatchSearch => "search",
        }
    }
}

impl MeasuredCatalog {
    pub(super) fn lookups(&self, view: &CatalogView) -> Vec<LookupCost> {
        let answers = [
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
