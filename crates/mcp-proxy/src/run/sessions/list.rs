//! `sessions`: the records in the state directory, newest first.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use mcp_proxy_session::SessionRecord;
use mcp_proxy_session::store::{self, RecordListing};
use serde_json::json;

use super::{count_of, formatting, ignore_broken_pipe, record_lookup};
use crate::cli::sessions::SessionsArgs;
use crate::printer;
use crate::run::control;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};

/// A command or URL is shown up to here.
const TARGET: usize = 60;
/// A server's name and transport are shown up to here.
const SERVER: usize = 17;

/// Lists the records.
pub fn run(args: &SessionsArgs) -> Result<ExitCode> {
    ignore_broken_pipe(list(args))
}

fn list(args: &SessionsArgs) -> Result<ExitCode> {
    let folder = store::state_dir()?;
    let records = store::list(&folder)?;
    let mut out = printer::stdout_writer();
    if args.ids {
        ids(&records, &mut out)?;
    } else if args.json {
        records
            .iter()
            .try_for_each(|record| json_line(record, &mut out))?;
    } else {
        table(&folder, &records, SystemTime::now(), &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Ids, and after a tab what they are.
fn ids(records: &[RecordListing], out: &mut impl Write) -> Result<()> {
    let width = record_lookup::id_width(records);
    for record in records {
        writeln!(
            out,
            "{}\t{}  {}",
            control::end_of_id(&record.id, width),
            formatting::day_and_time(record.started_at),
            formatting::cut(&sanitize(&record.target), TARGET),
        )?;
    }
    Ok(())
}

fn table(
    folder: &Path,
    records: &[RecordListing],
    now: SystemTime,
    out: &mut impl Write,
) -> Result<()> {
    if records.is_empty() {
        writeln!(
            out,
            "No records in {}.\n\nEvery run of the proxy makes one:\n  mcp-proxy demo             a short session, to see \
             one\n  mcp-proxy -- COMMAND       in front of a stdio server\n  mcp-proxy URL              in front of an HTTP server",
            folder.display()
        )?;
        return Ok(());
    }
    let width = record_lookup::id_width(records);
    writeln!(
        out,
        "{:<width$}  {:<19}  {:>9} {:>9} {:>9}  {:<SERVER$} target",
        "id", "started (UTC)", "lasted", "messages", "size", "server"
    )?;
    for record in records {
        let session = SessionRecord::open(record.path());
        let (messages, server) = match &session {
            Ok(session) => (session.len().to_string(), session.server()),
            Err(_) => ("?".to_owned(), record.server.clone()),
        };
        writeln!(
            out,
            "{:<width$}  {}  {:>9} {messages:>9} {:>9}  {:<SERVER$} {}",
            control::end_of_id(&record.id, width),
            formatting::day_and_time(record.started_at),
            lasted(record, now),
            formatting::size(record.bytes),
            formatting::cut(&sanitize(&server.to_string()), SERVER),
            target_and_files(record),
        )?;
    }
    let total = formatting::size(records.iter().map(|record| record.bytes).sum());
    let count = count_of(records.len() as u64, "record", "records");
    writeln!(out, "\n{count}, {total}, in {}", folder.display())?;
    Ok(())
}

/// The target, and the number of files if there are several.
fn target_and_files(record: &RecordListing) -> String {
    let target = formatting::cut(&sanitize(&record.target), TARGET);
    match record.paths.len() {
        1 => target,
        files => format!("{target} ({files} files)"),
    }
}

/// How long it took; `live` while it is written; a killed one has not said when it ended.
fn lasted(record: &RecordListing, now: SystemTime) -> String {
    match record.ended_at {
        _ if record.live => "live".to_owned(),
        Some(end) => formatting::span(
            end.min(now)
                .duration_since(record.started_at)
                .unwrap_or_default(),
        ),
        None => "killed".to_owned(),
    }
}

fn json_line(record: &RecordListing, out: &mut impl Write) -> Result<()> {
    let session = SessionRecord::open(record.path()).ok();
    let server = session
        .as_ref()
        .map_or_else(|| record.server.clone(), SessionRecord::server);
    let line = json!({
        "id": record.id,
        "path": record.path().to_string_lossy(),
        "started_at": formatting::stamp(record.started_at),
        "ended_at": record.ended_at.map(formatting::stamp),
        "live": record.live,
        "files": record.paths.len(),
        "messages": session.as_ref().map(SessionRecord::len),
        "bytes": record.bytes,
        "transport": server.transport.as_str(),
        "server": server,
        "target": record.target,
    })
    .to_string();
    let line = if printer::stdout_is_terminal() {
        sanitize_json(&line)
    } else {
        line
    };
    writeln!(out, "{line}")?;
    Ok(())
}
