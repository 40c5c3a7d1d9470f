//! Newline-framed JSON-RPC over any byte stream: the stdio transport's two halves.
//!
//! Own code instead of a codec, because every byte must survive (empty lines, invalid UTF-8, a last line without
//! newline) and because all lines that one read delivers travel together to one write.

use std::os::fd::OwnedFd;

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::{
    BoxFuture, FrameReader, FrameWriter, LinkEnd, MemoryBudget, MemoryPermit, OutgoingFrame,
    run_in_background,
};
use mcp_proxy_wire::{
    Body, Chunk, ErrorCode, Frame, Limits, LineEnd, LineSplitter, LineUnit, Message, Origin, Side,
    StreamId, TransportEnvelope, error_response, read_partial_head,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::refused_message::{RefusedMessage, is_awaited};

const READ_MIN: usize = 16 * 1024;
const READ_START: usize = 64 * 1024;
const READ_MAX: usize = 1024 * 1024;
/// A longer line takes about a millisecond or more to parse.
const LARGE: usize = 2 * 1024 * 1024;

/// Reads lines as frames.
pub struct LineReader<R> {
    io: R,
    side: Side,
    max: usize,
    buffer: BytesMut,
    /// How large the next buffer is, and the largest.
    size: usize,
    size_max: usize,
    splitter: LineSplitter,
    /// For a line whose end has not come.
    memory: MemoryPermit,
    units: Vec<LineUnit>,
    /// Bytes of the message that is being cut through, and its first ones.
    cutting: usize,
    front: Bytes,
    /// Inside a message that grew over the limit while it was cut through.
    skipping: bool,
    /// A line that there was no room for, until its end.
    refused: Option<RefusedMessage>,
    refusals: Vec<Message>,
    ended: bool,
}

impl<R: AsyncRead + Unpin + Send> LineReader<R> {
    /// Lines from `side`. Over `limits.cut` bytes a line is cut through; over `limits.max`, or if `memory` has no room for it, it is
    /// refused.
    pub fn new(io: R, side: Side, limits: Limits, memory: &MemoryBudget) -> LineReader<R> {
        LineReader {
            io,
            side,
            max: limits.max,
            buffer: BytesMut::new(),
            size: READ_START,
            // Where messages are collected, their bytes are copied out of this buffer, and a larger one would only stay behind.
            size_max: match limits.cut {
                usize::MAX => READ_START,
                _ => READ_MAX,
            },
            splitter: LineSplitter::new(limits),
            memory: memory.permit(),
            units: Vec::new(),
            cutting: 0,
            front: Bytes::new(),
            skipping: false,
            refused: None,
            refusals: Vec::new(),
            ended: false,
        }
    }

    async fn fill(&mut self, into: &mut Vec<Frame>) -> Result<(), LinkEnd> {
        while into.is_empty() && self.refusals.is_empty() {
            if self.ended {
                return Err(LinkEnd::Closed);
            }
            if self.buffer.capacity() < READ_MIN {
                self.buffer.reserve(self.size);
            }
            let room = self.buffer.capacity();
            // A reset pipe or socket is an end like any other; what was read before stands.
            let read = self.io.read_buf(&mut self.buffer).await.unwrap_or(0);
            if read == 0 {
                self.ended = true;
                self.splitter.finish(&mut self.units);
            } else {
                // A read that filled the buffer tells of large messages: fewer, larger reads.
                if read == room {
                    self.size = (self.size * 2).min(self.size_max);
                }
                let bytes = self.buffer.split().freeze();
                self.read_refused(&bytes, into);
                self.splitter.push(bytes, &mut self.units);
            }
            self.take_units(into);
            if let Err(over) = self.memory.resize(self.splitter.held()) {
                let refused = RefusedMessage::new(over, &self.splitter.give_up());
                match refused.early_answer(self.side) {
                    Some(answer) => self.refuse(Some(answer), into),
                    None => self.refused = Some(refused),
                }
            }
        }
        Ok(())
    }

    /// More of a line that was given up.
    fn read_refused(&mut self, bytes: &[u8], into: &mut Vec<Frame>) {
        let Some(mut refused) = self.refused.take() else {
            return;
        };
        let end = memchr::memchr(b'\n', bytes);
        refused.add(&bytes[..end.unwrap_or(bytes.len())]);
        match end {
            Some(_) => self.refuse(refused.answer(self.side), into),
            None => self.refused = Some(refused),
        }
    }

    fn take_units(&mut self, into: &mut Vec<Frame>) {
        // Put back below: the next read fills it again without an allocation.
        let mut units = std::mem::take(&mut self.units);
        for unit in units.drain(..) {
            let mut envelope = TransportEnvelope::Line(LineEnd::Lf);
            let body = match unit {
                LineUnit::Line { wire, message } => {
                    envelope = TransportEnvelope::Line(line_end(&wire[message.len()..]));
                    Body::Whole(parse(message))
                }
                LineUnit::More(_) if self.skipping => continue,
                LineUnit::Close(_) if self.skipping => {
                    self.skipping = false;
                    continue;
                }
                LineUnit::Open(chunk) => {
                    self.cutting = chunk.message.len();
                    self.front = chunk.message.clone();
                    Body::Open(chunk)
                }
                LineUnit::More(chunk) => {
                    self.cutting += chunk.message.len();
                    Body::More(chunk)
                }
                LineUnit::Close(chunk) => {
                    envelope =
                        TransportEnvelope::Line(line_end(&chunk.wire[chunk.message.len()..]));
                    self.cutting += chunk.message.len();
                    Body::Close(chunk)
                }
                LineUnit::TooLarge { front, .. } => {
                    self.refuse_too_large(&front, into);
                    continue;
                }
            };
            if self.cutting > self.max {
                self.break_off(body, into);
                continue;
            }
            if matches!(body, Body::Close(_)) {
                self.end_of_cutting();
            }
            into.push(frame(self.side, envelope, body));
        }
        self.units = units;
    }

    /// A message has grown over the limit while it was cut through. What is on its way cannot be taken back: it ends
    /// there as a broken line, the rest is skipped, and the conversation continues.
    fn break_off(&mut self, grown: Body, into: &mut Vec<Frame>) {
        if !matches!(grown, Body::Open(_)) {
            let end = Chunk {
                wire: Bytes::from_static(b"\n"),
                message: Bytes::new(),
            };
            into.push(frame(
                self.side,
                TransportEnvelope::Line(LineEnd::Lf),
                Body::Close(end),
            ));
        }
        self.skipping = !matches!(grown, Body::Close(_));
        let front = self.end_of_cutting();
        self.refuse_too_large(&front, into);
    }

    fn end_of_cutting(&mut self) -> Bytes {
        self.cutting = 0;
        std::mem::take(&mut self.front)
    }

    fn refuse_too_large(&mut self, front: &[u8], into: &mut Vec<Frame>) {
        let (side, max) = (self.side, self.max);
        let text = format!("the {side} sent a message of more than {max} bytes (--max-message)");
        let head = read_partial_head(front, b"");
        let error = || error_response(head.id.as_ref(), ErrorCode::TOO_LARGE, &text, None);
        self.refuse(is_awaited(side, &head).then(error), into);
    }

    /// What a server sent is answered onward in its place, what a client sent is answered back.
    fn refuse(&mut self, answer: Option<Message>, into: &mut Vec<Frame>) {
        match self.side {
            Side::Client => self.refusals.extend(answer),
            Side::Server => {
                let own = |answer| Frame::message(StreamId::Only, Origin::Proxy, answer);
                into.extend(answer.map(own));
            }
        }
    }
}

fn parse(line: Bytes) -> Message {
    match line.len() > LARGE {
        true => run_in_background(|| Message::parse(line)),
        false => Message::parse(line),
    }
}

fn frame(side: Side, envelope: TransportEnvelope, body: Body) -> Frame {
    Frame::new(StreamId::Only, side.into(), envelope, body)
}

impl<R: AsyncRead + Unpin + Send> FrameReader for LineReader<R> {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.fill(into))
    }

    fn refusals(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.refusals)
    }
}

fn line_end(bytes: &[u8]) -> LineEnd {
    match bytes {
        b"\n" => LineEnd::Lf,
        b"\r\n" => LineEnd::CrLf,
        _ => LineEnd::Missing,
    }
}

/// The end of a side that sent a message over the limit.
pub(crate) fn too_large(side: Side, seen: usize, max: usize) -> LinkEnd {
    LinkEnd::failed(
        side,
        ErrorCode::TOO_LARGE,
        format!(
            "the {side} sent a message of more than {max} bytes (--max-message); {seen} were read"
        ),
    )
}

/// Writes frames as lines.
pub struct LineWriter<W> {
    io: Option<W>,
    side: Side,
    buffer: Vec<u8>,
    /// The last line has no newline yet: whatever else follows begins with one.
    unterminated: bool,
    unread: Option<UnreadProbe<W>>,
    /// What is written to, where that tells whether somebody still reads it.
    channel: Option<OwnedFd>,
}

/// How many bytes wait in a pipe.
type UnreadProbe<W> = fn(&W) -> Option<u64>;

impl<W: AsyncWrite + Unpin + Send> LineWriter<W> {
    /// Lines to `side`.
    pub fn new(io: W, side: Side) -> LineWriter<W> {
        LineWriter {
            io: Some(io),
            side,
            buffer: Vec::new(),
            unterminated: false,
            unread: None,
            channel: None,
        }
    }

    /// The same, where `channel` is the pipe or socket that is written to.
    pub(crate) fn with_channel(mut self, channel: OwnedFd) -> LineWriter<W> {
        self.channel = Some(channel);
        self
    }

    /// The same, where this tells how many bytes the peer has not read.
    pub(crate) fn with_unread(mut self, unread: UnreadProbe<W>) -> LineWriter<W> {
        self.unread = Some(unread);
        self
    }

    async fn put(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        let Some(io) = &mut self.io else {
            return Err(LinkEnd::Closed);
        };
        // What has begun to be written in pieces is never known to be unwritten.
        let mut in_buffer = 0;
        for (place, outgoing) in frames.iter().enumerate() {
            let (OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. }) = outgoing
            else {
                continue;
            };
            let opens = matches!(frame.body, Body::Open(_));
            match &frame.body {
                Body::Empty => {}
                Body::Whole(message) => {
                    let end = match frame.envelope {
                        TransportEnvelope::Line(end) => end,
                        _ => LineEnd::Lf,
                    };
                    if std::mem::take(&mut self.unterminated) {
                        self.buffer.push(b'\n');
                    }
                    self.buffer.extend_from_slice(message.raw());
                    self.buffer.extend_from_slice(end.as_bytes());
                    self.unterminated = end == LineEnd::Missing;
                }
                Body::Open(chunk) | Body::More(chunk) | Body::Close(chunk) => {
                    if opens && std::mem::take(&mut self.unterminated) {
                        self.buffer.push(b'\n');
                    }
                    // Large bytes are not copied once more; small ones before them keep their place.
                    let mut written = Ok(());
                    if !self.buffer.is_empty() {
                        written = io.write_all(&self.buffer).await;
                        self.buffer.clear();
                    }
                    if written.is_ok() {
                        written = io.write_all(&chunk.wire).await;
                    }
                    if let Err(error) = written {
                        frames.clear();
                        return Err(gone(self.side, &error));
                    }
                    in_buffer = place + 1;
                    if let Some(last) = chunk.wire.last() {
                        self.unterminated = *last != b'\n';
                    }
                }
            }
        }
        if !self.buffer.is_empty() {
            let written = write_counted(io, &self.buffer).await;
            self.buffer.clear();
            self.buffer.shrink_to(READ_MAX);
            if let Err((bytes, error)) = written {
                let unwritten = first_unwritten(&frames[in_buffer..], bytes);
                frames.drain(..in_buffer + unwritten);
                return Err(gone(self.side, &error));
            }
        }
        frames.clear();
        io.flush().await.map_err(|e| gone(self.side, &e))
    }
}

/// Writes all bytes. A failure says how many were taken before it.
async fn write_counted(
    io: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
) -> Result<(), (usize, std::io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match io.write(&bytes[written..]).await {
            Ok(0) => return Err((written, std::io::ErrorKind::WriteZero.into())),
            Ok(taken) => written += taken,
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// The place of the first frame that the peer cannot have read whole when it was given only this many bytes. A line of which
/// nothing but its newline is missing counts as read: many programs take the end of their input for the end of a line.
fn first_unwritten(frames: &[OutgoingFrame], bytes: usize) -> usize {
    let mut end = 0;
    for (place, outgoing) in frames.iter().enumerate() {
        let (OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. }) = outgoing
        else {
            continue;
        };
        if let Body::Whole(message) = &frame.body {
            end += message.len();
            if bytes < end {
                return place;
            }
            end += 1;
        }
    }
    frames.len()
}

fn gone(side: Side, error: &std::io::Error) -> LinkEnd {
    match side {
        Side::Client => LinkEnd::Closed,
        Side::Server => LinkEnd::failed(
            Side::Server,
            ErrorCode::SERVER_EXITED,
            format!("the server takes no more input ({error})"),
        ),
    }
}

impl<W: AsyncWrite + Unpin + Send> FrameWriter for LineWriter<W> {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(mut io) = self.io.take() {
                drop(io.shutdown().await);
            }
        })
    }

    fn is_peer_gone(&self) -> bool {
        let Some(channel) = &self.channel else {
            return false;
        };
        let mut polled = [PollFd::new(channel, PollFlags::empty())];
        let found = rustix::event::poll(&mut polled, Some(&Timespec::default())).is_ok();
        let ended = PollFlags::ERR | PollFlags::HUP;
        found && polled[0].revents().intersects(ended)
    }

    fn unread(&self) -> Option<u64> {
        self.unread?(self.io.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    /// Takes this many bytes and then no more.
    struct BrokenPipe(usize);

    impl AsyncWrite for BrokenPipe {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Poll::Ready(match taken {
                0 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => Ok(taken),
            })
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn after_a_failure_only_what_was_not_written_is_left() {
        // Two lines of 8 bytes and a newline. Without its newline a line can be read all the same.
        for (taken, left) in [(0, 2), (7, 2), (8, 1), (16, 1), (17, 0)] {
            let mut writer = LineWriter::new(BrokenPipe(taken), Side::Server);
            let message = || Message::parse(r#"{"id":1}"#);
            let frame = || Frame::message(StreamId::Only, Origin::Client, message());
            let mut frames = vec![frame().into(), frame().into()];
            assert!(writer.write(&mut frames).await.is_err());
            assert_eq!(frames.len(), left, "{taken} bytes were taken");
        }
    }

    #[tokio::test]
    async fn the_end_of_a_large_line_is_told_with_its_last_piece() {
        let limits = Limits {
            cut: 16,
            max: 1 << 20,
        };
        let large = format!(r#"{{"id":1,"method":"{}"}}"#, "x".repeat(100));
        for (ending, expected) in [
            ("\n", LineEnd::Lf),
            ("\r\n", LineEnd::CrLf),
            ("", LineEnd::Missing),
        ] {
            let wire = format!("{large}{ending}");
            let mut reader = LineReader::new(
                wire.as_bytes(),
                Side::Client,
                limits,
                &MemoryBudget::default(),
            );
            let mut last = None;
            let mut frames = Vec::new();
            while reader.read(&mut frames).await.is_ok() {
                last = frames.drain(..).last().or(last);
            }
            let last = last.unwrap();
            assert!(matches!(last.body, Body::Close(_)));
            let TransportEnvelope::Line(end) = last.envelope else {
                panic!("{:?}", last.envelope);
            };
            assert_eq!(end, expected, "{ending:?}");
        }
    }
}
