//! `inspect`: what a record holds, as a table, in detail, as JSON or as the exact bytes.
//!
//! One walk over the record's lines serves all of them, and `--follow` is the same walk again from where it ended.
//! Nothing here writes to the record: a torn end is cut off before, where the record is found.

mod detail;
mod happening;

pub use happening::Happening;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_session::{Bodies, Error, Filter, Raw, Record, Session};

use super::table::Table;
use super::{counted, named, quiet_pipe, report_damage, words};
use crate::cli::sessions::InspectArgs;
use crate::printer;
use mcp_proxy_wire::visible::{visible, visible_json};

/// How often `--follow` looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints a record.
pub fn run(args: &InspectArgs) -> Result<ExitCode> {
    quiet_pipe(inspect(args))
}

fn inspect(args: &InspectArgs) -> Result<ExitCode> {
    let path = named::find(&args.record)?;
    let mut view = View::open(args, &path)?;
    let mut out = printer::out();
    view.title(&mut out)?;
    loop {
        // Asked before reading: what a proxy wrote before it let go of the record is read below.
        let live = view.session.is_live();
        view.take_in(&mut out)?;
        out.flush()?;
        if !args.follow || !live || view.session.end().is_some() {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    view.finish(&mut out)?;
    out.flush()?;
    report_damage(&view.session);
    Ok(ExitCode::SUCCESS)
}

/// How messages are shown.
enum Form {
    Table(Table),
    Detail,
    Json,
    Raw,
}

impl Form {
    fn new(args: &InspectArgs) -> Form {
        match (args.raw, args.json, args.seq) {
            (true, ..) => Form::Raw,
            (_, true, _) => Form::Json,
            (_, _, Some(_)) => Form::Detail,
            _ => Form::Table(Table::new(printer::colours())),
        }
    }
}

/// A record and how far it has been shown.
pub struct View<'a> {
    args: &'a InspectArgs,
    filter: Filter,
    form: Form,
    /// What is shown, without what is to be hidden.
    session: Session,
    /// What the filter looks at where that differs: the record as it is.
    whole: Option<Session>,
    file: File,
    /// Where the next line starts.
    lines: u64,
    /// The next row.
    rows: usize,
    /// Messages shown.
    shown: u64,
}

impl<'a> View<'a> {
    /// Opens a record; nothing is shown yet.
    pub fn open(args: &'a InspectArgs, path: &Path) -> Result<View<'a>> {
        let filter = match &args.filter {
            Some(filter) => super::filter(filter)?,
            None => super::filter(&args.words.join(" "))?,
        };
        let redaction = super::redaction(&args.redact)?;
        let mut session = Session::open(path)?;
        let mut whole = None;
        if let Some(redaction) = &redaction {
            session = session.redacted(redaction);
            whole = match filter.is_empty() {
                true => None,
                false => Some(Session::open(path)?),
            };
        }
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(View {
            args,
            filter,
            form: Form::new(args),
            session,
            whole,
            file,
            lines: 0,
            rows: 0,
            shown: 0,
        })
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
        if !matches!(self.form, Form::Table(_)) {
            return Ok(());
        }
        let header = self.session.header();
        let target = header
            .server_command
            .as_ref()
            .or(header.server_url.as_ref());
        let target = target
            .map(|target| format!("  {}", visible(target)))
            .unwrap_or_default();
        let started = words::day_and_time(header.started_at);
        let peers = format!("{} ► {}", header.client, self.session.server());
        writeln!(
            out,
            "{}  {started}  {}{target}\n",
            visible(&header.id),
            visible(&peers)
        )?;
        Ok(())
    }

    /// Shows the lines that were added since.
    pub fn take_in(&mut self, out: &mut impl Write) -> Result<()> {
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
            let len = lines.read_until(b'\n', &mut line)?;
            if len == 0 {
                break;
            }
            if line.ends_with(b"\n") {
                line.pop();
            }
            let record = Record {
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
            Form::Table(table) => table.row(&self.session, index, out),
            Form::Detail => detail::write(&self.session, index, out),
            Form::Json => self
                .session
                .told(index)
                .map_err(Into::into)
                .and_then(|told| write_json(out, &told.to_json(Bodies::Given))),
            Form::Raw => write_raw(&self.session, index, out),
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

    /// A line that is no message: shown with `--all`, and when it says what became of a message shown before.
    fn other(&mut self, record: &Record, seen: usize, out: &mut impl Write) -> Result<()> {
        let late_verdict = || {
            let sequence = (record.kind() == "act")
                .then(|| record.member("sequence"))
                .flatten();
            sequence
                .and_then(|sequence| self.session.find(sequence))
                .is_some_and(|row| row < seen)
        };
        if matches!(record.kind(), "" | "session" | "end") || !(self.args.all || late_verdict()) {
            return Ok(());
        }
        if !self.filter.matches_text(&Happening::read(record).text) {
            return Ok(());
        }
        let record = self.session.shown(record.clone())?;
        let happening = Happening::read(&record);
        match &mut self.form {
            Form::Table(table) => table.happening(&self.session, &happening, out),
            Form::Json if self.args.all => write_json(out, &record.line),
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
        if !matches!(self.form, Form::Table(_)) {
            return Ok(());
        }
        let messages = counted(len, "message", "messages");
        let count = if self.filter.is_empty() {
            messages
        } else {
            format!("{} of {messages}", self.shown)
        };
        let end = match self.session.end() {
            Some(end) => format!(
                "ended {}: {}",
                words::time_of_day(end.timestamp),
                visible(&end.why)
            ),
            None if self.session.is_live() => {
                "still being written (--follow waits for more)".to_owned()
            }
            None => "no end was recorded: the proxy was killed, or the machine stopped".to_owned(),
        };
        writeln!(out, "\n{count}; {end}")?;
        Ok(())
    }
}

/// A JSON line. On a terminal, letters that act on it are escaped, which leaves the same JSON.
pub fn write_json(out: &mut impl Write, line: &[u8]) -> Result<()> {
    match std::str::from_utf8(line) {
        Ok(text) if printer::stdout_is_terminal() => {
            out.write_all(visible_json(text).as_bytes())?
        }
        _ => out.write_all(line)?,
    }
    out.write_all(b"\n")?;
    Ok(())
}

/// The exact bytes and a newline.
fn write_raw(session: &Session, index: usize, out: &mut impl Write) -> Result<()> {
    let message = session.message(index)?;
    match &message.raw {
        Raw::Side { path, .. } => {
            let missing = || {
                format!(
                    "message {}: cannot read its body, {}",
                    message.sequence,
                    path.display()
                )
            };
            let mut file = File::open(path).with_context(missing)?;
            std::io::copy(&mut file, out)?;
        }
        Raw::Lost { len } => {
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
