//! Exports: a record in other people's formats.
//!
//! [`SessionExporter`] is the extension point that the seed names. To add a format, write one file in `export/` with an
//! `ExportFormat` and add that to [`exporters`]; help texts and `--output-format` are made from that list. Every exporter
//! streams: it holds one message at a time.

mod body;
mod har;
mod json;
mod jsonl;
mod markdown;

pub(crate) use jsonl::write as write_lines;

use crate::{Error, SessionRecord};
use std::io::Write;
use std::path::Path;

/// Writes a session in one format.
pub trait SessionExporter: Sync {
    /// The word for `--output-format`.
    fn name(&self) -> &'static str;

    /// The usual ending of such files, without a dot.
    fn extension(&self) -> &'static str;

    /// One line for help texts.
    fn about(&self) -> &'static str;

    /// Writes `session` to `out`. `progress` is told now and then how much of how much is done.
    fn export(
        &self,
        session: &SessionRecord,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error>;
}

/// A format of this crate: what it is called, and the function that writes it.
struct ExportFormat {
    name: &'static str,
    extension: &'static str,
    about: &'static str,
    write: WriteExport,
}

/// What [`SessionExporter::export`] does.
type WriteExport =
    fn(&SessionRecord, &mut dyn Write, &mut dyn FnMut(u64, u64)) -> Result<(), Error>;

impl SessionExporter for ExportFormat {
    fn name(&self) -> &'static str {
        self.name
    }

    fn extension(&self) -> &'static str {
        self.extension
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn export(
        &self,
        session: &SessionRecord,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        (self.write)(session, out, progress)
    }
}

/// All formats.
pub fn exporters() -> &'static [&'static dyn SessionExporter] {
    &[&json::JSON, &jsonl::JSONL, &har::HAR, &markdown::MARKDOWN]
}

/// The format with this name, which may be the ending of its files.
pub fn exporter(name: &str) -> Option<&'static dyn SessionExporter> {
    exporters()
        .iter()
        .copied()
        .find(|exporter| [exporter.name(), exporter.extension()].contains(&name))
}

/// The exporter whose files have the ending of this one, or `json` for a file without an ending. None has any other ending.
pub fn exporter_for_file(path: &Path) -> Option<&'static dyn SessionExporter> {
    let Some(ending) = path.extension() else {
        return Some(&json::JSON);
    };
    let mut exporters = exporters().iter().copied();
    exporters.find(|exporter| ending.eq_ignore_ascii_case(exporter.extension()))
}

/// The endings of exported files: `.json, .jsonl, .har, .md`.
pub fn file_endings() -> String {
    let endings = exporters().iter().map(|exporter| exporter.extension());
    let endings: Vec<String> = endings.map(|ending| format!(".{ending}")).collect();
    endings.join(", ")
}

/// Tells progress about every thousandth step, so that a screen is not redrawn a million times.
fn report_progress(done: usize, total: usize, progress: &mut dyn FnMut(u64, u64)) {
    if done.is_multiple_of(1000) || done == total {
        progress(done as u64, total as u64);
    }
}
