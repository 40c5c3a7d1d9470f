//! Bodies inside exports: as a JSON value where they are one, else as a string; side files streamed through.

use crate::json::{push_base64, push_escaped};
use crate::message::RawBody;
use crate::private_files::is_absent;
use crate::{Error, MessageId, ProxyMessage, timestamp};
use mcp_proxy_wire::EMBED_DEPTH;
use serde::de::IgnoredAny;
use std::io::{self, BufReader, Read, Write};
use std::time::SystemTime;

/// Divisible by three, so that chunks of base64 can be joined.
const CHUNK: usize = 48 * 1024;

/// What a body turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyForm {
    Json,
    Text,
    Binary,
    /// There is nothing to show: the body was never stored, or its side file is gone.
    Missing,
}

/// Sorts a body; for a side file that means reading it once.
pub(super) fn form(raw: &RawBody) -> Result<BodyForm, Error> {
    match raw {
        RawBody::Json(_) => Ok(BodyForm::Json),
        RawBody::Text(_) => Ok(BodyForm::Text),
        RawBody::Binary(_) => Ok(BodyForm::Binary),
        RawBody::Lost { .. } => Ok(BodyForm::Missing),
        RawBody::Side { path, .. } => match raw.reader() {
            Ok(reader) => form_of(reader).map_err(|error| Error::io("read", path, error)),
            Err(error) if is_absent(&error) => Ok(BodyForm::Missing),
            Err(error) => Err(Error::io("open", path, error)),
        },
    }
}

/// What stands in the place of a body that there is not, for people.
pub(super) fn missing(raw: &RawBody) -> Option<String> {
    match raw {
        RawBody::Lost { len } => Some(format!("{len} bytes that were not stored")),
        RawBody::Side { path, len } if raw.is_gone() => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Some(format!(
                "{len} bytes that are missing: {name} is not next to the record"
            ))
        }
        _ => None,
    }
}

/// Whether anything of a message is gone.
pub(super) fn has_missing_body(message: &ProxyMessage) -> bool {
    let original = message.original_raw.as_ref();
    message.raw.is_gone() || original.is_some_and(RawBody::is_gone)
}

/// The body as the seed's `raw`: the JSON value verbatim, else a string, `base64:…` if it is not UTF-8, `null` if it is missing.
pub(super) fn write_value(out: &mut dyn Write, raw: &RawBody) -> Result<(), Error> {
    match form(raw)? {
        BodyForm::Json => copy(out, raw, |chunk, buffer| buffer.extend_from_slice(chunk)),
        BodyForm::Missing => out.write_all(b"null").map_err(Error::Output),
        form => write_string(out, raw, form, "base64:"),
    }
}

/// The body as a JSON string; binary in base64 after `prefix`.
pub(super) fn write_string(
    out: &mut dyn Write,
    raw: &RawBody,
    form: BodyForm,
    prefix: &str,
) -> Result<(), Error> {
    match form {
        BodyForm::Missing => out.write_all(b"\"\"").map_err(Error::Output),
        BodyForm::Json | BodyForm::Text => {
            out.write_all(b"\"").map_err(Error::Output)?;
            copy(out, raw, |chunk, buffer| push_escaped(buffer, chunk))?;
            out.write_all(b"\"").map_err(Error::Output)
        }
        BodyForm::Binary => {
            write!(out, "\"{prefix}").map_err(Error::Output)?;
            copy(out, raw, |chunk, buffer| {
                let start = buffer.len();
                push_base64(buffer, chunk);
                // Without the quotes that a whole string would have.
                buffer.pop();
                buffer.remove(start);
            })?;
            out.write_all(b"\"").map_err(Error::Output)
        }
    }
}

/// Passes the body through `put` in chunks.
pub(super) fn copy(
    out: &mut dyn Write,
    raw: &RawBody,
    put: impl Fn(&[u8], &mut Vec<u8>),
) -> Result<(), Error> {
    let mut buffer = Vec::new();
    let mut pass = |chunk: &[u8]| {
        buffer.clear();
        put(chunk, &mut buffer);
        out.write_all(&buffer).map_err(Error::Output)
    };
    match raw {
        RawBody::Side { path, .. } => {
            let failed = |error| Error::io("read", path, error);
            each_chunk(raw.reader().map_err(failed)?, failed, pass)
        }
        other => other
            .bytes()
            .unwrap_or_default()
            .chunks(CHUNK)
            .try_for_each(&mut pass),
    }
}

/// Calls `pass` for each chunk of a file; all but the last are full.
fn each_chunk(
    mut file: impl Read,
    failed: impl Fn(io::Error) -> Error,
    mut pass: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut filled = 0;
        while filled < CHUNK {
            match file.read(&mut chunk[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        if filled > 0 {
            pass(&chunk[..filled])?;
        }
        if filled < CHUNK {
            return Ok(());
        }
    }
}

fn form_of<'a>(file: Box<dyn Read + 'a>) -> io::Result<BodyForm> {
    let mut watched = BodyChecker {
        inner: BufReader::with_capacity(CHUNK, file),
        utf8: Utf8Checker::default(),
        depth: DepthCounter::default(),
    };
    let mut json = serde_json::Deserializer::from_reader(&mut watched);
    let parsed = serde::Deserialize::deserialize(&mut json)
        .map(|_: IgnoredAny| ())
        .and_then(|()| json.end());
    if parsed.is_err() {
        io::copy(&mut watched, &mut io::sink())?;
    }
    let text = watched.utf8.is_valid();
    Ok(match parsed {
        Ok(()) if text && watched.depth.deepest <= EMBED_DEPTH => BodyForm::Json,
        _ if text => BodyForm::Text,
        _ => BodyForm::Binary,
    })
}

/// Watches what a JSON parser does not: whether the bytes are UTF-8, and how deep they nest.
struct BodyChecker<'a> {
    inner: BufReader<Box<dyn Read + 'a>>,
    utf8: Utf8Checker,
    depth: DepthCounter,
}

impl Read for BodyChecker<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.utf8.push(&buffer[..read]);
        self.depth.push(&buffer[..read]);
        Ok(read)
    }
}

#[derive(Default)]
struct Utf8Checker {
    broken: bool,
    /// A character that is not complete yet.
    open: Vec<u8>,
}

impl Utf8Checker {
    fn push(&mut self, bytes: &[u8]) {
        if self.broken || (self.open.is_empty() && bytes.is_ascii()) {
            return;
        }
        self.open.extend_from_slice(bytes);
        match std::str::from_utf8(&self.open) {
            Ok(_) => self.open.clear(),
            Err(error) if error.error_len().is_none() => {
                self.open.drain(..error.valid_up_to());
            }
            Err(_) => self.broken = true,
        }
    }

    fn is_valid(&self) -> bool {
        !self.broken && self.open.is_empty()
    }
}

#[derive(Default)]
struct DepthCounter {
    in_string: bool,
    escaped: bool,
    now: usize,
    deepest: usize,
}

impl DepthCounter {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (self.in_string, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.in_string = !self.in_string,
                (false, b'{' | b'[') => {
                    self.now += 1;
                    self.deepest = self.deepest.max(self.now);
                }
                (false, b'}' | b']') => self.now = self.now.saturating_sub(1),
                _ => {}
            }
        }
    }
}

/// `"2026-…"`.
pub(super) fn time(time: SystemTime) -> String {
    format!("\"{}\"", timestamp::to_text(time))
}

/// A JSON string or `null`.
pub(super) fn text(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), mcp_proxy_wire::json_string)
}

/// A quoted id or `null`.
pub(super) fn id(id: Option<MessageId>) -> String {
    id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""))
}
