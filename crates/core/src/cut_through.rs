//! A message that is cut through: its bytes are forwarded while this remembers its two ends and fills its side file.

use bytes::Bytes;
use mcp_proxy_session::{Error, RecordSink, SideFile, SideName};
use mcp_proxy_wire::{Body, Frame, PartialHead, read_partial_head};

const FRONT: usize = 64 * 1024;
const BACK: usize = 4 * 1024;

/// A large message on its way.
pub(crate) struct CutThroughMessage {
    /// Its first frame, with an empty body: stream, writer, request line or status, headers.
    pub first: Frame,
    /// Bytes of the message so far.
    pub len: u64,
    front: Vec<u8>,
    back: Vec<u8>,
    side: Result<Option<SideFile>, Error>,
}

impl CutThroughMessage {
    /// Begins with the frame that opens it.
    pub(crate) fn open(frame: &Frame, recorder: Option<&mut RecordSink>) -> CutThroughMessage {
        CutThroughMessage {
            first: Frame {
                body: Body::Empty,
                ..frame.clone()
            },
            len: 0,
            front: Vec::new(),
            back: Vec::new(),
            side: recorder.map(RecordSink::side_file).transpose(),
        }
    }

    /// More of its bytes.
    pub(crate) fn add(&mut self, bytes: &Bytes) {
        self.len += bytes.len() as u64;
        let room = FRONT.saturating_sub(self.front.len()).min(bytes.len());
        self.front.extend_from_slice(&bytes[..room]);
        let tail = &bytes[bytes.len().saturating_sub(BACK)..];
        let keep = BACK.saturating_sub(tail.len()).min(self.back.len());
        self.back.drain(..self.back.len() - keep);
        self.back.extend_from_slice(tail);
        if let Ok(Some(side)) = &mut self.side
            && let Err(error) = side.write(bytes)
        {
            self.side = Err(error);
        }
    }

    /// What its two ends tell.
    pub(crate) fn head(&self) -> PartialHead {
        read_partial_head(&self.front, &self.back)
    }

    /// Gives the side file its name; it stands before the line that names it. `None` without a record. An error
    /// only under `--on-record-error stop`: else the recorder itself says that the body is lost.
    pub(crate) fn finish(&mut self, sequence: u64) -> Result<Option<SideName>, Error> {
        match std::mem::replace(&mut self.side, Ok(None))? {
            Some(side) => side.finish(sequence).map(Some),
            None => Ok(None),
        }
    }
}
