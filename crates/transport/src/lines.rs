//! Newline-framed JSON-RPC over any byte stream: the stdio transport's two halves.
//!
//! Own code instead of a codec, because every byte must survive (empty lines, invalid UTF-8, a last line without
//! newline) and because all lines that one read delivers travel together to one write.

use std::io;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use mcp_proxy_core::{
    BoxFuture, FrameReader, FrameWriter, LinkEnd, MemoryBudget, MemoryPermit, OutgoingFrame,
    OverBudget,
};
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, Id, LineEnd, LineSplitter, LineUnit, Message, MessageEnds, Origin,
    Side, StreamId, TransportEnvelope, error_response,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::refused_message::is_awaited;

const READ_SIZE: usize = 64 * 1024;
/// With less room than this in the buffer, the next read gets a new one.
const READ_MIN: usize = 16 * 1024;
/// A longer message is written as it is. Shorter ones are copied together, so that one write takes them all.
const LARGE: usize = 64 * 1024;

/// Reads lines as frames.
pub struct LineReader<R> {
    io: R,
    side: Side,
    max: usize,
    buffer: BytesMut,
    splitter: LineSplitter,
    /// For a line whose end has not come.
    memory: MemoryPermit,
    units: Vec<LineUnit>,
    /// A line that was given up, until its end.
    refused: Option<RefusedLine>,
    refusals: Vec<Message>,
    ended: bool,
}

/// A line that is larger than allowed, or does not fit into memory.
#[derive(Default)]
struct RefusedLine {
    over: Option<OverBudget>,
    /// Its front told who waits for it.
    is_answered: bool,
}

impl<R: AsyncRead + Unpin + Send> LineReader<R> {
    /// Lines from `side`. One of more than `max` bytes, or that `memory` has no room for, is refused.
    pub fn new(io: R, side: Side, max: usize, memory: &MemoryBudget) -> LineReader<R> {
        LineReader {
            io,
            side,
            max,
            buffer: BytesMut::new(),
            splitter: LineSplitter::new(max),
            memory: memory.permit(),
            units: Vec::new(),
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
                self.buffer.reserve(READ_SIZE);
            }
            // A reset pipe or socket is an end like any other; what was read before stands.
            let read = self.io.read_buf(&mut self.buffer).await.unwrap_or(0);
            if read == 0 {
                self.ended = true;
                self.splitter.finish(&mut self.units);
            } else {
                let bytes = self.buffer.split().freeze();
                self.splitter.push(bytes, &mut self.units);
            }
            self.take_units(into);
            let over = self.memory.resize(self.splitter.held()).err();
            if over.is_some() {
                self.splitter.give_up();
            }
            self.begin_refusal(over, into);
        }
        Ok(())
    }

    fn take_units(&mut self, into: &mut Vec<Frame>) {
        // Put back below: the next read fills it again without an allocation.
        let mut units = std::mem::take(&mut self.units);
        for unit in units.drain(..) {
            match unit {
                LineUnit::Line { wire, message } => {
                    let end = line_end(&wire[message.len()..]);
                    into.push(Frame::new(
                        StreamId::Only,
                        self.side.into(),
                        TransportEnvelope::Line(end),
                        Body::Message(Message::parse(message)),
                    ));
                }
                LineUnit::GivenUp(ends) => self.finish_refusal(&ends, into),
            }
        }
        self.units = units;
    }

    /// Answers a line that was given up just now, if its front tells whom.
    fn begin_refusal(&mut self, over: Option<OverBudget>, into: &mut Vec<Frame>) {
        let Some(ends) = self.splitter.given_up() else {
            return;
        };
        if self.refused.is_some() {
            return;
        }
        let head = ends.front_head();
        let is_answered = head.id.is_some() && is_awaited(self.side, &head);
        self.refused = Some(RefusedLine { over, is_answered });
        if is_answered {
            self.refuse(over, head.id.as_ref(), into);
        }
    }

    /// A line that was given up has ended.
    fn finish_refusal(&mut self, ends: &MessageEnds, into: &mut Vec<Frame>) {
        let refused = self.refused.take().unwrap_or_default();
        let head = ends.head();
        if !refused.is_answered && is_awaited(self.side, &head) {
            self.refuse(refused.over, head.id.as_ref(), into);
        }
    }

    /// What a server sent is answered onward in its place, what a client sent is answered back.
    fn refuse(&mut self, over: Option<OverBudget>, id: Option<&Id>, into: &mut Vec<Frame>) {
        let answer = match over {
            Some(over) => over.answer(id),
            None => {
                let text = too_large_text(self.side, self.max);
                error_response(id, ErrorCode::TOO_LARGE, &text, None)
            }
        };
        match self.side {
            Side::Client => self.refusals.push(answer),
            Side::Server => into.push(Frame::message(StreamId::Only, Origin::Proxy, answer)),
        }
    }
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
pub(crate) fn too_large(side: Side, max: usize) -> LinkEnd {
    LinkEnd::failed(side, ErrorCode::TOO_LARGE, too_large_text(side, max))
}

fn too_large_text(side: Side, max: usize) -> String {
    format!("the {side} sent a message of more than {max} bytes (--max-message)")
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
        let mut sent = 0;
        if let Err(error) = self.write_lines(frames, &mut sent).await {
            self.buffer.clear();
            let unwritten = first_unwritten(frames, sent);
            frames.drain(..unwritten);
            return Err(error.map_or(LinkEnd::Closed, |error| gone(self.side, &error)));
        }
        frames.clear();
        Ok(())
    }

    /// Writes all lines and counts the bytes that were taken. Fails without an error if the writer is closed.
    async fn write_lines(
        &mut self,
        frames: &[OutgoingFrame],
        sent: &mut usize,
    ) -> Result<(), Option<io::Error>> {
        let io = self.io.as_mut().ok_or(None)?;
        for outgoing in frames {
            let (OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. }) = outgoing
            else {
                continue;
            };
            let Body::Message(message) = &frame.body else {
                continue;
            };
            let end = match frame.envelope {
                TransportEnvelope::Line(end) => end,
                _ => LineEnd::Lf,
            };
            if std::mem::take(&mut self.unterminated) {
                self.buffer.push(b'\n');
            }
            if message.len() > LARGE {
                write_counted(io, &self.buffer, sent).await?;
                self.buffer.clear();
                write_counted(io, message.raw(), sent).await?;
            } else {
                self.buffer.extend_from_slice(message.raw());
            }
            self.buffer.extend_from_slice(end.as_bytes());
            self.unterminated = end == LineEnd::Missing;
        }
        write_counted(io, &self.buffer, sent).await?;
        self.buffer.clear();
        self.buffer.shrink_to(LARGE);
        io.flush().await?;
        Ok(())
    }
}

/// Writes all bytes and counts those that were taken, also before a failure.
async fn write_counted(
    io: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    sent: &mut usize,
) -> io::Result<()> {
    let end = *sent + bytes.len();
    while *sent < end {
        match io.write(&bytes[bytes.len() - (end - *sent)..]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => *sent += taken,
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
        if let Body::Message(message) = &frame.body {
            end += message.len();
            if bytes < end {
                return place;
            }
            end += 1;
        }
    }
    frames.len()
}

fn gone(side: Side, error: &io::Error) -> LinkEnd {
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
}
