//! One session on the screen: its rows, which of them is selected, and that message in detail.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::PathBuf;

use mcp_proxy_session::{FilterError, MessageWithContext, RawBody};

use crate::source::SessionView;
use crate::text::{BodyLayout, Folds, LAID_OUT};

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
    /// The selected message.
    pub detail: Option<Detail>,
    /// Replays by the number of the message that was sent again: the number of the new request, and of its answer.
    pub replays: BTreeMap<u64, (u64, Option<u64>)>,
}

/// Which bytes of a message are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyVersion {
    /// Those that were forwarded.
    #[default]
    Sent,
    /// Those that were received.
    Received,
}

/// A message in detail.
pub struct Detail {
    /// Its number.
    pub sequence: u64,
    /// All that is known of it, or why it cannot be read.
    pub told: Result<MessageWithContext, String>,
    /// Its bytes, laid out.
    pub body: BodyLayout,
    /// Which bytes.
    pub shown: BodyVersion,
    /// What is folded.
    pub folds: Folds,
    /// The lines that are drawn, by their place in the body.
    pub lines: Vec<usize>,
    /// The line the cursor is on, among those.
    pub cursor: usize,
    /// The first line on the screen, among those.
    pub top: usize,
    /// Columns that are shifted out to the left.
    pub shift: usize,
    /// Lines that fit the screen, as it was last drawn.
    pub height: usize,
    /// So much of the body is laid out.
    most: usize,
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
            detail: None,
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
            let new =
                |sequence| Detail::new(sequence, self.view.message_with_context(sequence), most);
            self.detail = selected.map(new);
        } else if let Some(detail) = &mut self.detail
            && !self.follows
            && detail.most < LAID_OUT
        {
            detail.most = LAID_OUT;
            detail.lay_out();
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
            detail.renew(told);
        }
    }
}

impl Detail {
    fn new(sequence: u64, told: Result<MessageWithContext, String>, most: usize) -> Detail {
        let mut detail = Detail {
            sequence,
            body: BodyLayout::of(b""),
            told,
            shown: BodyVersion::Sent,
            folds: Folds::default(),
            lines: Vec::new(),
            cursor: 0,
            top: 0,
            shift: 0,
            height: 1,
            most,
        };
        detail.lay_out();
        detail
    }

    /// Takes newer facts. The body is laid out again only if it is another.
    fn renew(&mut self, told: Result<MessageWithContext, String>) {
        let before = self.told.as_ref().map(|told| told.message.modified).ok();
        let after = told.as_ref().map(|told| told.message.modified).ok();
        self.told = told;
        if before != after {
            self.lay_out();
        }
    }

    /// Shows the bytes as received, or as forwarded.
    pub fn turn(&mut self) -> BodyVersion {
        self.shown = match self.shown {
            BodyVersion::Sent => BodyVersion::Received,
            BodyVersion::Received => BodyVersion::Sent,
        };
        self.lay_out();
        self.shown
    }

    /// The bytes that are shown.
    pub fn raw(&self) -> Option<&RawBody> {
        let message = &self.told.as_ref().ok()?.message;
        match self.shown {
            BodyVersion::Received => message.original_raw.as_ref().or(Some(&message.raw)),
            BodyVersion::Sent => Some(&message.raw),
        }
    }

    fn lay_out(&mut self) {
        self.body = match (&self.told, self.raw()) {
            (Err(why), _) => BodyLayout::of(format!("({why})").as_bytes()),
            (_, Some(raw)) => beginning_of(raw, self.most),
            (_, None) => BodyLayout::of(b""),
        };
        self.folds = Folds::default();
        self.fold_changed();
    }

    /// Draws other lines, because something was folded or unfolded.
    pub fn fold_changed(&mut self) {
        self.lines = self.body.shown(&self.folds);
        self.cursor = self.cursor.min(self.lines.len().saturating_sub(1));
    }

    /// The line of the body that the cursor is on.
    pub fn line(&self) -> Option<usize> {
        self.lines.get(self.cursor).copied()
    }

    /// Moves the cursor.
    pub fn move_by(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
    }

    /// Puts the cursor on a line of the body, which is unfolded if need be.
    pub fn go_to(&mut self, line: usize) {
        if self.lines.binary_search(&line).is_err() {
            self.folds.reveal(&self.body, line);
            self.fold_changed();
        }
        if let Ok(place) = self.lines.binary_search(&line) {
            self.cursor = place;
        }
    }

    /// The first line on the screen, so that the cursor is on it.
    pub fn scroll(&mut self, height: usize) -> usize {
        self.height = height.max(1);
        self.top = self
            .top
            .clamp((self.cursor + 1).saturating_sub(self.height), self.cursor);
        self.top
    }
}

/// The bytes of a message, laid out; why not, if they cannot be had.
pub(crate) fn body_of(raw: &RawBody) -> BodyLayout {
    beginning_of(raw, LAID_OUT)
}

fn beginning_of(raw: &RawBody, most: usize) -> BodyLayout {
    match raw {
        RawBody::Lost { len } => {
            BodyLayout::of(format!("({len} bytes that were not stored)").as_bytes())
        }
        RawBody::Side { len, .. } if *len > most as u64 => match beginning(raw, most) {
            Ok(start) => BodyLayout::of_start(&start, *len),
            Err(error) => BodyLayout::of(format!("(the body cannot be read: {error})").as_bytes()),
        },
        raw => match raw.load() {
            Ok(bytes) if bytes.len() > most => {
                BodyLayout::of_start(&bytes[..most], bytes.len() as u64)
            }
            Ok(bytes) => BodyLayout::of(&bytes),
            Err(error) => BodyLayout::of(format!("(the body cannot be read: {error})").as_bytes()),
        },
    }
}

/// The rest of a large body is not read.
fn beginning(raw: &RawBody, most: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    raw.reader()?.take(most as u64).read_to_end(&mut start)?;
    Ok(start)
}
