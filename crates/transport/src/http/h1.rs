//! HTTP/1.1 towards a server, as pure functions: a request's head into bytes, bytes into an answer's head and body.
//!
//! Own code, because time matters here: with hyper's client every request crosses two tasks and three channels, which
//! costs more than the request itself. Nothing here reads or writes a socket; [`super::pool`] does.

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, request};
use http_body::Body as _;

use super::outbound_proxy::OutboundProxy;
use super::outgoing_body::OutgoingBody;

/// Headers that an answer may have.
const HEADERS_MAX: usize = 128;
/// Bytes that an answer's head may have.
const HEAD_MAX: usize = 256 * 1024;
/// Bytes that the line with a chunk's size, or a trailer line, may have.
const CHUNK_LINE_MAX: usize = 16 * 1024;

/// What a server sends that is not HTTP/1.1.
#[derive(Debug, thiserror::Error)]
pub enum H1Error {
    /// The head cannot be read.
    #[error("the answer is not HTTP/1.1 ({0})")]
    Head(httparse::Error),
    /// The head is larger than anybody's.
    #[error("the answer's head is larger than {HEAD_MAX} bytes")]
    HeadTooLarge,
    /// The body's length is told twice, differently, or is not a number.
    #[error("the answer's Content-Length makes no sense")]
    Length,
    /// A chunk's size or end cannot be read.
    #[error("the answer's chunks make no sense")]
    Chunk,
}

/// How a request's body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body, and no word about it.
    None,
    /// This many bytes.
    Exact(u64),
    /// Chunks.
    Chunked,
}

impl BodyLength {
    /// What is said about this body.
    pub fn of(payload: &OutgoingBody, method: &Method) -> BodyLength {
        let expects = *method == Method::POST || *method == Method::PUT || *method == Method::PATCH;
        match payload.size_hint().exact() {
            Some(0) if !expects => BodyLength::None,
            Some(length) => BodyLength::Exact(length),
            None => BodyLength::Chunked,
        }
    }
}

/// A request's head, with the server's own `host` in place of the client's. To a proxy it names the whole URL.
pub(crate) fn request_head(
    parts: &request::Parts,
    host: &HeaderValue,
    length: BodyLength,
    proxy: Option<&OutboundProxy>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    if proxy.is_some() {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(host.as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    out.extend_from_slice(host.as_bytes());
    if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
        out.extend_from_slice(b"\r\nproxy-authorization: ");
        out.extend_from_slice(authorization.as_bytes());
    }
    let mut states_length = false;
    for (name, value) in &parts.headers {
        if name == HOST {
            continue;
        }
        states_length |= name == CONTENT_LENGTH;
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    match length {
        // The client's own header stands where the client wrote it.
        BodyLength::Exact(_) if states_length => {}
        BodyLength::None => {}
        BodyLength::Exact(bytes) => {
            out.extend_from_slice(b"\r\ncontent-length: ");
            out.extend_from_slice(bytes.to_string().as_bytes());
        }
        BodyLength::Chunked => out.extend_from_slice(b"\r\ntransfer-encoding: chunked"),
    }
    out.extend_from_slice(b"\r\n\r\n");
    out
}

/// An answer's head, and what it says about the rest.
#[derive(Debug)]
pub struct H1ResponseHead {
    /// Status and headers.
    pub parts: Parts,
    /// How its body is delimited.
    pub framing: Framing,
    /// The connection may be used again after the body's end.
    pub keep_alive: bool,
}

/// Takes an answer's head from the front of `buffer`. `None`: it is not all there yet. Interim answers (1xx) are
/// passed over.
pub(crate) fn take_head(
    buffer: &mut BytesMut,
    asked: &Method,
) -> Result<Option<H1ResponseHead>, H1Error> {
    loop {
        let Some((parts, spans, length)) = read_head(buffer)? else {
            return Ok(None);
        };
        let head = with_headers(parts, &spans, buffer.split_to(length).freeze());
        if !head.status.is_informational() {
            return response_framing(head, asked).map(Some);
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for another protocol.
            return Err(H1Error::Head(httparse::Error::Status));
        }
    }
}

/// Where a name and a value stand in the head.
struct HeaderSpan {
    name: HeaderName,
    value: std::ops::Range<usize>,
}

fn read_head(bytes: &[u8]) -> Result<Option<(Parts, Vec<HeaderSpan>, usize)>, H1Error> {
    let mut headers = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    let read = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut answer, bytes, &mut headers)
        .map_err(H1Error::Head)?;
    let httparse::Status::Complete(length) = read else {
        return match bytes.len() > HEAD_MAX {
            true => Err(H1Error::HeadTooLarge),
            false => Ok(None),
        };
    };
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(answer.code.unwrap_or_default())
        .map_err(|_| H1Error::Head(httparse::Error::Status))?;
    parts.version = match answer.version {
        Some(0) => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    let mut spans = Vec::with_capacity(answer.headers.len());
    for header in answer.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| H1Error::Head(httparse::Error::HeaderName))?;
        // The value is a part of `bytes`; an empty one may lie anywhere.
        let start = (header.value.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
        let value = match header.value.is_empty() {
            true => 0..0,
            false => start..start + header.value.len(),
        };
        spans.push(HeaderSpan { name, value });
    }
    Ok(Some((parts, spans, length)))
}

/// The values are parts of the head itself: nothing is copied.
fn with_headers(mut parts: Parts, spans: &[HeaderSpan], head: Bytes) -> Parts {
    parts.headers.reserve(spans.len());
    for span in spans {
        let value = head.slice(span.value.clone());
        if let Ok(value) = HeaderValue::from_maybe_shared(value) {
            parts.headers.append(&span.name, value);
        }
    }
    parts
}

/// RFC 9112 section 6.3: how long the body is, and whether the connection outlives it.
fn response_framing(parts: Parts, asked: &Method) -> Result<H1ResponseHead, H1Error> {
    let status = parts.status;
    let bodiless = *asked == Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    let framing = if bodiless {
        Framing::Length(0)
    } else if parts.headers.contains_key(TRANSFER_ENCODING) {
        let codings = parts.headers.get_all(TRANSFER_ENCODING);
        let last = codings.iter().flat_map(list).last();
        match last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
            true => Framing::Chunked(ChunkPosition::Size),
            false => Framing::UntilClose,
        }
    } else {
        match content_length(&parts.headers)? {
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
    };
    let says = |word: &[u8]| {
        let values = parts.headers.get_all(CONNECTION);
        let mut words = values.iter().flat_map(list);
        words.any(|said| said.eq_ignore_ascii_case(word))
    };
    let keeps = match parts.version {
        Version::HTTP_10 => says(b"keep-alive"),
        _ => !says(b"close"),
    };
    Ok(H1ResponseHead {
        keep_alive: keeps && framing != Framing::UntilClose,
        parts,
        framing,
    })
}

fn list(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value
        .as_bytes()
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
}

/// The length that a head states; a list of equal ones is one.
pub(super) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, H1Error> {
    let mut found = None;
    let values = headers.get_all(CONTENT_LENGTH);
    for text in values.iter().flat_map(list) {
        let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(text).ok().filter(|_| is_number);
        let length: u64 = length
            .and_then(|text| text.parse().ok())
            .ok_or(H1Error::Length)?;
        if found.is_some_and(|earlier| earlier != length) {
            return Err(H1Error::Length);
        }
        found = Some(length);
    }
    Ok(found)
}

/// How an answer's body is delimited, and how far it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes are still to come.
    Length(u64),
    /// Chunks.
    Chunked(ChunkPosition),
    /// Until the server closes.
    UntilClose,
}

/// Where a chunked body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPosition {
    /// Before a size.
    Size,
    /// This many bytes of this chunk are still to come.
    Data(u64),
    /// Before the line end that follows a chunk.
    DataEnd,
    /// Among the trailers.
    Trailers,
    /// Behind them.
    Done,
}

/// What comes next in a body.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// Bytes of it.
    Data(Bytes),
    /// Nothing, until more is read.
    More,
    /// Its end.
    End,
}

impl Framing {
    /// Whether nothing more will come.
    pub fn is_done(&self) -> bool {
        matches!(
            self,
            Framing::Length(0) | Framing::Chunked(ChunkPosition::Done)
        )
    }

    /// Takes the next piece from the front of `buffer`.
    pub fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPiece, H1Error> {
        match self {
            _ if self.is_done() => Ok(BodyPiece::End),
            _ if buffer.is_empty() => Ok(BodyPiece::More),
            Framing::UntilClose => Ok(BodyPiece::Data(buffer.split().freeze())),
            Framing::Length(left) => Ok(BodyPiece::Data(take_up_to(buffer, left))),
            Framing::Chunked(chunk) => chunk.take(buffer),
        }
    }
}

impl ChunkPosition {
    fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPiece, H1Error> {
        loop {
            match self {
                ChunkPosition::Data(0) => *self = ChunkPosition::DataEnd,
                ChunkPosition::Data(_) if buffer.is_empty() => return Ok(BodyPiece::More),
                ChunkPosition::Data(left) => return Ok(BodyPiece::Data(take_up_to(buffer, left))),
                ChunkPosition::Done => return Ok(BodyPiece::End),
                ChunkPosition::Size | ChunkPosition::DataEnd | ChunkPosition::Trailers => {
                    let Some(line) = take_line(buffer)? else {
                        return Ok(BodyPiece::More);
                    };
                    *self = self.after(&line)?;
                }
            }
        }
    }

    /// The position after a line outside the data: a chunk size, the end of a chunk, a trailer.
    fn after(self, line: &[u8]) -> Result<ChunkPosition, H1Error> {
        match (self, line) {
            (ChunkPosition::DataEnd, []) => Ok(ChunkPosition::Size),
            (ChunkPosition::DataEnd, _) => Err(H1Error::Chunk),
            (ChunkPosition::Trailers, []) => Ok(ChunkPosition::Done),
            (ChunkPosition::Trailers, _) => Ok(ChunkPosition::Trailers),
            _ => match chunk_size(line)? {
                0 => Ok(ChunkPosition::Trailers),
                size => Ok(ChunkPosition::Data(size)),
            },
        }
    }
}

fn take_up_to(buffer: &mut BytesMut, left: &mut u64) -> Bytes {
    let taken = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    *left -= taken as u64;
    if taken == buffer.len() {
        return buffer.split().freeze();
    }
    buffer.split_to(taken).freeze()
}

/// A line without its end; `None` until it is all there.
fn take_line(buffer: &mut BytesMut) -> Result<Option<Bytes>, H1Error> {
    let Some(end) = memchr::memchr(b'\n', buffer) else {
        return match buffer.len() > CHUNK_LINE_MAX {
            true => Err(H1Error::Chunk),
            false => Ok(None),
        };
    };
    let mut line = buffer.split_to(end).freeze();
    buffer.advance(1);
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    Ok(Some(line))
}

/// The size before any extension.
fn chunk_size(line: &[u8]) -> Result<u64, H1Error> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    let digits = digits.trim_ascii();
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_hex);
    let size = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    size.ok_or(H1Error::Chunk)
}

#[cfg(test)]
mod tests;
