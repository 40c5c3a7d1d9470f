//! What each exposure costs a model: the size of the tool list.
//!
//! All texts are made by the functions that make them for clients, so the figures are those of a real session.

mod text_size;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogView, ItemKind, ServerListing, ToolExposure, ViewFilter};
use crate::config::ExposeMode;
use crate::dispatch_tool::DispatchToolOptions;
use crate::names::ServerNaming;
use crate::own_tool::OwnTool;
use crate::proxy_tool::ProxyToolOptions;
use crate::read_tool::ReadToolOptions;

pub use text_size::{CHARS_PER_TOKEN, TextSize};

/// What is measured: definitions, and how they are shown.
#[derive(Clone, Debug)]
pub struct MeasuredCatalog {
    /// The servers and what they offer, in the order of the configuration.
    pub servers: Vec<(Arc<ServerNaming>, Arc<ServerListing>)>,
    /// The servers and tools that are seen. Which of them are listed is what is compared.
    pub filter: ViewFilter,
    /// The `proxy` tool.
    pub proxy_tool: ProxyToolOptions,
    /// The `proxy-dispatch` tool.
    pub dispatch_tool: DispatchToolOptions,
}

/// One way to list tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposureCost {
    /// What is exposed.
    pub expose: Vec<ExposeMode>,
    /// How many tools are listed only because they are pinned.
    pub pinned: usize,
    /// How many tools are listed, our own included.
    pub tools: usize,
    /// The definitions, as `tools/list` has them.
    pub size: TextSize,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposureReport {
    /// How many tools there are.
    pub tools: usize,
    /// All exposures. The first lists every tool and nothing else.
    pub exposures: Vec<ExposureCost>,
}

impl ExposureReport {
    /// Measures all exposures of these definitions.
    pub fn measure(measured: &MeasuredCatalog) -> ExposureReport {
        use ExposeMode::{All, Dispatch, Proxy, Read};

        let unpinned = measured.without_pins();
        let (catalog, plain) = (measured.catalog(), unpinned.catalog());
        let combinations = [
            &[All][..],
            &[Proxy],
            &[Dispatch],
            &[Proxy, Dispatch],
            &[Proxy, Read],
            &[Dispatch, Read],
            &[All, Proxy],
            &[All, Dispatch],
            &[All, Proxy, Dispatch],
        ];
        let mut exposures: Vec<ExposureCost> = combinations
            .map(|expose| ExposureCost::of(&unpinned.view(&plain, expose), expose))
            .into();
        for expose in [&[Proxy][..], &[Dispatch]] {
            let cost = ExposureCost::of(&measured.view(&catalog, expose), expose);
            // Each has one tool of our own; the others are there because they are pinned.
            let pinned = cost.tools.saturating_sub(expose.len());
            if pinned > 0 {
                exposures.push(ExposureCost { pinned, ..cost });
            }
        }
        ExposureReport {
            tools: unpinned.view(&plain, &[All]).count(ItemKind::Tool),
            exposures,
        }
    }

    /// The cost of one of our own tools alone, or of all tools listed directly.
    pub fn cost_of(&self, mode: ExposeMode) -> TextSize {
        let alone = |cost: &&ExposureCost| cost.expose == [mode] && cost.pinned == 0;
        let cost = self.exposures.iter().find(alone);
        cost.map(|cost| cost.size).unwrap_or_default()
    }
}

impl ExposureCost {
    fn of(view: &CatalogView, expose: &[ExposeMode]) -> ExposureCost {
        let mut size = TextSize::default();
        let mut cursor: Option<String> = None;
        // Cursors come from the list itself, so they are good.
        while let Ok(page) = view.page(ItemKind::Tool, cursor.as_deref()) {
            size += TextSize::of(&page.items());
            match page.next_cursor() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        ExposureCost {
            expose: expose.to_vec(),
            pinned: 0,
            tools: view.listed_count(ItemKind::Tool),
            size,
        }
    }
}

impl MeasuredCatalog {
    /// How many tools of each server are seen, by the server's name.
    pub fn tool_counts(&self) -> BTreeMap<String, usize> {
        let catalog = self.catalog();
        let view = self.view(&catalog, &[ExposeMode::All]);
        let mut counts = BTreeMap::new();
        for entry in view.entries(ItemKind::Tool) {
            if let Some(server) = catalog.server(entry.server) {
                *counts.entry(server.naming().name.clone()).or_insert(0) += 1;
            }
        }
        counts
    }

    fn catalog(&self) -> Arc<Catalog> {
        let servers = self.servers.iter();
        let servers: Vec<_> = servers
            .map(|(naming, listing)| (Arc::clone(naming), Some(Arc::clone(listing))))
            .collect();
        let reserved = [&*self.proxy_tool.name, &*self.dispatch_tool.name];
        Arc::new(Catalog::build_reserving(&servers, &reserved))
    }

    fn without_pins(&self) -> MeasuredCatalog {
        let servers = self.servers.iter().map(|(naming, listing)| {
            let naming = ServerNaming {
                pinned: Vec::new(),
                ..ServerNaming::clone(naming)
            };
            (Arc::new(naming), Arc::clone(listing))
        });
        MeasuredCatalog {
            servers: servers.collect(),
            filter: ViewFilter {
                pinned: Vec::new(),
                ..self.filter.clone()
            },
            ..self.clone()
        }
    }

    fn view(&self, catalog: &Arc<Catalog>, expose: &[ExposeMode]) -> CatalogView {
        let own_tools = expose.iter().filter_map(|mode| match mode {
            ExposeMode::Proxy => Some(OwnTool::Proxy(self.proxy_tool.clone())),
            ExposeMode::Dispatch => Some(OwnTool::Dispatch(self.dispatch_tool.clone())),
            ExposeMode::Read => Some(OwnTool::Read(ReadToolOptions {
                with_proxy: expose.contains(&ExposeMode::Proxy),
                dispatch: expose
                    .contains(&ExposeMode::Dispatch)
                    .then(|| self.dispatch_tool.name.clone()),
                ..ReadToolOptions::alone(self.proxy_tool.clone())
            })),
            ExposeMode::All => None,
        });
        catalog.view(&ViewFilter {
            tools: match expose.contains(&ExposeMode::All) {
                true => ToolExposure::All,
                false => ToolExposure::None,
            },
            own_tools: own_tools.collect(),
            ..self.filter.clone()
        })
    }
}

#[cfg(test)]
mod tests;
