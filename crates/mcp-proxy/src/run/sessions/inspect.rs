//! `inspect`: what a record holds, as a table, in detail, as JSON or as the exact bytes.
//!
//! One walk over the record's lines serves all of them, and `--follow` is the same walk again from where it ended.
//! Nothing here writes to the record: a torn end is cut off before, where the record is found.

mod detail;
mod event_line;

pub use event_line::EventLine;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_session::{
    BodyInclusion, Error, Filter, LONGEST_LINE, RawBody, RecordedLine, SessionRecord,
};

use super::table::MessageTable;
use super::{count_of, formatting, ignore_broken_pipe, record_lookup, report_damage};
use crate::cli::sessions::InspectArgs;
use crate::printer;
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
    loop {
        view.title(&mut out)?;
        print_record(&mut view, &mut out)?;
        view.finish(&mut out)?;
        out.flush()?;
        report_damage(&view.session);
        match view.next_part()? {
            Some(next) if args.follow => view = next,
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Prints one file of the record: what is there, and with `--follow` what comes.
fn print_record(view: &mut RecordPrinter<'_>, out: &mut impl Write) -> Result<()> {
    loop {
        // Asked before reading: what a proxy wrote before it let go of the record is read below.
        let live = view.session.is_live();
        view.print_new_lines(out)?;
        out.flush()?;
        if !view.args.follow || !live || view.session.end().is_some() {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
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

/// A record and how far it has been shown.
pub struct RecordPrinter<'a> {
    args: &'a InspectArgs,
    filter: Filter,
    form: InspectFormat,
    /// What is shown, without what is to be hidden.
    session: SessionRecord,
    /// What the filter looks at where that differs: the record as it is.
    whole: Option<SessionRecord>,
    file: File,
    /// Where the next line starts.
    lines: u64,
    /// The next row.
    rows: usize,
    /// Messages shown.
    shown: u64,
}

impl<'a> RecordPrinter<'a> {
    /// Opens a record; nothing is shown yet.
    pub fn open(args: &'a InspectArgs, path: &Path) -> Result<RecordPrinter<'a>> {
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
        // A JSON export has a record somewhere else.
        let path = session.path();
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(RecordPrinter {
            args,
            filter,
            form: InspectFormat::new(args),
            session,
            whole,
            file,
            lines: 0,
            rows: 0,
            shown: 0,
        })
    }

    /// The part that follows this one, if there is one; nothing of it is shown yet.
    pub fn next_part(&self) -> Result<Option<RecordPrinter<'a>>> {
        let next = self.session.next_part().filter(|path| path.exists());
        next.map(|path| RecordPrinter::open(self.args, &path))
            .transpose()
    }

    /// Begins with the last rows only. Returns how many are left out.
    pub fn skip_to_last(&mut self, count: usize) -> usize {
        self.rows = self.session.len().saturating_sub(count);
        self.lines = match self.session.row(self.rows) {
            Some(row) => row.offset(),
            None => self.session.bytes(),
        };
        self.rows
    }

    /// What the record is, above the table.
    pub fn title(&self, out: &mut impl Write) -> Result<()> {
        if !matches!(self.form, InspectFormat::Table(_)) {
            return Ok(());
        }
        let header = self.session.header();
        let target = header
            .server_command
            .as_ref()
            .or(header.server_url.as_ref());
        let target = target
            .map(|target| format!("  {}", sanitize(target)))
            .unwrap_or_default();
        let started = formatting::day_and_time(header.started_at);
        let peers = format!("{} ► {}", header.client, self.session.server());
        writeln!(
            out,
            "{}  {started}  {}{target}",
            sanitize(&header.id),
            sanitize(&peers)
        )?;
        if let Some(previous) = self.session.previous_part() {
            let number = self.session.part().number;
            let gone = if previous.exists() {
                ""
            } else {
                ", removed since"
            };
            let previous = file_name(&previous);
            writeln!(
                out,
                "part {number} of the session; the one before it: {previous}{gone}"
            )?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Shows the lines that were added since.
    pub fn print_new_lines(&mut self, out: &mut impl Write) -> Result<()> {
        self.session.refresh()?;
        if let Some(whole) = &mut self.whole {
            whole.refresh()?;
        }
        let seen = self.rows;
        let end = self.session.bytes();
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.lines))?;
        let mut lines = BufReader::with_capacity(1 << 16, file.take(end - self.lines));
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut len = lines
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?;
            if len == 0 {
                break;
            }
            if line.ends_with(b"\n") {
                line.pop();
            } else if len as u64 == LONGEST_LINE {
                // Nothing that a proxy wrote: the index counts it among the lines that cannot be read.
                len += lines.skip_until(b'\n')?;
                self.lines += len as u64;
                continue;
            }
            let record = RecordedLine {
                offset: self.lines,
                line: line.clone().into(),
            };
            self.lines += len as u64;
            if self
                .session
                .row(self.rows)
                .is_some_and(|row| row.offset() == record.offset)
            {
                let index = self.rows;
                self.rows += 1;
                self.message(index, out)?;
            } else {
                self.other(&record, seen, out)?;
            }
        }
        Ok(())
    }

    fn message(&mut self, index: usize, out: &mut impl Write) -> Result<()> {
        let Some(row) = self.session.row(index) else {
            return Ok(());
        };
        let wanted = self
            .args
            .seq
            .is_none_or(|seq| (seq.first..=seq.last).contains(&row.sequence()));
        let whole = self.whole.as_ref().unwrap_or(&self.session);
        if !wanted
            || !self
                .filter
                .matches(whole, whole.row(index).unwrap_or(row))?
        {
            return Ok(());
        }
        self.shown += 1;
        let shown = match &mut self.form {
            InspectFormat::Table(table) => table.row(&self.session, index, out),
            InspectFormat::Detail => detail::write(&self.session, index, out),
            InspectFormat::Json => self
                .session
                .message_with_context(index)
                .map_err(Into::into)
                .and_then(|told| write_json(out, &told.to_json(BodyInclusion::Include))),
            InspectFormat::Raw => write_raw(&self.session, index, out),
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
    fn other(&mut self, record: &RecordedLine, seen: usize, out: &mut impl Write) -> Result<()> {
        let late_verdict = || {
            let sequence = (record.kind() == "act")
                .then(|| record.member("sequence"))
                .flatten();
            sequence
                .and_then(|sequence| self.session.find(sequence))
                .is_some_and(|row| row < seen)
        };
        if matches!(record.kind(), "" | "session" | "end" | "next")
            || !(self.args.all || late_verdict())
        {
            return Ok(());
        }
        if !self.filter.matches_text(&EventLine::read(record).text) {
            return Ok(());
        }
        let record = self.session.redact_line(record.clone())?;
        let happening = EventLine::read(&record);
        match &mut self.form {
            InspectFormat::Table(table) => table.event(&self.session, &happening, out),
            InspectFormat::Json if self.args.all => write_json(out, &record.line),
            _ => Ok(()),
        }
    }

    /// How it ended, below the table.
    pub fn finish(&self, out: &mut impl Write) -> Result<()> {
        let len = self.session.len() as u64;
        if let (Some(seq), 0, true) = (self.args.seq, self.shown, self.filter.is_empty()) {
            let rows = self.session.rows();
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
        let end = match self.session.end() {
            Some(end) => format!(
                "ended {}: {}",
                formatting::time_of_day(end.timestamp),
                sanitize(&end.why)
            ),
            None if self.session.next_part().is_some() => {
                let next = self.session.next_part().unwrap_or_default();
                format!("the session continues in {}", file_name(&next))
            }
            None if self.session.is_live() => {
                "still being written (--follow waits for more)".to_owned()
            }
            None => "no end was recorded: the proxy was killed, or the machine stopped".to_owned(),
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
        raw @ RawBody::Side { path, .. } => {
            let missing = || {
                format!(
                    "message {}: cannot read its body, {}",
                    message.sequence,
                    path.display()
                )
            };
            std::io::copy(&mut raw.reader().with_context(missing)?, out)?;
        }
        RawBody::Lost { len } => {
            printer::say(&format!(
                "mcp-proxy: message {}: its {len} bytes were not stored",
                message.sequence
            ));
            return Ok(());
        }
        raw => out.write_all(raw.bytes().unwrap_or_default())?,
    }
    out.write_all(b"\n")?;
    Ok(())
}
