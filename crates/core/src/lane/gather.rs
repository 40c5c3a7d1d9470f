//! A message that would be cut through is gathered whole while somebody may want to hold it.

use bytes::{Bytes, BytesMut};
use mcp_proxy_wire::{Body, Carriage, Chunk, Frame, LineEnd, Message};

use super::Lane;

/// A large message, so far.
pub(super) struct Gathering {
    /// The frame that opened it, with an empty body.
    first: Frame,
    message: BytesMut,
    wire: BytesMut,
}

impl Lane {
    /// Gives back what needs no gathering, and what is whole now.
    pub(super) fn gather(&mut self, frame: Frame) -> Option<Frame> {
        match frame.body {
            Body::Open(chunk) if self.wants_whole(&frame.carriage, &chunk) => {
                self.gathering = Some(Gathering {
                    message: BytesMut::from(&chunk.message[..]),
                    wire: BytesMut::from(&chunk.wire[..]),
                    first: Frame {
                        body: Body::Empty,
                        ..frame
                    },
                });
                None
            }
            Body::More(chunk) if self.gathering.is_some() => {
                self.gathering.as_mut()?.add(&chunk);
                None
            }
            Body::Close(chunk) if self.gathering.is_some() => {
                let mut gathering = self.gathering.take()?;
                gathering.add(&chunk);
                Some(gathering.whole())
            }
            body => Some(Frame { body, ..frame }),
        }
    }

    fn wants_whole(&self, carriage: &Carriage, chunk: &Chunk) -> bool {
        self.may_hold() && !self.is_stray(carriage, &chunk.message)
    }
}

impl Gathering {
    fn add(&mut self, chunk: &Chunk) {
        self.message.extend_from_slice(&chunk.message);
        self.wire.extend_from_slice(&chunk.wire);
    }

    fn whole(self) -> Frame {
        let (message, wire): (Bytes, Bytes) = (self.message.freeze(), self.wire.freeze());
        let carriage = match self.first.carriage {
            Carriage::Line(_) => Carriage::Line(match &wire[message.len().min(wire.len())..] {
                b"\n" => LineEnd::Lf,
                b"\r\n" => LineEnd::CrLf,
                _ => LineEnd::Missing,
            }),
            Carriage::Event(mut event) => {
                event.data = Some(message.clone());
                event.wire = wire;
                Carriage::Event(event)
            }
            other => other,
        };
        Frame {
            carriage,
            body: Body::Whole(Message::parse(message)),
            ..self.first
        }
    }
}
