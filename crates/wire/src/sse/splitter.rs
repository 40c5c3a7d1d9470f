//! The splitter: collects a block until its empty line, unless its data is over the cut size.

use bytes::{Bytes, BytesMut};

use super::block::{self, BOM, SseLine};
use super::cut_through_event::{BlockPosition, CutThroughEvent};
use super::{SseEvent, SseUnit};
use crate::line::front;
use crate::{Chunk, Limits};

/// Cuts what is pushed into events.
///
/// The end of a block is told at once. One thing cannot be known at once: whether LF follows a CR that is the last
/// byte so far. If lines of the stream end in CRLF the LF is waited for; if they end in CR the event goes out, and
/// should LF come after all it follows as a block without fields.
#[derive(Debug)]
pub struct SseSplitter {
    limits: Limits,
    /// The block that is being collected, when it did not come in one push.
    held: BytesMut,
    progress: BlockProgress,
    /// What was used last to end a line.
    ending: SseLineEnd,
    /// A block was ended by a CR that was the last byte so far.
    after_cr: bool,
    /// No block was handed out yet, so a byte order mark may come.
    first: bool,
    streaming: Option<CutThroughEvent>,
}

/// How far the block that is being collected was looked at, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct BlockProgress {
    /// Everything before this was looked at.
    at: usize,
    /// Where the current line begins.
    line: usize,
    /// The length of the data in the finished lines, joins included.
    data: usize,
    has_data: bool,
    has_fields: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SseLineEnd {
    Lf,
    CrLf,
    Cr,
}

enum BlockStep {
    /// The block ends before this index.
    End(usize),
    /// The bytes before this index take the data over the cut size.
    Cut(usize),
    More,
}

impl SseSplitter {
    /// A splitter at the beginning of a stream.
    pub fn new(limits: Limits) -> SseSplitter {
        SseSplitter {
            limits: limits.settled(),
            held: BytesMut::new(),
            progress: BlockProgress::default(),
            ending: SseLineEnd::Lf,
            after_cr: false,
            first: true,
            streaming: None,
        }
    }

    /// Takes the next bytes of the stream and appends what they complete to `out`.
    pub fn push(&mut self, data: impl Into<Bytes>, out: &mut Vec<SseUnit>) {
        let mut data = data.into();
        while !data.is_empty() {
            if let Some(stream) = &mut self.streaming {
                let done = stream.take(&mut data, &mut self.ending, out);
                if let Some(end) = done {
                    self.after_cr = end.after_cr;
                    self.streaming = None;
                }
            } else if std::mem::take(&mut self.after_cr) && data.starts_with(b"\n") {
                self.ending = SseLineEnd::CrLf;
                out.push(SseUnit::Event(SseEvent {
                    wire: data.split_to(1),
                    ..SseEvent::default()
                }));
            } else {
                data = self.collect(data, out);
            }
        }
    }

    /// How many bytes of an unfinished block wait for its end.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up the block that is being collected. Returns what was held of its data; the rest of the block follows as
    /// [`SseUnit::More`] and [`SseUnit::Close`].
    pub fn give_up(&mut self, out: &mut Vec<SseUnit>) -> Bytes {
        let held = self.leave_block(&mut Bytes::new(), CutThroughEvent::new);
        let rest = self.held.split().freeze();
        self.push(rest, out);
        held
    }

    /// The stream has ended: an unfinished block comes out with `partial` set, and an event that was cut through gets
    /// its `Close`.
    pub fn finish(&mut self, out: &mut Vec<SseUnit>) {
        if let Some(stream) = self.streaming.take() {
            stream.finish(out);
        } else if !self.held.is_empty() {
            // A block that only waited for the LF behind its last CR is complete.
            let progress = self.progress;
            let content = content(&self.held, progress.line, progress.at, self.first);
            let partial = !(progress.at < self.held.len() && content.is_empty());
            let wire = self.held.split().freeze();
            let mut event = self.event(wire);
            event.partial = partial;
            self.deliver_last(event, out);
        }
        *self = SseSplitter::new(self.limits);
    }

    /// A last line that is just the name `data` lengthens the data only now that the stream has ended: if that takes
    /// it over the limit, the event comes out as one that is cut through, like any other of its length.
    fn deliver_last(&self, mut event: SseEvent, out: &mut Vec<SseUnit>) {
        match event.data.take() {
            Some(message) if message.len() > self.limits.cut => {
                let wire = std::mem::take(&mut event.wire);
                out.push(SseUnit::Open {
                    head: event,
                    chunk: Chunk { wire, message },
                });
                out.push(SseUnit::Close(Chunk::framing(Bytes::new())));
            }
            data => {
                event.data = data;
                out.push(SseUnit::Event(event));
            }
        }
    }

    /// Works on the blocks in `data` until it is used up or a block has to be streamed; returns what is left.
    fn collect(&mut self, mut data: Bytes, out: &mut Vec<SseUnit>) -> Bytes {
        if !self.held.is_empty() {
            self.held.extend_from_slice(&data);
            data.clear();
        }
        loop {
            let block: &[u8] = if self.held.is_empty() {
                &data
            } else {
                &self.held
            };
            if block.is_empty() {
                return data;
            }
            let (length, step) = (
                block.len(),
                self.progress
                    .step(block, self.first, self.limits.cut, &mut self.ending),
            );
            match step {
                BlockStep::End(end) if end > self.limits.max => {
                    let wire = self.split_to(&mut data, end);
                    let front = self.front_of(wire);
                    out.push(SseUnit::TooLarge { seen: end, front });
                }
                BlockStep::End(end) => {
                    self.after_cr = end == length && block[end - 1] == b'\r';
                    let wire = self.split_to(&mut data, end);
                    let event = self.event(wire);
                    out.push(SseUnit::Event(event));
                }
                BlockStep::Cut(end) => {
                    let wire = self.split_to(&mut data, end);
                    self.open(wire, out);
                    return self.rest(data);
                }
                BlockStep::More if length > self.limits.max => {
                    let (seen, front) = (
                        length,
                        front(&self.leave_block(&mut data, CutThroughEvent::silent)),
                    );
                    out.push(SseUnit::TooLarge { seen, front });
                    return self.rest(data);
                }
                BlockStep::More => {
                    self.release_comments(&mut data, out);
                    if self.held.is_empty() {
                        self.held.extend_from_slice(&data);
                        data.clear();
                    }
                    return data;
                }
            }
        }
    }

    /// Comment lines in front of a block belong to no event: they need not wait for its end.
    fn release_comments(&mut self, data: &mut Bytes, out: &mut Vec<SseUnit>) {
        let BlockProgress { at, line, .. } = self.progress;
        if !self.progress.has_fields && line > 0 {
            let wire = self.split_to(data, line);
            let event = self.event(wire);
            out.push(SseUnit::Event(event));
            self.progress.at = at - line;
        }
    }

    fn open(&mut self, wire: Bytes, out: &mut Vec<SseUnit>) {
        let line = memchr::memrchr2(b'\r', b'\n', &wire).map_or(0, |end| end + 1);
        let place = match content(&wire, line, wire.len(), self.first) {
            b"data:" => BlockPosition::Colon,
            _ => BlockPosition::Value,
        };
        let mut head = self.event(wire.clone());
        let message = head.data.take().unwrap_or_default();
        head.wire = Bytes::new();
        out.push(SseUnit::Open {
            head,
            chunk: Chunk { wire, message },
        });
        self.streaming = Some(CutThroughEvent::new(place));
    }

    /// Collects no more of a block, whose rest is handed out or skipped. Returns the data in what was collected.
    fn leave_block(
        &mut self,
        data: &mut Bytes,
        rest: fn(BlockPosition) -> CutThroughEvent,
    ) -> Bytes {
        let BlockProgress { at, line, .. } = self.progress;
        let wire = self.split_to(data, at);
        let place = match content(&wire, line, at, self.first) {
            b"" => BlockPosition::Start,
            b"data:" => BlockPosition::Colon,
            line if line.starts_with(b"data:") => BlockPosition::Value,
            line if b"data".starts_with(line) => BlockPosition::Name(line.len()),
            _ => BlockPosition::Other,
        };
        self.streaming = Some(rest(place));
        self.event(wire).data.unwrap_or_default()
    }

    fn front_of(&mut self, wire: Bytes) -> Bytes {
        front(&self.event(wire).data.unwrap_or_default())
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
        if self.held.is_empty() {
            data.split_to(end)
        } else {
            self.held.split_to(end).freeze()
        }
    }

    /// What was not used, wherever it lies.
    fn rest(&mut self, data: Bytes) -> Bytes {
        if self.held.is_empty() {
            data
        } else {
            self.held.split().freeze()
        }
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
    /// Looks at the lines that were not looked at yet.
    fn step(
        &mut self,
        block: &[u8],
        first: bool,
        cut: usize,
        ending: &mut SseLineEnd,
    ) -> BlockStep {
        loop {
            let Some(end) =
                memchr::memchr2(b'\r', b'\n', &block[self.at..]).map(|end| self.at + end)
            else {
                self.at = block.len();
                let unfinished = content(block, self.line, self.at, first);
                // Only the first bytes are looked at, since this runs again with every push.
                let is_data = unfinished.starts_with(b"data:");
                return if is_data && self.data_with(block::parse_line(unfinished)) > cut {
                    BlockStep::Cut(self.at)
                } else {
                    BlockStep::More
                };
            };
            self.at = end;
            let line = block::parse_line(content(block, self.line, end, first));
            let data = self.data_with(line);
            if data > cut {
                return BlockStep::Cut(end);
            }
            let (next, ended_by) = match (block[end], block.get(end + 1)) {
                (b'\n', _) => (end + 1, SseLineEnd::Lf),
                (_, Some(b'\n')) => (end + 2, SseLineEnd::CrLf),
                (_, Some(_)) => (end + 1, SseLineEnd::Cr),
                (_, None) if line == SseLine::Blank && *ending != SseLineEnd::CrLf => {
                    (end + 1, SseLineEnd::Cr)
                }
                (_, None) => return BlockStep::More,
            };
            *ending = ended_by;
            self.at = next;
            self.line = next;
            self.data = data;
            match line {
                SseLine::Blank => return BlockStep::End(next),
                SseLine::Comment => {}
                SseLine::Data(_) => (self.has_data, self.has_fields) = (true, true),
                SseLine::Other(..) => self.has_fields = true,
            }
        }
    }

    /// How long the data is with `line`.
    fn data_with(&self, line: SseLine<'_>) -> usize {
        match line {
            SseLine::Data(value) => self.data + usize::from(self.has_data) + value.len(),
            _ => self.data,
        }
    }
}
