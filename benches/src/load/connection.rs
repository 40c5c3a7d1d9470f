//! One kept HTTP/1.1 connection of the load: written by hand so that the load costs as little as it can.
//!
//! Reads bodies with a length and chunked ones (also an SSE answer, which ends with its stream). Nothing else.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::AnswerEnds;

const BUFFER: usize = 256 * 1024;

pub struct LoadConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pub body: AnswerEnds,
}

/// What is read of a response's head.
pub struct ResponseHead {
    pub status: u16,
    pub session: Option<String>,
    framing: BodyFraming,
}

#[derive(Clone, Copy)]
enum BodyFraming {
    Length(usize),
    Chunked,
}

impl LoadConnection {
    pub async fn open(address: SocketAddr) -> Result<LoadConnection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(LoadConnection {
            stream,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            body: AnswerEnds::default(),
        })
    }

    /// Sends a whole request and reads the whole response; its body's ends are in `body`.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<ResponseHead> {
        self.stream.write_all(request).await?;
        self.body.clear();
        let head = self.read_head().await?;
        match head.framing {
            BodyFraming::Length(length) => self.read_length(length).await?,
            BodyFraming::Chunked => self.read_chunks().await?,
        }
        Ok(head)
    }

    async fn read_head(&mut self) -> Result<ResponseHead> {
        loop {
            let waiting = &self.buffer[self.start..self.end];
            if let Some(length) = memmem::find(waiting, b"\r\n\r\n") {
                let head = parse_head(&waiting[..length])?;
                self.start += length + 4;
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    async fn read_length(&mut self, mut left: usize) -> Result<()> {
        loop {
            let now = left.min(self.end - self.start);
            self.body.push(&self.buffer[self.start..self.start + now]);
            self.start += now;
            left -= now;
            if left == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn read_chunks(&mut self) -> Result<()> {
        loop {
            let line = self.read_line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16)
                .with_context(|| format!("{line:?} is not a chunk size"))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(());
            }
            self.read_length(size).await?;
            self.read_line().await?;
        }
    }

    async fn read_line(&mut self) -> Result<String> {
        loop {
            let waiting = &self.buffer[self.start..self.end];
            if let Some(length) = memchr(b'\n', waiting) {
                let line = String::from_utf8_lossy(&waiting[..length])
                    .trim_end()
                    .to_owned();
                self.start += length + 1;
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    /// Reads once; everything before `start` is given up.
    async fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let count = self.stream.read(&mut self.buffer[self.end..]).await?;
        if count == 0 {
            bail!("the connection was closed before the answer was whole");
        }
        self.end += count;
        Ok(())
    }
}

fn parse_head(head: &[u8]) -> Result<ResponseHead> {
    let text = std::str::from_utf8(head)?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("no status line: {text:?}"))?;
    // A response that says neither has no body on a connection that stays open.
    let (mut framing, mut session) = (BodyFraming::Length(0), None);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            framing = BodyFraming::Length(value.trim().parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = BodyFraming::Chunked;
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            session = Some(value.trim().to_owned());
        }
    }
    Ok(ResponseHead {
        status,
        session,
        framing,
    })
}
