//! A bounded buffer in front of a pipe: what is ready together leaves in one write.

use std::cell::RefCell;
use std::io;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;

/// Above this a writer waits for room; one message may pass it.
const BOUND: usize = 4 << 20;

#[derive(Default)]
pub struct Outbox {
    waiting: RefCell<BytesMut>,
    filled: Notify,
    drained: Notify,
}

impl Outbox {
    /// Adds the pieces of one message, one behind the other.
    pub async fn push(&self, pieces: &[&[u8]]) {
        while self.waiting.borrow().len() > BOUND {
            self.drained.notified().await;
        }
        let mut waiting = self.waiting.borrow_mut();
        for piece in pieces {
            waiting.extend_from_slice(piece);
        }
        self.filled.notify_one();
    }

    /// Writes what is pushed, for ever; ends with the pipe.
    pub async fn drain(&self, mut pipe: Sender) -> io::Result<()> {
        loop {
            self.filled.notified().await;
            let batch = self.waiting.borrow_mut().split();
            self.drained.notify_waiters();
            pipe.write_all(&batch).await?;
        }
    }
}
