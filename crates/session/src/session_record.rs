//! A record, opened for reading.
//!
//! Opening loads the index (or builds it) and reads nothing else: rows are in memory, messages are read from the file one by
//! one. A record that is still being written can be read at the same time; [`SessionRecord::refresh`] takes in what was added. A torn
//! last line is ignored and reported, never repaired here: see [`crate::repair()`], which those
//! call who open a record for a person.

mod connections;
mod document;
mod event_stream_head;
mod notes;
mod parts;
pub(crate) mod read;
mod record_lines;
mod selection;

pub use notes::SessionNote;
pub(crate) use read::{message as read_line, verdict as read_verdict};
pub use record_lines::{RecordedLine, RecordedLines};

use crate::index::{self, Index, LineLocation, Row};
use crate::lines::LineScanner;
use crate::{
    Error, MessageWithContext, PeerInfo, ProxyMessage, ProxySession, RecordPart, Redaction,
    RedactionFacts, RequestSummary, SessionHeader, import, lock, private_files, recorder,
};
use bytes::Bytes;
use mcp_proxy_wire::{Origin, Transport};
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Rows that are worth storing an index for.
const WORTH_STORING: usize = 2_000;

/// A record and its index.
#[derive(Debug)]
pub struct SessionRecord {
    path: PathBuf,
    folder: PathBuf,
    file: File,
    header: SessionHeader,
    part: RecordPart,
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
    /// Opens a record for reading. A session in the `json` format is opened too, as a record that is gone when this is dropped.
    pub fn open(path: impl AsRef<Path>) -> Result<SessionRecord, Error> {
        let path = path.as_ref();
        match SessionRecord::open_record(path) {
            Err(Error::NotARecord { .. }) if import::looks_like_document(path) => {
                SessionRecord::open_document(path)
            }
            opened => opened,
        }
    }

    fn open_record(path: &Path) -> Result<SessionRecord, Error> {
        let file = private_files::open_record(path).map_err(|error| Error::open(path, error))?;
        let first = match LineScanner::header(&file).next_line() {
            Ok(Some(line)) => Bytes::copy_from_slice(line.bytes),
            Ok(None) => return Err(Error::without_header(path)),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let header = SessionHeader::read(&first, path)?;
        let redaction = SessionHeader::redaction(&first);
        let mut session = SessionRecord {
            index: index::load(path, &file).unwrap_or_default(),
            folder: recorder::side_folder(path),
            path: path.to_path_buf(),
            file,
            transport: header.server.transport,
            header,
            part: RecordPart::read(&first),
            thinned: false,
            _temporary: None,
            redaction,
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
        let new = self
            .index
            .extend(&self.file, lines)
            .map_err(|error| Error::io("read", &self.path, error))?;
        self.find_transport(known);
        Ok(new)
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

    /// Stores the index next to the record.
    pub fn store_index(&self) -> Result<(), Error> {
        index::store(&self.path, &self.file, &self.index)
            .map_err(|error| Error::io("store", &index::path_for(&self.path), error))
    }

    /// The record's file.
    pub fn path(&self) -> &Path {
        &self.path
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
        lock::is_live(&self.path)
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
                line: hide.line(&record.line, &self.folder)?,
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
        RecordedLines::new(
            LineScanner::new(&self.file, 0, self.index.covered),
            &self.path,
            &self.folder,
            self.hide.as_ref(),
        )
    }

    /// The exact line of a row.
    pub fn row_line(&self, row: &Row) -> Result<Bytes, Error> {
        self.line(row.line())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn covered(&self) -> u64 {
        self.index.covered
    }

    fn read_message(&self, index: usize, line: &Bytes) -> Result<ProxyMessage, Error> {
        let damaged = |why, offset| Error::Damaged {
            path: self.path.clone(),
            offset,
            why,
        };
        let mut message = self.read_line(&self.index.rows[index], line)?;
        for place in self.index.acts_on(index) {
            let line = self.line(place)?;
            message.apply_verdict(
                read::verdict(&line, &self.folder).map_err(|why| damaged(why, place.offset))?,
            );
        }
        Ok(message)
    }

    /// A row's line as a message; verdicts are not folded in.
    pub(crate) fn read_line(&self, row: &Row, line: &Bytes) -> Result<ProxyMessage, Error> {
        let mut message = read::message(line, &self.folder).map_err(|why| Error::Damaged {
            path: self.path.clone(),
            offset: row.offset(),
            why,
        })?;
        // The line has no parent if it is that of the request or of the connection.
        message.parent = row.parent();
        Ok(message)
    }

    pub(crate) fn line(&self, place: LineLocation) -> Result<Bytes, Error> {
        let mut line = vec![0; place.len as usize];
        self.file
            .read_exact_at(&mut line, place.offset)
            .map_err(|error| Error::io("read", &self.path, error))?;
        match &self.hide {
            None => Ok(line.into()),
            Some(hide) => hide.line(&line.into(), &self.folder),
        }
    }
}
