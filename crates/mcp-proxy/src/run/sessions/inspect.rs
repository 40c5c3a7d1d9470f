//! `inspect`: what a record holds, as a table, in detail, as JSON or as the exact bytes.
//!
//! One walk over the record's lines serves all of them, and `--follow` is the same walk again from where it ended.
//! Nothing here writes to the record: a torn end is cut off before, where the record is found.

mod detail;
mod event_line;

pub use event_line::EventLine;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use mcp_proxy_session::{BodyInclusion, Error, Filter, RawBody, RecordedLine, SessionRecord};

use super::table::MessageTable;
use super::{count_of, formatting, ignore_broken_pipe, record_lookup, report_damage};
use crate::cli::sessions::InspectArgs;
use crate::printer;
use crate::run::control;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};

/// How often `--follow` looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints a record.
pub fn run(args: &InspectArgs) -> Result<ExitCode> {
    ignore_broken_pipe(inspect(args))
}

fn inspect(args: &InspectArgs) -> Result<ExitCode> {
    let path = record_lookup::find(&args.record)?;
    let mut view = RecordPrinter::open(args, &path)?;
    let mut out = printer::stdout_writer();
    view.title(&mut out)?;
    loop {
        // Asked before reading: what a proxy wrote before it let go of the record is read below.
        let live = view.records.session.is_live();
        view.print_new_lines(&mut out)?;
        out.flush()?;
        let session = &view.records.session;
        // A new file may have begun meanwhile.
        if !args.follow || session.end().is_some() || !(live || session.is_live()) {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    view.finish(&mut out)?;
    out.flush()?;
    report_damage(&view.records.session);
    Ok(ExitCode::SUCCESS)
}

/// How messages are shown.
enum InspectFormat {
    Table(MessageTable),
    Detail,
    Json,
    Raw,
}

impl InspectFormat {
    fn new(args: &InspectArgs) -> InspectFormat {
        match (args.raw, args.json, args.seq) {
            (true, ..) => InspectFormat::Raw,
            (_, true, _) => InspectFormat::Json,
            (_, _, Some(_)) => InspectFormat::Detail,
            _ => InspectFormat::Table(MessageTable::new(printer::colours())),
        }
    }
}

/// A session and how far it has been shown.
struct RecordPrinter<'a> {
    records: InspectedRecord,
    messages: MessagePrinter<'a>,
    /// Where the next line starts.
    lines: u64,
    /// The next row.
    rows: usize,
}

/// What is read.
struct InspectedRecord {
    /// What is shown, without what is to be hidden.
    session: SessionRecord,
    /// What the filter looks at where that differs: the record as it is.
    whole: Option<SessionRecord>,
}

/// Which messages are shown, and how.
struct MessagePrinter<'a> {
    args: &'a InspectArgs,
    filter: Filter,
    form: InspectFormat,
    /// Messages shown.
    shown: u64,
}

impl<'a> RecordPrinter<'a> {
    /// Opens the session that a record belongs to; nothing is shown yet.
    fn open(args: &'a InspectArgs, path: &Path) -> Result<RecordPrinter<'a>> {
        let filter = match &args.filter {
            Some(filter) => super::filter(filter)?,
            None => super::filter(&args.words.join(" "))?,
        };
        let redaction = super::redaction(&args.redact)?;
        let mut session = SessionRecord::open(path)?;
        let mut whole = None;
        if let Some(redaction) = &redaction {
            session = session.redacted(redaction);
            whole = match filter.is_empty() {
                true => None,
                false => Some(SessionRecord::open(path)?),
            };
        }
        Ok(RecordPrinter {
            records: InspectedRecord { session, whole },
            messages: MessagePrinter {
                args,
                filter,
                form: InspectFormat::new(args),
                shown: 0,
            },
            lines: 0,
            rows: 0,
        })
    }

    /// What the record is, above the table.
    fn title(&self, out: &mut impl Write) -> Result<()> {
        if !matches!(self.messages.form, InspectFormat::Table(_)) {
            return Ok(());
        }
        let session = &self.records.session;
        let header = session.header();
        let target = header
            .server_command
            .as_ref()
            .or(header.server_url.as_ref());
        let target = target
            .map(|target| format!("  {}", sanitize(target)))
            .unwrap_or_default();
        let started = formatting::day_and_time(header.started_at);
        let peers = format!("{} ► {}", header.client, session.server());
        writeln!(
            out,
            "{}  {started}  {}{target}",
            control::short_id(&header.id),
            sanitize(&peers)
        )?;
        if let Some(previous) = session.missing_beginning() {
            let previous = file_name(&previous);
            writeln!(out, "the session begins in {previous}, which is missing")?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Shows the lines that were added since.
    fn print_new_lines(&mut self, out: &mut impl Write) -> Result<()> {
        let InspectedRecord { session, whole } = &mut self.records;
        session.refresh()?;
        if let Some(whole) = whole {
            whole.refresh()?;
        }
        let session = &self.records.session;
        let seen = self.rows;
        for record in session.stored_lines(self.lines) {
            let record = record?;
            let is_message = session
                .row(self.rows)
                .is_some_and(|row| row.offset() == record.offset);
            if is_message {
                self.rows += 1;
                self.messages.message(&self.records, self.rows - 1, out)?;
            } else {
                self.messages.other(session, &record, seen, out)?;
            }
        }
        self.lines = session.bytes();
        Ok(())
    }

    /// How it ended, below the table.
    fn finish(&self, out: &mut impl Write) -> Result<()> {
        self.messages.finish(&self.records.session, out)
    }
}

impl MessagePrinter<'_> {
    fn message(
        &mut self,
        records: &InspectedRecord,
        index: usize,
        out: &mut impl Write,
    ) -> Result<()> {
        let session = &records.session;
        let Some(row) = session.row(index) else {
            return Ok(());
        };
        let wanted = self
            .args
            .seq
            .is_none_or(|seq| (seq.first..=seq.last).contains(&row.sequence()));
        let whole = records.whole.as_ref().unwrap_or(session);
        if !wanted
            || !self
                .filter
                .matches(whole, whole.row(index).unwrap_or(row))?
        {
            return Ok(());
        }
        self.shown += 1;
        let shown = match &mut self.form {
            InspectFormat::Table(table) => table.row(session, index, out),
            InspectFormat::Detail => detail::write(session, index, out),
            InspectFormat::Json => session
                .message_with_context(index)
                .map_err(Into::into)
                .and_then(|told| write_json(out, &told.to_json(BodyInclusion::Include))),
            InspectFormat::Raw => write_raw(session, index, out),
        };
        match shown {
            // One bad line does not hide the others.
            Err(error) if matches!(error.downcast_ref(), Some(Error::Damaged { .. })) => {
                out.flush()?;
                printer::fail(&error);
                Ok(())
            }
            other => other,
        }
    }

    /// A line that is not a message: shown with `--all`, and when it says what became of a message shown before.
    fn other(
        &mut self,
        session: &SessionRecord,
        record: &RecordedLine,
        seen: usize,
        out: &mut impl Write,
    ) -> Result<()> {
        let late_verdict = || {
            let sequence = (record.kind() == "act")
                .then(|| record.member("sequence"))
                .flatten();
            sequence
                .and_then(|sequence| session.find(sequence))
                .is_some_and(|row| row < seen)
        };
        if matches!(record.kind(), "" | "session" | "end") || !(self.args.all || late_verdict()) {
            return Ok(());
        }
        if !self.filter.matches_text(&EventLine::read(record).text) {
            return Ok(());
        }
        let record = session.redact_line(record.clone())?;
        let happening = EventLine::read(&record);
        match &mut self.form {
            InspectFormat::Table(table) => table.event(session, &happening, out),
            InspectFormat::Json if self.args.all => write_json(out, &record.line),
            _ => Ok(()),
        }
    }

    fn finish(&self, session: &SessionRecord, out: &mut impl Write) -> Result<()> {
        let len = session.len() as u64;
        if let (Some(seq), 0, true) = (self.args.seq, self.shown, self.filter.is_empty()) {
            let rows = session.rows();
            let last = rows.iter().map(|row| row.sequence()).max();
            let range = last.map_or("it has none".to_owned(), |last| {
                format!("its last is {last}")
            });
            bail!("the record has no message {seq}: {range}");
        }
        if !matches!(self.form, InspectFormat::Table(_)) {
            return Ok(());
        }
        let messages = count_of(len, "message", "messages");
        let count = if self.filter.is_empty() {
            messages
        } else {
            format!("{} of {messages}", self.shown)
        };
        let end = match (session.end(), session.missing_continuation()) {
            (Some(end), _) => format!(
                "ended {}: {}",
                formatting::time_of_day(end.timestamp),
                sanitize(&end.why)
            ),
            (None, _) if session.is_live() => {
                "still being written (--follow waits for more)".to_owned()
            }
            (None, Some(next)) => format!(
                "the session continues in {}, which is missing",
                file_name(&next)
            ),
            (None, None) => {
                "no end was recorded: the proxy was killed, the machine stopped, or the record could not be written"
                    .to_owned()
            }
        };
        writeln!(out, "\n{count}; {end}")?;
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    sanitize(&name.to_string_lossy())
}

/// A JSON line. On a terminal, letters that act on it are escaped, which leaves the same JSON.
pub fn write_json(out: &mut impl Write, line: &[u8]) -> Result<()> {
    match std::str::from_utf8(line) {
        Ok(text) if printer::stdout_is_terminal() => {
            out.write_all(sanitize_json(text).as_bytes())?
        }
        _ => out.write_all(line)?,
    }
    out.write_all(b"\n")?;
    Ok(())
}

/// The exact bytes and a newline.
fn write_raw(session: &SessionRecord, index: usize, out: &mut impl Write) -> Result<()> {
    let message = session.message(index)?;
    match &message.raw {
        RawBody::NotStored { len } => {
            printer::say(&format!(
                "mcp-proxy: message {}: its {len} bytes are not in the record",
                message.sequence
            ));
            return Ok(());
        }
        raw => out.write_all(raw.bytes().unwrap_or_default())?,
    }
    out.write_all(b"\n")?;
    Ok(())
}
