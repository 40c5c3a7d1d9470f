//! The record of a run: where it goes, what it is called, and the export at its end.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use mcp_proxy_session::export::exporter;
use mcp_proxy_session::{
    RecordErrorPolicy, RecordLocation, Recorder, SessionExporter, SessionHeader, SessionRecord,
    new_session_id, numbered_record, store,
};
use mcp_proxy_wire::terminal_text::sanitize;

use crate::config::{Config, RecordConfig, Target};
use crate::printer;
use crate::run::sessions::export::file;
use crate::run::sessions::{count_of, formatting};

/// A record that has begun, or none.
pub struct RunRecord {
    /// Writes it.
    pub recorder: Option<Recorder>,
    /// What the run is.
    pub about: RunDescription,
    /// What to tell the user about it, after the first line of a listener.
    pub notice: Option<String>,
    /// A record was wanted and there is none: to be told whatever else is not.
    pub warning: Option<String>,
}

/// What a run is, recorded or not.
pub struct RunDescription {
    /// What a record's first line says.
    pub header: SessionHeader,
    /// Where the record is.
    pub path: Option<PathBuf>,
}

impl RunRecord {
    /// No record, as with `--no-record`.
    fn none(header: SessionHeader) -> RunRecord {
        RunRecord {
            recorder: None,
            about: RunDescription { header, path: None },
            notice: None,
            warning: None,
        }
    }
}

/// Begins the record. One that cannot be begun is a failure or a warning, as `--on-record-error` says.
pub fn open(config: &Config) -> Result<RunRecord> {
    let header = header(config);
    let Some(record) = &config.record else {
        return Ok(RunRecord::none(header));
    };
    let options = record.options.clone();
    let place = free_place(record);
    let recorder = match Recorder::create(place, options, &header) {
        Ok(recorder) => recorder,
        Err(error) if record.options.on_error == RecordErrorPolicy::Warn => {
            let warning = sanitize(&format!(
                "mcp-proxy: nothing is recorded: {} (--on-record-error stop refuses to start then)",
                error.chain()
            ));
            return Ok(RunRecord {
                warning: Some(warning),
                ..RunRecord::none(header)
            });
        }
        Err(error) => {
            return Err(error).context("cannot begin the record (--no-record does without)");
        }
    };
    let path = recorder.path().to_owned();
    if record.place == RecordLocation::Default {
        // On another thread, so that a large store costs no start-up time.
        let quiet = config.quiet;
        std::thread::spawn(move || remove_oldest(quiet));
    }
    let elsewhere = matches!(&record.place, RecordLocation::File(wanted) if *wanted != path);
    let export = exporter_of(record).map(|exporter| {
        let target = export_path(&path, exporter);
        format!("; {} is written when the run ends", target.display())
    });
    let export = export.unwrap_or_default();
    let notice = match (elsewhere, config.quiet) {
        (true, _) => Some(format!(
            "mcp-proxy: the session file exists already; recording to {}{export}",
            path.display()
        )),
        (false, false) => Some(format!(
            "mcp-proxy: recording to {}{export}",
            path.display()
        )),
        (false, true) => None,
    };
    Ok(RunRecord {
        recorder: Some(recorder),
        about: RunDescription {
            header,
            path: Some(path),
        },
        notice,
        warning: None,
    })
}

/// A name that is free, also for the export at the end: the two have the same number.
fn free_place(record: &RecordConfig) -> RecordLocation {
    let (RecordLocation::File(wanted), Some(exporter)) = (&record.place, exporter_of(record))
    else {
        return record.place.clone();
    };
    let is_free = |path: &PathBuf| {
        let export = path.with_extension(exporter.extension());
        !path.exists() && !export.exists()
    };
    let mut names = (1..).map(|number| numbered_record(wanted, number));
    RecordLocation::File(names.find(is_free).unwrap_or_else(|| wanted.clone()))
}

fn exporter_of(record: &RecordConfig) -> Option<&'static SessionExporter> {
    exporter(record.export.as_deref()?)
}

/// Keeps the state directory small, and says what that cost.
fn remove_oldest(quiet: bool) {
    let Ok(folder) = store::state_dir() else {
        return;
    };
    let pruned = store::prune_to_size(&folder, store::DEFAULT_LIMIT).unwrap_or_default();
    if !pruned.removed.is_empty() && !quiet {
        printer::say(&format!(
            "mcp-proxy: removed {} ({}) to keep {} under {}",
            count_of(pruned.removed.len() as u64, "old record", "old records"),
            formatting::size(pruned.bytes),
            folder.display(),
            formatting::size(store::DEFAULT_LIMIT)
        ));
    }
}

/// Writes the export that `--output-format` asked for. A record in several parts has one, named after the first.
pub fn finish(parts: &[PathBuf], record: Option<&RecordConfig>, quiet: bool) -> Result<()> {
    let Some(exporter) = record.and_then(exporter_of) else {
        return Ok(());
    };
    let Some(first) = parts.first() else {
        return Ok(());
    };
    let target = export_path(first, exporter);
    let existing = file::ExistingFile::Keep("it is not overwritten");
    export(first, exporter, &target, existing)?;
    if !quiet {
        printer::say(&format!("mcp-proxy: exported to {}", target.display()));
    }
    Ok(())
}

/// Writes an export: private like the record, and whole or not at all.
pub fn export(
    record: &Path,
    exporter: &SessionExporter,
    target: &Path,
    existing: file::ExistingFile,
) -> Result<u64> {
    let session = SessionRecord::open(record)?;
    let records = session.paths().chain([record]);
    file::ExportFile::new(target, records, existing)?.write(|sink| {
        let mut out = BufWriter::with_capacity(1 << 16, sink);
        exporter.export(&session, &mut out, &mut |_, _| {})?;
        out.flush().context("cannot write the export")
    })
}

/// `x.jsonl` becomes `x.json`, or `x.2.json` and so on where that is taken.
fn export_path(record: &Path, exporter: &SessionExporter) -> PathBuf {
    let first = record.with_extension(exporter.extension());
    let mut names = (1..).map(|number| numbered_record(&first, number));
    let free = names.find(|path| !path.exists());
    free.unwrap_or(first)
}

fn header(config: &Config) -> SessionHeader {
    let started_at = SystemTime::now();
    let (server_command, server_url) = match &config.target {
        Target::Command(command) => {
            let words = super::dial::words(command);
            let joined = shlex::try_join(words.iter().map(String::as_str));
            (Some(joined.unwrap_or_else(|_| words.join(" "))), None)
        }
        Target::Url { url, .. } => (None, Some(url.to_string())),
        Target::Recording(played) => (Some(format!("mcp-proxy mock {}", played.shown)), None),
        Target::Hub(hub) => {
            let servers = hub.servers();
            let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
            (
                Some(format!("mcp-proxy serve ({})", names.join(", "))),
                None,
            )
        }
        Target::Relay(_) => (Some("mcp-proxy relay".to_owned()), None),
    };
    let replay_of = config.replay_of.iter().map(|session| {
        let key = SessionHeader::REPLAY_OF.to_owned();
        (key, session.as_str().into())
    });
    SessionHeader {
        id: new_session_id(started_at),
        started_at,
        client: config.client(),
        server: config.target.peer(),
        server_command,
        server_url,
        argv: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        cwd: std::env::current_dir()
            .ok()
            .map(|dir| dir.display().to_string()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        metadata: replay_of.collect(),
    }
}
