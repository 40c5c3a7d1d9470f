//! Reads a terminal or a file in a thread of its own.
//!
//! A read of a terminal waits until somebody types, and nothing can end it. tokio's own threads are waited for when a
//! runtime ends, so with its stdin Ctrl-C would not end the program. Nobody waits for this thread: it dies with the
//! process.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Pieces that wait to be taken.
const PIECES: usize = 1;

/// What the thread has read.
pub(super) struct ThreadReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl ThreadReader {
    /// Starts the thread.
    pub(super) fn start(input: impl Read + Send + 'static) -> io::Result<ThreadReader> {
        let (sender, pieces) = mpsc::channel(PIECES);
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || read_all(input, &sender))?;
        Ok(ThreadReader {
            pieces,
            piece: Bytes::new(),
        })
    }
}

fn read_all(mut input: impl Read, sender: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; PIECE];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if sender.blocking_send(read).is_err() || failed {
            return;
        }
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.piece.is_empty() {
            match ready!(this.pieces.poll_recv(cx)) {
                Some(piece) => this.piece = piece?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = this.piece.len().min(into.remaining());
        into.put_slice(&this.piece[..count]);
        this.piece.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_file_is_read_to_its_end() {
        let text = vec![b'x'; 3 * PIECE + 1];
        let mut reader = ThreadReader::start(io::Cursor::new(text.clone())).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, text);
    }

    /// Blocks until its other end is dropped.
    struct Silent(std::sync::mpsc::Receiver<()>);

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }

    #[test]
    fn a_runtime_ends_while_a_read_waits() {
        let (_typing, typed) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut reader = ThreadReader::start(Silent(typed)).unwrap();
            let mut buffer = [0];
            let read = reader.read(&mut buffer);
            tokio::select! {
                _ = read => panic!("nobody typed"),
                () = tokio::task::yield_now() => {}
            }
        });
        // With tokio's stdin this would wait for ever.
        drop(runtime);
    }
}
