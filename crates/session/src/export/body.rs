//! Bodies inside exports: as a JSON value where they are one, else as a string.

use crate::message::RawBody;
use crate::{Error, MessageId, timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_proxy_wire::json_string;
use std::io::Write;
use std::time::SystemTime;

/// What stands in the place of a body that there is not, for people.
pub(super) fn missing(raw: &RawBody) -> Option<String> {
    match raw {
        RawBody::NotStored { len } => Some(format!("{len} bytes that were not stored")),
        _ => None,
    }
}

/// The body as text; binary in base64 after `prefix`.
pub(super) fn text_of(raw: &RawBody, prefix: &str) -> String {
    match raw {
        RawBody::Json(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        RawBody::Text(text) => text.clone(),
        RawBody::Binary(bytes) => format!("{prefix}{}", STANDARD.encode(bytes)),
        RawBody::NotStored { .. } => String::new(),
    }
}

/// The body as the seed's `raw`: the JSON value verbatim, else a string, `base64:…` if it is not UTF-8, `null` if it is missing.
pub(super) fn write_value(out: &mut dyn Write, raw: &RawBody) -> Result<(), Error> {
    let written = match raw {
        RawBody::Json(bytes) => out.write_all(bytes),
        RawBody::NotStored { .. } => out.write_all(b"null"),
        other => out.write_all(json_string(&text_of(other, "base64:")).as_bytes()),
    };
    written.map_err(Error::Output)
}

/// `"2026-…"`.
pub(super) fn time(time: SystemTime) -> String {
    format!("\"{}\"", timestamp::to_text(time))
}

/// A JSON string or `null`.
pub(super) fn text(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), json_string)
}

/// A quoted id or `null`.
pub(super) fn id(id: Option<MessageId>) -> String {
    id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""))
}
