//! Results for a person: texts as they are, everything else described or written to a file.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use mcp_proxy_wire::terminal_text::{sanitize, sanitize_lines, size_text};

use crate::failure::CommandFailure;
use crate::output::{OutputReader, cannot_print};

/// A text of a server for this reader.
fn shown(text: &str, reader: OutputReader) -> String {
    match reader {
        OutputReader::Terminal => sanitize_lines(text),
        OutputReader::Program => text.to_owned(),
    }
}

/// A part of a result.
enum ResultPart<'a> {
    Text(&'a str),
    /// An image, audio or blob.
    Binary {
        what: &'a str,
        mime: &'a str,
        data: &'a str,
    },
    /// Something to print on a line of its own.
    Line(String),
}

/// What `tools/call` returned, as text.
pub(crate) fn tool_result(result: &Value, reader: OutputReader) -> String {
    let parts = content_parts(result.get("content"));
    parts_text(&parts, reader) + &structured_text(result, &parts, reader)
}

/// The structured content of a result, unless a text says the same.
fn structured_text(result: &Value, parts: &[ResultPart<'_>], reader: OutputReader) -> String {
    let structured = result.get("structuredContent");
    match structured.filter(|value| !value.is_null() && !repeats(parts, value)) {
        Some(structured) => {
            let pretty = serde_json::to_string_pretty(structured).unwrap_or_default();
            format!("{}\n", shown(&pretty, reader))
        }
        None => String::new(),
    }
}

/// What `resources/read` returned, as text.
pub(crate) fn resource_result(result: &Value, reader: OutputReader) -> String {
    let contents = result.get("contents").and_then(Value::as_array);
    let parts: Vec<ResultPart<'_>> = contents.into_iter().flatten().map(resource_part).collect();
    parts_text(&parts, reader)
}

/// What `prompts/get` returned, as text: each message under its role.
pub(crate) fn prompt_result(result: &Value, reader: OutputReader) -> String {
    let messages = result.get("messages").and_then(Value::as_array);
    let mut text = String::new();
    for message in messages.into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("?");
        let part = content_part(&message["content"]);
        let said = parts_text(&[part], reader);
        text.push_str(&format!("[{}]\n{said}", sanitize(role)));
    }
    text
}

/// Refuses a file that cannot be written, before anything is sent. What it holds stays.
pub(crate) fn check_output(path: &Path) -> Result<(), CommandFailure> {
    if path == Path::new("-") {
        return Ok(());
    }
    let checked = match std::fs::metadata(path) {
        // Opening a pipe twice would show its reader an end.
        Ok(found) if !found.is_file() && !found.is_dir() => return Ok(()),
        Ok(_) => File::options().write(true).open(path).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match File::options().write(true).create_new(true).open(path) {
                // A call that fails leaves no empty file.
                Ok(_) => std::fs::remove_file(path),
                // A link to a file that is not there yet.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    checked.map_err(|error| {
        let path = path.display();
        CommandFailure::Mistake(format!("cannot write {path}: {error}; nothing was sent"))
    })
}

/// What became of a result that is written.
pub(crate) struct WrittenResult {
    /// What was written where, a line each.
    pub(crate) files: Vec<String>,
    /// The texts that came with images, audio or blobs.
    pub(crate) texts: String,
}

/// Writes the images, audio and blobs of a result to `path`, or to `out` if that is `-`. A result without any is written as
/// text.
pub(crate) fn write_output(
    result: &Value,
    path: &Path,
    reader: OutputReader,
    out: &mut dyn Write,
) -> Result<WrittenResult, CommandFailure> {
    let contents = result.get("contents").and_then(Value::as_array);
    let parts: Vec<ResultPart<'_>> = match contents {
        Some(contents) => contents.iter().map(resource_part).collect(),
        None => content_parts(result.get("content")),
    };
    let mut files = Vec::new();
    for part in &parts {
        if let ResultPart::Binary { data, mime, .. } = part {
            let bytes = STANDARD.decode(data.trim()).map_err(|error| {
                CommandFailure::Server(format!(
                    "the server sent a {mime} that is not base64: {error}"
                ))
            })?;
            files.push((bytes, (*mime).to_owned()));
        }
    }
    let mut texts = String::new();
    if files.is_empty() {
        let text = match contents {
            Some(_) => resource_result(result, OutputReader::Program),
            None => tool_result(result, OutputReader::Program),
        };
        files.push((text.into_bytes(), "text".to_owned()));
    } else {
        let is_text = |part: &ResultPart<'_>| !matches!(part, ResultPart::Binary { .. });
        let parts: Vec<ResultPart<'_>> = parts.into_iter().filter(is_text).collect();
        texts = parts_text(&parts, reader) + &structured_text(result, &parts, reader);
    }
    let mut said = Vec::new();
    for (at, (bytes, mime)) in files.iter().enumerate() {
        if path == Path::new("-") {
            out.write_all(bytes).map_err(|error| cannot_print(&error))?;
            continue;
        }
        let path = numbered(path, at);
        std::fs::write(&path, bytes).map_err(|error| cannot_write(&path, &error))?;
        said.push(format!(
            "wrote {} ({}, {})",
            path.display(),
            sanitize(mime),
            size_text(bytes.len() as u64)
        ));
    }
    if path == Path::new("-") && files.len() > 1 {
        said.push(format!(
            "wrote {} results to stdout, one after the other; --output FILE writes a file each",
            files.len()
        ));
    }
    Ok(WrittenResult { files: said, texts })
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::Unwritten(format!("cannot write {}: {error}", path.display()))
}

/// The first file has the name that was given, the next ones a number in it.
fn numbered(path: &Path, at: usize) -> PathBuf {
    if at == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{}.{}", at + 1, extension.to_string_lossy()),
        None => format!("{stem}-{}", at + 1),
    };
    path.with_file_name(name)
}

fn content_parts(content: Option<&Value>) -> Vec<ResultPart<'_>> {
    let blocks = content.and_then(Value::as_array);
    blocks.into_iter().flatten().map(content_part).collect()
}

fn content_part(block: &Value) -> ResultPart<'_> {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match text("type") {
        "text" => ResultPart::Text(text("text")),
        what @ ("image" | "audio") => ResultPart::Binary {
            what,
            mime: text("mimeType"),
            data: text("data"),
        },
        "resource" => resource_part(&block["resource"]),
        "resource_link" => {
            let about = [text("title"), text("name"), text("description")];
            let about = about
                .into_iter()
                .find(|words| !words.is_empty())
                .unwrap_or_default();
            ResultPart::Line(format!(
                "[link] {}  {}",
                sanitize(text("uri")),
                sanitize(about)
            ))
        }
        other => ResultPart::Line(format!(
            "[{}] {}",
            sanitize(other),
            sanitize(&block.to_string())
        )),
    }
}

fn resource_part(resource: &Value) -> ResultPart<'_> {
    match (resource["text"].as_str(), resource["blob"].as_str()) {
        (Some(text), _) => ResultPart::Text(text),
        (None, Some(data)) => ResultPart::Binary {
            what: "blob",
            mime: resource["mimeType"]
                .as_str()
                .unwrap_or("application/octet-stream"),
            data,
        },
        (None, None) => ResultPart::Line(sanitize(&resource.to_string())),
    }
}

fn parts_text(parts: &[ResultPart<'_>], reader: OutputReader) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            ResultPart::Text(part) => text.push_str(&shown(part, reader)),
            ResultPart::Line(line) => text.push_str(line),
            ResultPart::Binary { what, mime, data } => {
                let length = data.trim().trim_end_matches('=').len() * 3 / 4;
                text.push_str(&format!(
                    "[{what}] {}, {}; --output FILE writes it",
                    sanitize(mime),
                    size_text(length as u64)
                ));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// Whether a text of the result says the same as its structured content, as the protocol asks servers to do.
fn repeats(parts: &[ResultPart<'_>], structured: &Value) -> bool {
    parts.iter().any(|part| match part {
        ResultPart::Text(text) => {
            let same = serde_json::from_str::<Value>(text).ok();
            // `{"result": x}` is how SDKs wrap what is not an object.
            let wrapped = structured.as_object().filter(|members| members.len() == 1);
            let wrapped = wrapped.and_then(|members| members.get("result"));
            same.as_ref() == Some(structured)
                || wrapped.is_some_and(|inner| {
                    inner.as_str() == Some(*text) || same.as_ref() == Some(inner)
                })
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_shown_once_and_binaries_are_described() {
        let result = json!({
            "content": [
                {"type": "text", "text": "one\u{1b}[31m"},
                {"type": "image", "mimeType": "image/png", "data": STANDARD.encode([0; 1500])},
                {"type": "resource", "resource": {"uri": "x:1", "text": "embedded\n"}},
                {"type": "resource_link", "uri": "x:2", "name": "two"},
                {"type": "odd"}
            ],
            "structuredContent": {"sum": 3}
        });
        insta::assert_snapshot!("result", tool_result(&result, OutputReader::Terminal));
        assert!(tool_result(&result, OutputReader::Program).contains("one\u{1b}[31m\n"));
        let twice = json!({"content": [{"type": "text", "text": "{\"sum\":3}"}], "structuredContent": {"sum": 3}});
        assert_eq!(tool_result(&twice, OutputReader::Program), "{\"sum\":3}\n");
        let wrapped = json!({"content": [{"type": "text", "text": "hi"}], "structuredContent": {"result": "hi"}});
        assert_eq!(tool_result(&wrapped, OutputReader::Program), "hi\n");
    }

    #[test]
    fn an_output_that_cannot_be_written_is_a_mistake_before_the_call() {
        let folder = std::env::temp_dir().join(format!("shell-output-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (new, old) = (folder.join("new"), folder.join("old"));
        std::fs::write(&old, "kept").unwrap();
        for good in [Path::new("-"), Path::new("/dev/null"), &new, &old] {
            assert_eq!(check_output(good), Ok(()), "{}", good.display());
        }
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
        for bad in [&folder, &folder.join("none/x"), &old.join("x")] {
            let failure = check_output(bad).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{}", bad.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_result_that_cannot_be_written_is_not_a_mistake() {
        struct FailingOutput(ErrorKind);
        impl Write for FailingOutput {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let result = json!({"content": [{"type": "text", "text": "x"}]});
        let to = |path: &str, kind| {
            let mut out = FailingOutput(kind);
            let written = write_output(&result, Path::new(path), OutputReader::Program, &mut out);
            written.err().unwrap()
        };
        assert_eq!(to("-", ErrorKind::BrokenPipe), CommandFailure::OutputClosed);
        assert_eq!(to("-", ErrorKind::StorageFull).exit_code(), 1);
        assert_eq!(to("/dev/null/x", ErrorKind::Other).exit_code(), 1);
    }

    #[test]
    fn texts_between_binaries_are_not_lost() {
        let folder = std::env::temp_dir().join(format!("shell-texts-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let image = |bytes: &[u8]| json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(bytes)});
        let text = |text: &str| json!({"type": "text", "text": text});
        let link = json!({"type": "resource_link", "uri": "x:1", "name": "one"});
        let result = json!({
            "content": [text("before"), image(b"a"), text("between"), image(b"b"), link],
            "structuredContent": {"count": 2}
        });
        let path = folder.join("x.png");
        let written = |path: &Path| {
            let mut out = Vec::new();
            write_output(&result, path, OutputReader::Program, &mut out).unwrap()
        };
        let to_files = written(&path);
        assert_eq!(std::fs::read(&path).unwrap(), b"a");
        assert_eq!(std::fs::read(folder.join("x-2.png")).unwrap(), b"b");
        assert_eq!(to_files.files.len(), 2);
        assert!(
            to_files.files[1].contains("x-2.png"),
            "{:?}",
            to_files.files
        );
        insta::assert_snapshot!("texts-next-to-files", to_files.texts);
        assert_eq!(written(Path::new("-")).texts, to_files.texts);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn binaries_are_written_and_several_get_numbers() {
        let data = STANDARD.encode(b"abc");
        let image = json!({"type": "image", "mimeType": "image/png", "data": data});
        let mut out = Vec::new();
        let one = json!({"content": [image]});
        write_output(&one, Path::new("-"), OutputReader::Program, &mut out).unwrap();
        assert_eq!(out, b"abc");
        assert_eq!(numbered(Path::new("/x/a.png"), 1), Path::new("/x/a-2.png"));
        let broken = json!({"content": [{"type": "image", "mimeType": "image/png", "data": "%"}]});
        let failure = write_output(&broken, Path::new("-"), OutputReader::Program, &mut out);
        assert_eq!(failure.err().unwrap().exit_code(), 1);
    }
}
