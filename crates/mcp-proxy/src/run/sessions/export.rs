//! `export`: a record in another format, to stdout or to a file that is there whole or not at all.

pub mod file;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::export::{exporter, exporter_for_file, file_endings};
use mcp_proxy_session::{SessionExporter, SessionRecord};
use mcp_proxy_wire::terminal_text::sanitize;

use super::{formatting, ignore_broken_pipe, record_lookup, report_damage};
use crate::cli::sessions::ExportArgs;
use crate::printer::{
    self,
    progress::{ProgressBar, ResultPlace},
};
use crate::run::UsageError;
use file::{ExistingFile, ExportFile};

/// Writes a record in another format.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    ignore_broken_pipe(export(args))
}

/// The file to write. `-` is stdout, as for other programs.
fn output(args: &ExportArgs) -> Option<&Path> {
    args.output
        .as_deref()
        .filter(|output| *output != Path::new("-"))
}

/// The format that is asked for, or else that of the file.
fn format(args: &ExportArgs) -> Result<&'static SessionExporter> {
    if let Some(name) = &args.output_format {
        return exporter(name).context("--output-format: this format is not known");
    }
    let output = output(args).unwrap_or(Path::new(""));
    exporter_for_file(output).ok_or_else(|| {
        let name = output.to_string_lossy();
        UsageError(format!(
            "{}: no format has this ending; use one of {}, or say --output-format",
            sanitize(&name),
            file_endings()
        ))
        .into()
    })
}

fn export(args: &ExportArgs) -> Result<ExitCode> {
    let format = format(args)?;
    let filter = super::filter(args.filter.as_deref().unwrap_or_default())?;
    let redaction = super::redaction(&args.redact)?;
    let path = record_lookup::find(&args.record)?;
    let mut session = SessionRecord::open(&path)?;
    // Looked at before the messages: reading a large record in vain would be a pity.
    let records = session.paths().chain([path.as_path()]);
    let target = output(args)
        .map(|output| ExportFile::new(output, records, existing(args)))
        .transpose()?;
    session.retain_matching(&filter)?;
    if let Some(redaction) = &redaction {
        session = session.redacted(redaction);
    }
    match target {
        None => {
            let mut out = printer::stdout_writer();
            let results = match printer::stdout_is_terminal() {
                true => ResultPlace::SameScreen,
                false => ResultPlace::Elsewhere,
            };
            write(format, &session, &mut out, results)?;
            out.flush()?;
        }
        Some(target) => {
            let size = target.write(|file| {
                let mut out = BufWriter::with_capacity(1 << 16, file);
                write(format, &session, &mut out, ResultPlace::Elsewhere)?;
                out.flush().context("cannot write the export")
            })?;
            let output = output(args).unwrap_or(&path).display();
            printer::say(&format!(
                "mcp-proxy: wrote {output} ({})",
                formatting::size(size)
            ));
        }
    }
    report_damage(&session);
    Ok(ExitCode::SUCCESS)
}

fn existing(args: &ExportArgs) -> ExistingFile {
    match args.force {
        true => ExistingFile::Replace,
        false => ExistingFile::Keep("--force overwrites it"),
    }
}

fn write(
    format: &SessionExporter,
    session: &SessionRecord,
    out: &mut dyn Write,
    results: ResultPlace,
) -> Result<()> {
    let mut progress = ProgressBar::new("exporting", results);
    let written = format.export(session, out, &mut |done, total| progress.tell(done, total));
    drop(progress);
    Ok(written?)
}
