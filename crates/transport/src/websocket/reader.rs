//! The reading half of a WebSocket: reads, answers pings and close frames, and ends the connection properly.
//!
//! A socket that waits for its peer holds no read buffer: small reads go through the stack, and only what has come is kept.
//! Inside a long message it reads up to 128 KiB at once into a buffer that becomes the pieces.

use std::future::{pending, poll_fn};
use std::io::Result as IoResult;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, ReadHalf};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::decoder::{Decoded, MessageDecoder};
use super::frames::FrameKind;
use super::peer_watch::{PeerSilence, PeerWatch, WatchStep};
use super::writer::{SocketWriteError, WriteSide, WriterNews};
use super::{PIECE_MAX, SocketEnd, SocketEvent, SocketOptions, UpgradedStream};

/// Up to this much is read through the stack.
const SMALL_READ: usize = 8 * 1024;

/// The reading half.
pub struct SocketReader<S = UpgradedStream> {
    io: ReadHalf<S>,
    pub(super) side: Arc<Mutex<WriteSide<S>>>,
    decoder: MessageDecoder,
    /// What is not decoded yet.
    pub(super) buffer: BytesMut,
    pong: ControlState,
    ping: ControlState,
    /// `None` if a peer may be silent for as long as it likes.
    watch: Option<PeerWatch>,
    /// `None` once the writer has told what it had to, or is gone.
    news: Option<oneshot::Receiver<WriterNews>>,
    /// We have closed: until when the peer may answer.
    closing: Option<Pin<Box<Sleep>>>,
    close_deadline: Duration,
    phase: Phase,
}

/// A ping of ours, or the answer to the peer's last one. Only the last one has to be answered (5.5.3), so a flood of them
/// takes no memory.
#[derive(Debug)]
enum ControlState {
    Idle,
    /// Not begun to be written.
    Owed(Bytes),
    /// With the [`WriteSide`], perhaps half written.
    Begun,
}

impl ControlState {
    fn is_owed(&self) -> bool {
        !matches!(self, ControlState::Idle)
    }
}

#[derive(Debug)]
enum Phase {
    Open,
    Ended {
        end: SocketEnd,
        /// The close frame that is due was handed to the writing half.
        is_told: bool,
        /// Until when the peer can be told.
        deadline: Instant,
    },
}

impl<S: AsyncRead + AsyncWrite + Send> SocketReader<S> {
    pub(super) fn new(
        io: ReadHalf<S>,
        side: Arc<Mutex<WriteSide<S>>>,
        news: oneshot::Receiver<WriterNews>,
        silence: Option<Arc<PeerSilence>>,
        options: &SocketOptions,
    ) -> SocketReader<S> {
        SocketReader {
            io,
            side,
            decoder: MessageDecoder::new(options),
            buffer: BytesMut::new(),
            pong: ControlState::Idle,
            ping: ControlState::Idle,
            watch: silence.map(PeerWatch::new),
            news: Some(news),
            closing: None,
            close_deadline: options.close_deadline,
            phase: Phase::Open,
        }
    }

    /// The longest message from now on. It holds for a message under way too, from its next frame on.
    pub fn set_max_message(&mut self, bytes: usize) {
        self.decoder.set_max_message(bytes);
    }

    /// The next event; waits for it. May be dropped and called again without losing anything. Pings are answered while
    /// it waits. An end is returned as soon as it is known, and the same one again after that. The peer hears of it at once
    /// if nothing else is being written, or else by [`wind_up`](SocketReader::wind_up).
    pub async fn next(&mut self) -> Result<SocketEvent, SocketEnd> {
        loop {
            if let Phase::Ended { end, .. } = &self.phase {
                let end = end.clone();
                tokio::select! {
                    biased;
                    () = Box::pin(self.wind_up()) => {}
                    () = std::future::ready(()) => {}
                }
                return Err(end);
            }
            match self.decoder.decode(&mut self.buffer) {
                Ok(Decoded::Event(event)) => return Ok(event),
                Ok(Decoded::Ping(payload)) => self.pong = ControlState::Owed(payload),
                Ok(Decoded::Close { code, reason }) => self.peer_closes(code, reason),
                Ok(Decoded::More(room)) => {
                    if let Err(end) = self.wait(room).await {
                        self.end(end);
                    }
                }
                Err(violation) => self.end(violation.into()),
            }
        }
    }

    /// The next event of what has been read already, without waiting. What else is found there is left for
    /// [`next`](SocketReader::next).
    pub fn next_buffered(&mut self) -> Option<SocketEvent> {
        while matches!(self.phase, Phase::Open) && !self.buffer.is_empty() {
            match self.decoder.decode(&mut self.buffer) {
                Ok(Decoded::Event(event)) => return Some(event),
                Ok(Decoded::Ping(payload)) => self.pong = ControlState::Owed(payload),
                Ok(Decoded::Close { code, reason }) => self.peer_closes(code, reason),
                Ok(Decoded::More(_)) => return None,
                Err(violation) => self.end(violation.into()),
            }
        }
        None
    }

    /// Waits for bytes and does meanwhile what has to be done.
    async fn wait(&mut self, room: usize) -> Result<(), SocketEnd> {
        let Self {
            io,
            side,
            buffer,
            pong,
            ping,
            watch,
            news,
            closing,
            ..
        } = self;
        // Boxed when it is begun, because it is large and every idle socket would have room for it.
        let is_owed = pong.is_owed() || ping.is_owed();
        let sent = async { Box::pin(send_owed(side, pong, ping)).await };
        let heard = async {
            match news {
                Some(news) => news.await,
                None => pending().await,
            }
        };
        let out_of_time = async {
            match closing {
                Some(deadline) => deadline.await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            heard = heard => {
                self.news = None;
                match heard {
                    Ok(WriterNews::Closing) => {
                        self.closing = Some(Box::pin(sleep(self.close_deadline)));
                    }
                    Ok(WriterNews::Failed(end)) => return Err(end),
                    // The writer was dropped. What the peer has to say is still of interest.
                    Err(_) => {}
                }
                Ok(())
            }
            () = out_of_time => Err(SocketEnd::CloseUnanswered),
            sent = sent, if is_owed => {
                // A socket that was closed meanwhile needs neither.
                sent.or_else(|error| error.end().map_or(Ok(()), Err))
            }
            read = read_some(io, buffer, room) => match read {
                Ok(0) => Err(SocketEnd::Broken("the peer sends no more".to_owned())),
                Ok(_) => {
                    if let Some(watch) = watch {
                        watch.heard();
                    }
                    Ok(())
                }
                Err(error) => Err(SocketEnd::Broken(error.to_string())),
            },
            // Last: what has come shows that the peer is there, however late it is read.
            step = next_step(watch) => match step {
                WatchStep::Ping => {
                    *ping = ControlState::Owed(Bytes::new());
                    Ok(())
                }
                WatchStep::GiveUp(silent) => Err(SocketEnd::Silent(silent)),
            },
        }
    }

    fn peer_closes(&mut self, code: Option<u16>, reason: String) {
        let heard = self.news.as_mut().map(oneshot::Receiver::try_recv);
        let is_answer = self.closing.is_some() || matches!(heard, Some(Ok(WriterNews::Closing)));
        self.end(match is_answer {
            true => SocketEnd::Closed,
            false => SocketEnd::ClosedByPeer { code, reason },
        });
    }

    fn end(&mut self, end: SocketEnd) {
        self.buffer = BytesMut::new();
        self.news = None;
        self.phase = Phase::Ended {
            end,
            is_told: false,
            deadline: Instant::now() + self.close_deadline,
        };
    }

    /// After the end: sends the close frame that is still due, and closes our direction of the connection. It takes at most
    /// [`SocketOptions::close_deadline`], counted from the end. May be dropped and called again.
    pub async fn wind_up(&mut self) {
        let Phase::Ended {
            end,
            is_told,
            deadline,
        } = &mut self.phase
        else {
            return;
        };
        let (io, buffer) = (&mut self.io, &mut self.buffer);
        let told = async {
            let mut side = self.side.lock().await;
            if !std::mem::replace(is_told, true)
                && let Some((code, reason)) = close_frame(end)
            {
                // It fails if we have closed meanwhile, and then nothing is due.
                let _ = side.send_close(code, reason).await;
            }
            // What cannot be written now is not written at all.
            let _ = side.flush_unsent().await;
            side.end();
            let _ = side.shut_down().await;
            drop(side);
            // Closing a socket with unread bytes resets it, and the peer may lose the close frame.
            while matches!(end, SocketEnd::Violation(_))
                && read_some(io, buffer, SMALL_READ)
                    .await
                    .is_ok_and(|read| read > 0)
            {
                buffer.clear();
            }
        };
        let _ = timeout_at(*deadline, told).await;
    }
}

/// The close frame that a peer has to get at such an end.
pub(super) fn close_frame(end: &SocketEnd) -> Option<(Option<u16>, &'static str)> {
    match end {
        SocketEnd::ClosedByPeer { code, .. } => Some((*code, "")),
        SocketEnd::Violation(violation) => {
            Some((Some(violation.close_code()), violation.close_reason()))
        }
        _ => None,
    }
}

/// What a watched peer's silence calls for, when it does.
async fn next_step(watch: &mut Option<PeerWatch>) -> WatchStep {
    match watch {
        Some(watch) => watch.next_step().await,
        None => pending().await,
    }
}

/// Sends the pong and the ping that are due. May be dropped and called again.
async fn send_owed<S: AsyncWrite>(
    side: &Mutex<WriteSide<S>>,
    pong: &mut ControlState,
    ping: &mut ControlState,
) -> Result<(), SocketWriteError> {
    let mut side = side.lock().await;
    // An earlier one first, so that never more than one is kept.
    let mut sent = side.flush_unsent().await;
    for (kind, owed) in [(FrameKind::Pong, pong), (FrameKind::Ping, ping)] {
        if sent.is_ok()
            && let ControlState::Owed(payload) = std::mem::replace(owed, ControlState::Begun)
        {
            sent = side.send_control(kind, &payload).await;
        }
        *owed = ControlState::Idle;
    }
    sent
}

/// Reads up to about `room` bytes. 0 is the end of the stream.
async fn read_some<S: AsyncRead>(
    io: &mut ReadHalf<S>,
    buffer: &mut BytesMut,
    room: usize,
) -> IoResult<usize> {
    if room > SMALL_READ {
        // Uses its memory again if all pieces of it are gone.
        buffer.reserve(room.min(PIECE_MAX));
        return io.read_buf(buffer).await;
    }
    if buffer.is_empty() {
        *buffer = BytesMut::new();
    }
    poll_fn(|cx| {
        let mut memory = [MaybeUninit::uninit(); SMALL_READ];
        let mut read = ReadBuf::uninit(&mut memory);
        ready!(Pin::new(&mut *io).poll_read(cx, &mut read))?;
        buffer.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    })
    .await
}
