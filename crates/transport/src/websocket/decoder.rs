//! Bytes of a client in, messages, pieces and control frames out. No I/O.

#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes, BytesMut};

use super::frames::{FrameHead, FrameKind, unmask};
use super::utf8::{NotUtf8, Utf8Check};
use super::{PIECE_MAX, SocketEvent, SocketOptions, SocketViolation};

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Something for the user of the socket.
    Event(SocketEvent),
    /// To be answered with a pong with the same bytes.
    Ping(Bytes),
    /// To be answered with a close frame.
    Close { code: Option<u16>, reason: String },
    /// Nothing without more bytes. This many are of use at once.
    More(usize),
}

/// Where in the stream of a client we are.
#[derive(Debug)]
pub(super) struct MessageDecoder {
    stream_above: usize,
    max_message: usize,
    message: Option<OpenMessage>,
    payload: Option<OpenPayload>,
}

/// A message whose last frame has not ended.
#[derive(Debug)]
struct OpenMessage {
    /// `None` for a binary one.
    text: Option<Utf8Check>,
    /// Of all of its frames so far, the rest of the current one included.
    length: usize,
    /// Payloads of earlier frames, until the first piece.
    joined: BytesMut,
    delivery: Delivery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// It may still become one event.
    Collected,
    /// Its first piece is out.
    InPieces,
}

/// The rest of a data frame.
#[derive(Clone, Copy, Debug)]
struct OpenPayload {
    remaining: usize,
    mask: [u8; 4],
    is_final: bool,
}

impl MessageDecoder {
    pub(super) fn new(options: &SocketOptions) -> MessageDecoder {
        MessageDecoder {
            stream_above: options.stream_above.min(PIECE_MAX),
            max_message: options.max_message,
            message: None,
            payload: None,
        }
    }

    /// Holds from the next frame on.
    pub(super) fn set_max_message(&mut self, bytes: usize) {
        self.max_message = bytes;
    }

    /// Takes what comes next from the front of `buffer`. After a violation nothing more can be decoded.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, SocketViolation> {
        loop {
            if let (Some(payload), Some(message)) = (&mut self.payload, &mut self.message) {
                let taken = take_payload(message, payload, self.stream_above, buffer)?;
                if payload.remaining == 0 && !matches!(taken, Some(Decoded::More(_))) {
                    if payload.is_final {
                        self.message = None;
                    }
                    self.payload = None;
                }
                match taken {
                    Some(decoded) => return Ok(decoded),
                    None => continue,
                }
            }
            let Some((head, head_length)) = FrameHead::read(buffer)? else {
                return Ok(Decoded::More(self.head_room()));
            };
            if head.kind.is_control() {
                // At most 125 bytes: the head says no more.
                let end = head_length + head.length as usize;
                if buffer.len() < end {
                    return Ok(Decoded::More(end - buffer.len()));
                }
                buffer.advance(head_length);
                return control(head, buffer.split_to(end - head_length));
            }
            self.begin_payload(head)?;
            buffer.advance(head_length);
        }
    }

    /// How much to read where a head is expected: behind a frame of a long message, the next one is long too.
    fn head_room(&self) -> usize {
        match &self.message {
            Some(message) if message.delivery == Delivery::InPieces => PIECE_MAX,
            _ => 1,
        }
    }

    fn begin_payload(&mut self, head: FrameHead) -> Result<(), SocketViolation> {
        let before = match (&self.message, head.kind) {
            (None, FrameKind::Continuation) => {
                return Err(SocketViolation::Protocol("continuation of nothing"));
            }
            (Some(message), FrameKind::Continuation) => message.length,
            (None, _) => 0,
            (Some(_), _) => {
                return Err(SocketViolation::Protocol("message inside of another"));
            }
        };
        let limit = self.max_message;
        let too_long = SocketViolation::TooLong { limit };
        let remaining = usize::try_from(head.length).map_err(|_| too_long)?;
        let length = before.checked_add(remaining).ok_or(too_long)?;
        if length > limit {
            return Err(too_long);
        }
        let message = self.message.get_or_insert_with(|| OpenMessage {
            text: (head.kind == FrameKind::Text).then(Utf8Check::default),
            length,
            joined: BytesMut::new(),
            delivery: Delivery::Collected,
        });
        message.length = length;
        self.payload = Some(OpenPayload {
            remaining,
            mask: head.mask,
            is_final: head.is_final,
        });
        Ok(())
    }
}

/// Takes bytes of a data frame, as many as make an event or end the frame. `None` if they only had to be kept.
fn take_payload(
    message: &mut OpenMessage,
    payload: &mut OpenPayload,
    stream_above: usize,
    buffer: &mut BytesMut,
) -> Result<Option<Decoded>, SocketViolation> {
    let OpenPayload {
        remaining,
        is_final,
        ..
    } = *payload;
    let held = message.joined.len();
    let is_short = message.length <= stream_above;
    let (least, most) = match message.delivery {
        Delivery::Collected if is_short => (remaining, remaining),
        Delivery::Collected => (stream_above.saturating_sub(held), PIECE_MAX - held),
        Delivery::InPieces => (1, PIECE_MAX),
    };
    let (least, most) = (least.min(remaining), most.min(remaining));
    let available = buffer.len();
    if available < least {
        let more = match message.delivery {
            Delivery::InPieces if !is_final => PIECE_MAX,
            _ => most - available,
        };
        return Ok(Some(Decoded::More(more)));
    }
    let mut bytes = buffer.split_to(available.min(most));
    unmask(&mut bytes, &mut payload.mask);
    payload.remaining -= bytes.len();
    let is_last = is_final && payload.remaining == 0;
    if let Some(text) = &mut message.text {
        text.push(&bytes).map_err(not_utf8)?;
        if is_last {
            text.finish().map_err(not_utf8)?;
        }
    }
    if is_short && !is_last {
        message.joined.extend_from_slice(&bytes);
        return Ok(None);
    }
    if held > 0 {
        message.joined.extend_from_slice(&bytes);
        bytes = std::mem::take(&mut message.joined);
    }
    let bytes = bytes.freeze();
    if is_short {
        return Ok(Some(Decoded::Event(SocketEvent::Message(bytes))));
    }
    message.delivery = Delivery::InPieces;
    if bytes.is_empty() && !is_last {
        return Ok(None);
    }
    let piece = SocketEvent::Piece { bytes, is_last };
    Ok(Some(Decoded::Event(piece)))
}

fn control(head: FrameHead, mut payload: BytesMut) -> Result<Decoded, SocketViolation> {
    let mut mask = head.mask;
    unmask(&mut payload, &mut mask);
    match head.kind {
        FrameKind::Close => close(&payload),
        // Copied: it may wait while the read buffer could be freed.
        FrameKind::Ping => Ok(Decoded::Ping(Bytes::copy_from_slice(&payload))),
        _ => Ok(Decoded::Event(SocketEvent::Pong)),
    }
}

fn close(payload: &[u8]) -> Result<Decoded, SocketViolation> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload.is_empty() {
            true => Ok(Decoded::Close {
                code: None,
                reason: String::new(),
            }),
            false => Err(SocketViolation::Protocol("half of a close code")),
        };
    };
    let code = u16::from_be_bytes(*code);
    // Section 7.4 and what IANA added to it; the others are never sent.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(SocketViolation::Protocol("invalid close code"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| SocketViolation::NotUtf8)?;
    Ok(Decoded::Close {
        code: Some(code),
        reason: reason.to_owned(),
    })
}

fn not_utf8(_: NotUtf8) -> SocketViolation {
    SocketViolation::NotUtf8
}
