//! Looking at messages: from one to another, folded, compared, copied.

use mcp_proxy_control::{MarkChange, NoteRequest};
use mcp_proxy_session::{MarkOperation, ProxyMessage};
use mcp_proxy_wire::Kind;

use super::answers::RequestPurpose;
use super::{App, DiffView, Effect, Overlay};
use crate::proxy::ProxyStatus;
use crate::source::RowGrouping;
use crate::tab::{BodyVersion, Detail, Tab, body_of};
use crate::text::{IdComparison, curl};

/// Why there is no curl command.
const NO_URL: &str = "no curl command: neither the server nor the proxy has a URL here (both speak stdio); y copies the message";
/// Said of a message whose bytes were forwarded as they were, under another head.
const ONLY_HEAD: &str = "only the HTTP head of this message was changed; its details say how";
/// Terminals take no more into the clipboard, and most take less.
const MOST_COPIED: u64 = 1 << 20;

impl App {
    pub(super) fn with_detail(&mut self, act: impl FnOnce(&mut Detail)) {
        if let Some(tab) = self.current() {
            tab.show();
            if let Some(detail) = &mut tab.detail {
                act(detail);
            }
        }
    }

    pub(super) fn fold(&mut self) {
        self.with_detail(|detail| {
            let opener = detail.line().and_then(|line| detail.body.opener(line));
            if let Some(opener) = opener {
                detail.folds.toggle(opener);
                detail.fold_changed();
                detail.go_to(opener);
            }
        });
    }

    /// The tab that is shown, and its selected message.
    fn selected(&mut self) -> Option<(&mut Tab, u64)> {
        let tab = self.current()?;
        let selected = tab.selected?;
        Some((tab, selected))
    }

    /// Goes to a message by its number; says why if it cannot be seen.
    pub(super) fn go_to(&mut self, number: u64) {
        let Some(tab) = self.current() else {
            return;
        };
        if tab.select(number) {
            return;
        }
        let why = match tab.view.filter().is_empty() {
            true => format!("message #{number} does not exist"),
            false => format!("the filter hides #{number}; Ctrl-L shows everything"),
        };
        self.complain(why);
    }

    pub(super) fn go_to_peer(&mut self) {
        let Some((tab, selected)) = self.selected() else {
            return self.complain("no message is selected");
        };
        if let Some(peer) = tab.view.peer(selected) {
            return self.show_peer(peer);
        }
        let kind = tab
            .view
            .message_with_context(selected)
            .map(|told| told.message.kind);
        self.complain(match kind {
            Ok(Kind::Request) => format!("#{selected} has no answer yet"),
            Ok(Kind::Notification) => {
                format!("#{selected} is a notification, which has no answer")
            }
            Ok(Kind::Response | Kind::Error) => {
                format!("#{selected} answers no request that is here")
            }
            _ => format!("#{selected} has no answer, and answers none"),
        });
    }

    /// Goes to the other message of a call. A filter that hides it is cleared: of a list of errors, the requests are wanted.
    fn show_peer(&mut self, peer: u64) {
        let is_hidden = self
            .current()
            .is_some_and(|tab| !tab.view.filter().is_empty() && !tab.select(peer));
        if !is_hidden {
            return self.go_to(peer);
        }
        self.set_filter("");
        if self.current().is_some_and(|tab| tab.select(peer)) {
            self.say(format!("#{peer}; the filter hid it and was cleared"));
        } else {
            self.go_to(peer);
        }
    }

    pub(super) fn go_to_parent(&mut self) {
        let Some((tab, selected)) = self.selected() else {
            return self.complain("no message is selected");
        };
        match tab.view.message_with_context(selected) {
            Err(why) => self.complain(why),
            Ok(told) => match told.message.parent {
                Some(parent) => self.go_to(parent),
                None => self.complain(format!("no other call caused #{}", told.message.sequence)),
            },
        }
    }

    pub(super) fn mark(&mut self) {
        let Some((tab, selected)) = self.selected() else {
            return self.complain("no message is selected");
        };
        let mark = match tab.view.marks().contains(&selected) {
            true => MarkOperation::Removed,
            false => MarkOperation::Set,
        };
        tab.view.mark(selected, mark);
        // A record that is only looked at is not written.
        if self.tab == 0 && self.proxy.link == ProxyStatus::Live {
            let request = NoteRequest {
                sequence: Some(selected),
                mark: Some(match mark {
                    MarkOperation::Set => MarkChange::Set,
                    MarkOperation::Removed => MarkChange::Removed,
                }),
                ..NoteRequest::default()
            };
            self.ask(&request, RequestPurpose::Say(String::new()));
        }
    }

    pub(super) fn next_mark(&mut self) {
        let next = self.current().and_then(|tab| {
            let after = tab.selected.map_or(0, |selected| selected + 1);
            let marks = tab.view.marks();
            let next = marks.range(after..).next().or(marks.first());
            next.copied()
        });
        match next {
            Some(next) => self.go_to(next),
            None => self.complain("no message is marked (m marks one)"),
        }
    }

    pub(super) fn original(&mut self) {
        let mut said = None;
        self.with_detail(|detail| {
            let message = detail.told.as_ref().ok().map(|told| &told.message);
            let is_other = message.is_some_and(|message| message.original_raw.is_some());
            let is_modified = message.is_some_and(|message| message.modified);
            said = match is_other {
                false if is_modified => Some(ONLY_HEAD),
                false => Some("this message was forwarded unchanged"),
                true => match detail.turn() {
                    BodyVersion::Received => Some("as received"),
                    BodyVersion::Sent => Some("as forwarded"),
                },
            };
        });
        if let Some(said) = said {
            self.say(said);
        }
    }

    /// Compares what belongs to the selected message, or two messages by their numbers.
    pub(super) fn diff(&mut self, numbers: &str) {
        let view = match numbers.is_empty() {
            true => self.diff_view(),
            false => self.diff_of_two(numbers),
        };
        match view {
            Ok(view) => self.open(Overlay::Diff(Box::new(view))),
            Err(why) => self.complain(why),
        }
    }

    fn diff_of_two(&mut self, numbers: &str) -> Result<DiffView, String> {
        let words = numbers.split_whitespace();
        let parsed: Vec<Option<u64>> = words
            .map(|word| word.trim_start_matches('#').parse().ok())
            .collect();
        let [Some(first), Some(second)] = parsed[..] else {
            return Err("two message numbers are needed: `:diff 6 8`".to_owned());
        };
        let tab = self.current().ok_or("no session is open")?;
        let body = |number: u64| {
            let told = tab.view.message_with_context(number)?;
            Ok::<_, String>(body_of(&told.message.raw))
        };
        let titles = [format!("#{first}"), format!("#{second}")];
        let bodies = [body(first)?, body(second)?];
        let ids = IdComparison::Compared;
        Ok(DiffView::new([first, second], titles, bodies, ids))
    }

    fn diff_view(&mut self) -> Result<DiffView, String> {
        let nothing = "nothing to compare: this message was not changed or replayed (`:diff A B` compares any two)";
        let tab = self.current().ok_or(nothing)?;
        let selected = tab.selected.ok_or("no message is selected")?;
        let message = tab.view.message_with_context(selected)?.message;
        if let Some(original) = &message.original_raw {
            let titles = [
                format!("#{selected} received"),
                format!("#{selected} forwarded"),
            ];
            let bodies = [body_of(original), body_of(&message.raw)];
            let ids = IdComparison::Compared;
            return Ok(DiffView::new([selected; 2], titles, bodies, ids));
        }
        if message.modified {
            return Err(ONLY_HEAD.to_owned());
        }
        let replays = tab.replays.iter().rev();
        let mut pairs = replays.filter_map(|(first, (request, answer))| {
            let answers = tab.view.peer(*first).zip(*answer);
            let all = [Some((*first, *request)), answers];
            let mut all = all.into_iter().flatten();
            let is_about = all.any(|(first, again)| first == selected || again == selected);
            // The requests differ in their ids only, unless one was edited; the answers are what one wants to see.
            is_about.then(|| answers.unwrap_or((*first, *request)))
        });
        let (first, again) = pairs.next().ok_or(nothing)?;
        let body = |number| {
            tab.view
                .message_with_context(number)
                .map(|told| body_of(&told.message.raw))
        };
        let titles = [format!("#{first} first"), format!("#{again} replayed")];
        let bodies = [body(first)?, body(again)?];
        // A replay has an id of its own.
        let ids = IdComparison::Ignored;
        Ok(DiffView::new([first, again], titles, bodies, ids))
    }

    /// Shows one row for each call, or for each message.
    pub(super) fn toggle_calls(&mut self) {
        let Some(tab) = self.current() else {
            return;
        };
        let said = match tab.toggle_calls() {
            RowGrouping::Calls => "one row for each call: request and answer together",
            RowGrouping::Messages => "one row for each message",
        };
        self.say(said);
    }

    pub(super) fn copy(&mut self) {
        // Before the first message the screen shows what a client needs.
        let is_empty = self.current().is_some_and(|tab| tab.view.total() == 0);
        if let Some(config) = self.client_config().filter(|_| is_empty) {
            return self.put(config, "config copied");
        }
        let raw = self.current().and_then(|tab| {
            tab.show();
            tab.detail.as_ref()?.raw().cloned()
        });
        if raw.as_ref().is_some_and(|raw| raw.len() > MOST_COPIED) {
            return self
                .complain("this message is too large for the clipboard; `:export` writes it");
        }
        let bytes = raw.map(|raw| raw.to_bytes());
        match bytes.map(|bytes| String::from_utf8(bytes.into())) {
            Some(Ok(text)) => self.put(text, "copied"),
            Some(Err(_)) => self.complain("the message is not text"),
            None => self.complain("no message is selected"),
        }
    }

    pub(super) fn copy_curl(&mut self) {
        let target = self.proxy.hello.target.clone();
        let server = target.starts_with("http").then_some(target);
        let listens = self.listen_url.clone();
        let made = self.current().and_then(|tab| {
            tab.show();
            let message = &tab.detail.as_ref()?.told.as_ref().ok()?.message;
            // To the server itself; where that does not speak HTTP, to the proxy in front of it.
            let url = server.or(listens).or_else(|| sent_to(message));
            Some(match url {
                Some(url) => curl(message, &url),
                None => Err(NO_URL.to_owned()),
            })
        });
        match made {
            Some(Ok(text)) => self.put(text, "copied as a curl command"),
            Some(Err(why)) => self.complain(why),
            None => self.complain("no message is selected"),
        }
    }

    fn put(&mut self, text: String, said: &str) {
        self.say(format!("{said} ({} bytes)", text.len()));
        self.effects.push(Effect::Copy(text));
    }
}

/// Where a message that came over HTTP was sent to.
fn sent_to(message: &ProxyMessage) -> Option<String> {
    let http = message.http.as_ref()?;
    Some(format!(
        "http://{}{}",
        http.header("host")?,
        http.target.as_deref()?
    ))
}
