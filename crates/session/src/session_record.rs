//! A record, opened for reading.
//!
//! Opening loads the index (or builds it) and reads nothing else: rows are in memory, messages are read from the file one by
//! one. A record that is still being written can be read at the same time; [`SessionRecord::refresh`] takes in what was added. A torn
//! last line is ignored and reported, never repaired here: see [`crate::repair()`], which those
//! call who open a record for a person.

mod chain;
mod connections;
mod document;
mod exchange;
mod notes;
pub(crate) mod read;
mod record_lines;
mod selection;

pub use notes::SessionNote;
pub(crate) use read::message as read_line;
pub use record_lines::{RecordedLine, RecordedLines};

use crate::index::{self, Index, LineLocation, Row};
use crate::record_file::{RecordFile, RecordOpening};
use crate::{
    Error, MessageWithContext, PeerInfo, ProxyMessage, ProxySession, Redaction, RedactionFacts,
    RequestSummary, SessionHeader, Verdict, import, lock,
};
use bytes::Bytes;
use mcp_proxy_wire::{Origin, Transport};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;
use tempfile::TempDir;

/// Rows that are worth storing an index for.
const WORTH_STORING: usize = 2_000;

/// A record and its index.
#[derive(Debug)]
pub struct SessionRecord {
    file: RecordFile,
    header: SessionHeader,
    /// The name of the file that the first one continues, if that is not there.
    continues: Option<String>,
    /// What the header says about redaction.
    redaction: Option<RedactionFacts>,
    /// What is hidden besides, in all that is read from here.
    hide: Option<Redaction>,
    index: Index,
    /// The transport of the server side, as far as it is known: that of the header, or what it turned out to be.
    transport: Transport,
    /// Messages were left out.
    thinned: bool,
    /// Where the record is, if it was made only to be read here.
    _temporary: Option<TempDir>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// When.
    pub timestamp: SystemTime,
    /// Why.
    pub why: String,
    /// Messages that the recorder counted.
    pub messages: u64,
}

impl SessionRecord {
    /// Opens a record for reading, with all files that it continues or that continue it. A session in the `json` format is opened
    /// too, as a record that is gone when this is dropped.
    pub fn open(path: impl AsRef<Path>) -> Result<SessionRecord, Error> {
        let path = path.as_ref();
        match SessionRecord::open_record(&chain::first_file(path)) {
            Err(Error::NotARecord { .. }) if import::looks_like_document(path) => {
                SessionRecord::open_document(path)
            }
            opened => opened,
        }
    }

    fn open_record(path: &Path) -> Result<SessionRecord, Error> {
        let opening = RecordOpening::read(path)?;
        let mut session = SessionRecord {
            index: index::load(path, &opening.file).unwrap_or_default(),
            file: RecordFile::new(path, opening.file),
            transport: opening.header.server.transport,
            header: opening.header,
            continues: opening.continues,
            thinned: false,
            _temporary: None,
            redaction: SessionHeader::redaction(&opening.first_line),
            hide: None,
        };
        session.find_transport(0);
        if session.refresh()? >= WORTH_STORING {
            // A cache: a folder that cannot be written to is no reason not to read.
            let _ = session.store_index();
        }
        Ok(session)
    }

    /// The same session with more hidden: every message, text and header read from here is without what `redaction` names. Rows
    /// and their strings are those of the record.
    pub fn redacted(self, redaction: &Redaction) -> SessionRecord {
        let hide = redaction.for_record(self.redaction.as_ref());
        SessionRecord {
            header: self.header.redacted(&hide),
            redaction: Some(hide.facts().clone()),
            hide: Some(hide),
            ..self
        }
    }

    /// What was asked to be hidden, and the word that marks it. `None` if nothing was.
    pub fn redaction(&self) -> Option<&RedactionFacts> {
        self.redaction.as_ref()
    }

    /// Whether more is hidden than in the record, so that its lines cannot be shown as they are.
    pub(crate) fn has_extra_redaction(&self) -> bool {
        self.hide.is_some()
    }

    /// Takes in what was appended since. Returns how many messages are new.
    pub fn refresh(&mut self) -> Result<usize, Error> {
        self.refresh_some(usize::MAX)
    }

    /// The same, but at most `lines` lines: for readers that share the session and must not be kept waiting. There may be
    /// more as long as [`SessionRecord::bytes`] grows.
    pub fn refresh_some(&mut self, lines: usize) -> Result<usize, Error> {
        let known = self.index.rows.len();
        loop {
            let extended = self.index.extend(&self.file, lines);
            extended.map_err(|error| Error::io("read", self.file.last_path(), error))?;
            if !self.join_continuation()? {
                break;
            }
        }
        self.find_transport(known);
        Ok(self.len() - known)
    }

    /// The kind of a URL may be unknown when the header is written. It is taken for streamable HTTP then, and turns out to
    /// be HTTP+SSE when the server's first message comes that way.
    fn find_transport(&mut self, from: usize) {
        let came_by_sse =
            |row: &Row| row.transport() == Transport::Sse && row.origin() == Origin::Server;
        if self.transport == Transport::StreamableHttp
            && self.index.rows[from..].iter().any(came_by_sse)
        {
            self.transport = Transport::Sse;
        }
    }

    /// Stores the index next to the record. Several files that are read as one have none.
    pub fn store_index(&self) -> Result<(), Error> {
        let Some(file) = self.file.single() else {
            return Ok(());
        };
        let path = self.path();
        index::store(path, file, &self.index)
            .map_err(|error| Error::io("store", &index::path_for(path), error))
    }

    /// The record's file; of several the first.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What was known when the session started.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// The transport of the server side. Differs from the header's where that was found out later.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The server, with the transport that it turned out to have.
    pub fn server(&self) -> PeerInfo {
        PeerInfo {
            transport: self.transport,
            ..self.header.server.clone()
        }
    }

    /// The rows of the messages that a call caused, in order.
    pub fn caused_by(&self, sequence: u64) -> impl Iterator<Item = usize> + '_ {
        let first = self.find(sequence).unwrap_or(self.len());
        let rows = self.index.rows[first..].iter().enumerate();
        rows.filter(move |(_, row)| row.parent() == Some(sequence))
            .map(move |(index, _)| first + index)
    }

    /// How the session ended; `None` while it runs or if it was killed.
    pub fn end(&self) -> Option<SessionEnd> {
        let line = self.line(self.index.end?).ok()?;
        let record = RecordedLine { offset: 0, line };
        if record.member::<String>("continued_in").is_some() {
            return None;
        }
        Some(SessionEnd {
            timestamp: crate::timestamp::parse(&record.member::<String>("timestamp")?)?,
            why: record.member("why").unwrap_or_default(),
            messages: record.member("messages").unwrap_or(0),
        })
    }

    /// The seed's `ProxySession`, without its messages.
    pub fn session(&self) -> ProxySession {
        let header = &self.header;
        ProxySession {
            id: header.id.clone(),
            started_at: header.started_at,
            ended_at: self.end().map(|end| end.timestamp),
            transport: self.transport,
            server_command: header.server_command.clone(),
            server_url: header.server_url.clone(),
            metadata: header.metadata.clone(),
        }
    }

    /// Whether a running proxy is writing this record.
    pub fn is_live(&self) -> bool {
        let next = || self.missing_continuation();
        lock::is_live(self.file.last_path()) || next().is_some_and(|path| lock::is_live(&path))
    }

    /// Bytes after the last whole line: a line that is being written, or one that was torn when its writer died.
    pub fn torn(&self) -> u64 {
        self.index.torn
    }

    /// Lines that are not record lines, and were skipped.
    pub fn damaged(&self) -> u64 {
        self.index.damaged
    }

    /// Bytes of whole lines.
    pub fn bytes(&self) -> u64 {
        self.index.covered
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.index.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.rows.is_empty()
    }

    /// All rows, in file order.
    pub fn rows(&self) -> &[Row] {
        &self.index.rows
    }

    /// One row.
    pub fn row(&self, index: usize) -> Option<&Row> {
        self.index.rows.get(index)
    }

    /// The first row whose sequence number is not below this one.
    pub fn at_or_after(&self, sequence: u64) -> usize {
        let is_before = |row: &Row| row.sequence() < sequence;
        self.index.rows.partition_point(is_before)
    }

    /// The oldest message that can be had.
    pub fn oldest_sequence(&self) -> u64 {
        match (&self.continues, self.row(0)) {
            (Some(_), Some(row)) => row.sequence(),
            _ => 1,
        }
    }

    /// The row of the message with this sequence number.
    pub fn find(&self, sequence: u64) -> Option<usize> {
        self.index.find(sequence)
    }

    /// A row's method. Very long ones are cut.
    pub fn method(&self, row: &Row) -> Option<&str> {
        self.index.strings.get(row.method)
    }

    /// What a row's request is about: tool, prompt or resource. Very long ones are cut.
    pub fn name(&self, row: &Row) -> Option<&str> {
        self.index.strings.get(row.name)
    }

    /// One message with the verdicts on it folded in.
    pub fn message(&self, index: usize) -> Result<ProxyMessage, Error> {
        let row = self.row(index).ok_or(Error::NoSuchRow(index as u64))?;
        let line = self.line(row.line())?;
        self.read_message(index, &line)
    }

    /// Whether anything was decided about a message.
    pub(crate) fn has_verdicts(&self, index: usize) -> bool {
        self.index.acts_on(index).next().is_some()
    }

    /// One message, with what its neighbours tell about it.
    pub fn message_with_context(&self, index: usize) -> Result<MessageWithContext, Error> {
        let message = self.message(index)?;
        let row = self.row(index);
        let peer = row.filter(|_| message.answers.is_some());
        let asked = match peer.and_then(Row::peer) {
            None => None,
            // Rows tell what is to be hidden, and of a changed request what was received and not what was answered.
            Some(peer)
                if self.has_extra_redaction() || self.row(peer).is_some_and(Row::is_modified) =>
            {
                let asked = self.message(peer)?;
                Some((asked.method, asked.name))
            }
            Some(peer) => self.row(peer).map(|row| {
                let text = |text: Option<&str>| text.map(str::to_owned);
                (text(self.method(row)), text(self.name(row)))
            }),
        };
        Ok(MessageWithContext {
            server: self.server_name(message.connection).map(Cow::into_owned),
            undelivered: row.is_some_and(Row::is_undelivered),
            request: asked.map(|(method, name)| RequestSummary {
                method: method.unwrap_or_else(|| "?".to_owned()),
                name,
            }),
            message,
        })
    }

    /// A line of this record's file as it may be shown: without what is hidden besides.
    pub fn redact_line(&self, record: RecordedLine) -> Result<RecordedLine, Error> {
        match &self.hide {
            None => Ok(record),
            Some(hide) => Ok(RecordedLine {
                line: hide.line(&record.line),
                ..record
            }),
        }
    }

    /// Messages one after the other, from row `from`: what an export or a long list reads.
    pub fn messages(&self, from: usize) -> impl Iterator<Item = Result<ProxyMessage, Error>> + '_ {
        (from..self.len()).map(|index| self.message(index))
    }

    /// All lines in file order, known or not. Those that are too long to be read are left out.
    pub fn records(&self) -> RecordedLines<'_> {
        RecordedLines::new(self, 0..self.covered(), self.hide.as_ref())
    }

    /// The lines from `offset` on, as they are in the record: nothing is hidden besides.
    pub fn stored_lines(&self, offset: u64) -> RecordedLines<'_> {
        RecordedLines::new(self, offset..self.covered(), None)
    }

    /// The lines between two offsets, as they are in the record: what stands between two messages, for one.
    pub fn stored_lines_in(&self, range: Range<u64>) -> RecordedLines<'_> {
        RecordedLines::new(self, range, None)
    }

    /// The exact line of a row.
    pub fn row_line(&self, row: &Row) -> Result<Bytes, Error> {
        self.line(row.line())
    }

    pub(crate) fn file(&self) -> &RecordFile {
        &self.file
    }

    pub(crate) fn covered(&self) -> u64 {
        self.index.covered
    }

    fn read_message(&self, index: usize, line: &Bytes) -> Result<ProxyMessage, Error> {
        let mut message = self.read_line(&self.index.rows[index], line)?;
        for place in self.index.acts_on(index) {
            let line = self.line(place)?;
            message.apply_verdict(self.read_verdict(&line, place.offset)?);
        }
        Ok(message)
    }

    /// A row's line as a message; verdicts are not folded in.
    pub(crate) fn read_line(&self, row: &Row, line: &Bytes) -> Result<ProxyMessage, Error> {
        let offset = row.offset();
        let mut message = read::message(line).map_err(|why| self.damaged_line(offset, why))?;
        // The line has no parent if it is that of the request or of the connection.
        message.parent = row.parent();
        Ok(message)
    }

    pub(crate) fn read_verdict(&self, line: &Bytes, offset: u64) -> Result<Verdict, Error> {
        read::verdict(line).map_err(|why| self.damaged_line(offset, why))
    }

    fn damaged_line(&self, offset: u64, why: String) -> Error {
        let (path, offset) = self.file.place(offset);
        Error::Damaged {
            path: path.to_path_buf(),
            offset,
            why,
        }
    }

    pub(crate) fn line(&self, place: LineLocation) -> Result<Bytes, Error> {
        let mut line = vec![0; place.len as usize];
        self.file
            .read_exact_at(&mut line, place.offset)
            .map_err(|error| Error::io("read", self.file.place(place.offset).0, error))?;
        match &self.hide {
            None => Ok(line.into()),
            Some(hide) => Ok(hide.line(&line.into())),
        }
    }
}
