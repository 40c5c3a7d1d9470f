//! A message that would be cut through is gathered whole while somebody may want to hold it.

use bytes::{Bytes, BytesMut};
use mcp_proxy_wire::{Body, Chunk, Frame, LineEnd, Message, TransportEnvelope};

use super::MessagePipeline;

/// A large message, so far.
pub(super) struct MessageAssembly {
    /// The frame that opened it, with an empty body.
    first: Frame,
    message: BytesMut,
    wire: BytesMut,
}

impl MessagePipeline {
    /// Gives back what needs no gathering, and what is whole now.
    pub(super) fn gather(&mut self, frame: Frame) -> Option<Frame> {
        match frame.body {
            Body::Open(chunk) if self.wants_whole(&frame.envelope, &chunk) => {
                let assembly = MessageAssembly {
                    message: BytesMut::from(&chunk.message[..]),
                    wire: BytesMut::from(&chunk.wire[..]),
                    first: Frame {
                        body: Body::Empty,
                        ..frame
                    },
                };
                self.assembly = Some(Box::new(assembly));
                None
            }
            Body::More(chunk) if self.assembly.is_some() => {
                self.assembly.as_mut()?.add(&chunk);
                None
            }
            Body::Close(chunk) if self.assembly.is_some() => {
                let mut gathering = self.assembly.take()?;
                gathering.add(&chunk);
                Some(gathering.whole())
            }
            body => Some(Frame { body, ..frame }),
        }
    }

    fn wants_whole(&self, envelope: &TransportEnvelope, chunk: &Chunk) -> bool {
        self.may_hold() && !self.is_stray(envelope, &chunk.message)
    }
}

impl MessageAssembly {
    fn add(&mut self, chunk: &Chunk) {
        self.message.extend_from_slice(&chunk.message);
        self.wire.extend_from_slice(&chunk.wire);
    }

    fn whole(self) -> Frame {
        let (message, wire): (Bytes, Bytes) = (self.message.freeze(), self.wire.freeze());
        let envelope = match self.first.envelope {
            TransportEnvelope::Line(_) => {
                TransportEnvelope::Line(match &wire[message.len().min(wire.len())..] {
                    b"\n" => LineEnd::Lf,
                    b"\r\n" => LineEnd::CrLf,
                    _ => LineEnd::Missing,
                })
            }
            TransportEnvelope::Event(mut event) => {
                event.data = Some(message.clone());
                event.wire = wire;
                TransportEnvelope::Event(event)
            }
            other => other,
        };
        Frame {
            envelope,
            body: Body::Whole(Message::parse(message)),
            ..self.first
        }
    }
}
