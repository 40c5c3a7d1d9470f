//! Newline-framed JSON-RPC over any byte stream: the stdio transport's two halves.
//!
//! Own code instead of a codec, because every byte must survive (empty lines, invalid UTF-8, a last line without
//! newline) and because all lines that one read delivers travel together to one write.

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::{BoxFuture, FrameReader, FrameWriter, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{
    Body, Chunk, ErrorCode, Frame, Kind, Limits, LineEnd, LineSplitter, LineUnit, Message, Origin,
    Side, StreamId, TransportEnvelope, error_response, read_partial_head,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const READ_MIN: usize = 16 * 1024;
const READ_START: usize = 64 * 1024;
const READ_MAX: usize = 1024 * 1024;

/// Reads lines as frames.
pub struct LineReader<R> {
    io: R,
    side: Side,
    max: usize,
    buffer: BytesMut,
    size: usize,
    splitter: LineSplitter,
    units: Vec<LineUnit>,
    /// Bytes of the message that is being cut through, and its first ones.
    cutting: usize,
    front: Bytes,
    /// Inside a message that grew over the limit while it was cut through.
    skipping: bool,
    refusals: Vec<Message>,
    ended: bool,
}

impl<R: AsyncRead + Unpin + Send> LineReader<R> {
    /// Lines from `side`. Over `limits.cut` bytes a line is cut through, over `limits.max` it is refused.
    pub fn new(io: R, side: Side, limits: Limits) -> LineReader<R> {
        LineReader {
            io,
            side,
            max: limits.max,
            buffer: BytesMut::new(),
            size: READ_START,
            splitter: LineSplitter::new(limits),
            units: Vec::new(),
            cutting: 0,
            front: Bytes::new(),
            skipping: false,
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
                    self.size = (self.size * 2).min(READ_MAX);
                }
                self.splitter
                    .push(self.buffer.split().freeze(), &mut self.units);
            }
            self.take_units(into);
        }
        Ok(())
    }

    fn take_units(&mut self, into: &mut Vec<Frame>) {
        // Put back below: the next read fills it again without an allocation.
        let mut units = std::mem::take(&mut self.units);
        for unit in units.drain(..) {
            let mut envelope = TransportEnvelope::Line(LineEnd::Lf);
            let body = match unit {
                LineUnit::Line { wire, message } => {
                    envelope = TransportEnvelope::Line(line_end(&wire[message.len()..]));
                    Body::Whole(Message::parse(message))
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
                    self.cutting += chunk.message.len();
                    Body::Close(chunk)
                }
                LineUnit::TooLarge { front, .. } => {
                    self.refuse(&front, into);
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
        self.refuse(&front, into);
    }

    fn end_of_cutting(&mut self) -> Bytes {
        self.cutting = 0;
        std::mem::take(&mut self.front)
    }

    /// What a server sent is answered onward in its place, what a client sent is answered back.
    fn refuse(&mut self, front: &[u8], into: &mut Vec<Frame>) {
        let answer = refusal(self.side, front, self.max);
        match self.side {
            Side::Client => self.refusals.extend(answer),
            Side::Server => {
                let own = |answer| Frame::message(StreamId::Only, Origin::Proxy, answer);
                into.extend(answer.map(own));
            }
        }
    }
}

fn frame(side: Side, envelope: TransportEnvelope, body: Body) -> Frame {
    Frame::new(StreamId::Only, side.into(), envelope, body)
}

/// The error that stands for a message over the limit. Nobody waits for one in place of a notification.
fn refusal(side: Side, front: &[u8], max: usize) -> Option<Message> {
    let head = read_partial_head(front, b"");
    let awaited = match side {
        Side::Client => head.kind == Kind::Request || head.id.is_none() && head.method.is_none(),
        Side::Server => head.method.is_none() && head.id.is_some(),
    };
    let text = format!("the {side} sent a message of more than {max} bytes (--max-message)");
    awaited.then(|| error_response(head.id.as_ref(), ErrorCode::TOO_LARGE, &text, None))
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
}

impl<W: AsyncWrite + Unpin + Send> LineWriter<W> {
    /// Lines to `side`.
    pub fn new(io: W, side: Side) -> LineWriter<W> {
        LineWriter {
            io: Some(io),
            side,
            buffer: Vec::new(),
            unterminated: false,
        }
    }

    async fn put(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        let Some(io) = &mut self.io else {
            return Err(LinkEnd::Closed);
        };
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            let opens = matches!(frame.body, Body::Open(_));
            match frame.body {
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
                    if !self.buffer.is_empty() {
                        io.write_all(&self.buffer)
                            .await
                            .map_err(|e| gone(self.side, &e))?;
                        self.buffer.clear();
                    }
                    io.write_all(&chunk.wire)
                        .await
                        .map_err(|e| gone(self.side, &e))?;
                    if let Some(last) = chunk.wire.last() {
                        self.unterminated = *last != b'\n';
                    }
                }
            }
        }
        if !self.buffer.is_empty() {
            let written = io.write_all(&self.buffer).await;
            self.buffer.clear();
            self.buffer.shrink_to(READ_MAX);
            written.map_err(|e| gone(self.side, &e))?;
        }
        io.flush().await.map_err(|e| gone(self.side, &e))
    }
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
}
