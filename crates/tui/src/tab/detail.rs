//! A message in detail: its bytes laid out, what carried it above them, what is folded, and where the cursor is.

use mcp_proxy_session::{HttpHead, MessageProblem, MessageWithContext, RawBody};

use crate::text::{BodyLayout, Folds, LAID_OUT, TextRow, short_time};

/// Which bytes of a message are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyVersion {
    /// Those that were forwarded.
    #[default]
    Sent,
    /// Those that were received.
    Received,
}

/// Whether HTTP heads are folded when a message is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadFolding {
    /// Only their first lines are shown.
    #[default]
    Folded,
    /// All headers are shown.
    Open,
}

/// A message with the HTTP head that carried it.
pub struct CarriedMessage {
    /// The message.
    pub told: MessageWithContext,
    /// Its own head, or that of its event stream.
    pub http: Option<HttpHead>,
}

/// A message in detail.
pub struct Detail {
    /// Its number.
    pub sequence: u64,
    /// All that is known of it, or why it cannot be read.
    pub told: Result<MessageWithContext, String>,
    /// The HTTP head that carried it.
    pub http: Option<HttpHead>,
    /// Its answer, where calls are shown and not messages.
    pub answer: Option<CarriedMessage>,
    /// What is wrong with it, or with its answer.
    pub problem: Option<MessageProblem>,
    /// Its bytes, laid out, with the head above and the answer below.
    pub body: BodyLayout,
    /// Which bytes.
    pub shown: BodyVersion,
    /// What is folded.
    pub folds: Folds,
    /// The rows that are drawn: all lines that no fold hides.
    pub rows: Vec<TextRow>,
    /// The row the cursor is on.
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
    /// Columns that are shifted out to the left, where lines are cut.
    pub shift: usize,
    /// Rows that fit the screen, as it was last drawn.
    pub height: usize,
    /// The columns that lines are wrapped at.
    columns: Option<usize>,
    /// So much of the body is laid out.
    most: usize,
    heads: HeadFolding,
}

impl Detail {
    pub(super) fn new(
        sequence: u64,
        told: Result<CarriedMessage, String>,
        answer: Option<CarriedMessage>,
        heads: HeadFolding,
        most: usize,
    ) -> Detail {
        let (told, http) = match told {
            Ok(carried) => (Ok(carried.told), carried.http),
            Err(why) => (Err(why), None),
        };
        let mut detail = Detail {
            sequence,
            body: BodyLayout::of(b""),
            told,
            http,
            answer,
            problem: None,
            shown: BodyVersion::Sent,
            folds: Folds::default(),
            rows: Vec::new(),
            cursor: 0,
            top: 0,
            shift: 0,
            height: 1,
            columns: None,
            most,
            heads,
        };
        detail.note_problem();
        detail.lay_out();
        detail
    }

    /// Takes newer facts. The body is laid out again only if it is another.
    pub(super) fn renew(
        &mut self,
        told: Result<MessageWithContext, String>,
        answer: Option<CarriedMessage>,
    ) {
        let is_modified = |told: &MessageWithContext| told.message.modified;
        let version = |detail: &Detail| {
            (
                detail.told.as_ref().map(is_modified).ok(),
                detail
                    .answer
                    .as_ref()
                    .map(|answer| is_modified(&answer.told)),
            )
        };
        let before = version(self);
        self.told = told;
        self.answer = answer;
        self.note_problem();
        if before != version(self) {
            self.lay_out();
        }
    }

    fn note_problem(&mut self) {
        let own = self.told.as_ref().ok();
        let answer = self.answer.as_ref().map(|answer| &answer.told);
        let mut both = own.into_iter().chain(answer);
        self.problem = both.find_map(MessageWithContext::problem);
    }

    /// Lays out the whole body, if only its beginning was.
    pub(super) fn lay_out_whole(&mut self) {
        if self.most < LAID_OUT {
            self.most = LAID_OUT;
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
        let body = match (&self.told, self.raw()) {
            (Err(why), _) => BodyLayout::of(format!("({why})").as_bytes()),
            (_, Some(raw)) => beginning_of(raw, self.most),
            (_, None) => BodyLayout::of(b""),
        };
        let sse = self.told.as_ref().ok();
        let sse = sse.and_then(|told| told.message.sse.as_ref());
        let mut body = body.below_head(self.http.as_ref(), sse);
        if let Some(answer) = &self.answer {
            let message = &answer.told.message;
            let latency = message.latency.map(short_time);
            let latency = latency.map_or(String::new(), |time| format!(" after {time}"));
            let heading = format!("── answer #{}{latency} ──", message.sequence);
            let below = beginning_of(&message.raw, self.most);
            let below = below.below_head(answer.http.as_ref(), message.sse.as_ref());
            body = body.above(heading, below);
        }
        self.body = body;
        self.folds = Folds::default();
        self.fold_heads(self.heads);
    }

    /// Folds the HTTP heads, or unfolds them.
    pub fn fold_heads(&mut self, heads: HeadFolding) {
        self.heads = heads;
        for line in self.body.heads() {
            if self.folds.is_folded(*line) != (heads == HeadFolding::Folded) {
                self.folds.toggle(*line);
            }
        }
        self.fold_changed();
    }

    /// Folds everything but the outermost brackets.
    pub fn fold_all(&mut self) {
        self.folds.fold_below(&self.body, 1);
        for line in self.body.heads() {
            self.folds.fold(*line);
        }
        self.fold_changed();
    }

    /// Draws other lines, because something was folded or unfolded.
    pub fn fold_changed(&mut self) {
        let lines = self.body.shown(&self.folds);
        self.rows = self.body.rows(&lines, self.columns);
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
    }

    /// Wraps long lines at this many columns, or cuts them. The cursor and the first row stay at their text.
    pub fn wrap_at(&mut self, columns: Option<usize>) {
        if self.columns == columns {
            return;
        }
        self.columns = columns;
        self.shift = 0;
        let text_at = |rows: &[TextRow], place: usize| {
            let row = rows.get(place);
            row.map_or((0, 0), |row| (row.line, row.from))
        };
        let places = [self.cursor, self.top].map(|place| text_at(&self.rows, place));
        self.fold_changed();
        let [cursor, top] = places.map(|(line, from)| self.row_of(line, from));
        (self.cursor, self.top) = (cursor, top);
    }

    /// The row with this byte of a line of the body; if that is folded, the row before it.
    fn row_of(&self, line: usize, from: usize) -> usize {
        let is_before = |row: &TextRow| (row.line, row.from) <= (line, from);
        self.rows.partition_point(is_before).saturating_sub(1)
    }

    /// The line of the body that the cursor is on.
    pub fn line(&self) -> Option<usize> {
        self.rows.get(self.cursor).map(|row| row.line)
    }

    /// Moves the cursor.
    pub fn move_by(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
    }

    /// Puts the cursor on a line of the body, which is unfolded if need be.
    pub fn go_to(&mut self, line: usize) {
        self.go_to_text(line, 0);
    }

    /// Puts the cursor on the row with this byte of a line of the body.
    pub fn go_to_text(&mut self, line: usize, from: usize) {
        if self
            .rows
            .binary_search_by_key(&line, |row| row.line)
            .is_err()
        {
            self.folds.reveal(&self.body, line);
            self.fold_changed();
        }
        self.cursor = self.row_of(line, from);
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
        RawBody::NotStored { len } => {
            BodyLayout::of(format!("({len} bytes that are not in the record)").as_bytes())
        }
        raw => match raw.bytes().unwrap_or_default() {
            bytes if bytes.len() > most => BodyLayout::of_start(&bytes[..most], bytes.len() as u64),
            bytes => BodyLayout::of(bytes),
        },
    }
}
