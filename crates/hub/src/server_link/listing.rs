//! Reading what a server offers, all pages of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Era, ErrorCode, Field, Message, json_string};

use super::{HubRequest, LinkNews, Requester, ServerLink, cancel_of};
use crate::catalog::{ItemKind, ServerListing};
use crate::json::elements;
use crate::sign_in_need::SignInNeed;

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

/// A list that could not be read, and why.
#[derive(Clone, Debug)]
pub(crate) struct FailedList {
    pub(crate) kind: ListKind,
    pub(crate) reason: String,
    /// The server says it only to those it knows.
    pub(crate) sign_in: Option<SignInNeed>,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct ListProgress {
    /// The last complete lists, which the hub has too.
    complete: Arc<ServerListing>,
    open: Vec<OpenList>,
    /// Lists that could not be read the last time. They are tried again after a while.
    failed: Vec<FailedList>,
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

    /// The kind of its items.
    pub(crate) fn items(self) -> ItemKind {
        match self {
            ListKind::Tools => ItemKind::Tool,
            ListKind::Resources => ItemKind::Resource,
            ListKind::Templates => ItemKind::Template,
            ListKind::Prompts => ItemKind::Prompt,
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::Templates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }
}

impl ServerLink {
    /// Reads everything that the server offers. If it offers nothing, the lists are complete at once.
    pub(crate) fn list_all(&mut self, now: Instant) -> Option<LinkNews> {
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
            return self.when_listed();
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
        self.lists.failed.retain(|failed| failed.kind != kind);
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

    /// A page. An error ends the list, and what the server listed before stays. A server that offers resources need not know
    /// templates, so one that does not know the method has none.
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
        let found = answer.span(Field::ResultField(kind.items().list_member()));
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
        let mut open = self.lists.open.swap_remove(place);
        open.items.shrink_to_fit();
        let knows_none = kind != ListKind::Tools
            && answer.error_code().map(ErrorCode) == Some(ErrorCode::METHOD_NOT_FOUND);
        match found.is_some() || knows_none {
            true => {
                let complete = Arc::make_mut(&mut self.lists.complete);
                *complete.items_mut(kind.items()) = open.items;
            }
            false => self.lists.failed.push(FailedList {
                kind,
                reason: refusal(answer),
                sign_in: self.sign_in_need(answer),
            }),
        }
        if open.changed {
            self.open_list(kind, now);
        }
        self.retry_failed_lists(now);
        self.when_listed().into_iter().collect()
    }

    fn when_listed(&mut self) -> Option<LinkNews> {
        if !self.lists.open.is_empty() {
            return None;
        }
        if self.lists.failed.is_empty() {
            self.deadline = None;
        }
        let failed = self.lists.failed.iter();
        Some(LinkNews::Listed {
            listing: Arc::clone(&self.lists.complete),
            failed: failed.cloned().collect(),
        })
    }

    /// Lists that could not be read are asked for again when the time for a list has passed once more. Those that wait for a
    /// sign-in are read after it.
    fn retry_failed_lists(&mut self, now: Instant) {
        if self.lists.open.is_empty() {
            let mut failed = self.lists.failed.iter();
            let is_tried_again = failed.any(|failed| failed.sign_in.is_none());
            self.deadline = is_tried_again.then(|| now + self.deadlines.list);
        }
    }

    /// Lists that did not come have failed, and those that had failed before are tried again.
    pub(super) fn lists_timed_out(&mut self, now: Instant) -> Vec<LinkNews> {
        if self.lists.open.is_empty() {
            let failed = std::mem::take(&mut self.lists.failed);
            let kinds: Vec<ListKind> = failed.iter().map(|failed| failed.kind).collect();
            self.relist(&kinds, now);
            return Vec::new();
        }
        let seconds = self.deadlines.list.as_secs_f32();
        for open in std::mem::take(&mut self.lists.open) {
            self.lists.failed.push(FailedList {
                kind: open.kind,
                reason: format!("no answer within {seconds} s"),
                sign_in: None,
            });
            // An answer that comes later must not be taken for one to the next request.
            let request = HubRequest::List(open.kind);
            self.request(request, &cancel_of(b"0", "the list took too long"));
            let _cancelled_before = self.multiplexer.close(&Requester::Hub(request));
        }
        self.retry_failed_lists(now);
        self.when_listed().into_iter().collect()
    }
}

/// Why an answer is not a list.
fn refusal(answer: &Message) -> String {
    let text = answer
        .error()
        .and_then(|error| answer.member(error, "message"));
    let text = text.and_then(|span| answer.text_at(span));
    text.map_or_else(
        || "the answer has no list".to_owned(),
        |text| text.into_owned(),
    )
}
