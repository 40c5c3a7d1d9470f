//! `export`: a record in another format, to stdout or to a file that is there whole or not at all.

mod file;

use std::io::{BufWriter, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use mcp_proxy_session::export::exporter;
use mcp_proxy_session::{Session, SessionExporter};

use super::{named, quiet_pipe, report_damage, words};
use crate::cli::sessions::ExportArgs;
use crate::printer;
use file::Target;

/// Work that takes longer than this shows how far it is.
const LONG: Duration = Duration::from_millis(500);

/// Writes a record in another format.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    quiet_pipe(export(args))
}

fn export(args: &ExportArgs) -> Result<ExitCode> {
    let format = exporter(&args.output_format)
        .with_context(|| format!("--output-format: {} is not known", args.output_format))?;
    let path = named::find(&args.record)?;
    // Looked at first: reading a large record in vain would be a pity.
    let target = args
        .output
        .as_deref()
        .map(|output| Target::new(output, &path, args.force))
        .transpose()?;
    let session = Session::open(&path)?;
    match target {
        None => {
            let mut out = printer::out();
            write(
                format,
                &session,
                &mut out,
                Progress::new(!printer::stdout_is_terminal()),
            )?;
            out.flush()?;
        }
        Some(target) => {
            let size = target.write(|file| {
                let mut out = BufWriter::with_capacity(1 << 16, file);
                write(format, &session, &mut out, Progress::new(true))?;
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
    mut progress: Progress,
) -> Result<()> {
    let written = format.export(session, out, &mut |done, total| progress.tell(done, total));
    progress.clear();
    Ok(written?)
}

/// A bar on stderr, only for a person and only if it takes long.
struct Progress {
    allowed: bool,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `free`: the result does not go to the same screen.
    fn new(free: bool) -> Progress {
        Progress {
            allowed: free && std::io::stderr().is_terminal(),
            started: Instant::now(),
            bar: None,
        }
    }

    fn tell(&mut self, done: u64, total: u64) {
        if !self.allowed || self.started.elapsed() < LONG {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("exporting {wide_bar} {percent:>3}% {eta}");
            ProgressBar::new(total)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(done);
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
