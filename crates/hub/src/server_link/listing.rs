//! Reading what a server offers, all pages of it.

use std::collections::HashSet;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Era, Field, Message, json_string};

use super::{HubRequest, LinkNews, ServerLink};
use crate::catalog::ServerListing;
use crate::json::elements;

/// Definitions of one kind that a server may have. A server that pages for ever is cut off here.
const ITEMS_MAX: usize = 100_000;

/// One of a server's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct ListProgress {
    /// The last complete lists.
    complete: ServerListing,
    open: Vec<OpenList>,
}

/// A list whose pages are being read.
#[derive(Debug)]
struct OpenList {
    kind: ListKind,
    items: Vec<Bytes>,
    cursors: HashSet<Bytes>,
    /// It has changed since reading began, so it is read once more.
    changed: bool,
}

impl ListKind {
    pub(crate) const ALL: [ListKind; 4] = [
        ListKind::Tools,
        ListKind::Resources,
        ListKind::Templates,
        ListKind::Prompts,
    ];

    fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::Templates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }

    fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }
}

impl ListProgress {
    fn slot(&mut self, kind: ListKind) -> &mut Vec<Bytes> {
        match kind {
            ListKind::Tools => &mut self.complete.tools,
            ListKind::Resources => &mut self.complete.resources,
            ListKind::Templates => &mut self.complete.templates,
            ListKind::Prompts => &mut self.complete.prompts,
        }
    }
}

impl ServerLink {
    /// Reads everything that the server offers. If it offers nothing, the lists are complete at once.
    pub(super) fn list_all(&mut self, now: Instant) -> Option<LinkNews> {
        let offers = self.description.offers;
        let kinds: Vec<ListKind> = ListKind::ALL
            .into_iter()
            .filter(|kind| match kind {
                ListKind::Tools => offers.tools,
                ListKind::Resources | ListKind::Templates => offers.resources,
                ListKind::Prompts => offers.prompts,
            })
            .collect();
        if kinds.is_empty() {
            return Some(LinkNews::Listed(ServerListing::default()));
        }
        self.relist(&kinds, now);
        None
    }

    /// Reads these lists again.
    pub(super) fn relist(&mut self, kinds: &[ListKind], now: Instant) {
        for &kind in kinds {
            match self.lists.open.iter_mut().find(|open| open.kind == kind) {
                Some(open) => open.changed = true,
                None => self.open_list(kind, now),
            }
        }
    }

    fn open_list(&mut self, kind: ListKind, now: Instant) {
        self.lists.open.push(OpenList {
            kind,
            items: Vec::new(),
            cursors: HashSet::new(),
            changed: false,
        });
        self.deadline = Some(now + self.deadlines.list);
        self.request_page(kind, None);
    }

    fn request_page(&mut self, kind: ListKind, cursor: Option<&str>) {
        let meta = match self.era {
            Era::Legacy => None,
            Era::Modern => Some(format!("\"_meta\":{{{}}}", self.client.meta())),
        };
        let cursor = cursor.map(|cursor| format!("\"cursor\":{}", json_string(cursor)));
        let members: Vec<String> = cursor.into_iter().chain(meta).collect();
        let message = Message::parse(format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"{}","params":{{{}}}}}"#,
            kind.method(),
            members.join(",")
        ));
        self.request(HubRequest::List(kind), &message);
    }

    /// A page. An error ends the list: what was read before stays, and a server that offers resources but knows no
    /// templates has none.
    pub(super) fn list_answered(
        &mut self,
        kind: ListKind,
        answer: &Message,
        now: Instant,
    ) -> Vec<LinkNews> {
        let Some(place) = self.lists.open.iter().position(|open| open.kind == kind) else {
            return Vec::new();
        };
        let open = &mut self.lists.open[place];
        let found = answer.span(Field::ResultField(kind.member()));
        if let Some(array) = found {
            let page = elements(answer, array);
            open.items.extend(
                page.into_iter()
                    .map(|span| answer.raw().slice(span.range())),
            );
        }
        let cursor = answer.text(Field::ResultField("nextCursor"));
        if let Some(cursor) = cursor {
            // A server that gives the same cursor twice would be read for ever.
            let fresh = open
                .cursors
                .insert(Bytes::copy_from_slice(cursor.as_bytes()));
            if fresh && open.items.len() < ITEMS_MAX {
                self.deadline = Some(now + self.deadlines.list);
                self.request_page(kind, Some(&cursor));
                return Vec::new();
            }
        }
        let open = self.lists.open.swap_remove(place);
        if found.is_some() || self.lists.slot(kind).is_empty() {
            *self.lists.slot(kind) = open.items;
        }
        if open.changed {
            self.open_list(kind, now);
        }
        self.when_listed()
    }

    fn when_listed(&mut self) -> Vec<LinkNews> {
        if !self.lists.open.is_empty() {
            return Vec::new();
        }
        self.deadline = None;
        vec![LinkNews::Listed(self.lists.complete.clone())]
    }

    /// Lists that did not come stay as they were.
    pub(super) fn lists_timed_out(&mut self) -> Vec<LinkNews> {
        self.lists.open.clear();
        self.when_listed()
    }
}
