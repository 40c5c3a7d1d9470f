//! One session on the screen: its rows, which of them is selected, and that message in detail.

mod detail;

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_proxy_session::FilterError;

use crate::source::{RowGrouping, SessionView};
use crate::text::LAID_OUT;

pub use detail::{BodyVersion, CarriedMessage, HeadFolding};
pub(crate) use detail::{Detail, body_of};

/// A session that is looked at.
pub struct Tab {
    /// Its name on the screen.
    pub name: String,
    /// Its rows.
    pub view: SessionView,
    /// The number of the message that is selected.
    pub selected: Option<u64>,
    /// The number of a message that is to be selected as soon as it is here: a hold is told of before its line is read.
    wanted: Option<u64>,
    /// The message that was last selected among the rows, and the filter that showed it.
    seen: Option<(u64, String)>,
    /// The place of the first row on the screen.
    pub top: usize,
    /// New messages are selected as they come.
    pub follows: bool,
    /// Rows that fit the screen, as it was last drawn.
    pub height: usize,
    /// Which row is on which line of the screen, as it was last drawn.
    pub drawn_places: Vec<Option<usize>>,
    /// The selected message.
    pub detail: Option<Detail>,
    /// Whether HTTP heads are folded.
    pub heads: HeadFolding,
    /// Replays by the number of the message that was sent again: the number of the new request, and of its answer.
    pub replays: BTreeMap<u64, (u64, Option<u64>)>,
}

/// While messages rush by, so much of a body is laid out: nobody scrolls in it, and a frame must not wait.
const AT_A_GLANCE: usize = 32 * 1024;

impl Tab {
    /// Looks at a record.
    pub fn open(path: PathBuf) -> Tab {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Tab::new(name.to_string_lossy().into_owned(), SessionView::open(path))
    }

    /// Looks at a view.
    pub fn new(name: String, view: SessionView) -> Tab {
        Tab {
            name,
            view,
            selected: None,
            wanted: None,
            seen: None,
            top: 0,
            follows: true,
            height: 1,
            drawn_places: Vec::new(),
            detail: None,
            heads: HeadFolding::default(),
            replays: BTreeMap::new(),
        }
    }

    /// Takes in what is new. True: the screen has changed.
    pub fn poll(&mut self) -> bool {
        let changed = self.view.poll();
        if changed {
            if let Some(wanted) = self.wanted {
                self.select(wanted);
            }
            if self.follows {
                self.select_place(self.view.len().saturating_sub(1));
            }
            self.keep_selection();
            // A verdict on what is shown, or on its way.
            self.reload();
        }
        changed
    }

    /// Shows only what this filter chooses; see [`SessionView::set_filter`].
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        self.view.set_filter(text)?;
        self.keep_selection();
        Ok(())
    }

    /// Keeps the selection where it was, or near by if another filter hides that. Where nothing matches, nothing is selected.
    fn keep_selection(&mut self) {
        let Some((wanted, filter)) = &self.seen else {
            return;
        };
        if self.view.place_of(*wanted).is_some() {
            return self.note_selected(*wanted);
        }
        // It has stopped matching, because something was decided about it: the next key must not meet another message.
        let is_same = filter == self.view.filter() && self.selected == Some(*wanted);
        if is_same && self.view.message_with_context(*wanted).is_ok() {
            return;
        }
        match self.view.nearest(*wanted) {
            Some(nearest) => self.select_place(nearest),
            None if self.matches_nothing() => self.selected = None,
            None => {}
        }
    }

    /// Whether there are messages, and the filter shows none of them.
    pub fn matches_nothing(&self) -> bool {
        self.view.total() > 0 && self.view.is_empty() && self.view.searching().is_none()
    }

    fn note_selected(&mut self, sequence: u64) {
        self.selected = Some(sequence);
        match &mut self.seen {
            Some((number, filter)) if filter == self.view.filter() => *number = sequence,
            seen => *seen = Some((sequence, self.view.filter().to_owned())),
        }
    }

    /// The place of the selected row.
    pub fn place(&self) -> Option<usize> {
        self.selected
            .and_then(|selected| self.view.place_of(selected))
    }

    /// Selects by place.
    pub fn select_place(&mut self, place: usize) {
        let last = self.view.len().saturating_sub(1);
        if let Some(sequence) = self.view.sequence_at(place.min(last)) {
            self.note_selected(sequence);
        }
    }

    /// Selects by number, now or as soon as the message is here, unless the user goes elsewhere before.
    pub fn select_soon(&mut self, sequence: u64) {
        if !self.select(sequence) {
            self.wanted = Some(sequence);
        }
    }

    /// Moves the selection.
    pub fn move_by(&mut self, by: isize) {
        self.wanted = None;
        let near = || {
            self.selected
                .and_then(|selected| self.view.nearest(selected))
        };
        let place = self.place().or_else(near).unwrap_or(0);
        self.select_place(place.saturating_add_signed(by));
        self.follows = by > 0 && self.follows && self.is_at_end();
    }

    /// Whether the last row is selected.
    pub fn is_at_end(&self) -> bool {
        self.place()
            .is_none_or(|place| place + 1 >= self.view.len())
    }

    /// Selects by number. False: the filter hides it, or there is no such message.
    pub fn select(&mut self, sequence: u64) -> bool {
        let is_there = self.view.place_of(sequence).is_some();
        if is_there {
            self.note_selected(sequence);
            self.wanted = None;
            self.follows = false;
        }
        is_there
    }

    /// Has the selected message in detail, as the screen is about to be drawn.
    pub fn show(&mut self) {
        let selected = self.selected;
        if self.detail.as_ref().map(|detail| detail.sequence) != selected {
            let most = if self.follows { AT_A_GLANCE } else { LAID_OUT };
            let new = |sequence| {
                let told = self.view.carried_message(sequence);
                Detail::new(
                    sequence,
                    told,
                    self.view.answer_of_call(sequence),
                    self.heads,
                    most,
                )
            };
            self.detail = selected.map(new);
        } else if let Some(detail) = &mut self.detail
            && !self.follows
        {
            detail.lay_out_whole();
        }
    }

    /// Shows one row for each call, or for each message. The selection stays.
    pub fn toggle_calls(&mut self) -> RowGrouping {
        let grouping = match self.view.grouping() {
            RowGrouping::Messages => RowGrouping::Calls,
            RowGrouping::Calls => RowGrouping::Messages,
        };
        // Of an answer the whole call is shown.
        if grouping == RowGrouping::Calls
            && let Some(request) = self
                .selected
                .and_then(|selected| self.view.request_of(selected))
        {
            self.note_selected(request);
        }
        self.view.set_grouping(grouping);
        // With its answer, or without.
        self.detail = None;
        self.keep_selection();
        grouping
    }

    /// Shows HTTP heads, or folds them, here and in the messages that are opened next.
    pub fn toggle_heads(&mut self) {
        self.heads = match self.heads {
            HeadFolding::Folded => HeadFolding::Open,
            HeadFolding::Open => HeadFolding::Folded,
        };
        if let Some(detail) = &mut self.detail {
            detail.fold_heads(self.heads);
        }
    }

    /// The first row on the screen, so that the selected one is on it.
    pub fn scroll(&mut self, height: usize) -> usize {
        self.height = height.max(1);
        let place = self.place().unwrap_or(0);
        let last_top = self.view.len().saturating_sub(self.height);
        self.top = self
            .top
            .clamp((place + 1).saturating_sub(self.height), place)
            .min(last_top);
        self.top
    }

    fn reload(&mut self) {
        if let Some(detail) = &mut self.detail {
            let told = self.view.message_with_context(detail.sequence);
            detail.renew(told, self.view.answer_of_call(detail.sequence));
        }
    }
}
