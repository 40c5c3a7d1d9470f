//! A client's end of a WebSocket, on the load generator's own frames.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::frames::{self, FrameBuffer, FrameKind};

/// The room for what is read at once.
const READ_BYTES: usize = 4096;

/// Where to connect, and whether with TLS.
#[derive(Clone)]
pub struct SocketTarget {
    pub address: SocketAddr,
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

/// An open WebSocket.
pub struct PeerSocket {
    pub reader: PeerReader,
    pub writer: PeerWriter,
}

/// What comes in.
pub struct PeerReader {
    stream: Box<dyn AsyncRead + Unpin>,
    frames: FrameBuffer,
}

/// What goes out.
pub struct PeerWriter {
    stream: Box<dyn AsyncWrite + Unpin>,
    pub output: Vec<u8>,
}

impl PeerSocket {
    pub async fn open(target: &SocketTarget, path: &str) -> Result<PeerSocket> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let mut socket = match &target.tls {
            None => {
                let (reader, writer) = stream.into_split();
                PeerSocket::of(reader, writer)
            }
            Some(config) => {
                let name = ServerName::try_from("localhost")?;
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name, stream).await?;
                let (reader, writer) = tokio::io::split(stream);
                PeerSocket::of(reader, writer)
            }
        };
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            target.address.port()
        );
        socket.writer.output.extend_from_slice(head.as_bytes());
        socket.writer.flush().await?;
        socket.reader.skip_head().await?;
        Ok(socket)
    }

    fn of(
        reader: impl AsyncRead + Unpin + 'static,
        writer: impl AsyncWrite + Unpin + 'static,
    ) -> PeerSocket {
        PeerSocket {
            reader: PeerReader {
                stream: Box::new(reader),
                frames: FrameBuffer::default(),
            },
            writer: PeerWriter {
                stream: Box::new(writer),
                output: Vec::new(),
            },
        }
    }

    pub async fn say(&mut self, text: &str) -> Result<()> {
        frames::push_text(&mut self.writer.output, &[text.as_bytes()]);
        self.writer.flush().await
    }

    /// Waits for a message with this in it. What came before is skipped, what came with it is not lost.
    pub async fn hear(&mut self, wanted: &str) -> Result<String> {
        let finder = memchr::memmem::Finder::new(wanted);
        loop {
            while let Some((kind, payload)) = self.reader.frames.next_frame() {
                match kind {
                    FrameKind::Text if finder.find(payload).is_some() => {
                        return Ok(String::from_utf8_lossy(payload).into_owned());
                    }
                    FrameKind::Close => bail!("closed: {}", close_text(payload)),
                    _ => {}
                }
            }
            self.reader.fill().await?;
        }
    }

    /// Lets `each` answer the messages that come, until the socket ends.
    pub async fn serve(&mut self, mut each: impl FnMut(&[u8], &mut Vec<u8>)) -> Result<()> {
        let output = &mut self.writer.output;
        loop {
            while let Some((kind, payload)) = self.reader.frames.next_frame() {
                match kind {
                    FrameKind::Text => each(payload, output),
                    FrameKind::Ping => frames::push_pong(output, payload),
                    FrameKind::Close => bail!("closed: {}", close_text(payload)),
                    FrameKind::Piece | FrameKind::Pong => {}
                }
            }
            if !output.is_empty() {
                self.writer.stream.write_all(output).await?;
                output.clear();
            }
            self.reader.fill().await?;
        }
    }
}

impl PeerReader {
    /// Shows `each` the messages that come, until the socket ends.
    pub async fn watch(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        loop {
            while let Some((kind, payload)) = self.frames.next_frame() {
                if kind == FrameKind::Text {
                    each(payload);
                }
            }
            self.fill().await?;
        }
    }

    /// How long the next message is, in however many pieces it comes.
    pub async fn length(&mut self) -> Result<usize> {
        let mut length = 0;
        loop {
            while let Some((kind, payload)) = self.frames.next_frame() {
                match kind {
                    FrameKind::Piece => length += payload.len(),
                    FrameKind::Text => return Ok(length + payload.len()),
                    FrameKind::Close => bail!("closed: {}", close_text(payload)),
                    FrameKind::Ping | FrameKind::Pong => {}
                }
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<()> {
        let room = self.frames.room();
        room.reserve(READ_BYTES);
        match self.stream.read_buf(room).await? {
            0 => bail!("the peer has closed"),
            _ => Ok(()),
        }
    }

    /// Reads the answer to the upgrade.
    async fn skip_head(&mut self) -> Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await?);
        }
        let status = head.get(9..12).context("an answer without a status")?;
        match status {
            b"101" => Ok(()),
            _ => bail!("answered {}", String::from_utf8_lossy(status)),
        }
    }
}

impl PeerWriter {
    pub async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }
}

fn close_text(payload: &[u8]) -> String {
    let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
    let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
    format!("{} {reason}", code.unwrap_or_default())
}
