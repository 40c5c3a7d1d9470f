//! `export`: a record in another format, to stdout or to a file that is there whole or not at all.

pub mod file;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::export::{Exported, exporter};
use mcp_proxy_session::{Session, SessionExporter, side_folder};
use mcp_proxy_wire::visible::visible;

use super::{counted, named, quiet_pipe, report_damage, words};
use crate::cli::sessions::ExportArgs;
use crate::printer::{
    self,
    progress::{Progress, Results},
};
use file::{Existing, Target};

/// Writes a record in another format.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    quiet_pipe(export(args))
}

fn export(args: &ExportArgs) -> Result<ExitCode> {
    let format = exporter(&args.output_format)
        .with_context(|| format!("--output-format: {} is not known", args.output_format))?;
    let filter = super::filter(args.filter.as_deref().unwrap_or_default())?;
    let redaction = super::redaction(&args.redact)?;
    let path = named::find(&args.record)?;
    // Looked at first: reading a large record in vain would be a pity.
    let target = args
        .output
        .as_deref()
        .map(|output| Target::new(output, &path, existing(args)))
        .transpose()?;
    let mut session = Session::open(&path)?;
    session.keep(&filter)?;
    if let Some(redaction) = &redaction {
        session = session.redacted(redaction);
    }
    let exported = match target {
        None => {
            let mut out = printer::out();
            let results = match printer::stdout_is_terminal() {
                true => Results::Between,
                false => Results::Apart,
            };
            let exported = write(format, &session, &mut out, results)?;
            out.flush()?;
            exported
        }
        Some(target) => {
            let mut exported = Exported::default();
            let size = target.write(|file| {
                let mut out = BufWriter::with_capacity(1 << 16, file);
                exported = write(format, &session, &mut out, Results::Apart)?;
                out.flush().context("cannot write the export")
            })?;
            let output = args.output.as_deref().unwrap_or(&path).display();
            printer::say(&format!(
                "mcp-proxy: wrote {output} ({})",
                words::size(size)
            ));
            exported
        }
    };
    report_damage(&session);
    if let Some(text) = lacking(exported, &session) {
        printer::say(&visible(&format!("mcp-proxy: {text}")));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn existing(args: &ExportArgs) -> Existing {
    match args.force {
        true => Existing::Replace,
        false => Existing::Keep("--force overwrites it"),
    }
}

/// What an export that was written is without, if anything.
pub fn lacking(exported: Exported, session: &Session) -> Option<String> {
    (exported.missing > 0).then(|| {
        format!(
            "{} missing from {} (the export is marked there)",
            counted(exported.missing, "large body is", "large bodies are"),
            side_folder(session.path()).display()
        )
    })
}

fn write(
    format: &dyn SessionExporter,
    session: &Session,
    out: &mut dyn Write,
    results: Results,
) -> Result<Exported> {
    let mut progress = Progress::new("exporting", results);
    let written = format.export(session, out, &mut |done, total| progress.tell(done, total));
    drop(progress);
    Ok(written?)
}
