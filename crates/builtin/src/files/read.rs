//! `read_file`.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::FILE_LIMIT;
use super::lines::{LineRange, Lines, LinesEnd, read_lines};
use super::root::{RootSet, RootedPath};
use crate::arguments::Arguments;
use crate::tool::{TEXT_LIMIT, ToolFailure, ToolOutput, ToolResult, clip};

/// Binary files up to this size are returned.
const BINARY_LIMIT: u64 = 4 << 20;
/// The start of a file that tells text from binary.
const SAMPLE: u64 = 8 << 10;

pub(super) fn read_file(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let path = roots.locate_below(arguments.text("path")?)?;
    let offset = arguments.optional_count("offset")?;
    let limit = arguments.optional_count("limit")?;
    let (mut file, facts) = path
        .directory()
        .open_file(path.relative())
        .map_err(|error| path.failure(error))?;
    let mut sample = Vec::new();
    let sampled = file.by_ref().take(SAMPLE).read_to_end(&mut sample);
    sampled.map_err(|error| path.failure(error.into()))?;
    if is_binary(&sample) {
        if offset.or(limit).is_some() {
            return Err(ToolFailure::new(format!(
                "`offset` and `limit` count lines, but {} is not text",
                path.shown()
            )));
        }
        return read_binary(&path, sample, file);
    }
    if facts.size > FILE_LIMIT && offset.is_none() {
        return Err(ToolFailure::new(format!(
            "{} has {} bytes: use `offset` and `limit` to read a part of it",
            path.shown(),
            facts.size
        )));
    }
    let range = LineRange {
        first: offset.unwrap_or(1),
        most: limit.unwrap_or(u64::MAX),
        limit: TEXT_LIMIT,
    };
    let input = BufReader::with_capacity(64 << 10, Cursor::new(sample).chain(file));
    let lines = read_lines(input, &range).map_err(|error| path.failure(error.into()))?;
    text_output(&path, &range, lines)
}

/// Whether a file that starts with `sample` is not text.
pub(super) fn is_binary(sample: &[u8]) -> bool {
    sample.contains(&0) || image_type(sample).is_some()
}

fn text_output(path: &RootedPath<'_>, range: &LineRange, lines: Lines) -> ToolResult {
    let next = range.first.saturating_add(lines.count);
    let note = match lines.end {
        LinesEnd::FileEnd(total) if lines.count == 0 && range.first > 1 => {
            return Err(ToolFailure::new(format!(
                "`offset` is {}, but {} has {total} lines",
                range.first,
                path.shown()
            )));
        }
        LinesEnd::TooDeep => {
            return Err(ToolFailure::new(format!(
                "`offset` {} is too deep in {}",
                range.first,
                path.shown()
            )));
        }
        LinesEnd::FileEnd(_) => None,
        LinesEnd::More => Some(format!("The file continues: use offset {next} to read on.")),
        LinesEnd::LongLine => Some(format!(
            "Line {} is longer than {TEXT_LIMIT} bytes and was cut. The next line, if any, has offset {next}.",
            range.first
        )),
    };
    let (text, broken) = into_text(lines);
    let note = match broken {
        Some(broken) => Some(
            [Some(broken), note]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
        ),
        None => note,
    };
    Ok(ToolOutput::text(text).with_note(note))
}

/// The text, and a remark if not all of it could be shown.
fn into_text(mut lines: Lines) -> (String, Option<String>) {
    if lines.end == LinesEnd::LongLine
        && let Err(error) = std::str::from_utf8(&lines.bytes)
        && error.error_len().is_none()
    {
        // The cut went through a character.
        lines.bytes.truncate(error.valid_up_to());
    }
    match String::from_utf8(lines.bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let shown = clip(&text, TEXT_LIMIT);
            let cut = if shown.len() < text.len() {
                ", and the end was cut"
            } else {
                ""
            };
            let note = format!("Bytes that are not UTF-8 are shown as \u{fffd}{cut}.");
            (shown.to_owned(), Some(note))
        }
    }
}

fn read_binary(path: &RootedPath<'_>, mut bytes: Vec<u8>, file: File) -> ToolResult {
    let room = (BINARY_LIMIT + 1).saturating_sub(bytes.len() as u64);
    let rest = file.take(room).read_to_end(&mut bytes);
    rest.map_err(|error| path.failure(error.into()))?;
    if bytes.len() as u64 > BINARY_LIMIT {
        return Err(ToolFailure::new(format!(
            "{} is not text, and larger than {BINARY_LIMIT} bytes",
            path.shown()
        )));
    }
    let data = STANDARD.encode(&bytes);
    Ok(ToolOutput::content(match image_type(&bytes) {
        Some(mime_type) => json!({ "type": "image", "data": data, "mimeType": mime_type }),
        None => json!({
            "type": "resource",
            "resource": {
                "uri": file_uri(path),
                "mimeType": "application/octet-stream",
                "blob": data,
            },
        }),
    }))
}

/// The type of an image that models can look at, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

fn file_uri(path: &RootedPath<'_>) -> String {
    use std::os::unix::ffi::OsStrExt;

    let mut uri = "file://".to_owned();
    for byte in path.absolute().as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
