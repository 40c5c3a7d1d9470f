//! The splitter: collects a block until its empty line.

use bytes::{Bytes, BytesMut};

use super::block::{self, BOM, SseLine};
use super::{SseEvent, SseUnit};
use crate::MessageEnds;

/// Cuts what is pushed into events.
///
/// The end of a block is told at once. One thing cannot be known at once: whether LF follows a CR that is the last
/// byte so far. If lines of the stream end in CRLF the LF is waited for; if they end in CR the event goes out, and
/// should LF come after all it follows as a block without fields.
#[derive(Debug)]
pub struct SseSplitter {
    max: usize,
    /// The block that is being collected, when it did not come in one push.
    held: BytesMut,
    progress: BlockProgress,
    /// What was used last to end a line.
    ending: SseLineEnd,
    /// A block was ended by a CR that was the last byte so far.
    after_cr: bool,
    /// No block was handed out yet, so a byte order mark may come.
    first: bool,
    /// A block that was given up, until its end.
    skipped: Option<SkippedBlock>,
}

/// How far the block that is being collected was looked at, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct BlockProgress {
    /// Everything before this was looked at.
    at: usize,
    /// Where the current line begins.
    line: usize,
    has_fields: bool,
}

/// A block whose bytes are not kept.
#[derive(Debug)]
struct SkippedBlock {
    /// The ends of its data, unless its end is of no interest. What follows the data belongs to the back end: nearly always
    /// that is white space.
    ends: Option<MessageEnds>,
    /// Nothing of the current line has come.
    is_line_empty: bool,
    /// The last byte was a CR that ended a line: LF may belong to it.
    after_cr: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SseLineEnd {
    Lf,
    CrLf,
    Cr,
}

impl SseSplitter {
    /// A splitter at the beginning of a stream. It gives up blocks of more than `max` bytes.
    pub fn new(max: usize) -> SseSplitter {
        SseSplitter {
            max,
            held: BytesMut::new(),
            progress: BlockProgress::default(),
            ending: SseLineEnd::Lf,
            after_cr: false,
            first: true,
            skipped: None,
        }
    }

    /// Takes the next bytes of the stream and appends what they complete to `out`.
    pub fn push(&mut self, data: impl Into<Bytes>, out: &mut Vec<SseUnit>) {
        let mut data = data.into();
        while !data.is_empty() {
            if let Some(block) = &mut self.skipped {
                if block.skip(&mut data) {
                    self.after_cr = block.after_cr;
                    out.extend(self.skipped.take().and_then(SkippedBlock::finish));
                }
            } else if std::mem::take(&mut self.after_cr) && data.starts_with(b"\n") {
                self.ending = SseLineEnd::CrLf;
                out.push(SseUnit::Event(SseEvent {
                    wire: data.split_to(1),
                    ..SseEvent::default()
                }));
            } else {
                self.collect(&mut data, out);
            }
        }
    }

    /// How many bytes of an unfinished block wait for its end.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up the block that is being collected. The rest of it is skipped, and [`SseUnit::GivenUp`] stands for its end.
    pub fn give_up(&mut self, out: &mut Vec<SseUnit>) {
        let rest = self.skip(Some(MessageEnds::default()));
        self.push(rest, out);
    }

    /// The stream has ended: an unfinished block comes out with `partial` set.
    pub fn finish(&mut self, out: &mut Vec<SseUnit>) {
        if let Some(block) = self.skipped.take() {
            out.extend(block.finish());
        } else if !self.held.is_empty() {
            // A block that only waited for the LF behind its last CR is complete.
            let progress = self.progress;
            let content = content(&self.held, progress.line, progress.at, self.first);
            let partial = !(progress.at < self.held.len() && content.is_empty());
            let wire = std::mem::take(&mut self.held).freeze();
            let event = self.event(wire);
            out.push(SseUnit::Event(SseEvent { partial, ..event }));
        }
        *self = SseSplitter::new(self.max);
    }

    /// Works on the blocks in `data` until it is used up or a block is given up.
    fn collect(&mut self, data: &mut Bytes, out: &mut Vec<SseUnit>) {
        if !self.held.is_empty() {
            self.held.extend_from_slice(data);
            data.clear();
        }
        loop {
            let block: &[u8] = if self.held.is_empty() {
                data
            } else {
                &self.held
            };
            let length = block.len();
            if length == 0 {
                return;
            }
            let end = self.progress.block_end(block, self.first, &mut self.ending);
            match end {
                Some(end) if end > self.max => {
                    let wire = self.split_to(data, end);
                    self.event(wire);
                    out.push(SseUnit::TooLarge);
                }
                Some(end) => {
                    self.after_cr = end == length && block[end - 1] == b'\r';
                    let wire = self.split_to(data, end);
                    let event = self.event(wire);
                    out.push(SseUnit::Event(event));
                }
                None if length > self.max => {
                    out.push(SseUnit::TooLarge);
                    self.hold(data);
                    *data = self.skip(None);
                    return;
                }
                None => {
                    self.release_comments(data, out);
                    self.hold(data);
                    return;
                }
            }
        }
    }

    /// Comment lines in front of a block belong to no event: they need not wait for its end.
    fn release_comments(&mut self, data: &mut Bytes, out: &mut Vec<SseUnit>) {
        let BlockProgress {
            at,
            line,
            has_fields,
        } = self.progress;
        if !has_fields && line > 0 {
            let wire = self.split_to(data, line);
            let event = self.event(wire);
            out.push(SseUnit::Event(event));
            self.progress.at = at - line;
        }
    }

    /// Keeps the beginning of a block for the next push.
    fn hold(&mut self, data: &mut Bytes) {
        if self.held.is_empty() {
            self.held.extend_from_slice(data);
            data.clear();
        }
    }

    /// Collects no more of the block that is held, and remembers its ends if they are asked for. Returns a CR that was not
    /// looked at yet.
    fn skip(&mut self, ends: Option<MessageEnds>) -> Bytes {
        let BlockProgress { at, line, .. } = self.progress;
        let mut held = std::mem::take(&mut self.held).freeze();
        let rest = held.split_off(at);
        let is_line_empty = content(&held, line, at, self.first).is_empty();
        let data = self.event(held).data.unwrap_or_default();
        self.skipped = Some(SkippedBlock {
            ends: ends.map(|mut ends| {
                ends.add(&data);
                ends
            }),
            is_line_empty,
            after_cr: false,
        });
        rest
    }

    /// Reads the block `wire`, after which another block begins.
    fn event(&mut self, wire: Bytes) -> SseEvent {
        let mark = if self.first && wire.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        let mut event = block::parse_block(&wire.slice(mark..));
        event.wire = wire;
        self.first = false;
        self.progress = BlockProgress::default();
        event
    }

    fn split_to(&mut self, data: &mut Bytes, end: usize) -> Bytes {
        match self.held.len() {
            0 => data.split_to(end),
            // All of it: what is left would keep the memory of a large block.
            length if length == end => std::mem::take(&mut self.held).freeze(),
            _ => self.held.split_to(end).freeze(),
        }
    }
}

impl SkippedBlock {
    /// Takes bytes up to the end of the block and leaves the rest in `data`. True at the end.
    fn skip(&mut self, data: &mut Bytes) -> bool {
        while !data.is_empty() {
            if std::mem::take(&mut self.after_cr) && data.starts_with(b"\n") {
                let _ = data.split_to(1);
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', data);
            let line = data.split_to(end.map_or(data.len(), |end| end + 1));
            if let Some(ends) = &mut self.ends {
                ends.add(&line);
            }
            self.after_cr = line.ends_with(b"\r");
            let was_empty = std::mem::replace(&mut self.is_line_empty, end.is_some());
            if was_empty && line.len() == 1 && end.is_some() {
                if self.after_cr && data.starts_with(b"\n") {
                    let _ = data.split_to(1);
                    self.after_cr = false;
                }
                return true;
            }
        }
        false
    }

    fn finish(self) -> Option<SseUnit> {
        self.ends.map(SseUnit::GivenUp)
    }
}

/// A line's content, without the byte order mark that a stream may begin with.
fn content(block: &[u8], start: usize, end: usize, first: bool) -> &[u8] {
    let content = block.get(start..end).unwrap_or_default();
    match content.strip_prefix(BOM) {
        Some(rest) if first && start == 0 => rest,
        _ => content,
    }
}

impl BlockProgress {
    /// Looks at the lines that were not looked at yet. Returns the index behind the block if it ends.
    fn block_end(&mut self, block: &[u8], first: bool, ending: &mut SseLineEnd) -> Option<usize> {
        loop {
            let Some(end) = memchr::memchr2(b'\r', b'\n', &block[self.at..]) else {
                self.at = block.len();
                return None;
            };
            let end = self.at + end;
            self.at = end;
            let line = block::parse_line(content(block, self.line, end, first));
            let (next, ended_by) = match (block[end], block.get(end + 1)) {
                (b'\n', _) => (end + 1, SseLineEnd::Lf),
                (_, Some(b'\n')) => (end + 2, SseLineEnd::CrLf),
                (_, Some(_)) => (end + 1, SseLineEnd::Cr),
                (_, None) if line == SseLine::Blank && *ending != SseLineEnd::CrLf => {
                    (end + 1, SseLineEnd::Cr)
                }
                (_, None) => return None,
            };
            *ending = ended_by;
            self.at = next;
            self.line = next;
            match line {
                SseLine::Blank => return Some(next),
                SseLine::Comment => {}
                SseLine::Data(_) | SseLine::Other(..) => self.has_fields = true,
            }
        }
    }
}
