//! `export`: a record in another format, to stdout or to a file that is there whole or not at all.

pub mod file;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::export::exporter;
use mcp_proxy_session::{Session, SessionExporter};

use super::{named, quiet_pipe, report_damage, words};
use crate::cli::sessions::ExportArgs;
use crate::printer::{
    self,
    progress::{Progress, Results},
};
use file::Target;

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
        .map(|output| Target::new(output, &path, args.force))
        .transpose()?;
    let mut session = Session::open(&path)?;
    session.keep(&filter)?;
    if let Some(redaction) = &redaction {
        session = session.redacted(redaction);
    }
    match target {
        None => {
            let mut out = printer::out();
            let results = match printer::stdout_is_terminal() {
                true => Results::Between,
                false => Results::Apart,
            };
            write(format, &session, &mut out, results)?;
            out.flush()?;
        }
        Some(target) => {
            let size = target.write(|file| {
                let mut out = BufWriter::with_capacity(1 << 16, file);
                write(format, &session, &mut out, Results::Apart)?;
                out.flush().context("cannot write the export")
            })?;
            let output = args.output.as_deref().unwrap_or(&path).display();
            printer::say(&format!(
                "mcp-proxy: wrote {output} ({})",
                words::size(size)
            ));
        }
    }
    report_damage(&session);
    Ok(ExitCode::SUCCESS)
}

fn write(
    format: &dyn SessionExporter,
    session: &Session,
    out: &mut dyn Write,
    results: Results,
) -> Result<()> {
    let mut progress = Progress::new("exporting", results);
    let written = format.export(session, out, &mut |done, total| progress.tell(done, total));
    drop(progress);
    Ok(written?)
}
