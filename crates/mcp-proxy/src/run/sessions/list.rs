//! `sessions`: the records in the state directory, newest first.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use mcp_proxy_session::Session;
use mcp_proxy_session::store::{self, Listed};
use serde_json::json;

use super::{counted, named, quiet_pipe, words};
use crate::cli::sessions::SessionsArgs;
use crate::printer;
use mcp_proxy_wire::visible::{visible, visible_json};

/// A command or URL is shown up to here.
const TARGET: usize = 60;
/// A server's name and transport are shown up to here.
const SERVER: usize = 17;

/// Lists the records.
pub fn run(args: &SessionsArgs) -> Result<ExitCode> {
    quiet_pipe(list(args))
}

fn list(args: &SessionsArgs) -> Result<ExitCode> {
    let folder = store::state_dir()?;
    let records = store::list(&folder)?;
    let mut out = printer::out();
    if args.json {
        records
            .iter()
            .try_for_each(|record| json_line(record, &mut out))?;
    } else {
        table(&folder, &records, SystemTime::now(), &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(folder: &Path, records: &[Listed], now: SystemTime, out: &mut impl Write) -> Result<()> {
    if records.is_empty() {
        writeln!(
            out,
            "No records in {}.\n\nEvery run of the proxy makes one:\n  mcp-proxy demo             a short session, to see \
             one\n  mcp-proxy -- COMMAND       before a stdio server\n  mcp-proxy URL              before an HTTP server",
            folder.display()
        )?;
        return Ok(());
    }
    let width = named::id_width(records);
    writeln!(
        out,
        "{:<width$}  {:<19}  {:>9} {:>9} {:>9}  {:<SERVER$} target",
        "id", "started (UTC)", "lasted", "messages", "size", "server"
    )?;
    for record in records {
        let session = Session::open(&record.path);
        let (messages, server) = match &session {
            Ok(session) => (session.len().to_string(), session.server()),
            Err(_) => ("?".to_owned(), record.server.clone()),
        };
        writeln!(
            out,
            "{:<width$}  {}  {:>9} {messages:>9} {:>9}  {:<SERVER$} {}",
            named::short_id(record, width),
            words::day_and_time(record.started_at),
            lasted(record, now),
            words::size(record.bytes),
            words::cut(&visible(&server.to_string()), SERVER),
            words::cut(&visible(&record.target), TARGET),
        )?;
    }
    let total = words::size(records.iter().map(|record| record.bytes).sum());
    let count = counted(records.len() as u64, "record", "records");
    writeln!(out, "\n{count}, {total}, in {}", folder.display())?;
    Ok(())
}

/// How long it took; `live` while it is written; a killed one has no end.
fn lasted(record: &Listed, now: SystemTime) -> String {
    match record.ended_at {
        _ if record.live => "live".to_owned(),
        Some(end) => words::span(
            end.min(now)
                .duration_since(record.started_at)
                .unwrap_or_default(),
        ),
        None => "no end".to_owned(),
    }
}

fn json_line(record: &Listed, out: &mut impl Write) -> Result<()> {
    let session = Session::open(&record.path).ok();
    let server = session
        .as_ref()
        .map_or_else(|| record.server.clone(), Session::server);
    let line = json!({
        "id": record.id,
        "path": record.path.to_string_lossy(),
        "started_at": words::stamp(record.started_at),
        "ended_at": record.ended_at.map(words::stamp),
        "live": record.live,
        "messages": session.as_ref().map(Session::len),
        "bytes": record.bytes,
        "transport": server.transport.as_str(),
        "server": server,
        "target": record.target,
    })
    .to_string();
    let line = if printer::stdout_is_terminal() {
        visible_json(&line)
    } else {
        line
    };
    writeln!(out, "{line}")?;
    Ok(())
}
