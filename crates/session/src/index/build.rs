//! Building the index: one pass over the envelopes of the lines it does not cover yet.

use super::connections::ConnectionPlace;
use super::row::Flag;
use super::strings::{StringId, hash};
use super::{Index, LineLocation, Row, VerdictLocation};
use crate::line_members::{self, LineMembers};
use crate::lines::{LONGEST_LINE, LineScanner, ReadAt, ScannedLine};
use crate::timestamp;
use std::io;
use std::num::NonZeroU64;

impl Index {
    /// Reads what was appended since, at most `most` lines. Returns how many rows are new.
    pub(crate) fn extend(&mut self, file: &dyn ReadAt, most: usize) -> io::Result<usize> {
        let before = self.rows.len();
        let mut lines = LineScanner::new(file, self.covered, u64::MAX);
        let mut left = most;
        while left > 0
            && let Some(line) = lines.next_line()?
        {
            left -= 1;
            self.add(&line);
        }
        self.covered = lines.offset();
        // Of lines that are left for the next time nobody knows yet whether one is torn.
        self.torn = if left > 0 { lines.rest() } else { 0 };
        Ok(self.rows.len() - before)
    }

    fn add(&mut self, scanned: &ScannedLine<'_>) {
        let line = scanned.bytes;
        let place = LineLocation {
            offset: scanned.offset,
            len: u32::try_from(scanned.len).unwrap_or(u32::MAX),
        };
        if scanned.len > LONGEST_LINE {
            self.damaged += 1;
            return;
        }
        match line_members::scanned_type(scanned) {
            Some(b"msg") => match self.read_row(place, scanned) {
                Some(_) if self.rows.len() >= u32::MAX as usize => {}
                Some((row, answers)) => self.push(row, answers),
                None => self.damaged += 1,
            },
            Some(b"act") => self.add_act(place, line),
            Some(b"io") => self.add_io(place, line),
            Some(b"end") => self.end = Some(place),
            Some(_) => {}
            None if line.is_empty() => {}
            None => self.damaged += 1,
        }
    }

    /// A row and the sequence number of the request that it answers.
    fn read_row(
        &mut self,
        place: LineLocation,
        line: &ScannedLine<'_>,
    ) -> Option<(Row, Option<u64>)> {
        let mut row = Row::new(place);
        let mut answers = None;
        let mut members = LineMembers::new(line.bytes);
        while let Some(key) = members.next_key() {
            match key {
                b"http" | b"sse" => {
                    row.set(Flag::Carried);
                    break;
                }
                b"raw" | b"raw_text" | b"raw_b64" => break,
                _ => {}
            }
            let value = match members.value() {
                Some(value) => value,
                // The rest of a long line is not here.
                None if !line.is_whole() => break,
                None => return None,
            };
            match key {
                b"sequence" => row.sequence = line_members::number(value)?,
                b"timestamp" => row.micros = timestamp::micros(line_members::string(value)?)?,
                b"direction" => row.set_direction(line_members::string(value)?),
                b"transport" => row.set_transport(line_members::string(value)?),
                b"conn" => row.connection = line_members::connection(value)?,
                b"origin" => row.set_origin(line_members::string(value)?),
                b"parent" => row.parent = sequence(value),
                b"kind" => row.set_kind(line_members::string(value)?),
                // The client's id comes after the server's, where there are two.
                b"jsonrpc_id" | b"client_id" => row.id_hash = id_hash(value),
                b"method" => row.method = self.intern(value),
                b"name" => row.name = self.intern(value),
                b"answers" => answers = line_members::number(value),
                b"latency_us" => row.set_latency(line_members::number(value)?),
                b"late" if value == b"true" => row.set(Flag::Late),
                b"duplicate" if value == b"true" => row.set(Flag::Duplicate),
                _ => {}
            }
        }
        Some((row, answers))
    }

    fn push(&mut self, mut row: Row, answers: Option<u64>) {
        let index = self.rows.len() as u32;
        if let Some(request) = answers.and_then(|sequence| self.find(sequence)) {
            row.peer = request as u32;
            let request = &mut self.rows[request];
            row.parent = row.parent.or(request.parent);
            // The first answer stays the request's peer; a duplicate points at the request all the same.
            if request.peer().is_none() {
                request.peer = index;
            }
        }
        let connection = self.connection(row.connection);
        row.parent = row
            .parent
            .or(connection.and_then(|connection| connection.parent));
        self.rows.push(row);
    }

    fn add_act(&mut self, place: LineLocation, line: &[u8]) {
        let mut members = LineMembers::new(line);
        let mut about = None;
        let mut flag = None;
        while let Some(key) = members.next_key() {
            if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
                flag = flag.or(Some(Flag::Modified));
                break;
            }
            let Some(value) = members.value() else { break };
            match key {
                b"sequence" => about = line_members::number(value),
                b"kind" => {
                    flag = match value {
                        b"\"drop\"" => Some(Flag::Dropped),
                        b"\"refuse\"" => Some(Flag::Refused),
                        b"\"modify\"" => Some(Flag::Modified),
                        b"\"hold\"" => Some(Flag::Held),
                        b"\"delay\"" => Some(Flag::Delayed),
                        b"\"redirect\"" => Some(Flag::Redirected),
                        b"\"answer\"" | b"\"error\"" => Some(Flag::Answered),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        if let Some(row) = about.and_then(|sequence| self.find(sequence)) {
            self.insert_act(VerdictLocation {
                row: row as u32,
                line: place,
            });
            if let Some(flag) = flag {
                self.rows[row].set(flag);
            }
        }
    }

    fn add_io(&mut self, place: LineLocation, line: &[u8]) {
        let mut members = LineMembers::new(line);
        while let Some(key) = members.next_key() {
            let Some(value) = members.value() else { return };
            if key == b"kind" {
                return match value {
                    b"\"undelivered\"" => self.add_undelivered(members),
                    b"\"open\"" => self.add_open(place, members),
                    b"\"close\"" => self.add_close(members),
                    _ => {}
                };
            }
        }
    }

    fn add_undelivered(&mut self, members: LineMembers<'_>) {
        let sequence = find(members, b"sequence").and_then(line_members::number);
        if let Some(row) = sequence.and_then(|sequence| self.find(sequence)) {
            self.rows[row].set(Flag::Undelivered);
        }
    }

    fn add_open(&mut self, line: LineLocation, mut members: LineMembers<'_>) {
        let mut number = None;
        let mut parent = None;
        let mut server = None;
        while let Some(key) = members.next_key() {
            let Some(value) = members.value() else { break };
            match key {
                b"server" => server = find(LineMembers::new(value), b"name"),
                b"conn" => number = line_members::connection(value),
                b"parent" => parent = sequence(value),
                _ => {}
            }
        }
        if let Some(number) = number {
            let server = server.map_or(StringId::NONE, |name| self.intern(name));
            self.open_connection(ConnectionPlace {
                server,
                number,
                line,
                parent,
                closed: false,
            });
        }
    }

    fn add_close(&mut self, members: LineMembers<'_>) {
        if let Some(number) = find(members, b"conn").and_then(line_members::connection) {
            self.close_connection(number);
        }
    }

    fn intern(&mut self, value: &[u8]) -> StringId {
        let plain = line_members::string(value)
            .filter(|inside| memchr::memchr(b'\\', inside).is_none())
            .and_then(|inside| std::str::from_utf8(inside).ok());
        match plain {
            Some(text) => self.strings.intern(text),
            None => self
                .strings
                .intern(&line_members::text(value).unwrap_or_default()),
        }
    }
}

/// The value of the next member with this name.
fn find<'a>(mut members: LineMembers<'a>, name: &[u8]) -> Option<&'a [u8]> {
    while let Some(key) = members.next_key() {
        let value = members.value()?;
        if key == name {
            return Some(value);
        }
    }
    None
}

/// The sequence number of another message.
fn sequence(value: &[u8]) -> Option<NonZeroU64> {
    line_members::number(value).and_then(NonZeroU64::new)
}

/// Never 0, which says that there is no id.
fn id_hash(token: &[u8]) -> u32 {
    let hash = hash(token);
    ((hash >> 32) as u32 ^ hash as u32).max(1)
}
