//! Exports: a record in other people's formats.
//!
//! [`SessionExporter`] is the extension point that the seed names. To add a format, write one file in `export/` with a
//! `SessionExporter` and add that to [`exporters`]; help texts and `--output-format` are made from that list. Every exporter
//! streams: it holds one message at a time, or one HTTP exchange.

mod body;
mod har;
mod json;
mod jsonl;
mod markdown;

pub(crate) use jsonl::write as write_lines;

use crate::{Error, SessionRecord};
use std::io::Write;
use std::path::Path;

/// A format: what it is called, and the function that writes a session in it.
pub struct SessionExporter {
    name: &'static str,
    extension: &'static str,
    about: &'static str,
    write: WriteExport,
}

/// See [`SessionExporter::export`].
type WriteExport =
    fn(&SessionRecord, &mut dyn Write, &mut dyn FnMut(u64, u64)) -> Result<(), Error>;

impl SessionExporter {
    /// The word for `--output-format`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The usual ending of such files, without a dot.
    pub fn extension(&self) -> &'static str {
        self.extension
    }

    /// One line for help texts.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Writes `session` to `out`. `progress` is told now and then how much of how much is done.
    pub fn export(
        &self,
        session: &SessionRecord,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        (self.write)(session, out, progress)
    }
}

/// All formats.
pub fn exporters() -> &'static [SessionExporter] {
    &[json::JSON, jsonl::JSONL, har::HAR, markdown::MARKDOWN]
}

/// The format with this name, which may be the ending of its files.
pub fn exporter(name: &str) -> Option<&'static SessionExporter> {
    exporters()
        .iter()
        .find(|exporter| [exporter.name, exporter.extension].contains(&name))
}

/// The exporter whose files have the ending of this one, or `json` for a file without an ending. None has any other ending.
pub fn exporter_for_file(path: &Path) -> Option<&'static SessionExporter> {
    let Some(ending) = path.extension() else {
        return exporter("json");
    };
    exporters()
        .iter()
        .find(|exporter| ending.eq_ignore_ascii_case(exporter.extension))
}

/// The endings of exported files: `.json, .jsonl, .har, .md`.
pub fn file_endings() -> String {
    let endings = exporters().iter().map(|exporter| exporter.extension);
    let endings: Vec<String> = endings.map(|ending| format!(".{ending}")).collect();
    endings.join(", ")
}

/// Tells progress about every thousandth step, so that a screen is not redrawn a million times.
fn report_progress(done: usize, total: usize, progress: &mut dyn FnMut(u64, u64)) {
    if done.is_multiple_of(1000) || done == total {
        progress(done as u64, total as u64);
    }
}
