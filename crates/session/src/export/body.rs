//! Bodies inside exports: as a JSON value where they are one, else as a string.

use crate::json::{push_base64, push_escaped};
use crate::message::RawBody;
use crate::{Error, MessageId, timestamp};
use std::io::Write;
use std::time::SystemTime;

/// Divisible by three, so that chunks of base64 can be joined.
const CHUNK: usize = 48 * 1024;

/// What a body turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyForm {
    Json,
    Text,
    Binary,
    /// There is nothing to show: the body was never stored.
    Missing,
}

/// Sorts a body.
pub(super) fn form(raw: &RawBody) -> BodyForm {
    match raw {
        RawBody::Json(_) => BodyForm::Json,
        RawBody::Text(_) => BodyForm::Text,
        RawBody::Binary(_) => BodyForm::Binary,
        RawBody::NotStored { .. } => BodyForm::Missing,
    }
}

/// What stands in the place of a body that there is not, for people.
pub(super) fn missing(raw: &RawBody) -> Option<String> {
    match raw {
        RawBody::NotStored { len } => Some(format!("{len} bytes that were not stored")),
        _ => None,
    }
}

/// The body as the seed's `raw`: the JSON value verbatim, else a string, `base64:…` if it is not UTF-8, `null` if it is missing.
pub(super) fn write_value(out: &mut dyn Write, raw: &RawBody) -> Result<(), Error> {
    match form(raw) {
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
    let pass = |chunk: &[u8]| {
        buffer.clear();
        put(chunk, &mut buffer);
        out.write_all(&buffer).map_err(Error::Output)
    };
    let bytes = raw.bytes().unwrap_or_default();
    bytes.chunks(CHUNK).try_for_each(pass)
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
