//! The index on disk: `<record>.idx`.
//!
//! Little-endian: magic, the offset it covers, a fingerprint of the record's bytes at both ends of that range, eight numbers, the
//! rows, the verdicts, the connections, the strings, a checksum. Anything that does not fit makes the whole file worthless, which costs little: it is
//! rebuilt from the record. Written under a temporary name and renamed.

use super::connections::ConnectionPlace;
use super::strings::{StringTable, hash};
use super::{Index, LineLocation, Row, VerdictLocation};
use crate::{new_salt, private_files};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Ends in the number of this layout.
const MAGIC: &[u8; 8] = b"mcpidx\0\x06";

/// Bytes of the record that are hashed at each end of the covered range.
const FINGERPRINT: u64 = 256;

/// Where the index of `record` is kept.
pub(crate) fn path_for(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".idx");
    PathBuf::from(name)
}

/// The stored index, if there is one and it fits the record.
pub(crate) fn load(record: &Path, file: &File) -> Option<Index> {
    let stored = private_files::open_companion(&path_for(record), file).ok()?;
    let size = stored.metadata().ok()?.len();
    let mut reader = ChecksumStream {
        inner: BufReader::with_capacity(1 << 18, stored),
        sum: 0,
        left: size.checked_sub(8)?,
    };
    let index = read(&mut reader, file)?;
    let sum = reader.sum;
    let mut stated = [0; 8];
    reader.inner.read_exact(&mut stated).ok()?;
    (reader.left == 0 && u64::from_le_bytes(stated) == sum).then_some(index)
}

/// Stores the index next to the record.
pub(crate) fn store(record: &Path, file: &File, index: &Index) -> io::Result<()> {
    let target = path_for(record);
    // A name that nobody can foresee, for a file that must not exist: somebody else may write to this folder too.
    let unique = format!("idx.{}-{:x}.part", std::process::id(), new_salt());
    let temporary = target.with_extension(unique);
    let stored = private_files::create_new(&temporary)?;
    let mut writer = ChecksumStream {
        inner: BufWriter::with_capacity(1 << 18, stored),
        sum: 0,
        left: 0,
    };
    let result = write(&mut writer, file, index).and_then(|()| {
        let sum = writer.sum;
        writer.inner.write_all(&sum.to_le_bytes())?;
        writer.inner.flush()?;
        std::fs::rename(&temporary, &target)
    });
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn read(reader: &mut ChecksumStream<BufReader<File>>, file: &File) -> Option<Index> {
    if reader.take::<8>()? != *MAGIC {
        return None;
    }
    let covered = reader.number()?;
    if reader.number()? != fingerprint(file, covered)? {
        return None;
    }
    let (rows, acts, connections, strings, text) = (
        reader.number()?,
        reader.number()?,
        reader.number()?,
        reader.number()?,
        reader.number()?,
    );
    let mut index = Index {
        covered,
        damaged: reader.number()?,
        ..Index::default()
    };
    let end = LineLocation {
        offset: reader.number()?,
        len: u32::try_from(reader.number()?).ok()?,
    };
    index.end = (end.offset > 0).then_some(end);
    // Before anything is reserved: the counts must make up the file.
    let stated = rows
        .checked_mul(Row::SIZE as u64)?
        .checked_add(acts.checked_mul(16)?)?
        .checked_add(connections.checked_mul(8 * ConnectionPlace::WORDS as u64)?)?;
    if stated
        .checked_add(strings.checked_mul(4)?)?
        .checked_add(text)?
        != reader.left
    {
        return None;
    }
    index.rows.reserve_exact(usize::try_from(rows).ok()?);
    for _ in 0..rows {
        index.rows.push(Row::from_bytes(&reader.take()?));
    }
    for _ in 0..acts {
        let word = reader.number()?;
        let line = LineLocation {
            offset: reader.number()?,
            len: word as u32,
        };
        index.acts.push(VerdictLocation {
            row: (word >> 32) as u32,
            line,
        });
    }
    for _ in 0..connections {
        let mut words = [0; ConnectionPlace::WORDS];
        for word in &mut words {
            *word = reader.number()?;
        }
        index.connections.push(ConnectionPlace::from_words(words));
    }
    let mut ends = Vec::with_capacity(usize::try_from(strings).ok()?);
    for _ in 0..strings {
        ends.push(u32::from_le_bytes(reader.take()?));
    }
    let mut bytes = vec![0; usize::try_from(text).ok()?];
    reader.fill(&mut bytes)?;
    index.strings = StringTable::from_parts(String::from_utf8(bytes).ok()?, ends)?;
    let fits = |row: u32| u64::from(row) < rows;
    let sound = index
        .rows
        .iter()
        .all(|row| row.peer().is_none_or(|peer| fits(peer as u32)))
        && index.acts.iter().all(|act| fits(act.row))
        && index.connections.is_sorted_by_key(|known| known.number);
    sound.then_some(index)
}

fn write(
    writer: &mut ChecksumStream<BufWriter<File>>,
    file: &File,
    index: &Index,
) -> io::Result<()> {
    let fingerprint = fingerprint(file, index.covered).ok_or(io::ErrorKind::UnexpectedEof)?;
    let none = LineLocation { offset: 0, len: 0 };
    let end = index.end.unwrap_or(none);
    writer.put(MAGIC)?;
    for number in [
        index.covered,
        fingerprint,
        index.rows.len() as u64,
        index.acts.len() as u64,
        index.connections.len() as u64,
        index.strings.ends.len() as u64,
        index.strings.text.len() as u64,
        index.damaged,
        end.offset,
        u64::from(end.len),
    ] {
        writer.put(&number.to_le_bytes())?;
    }
    for row in &index.rows {
        writer.put(&row.to_bytes())?;
    }
    for act in &index.acts {
        writer.put(&(u64::from(act.row) << 32 | u64::from(act.line.len)).to_le_bytes())?;
        writer.put(&act.line.offset.to_le_bytes())?;
    }
    for connection in &index.connections {
        for word in connection.to_words() {
            writer.put(&word.to_le_bytes())?;
        }
    }
    for end in &index.strings.ends {
        writer.put(&end.to_le_bytes())?;
    }
    writer.put(index.strings.text.as_bytes())
}

/// A hash of the first and the last bytes of the covered range. The first line has the session's id in it.
fn fingerprint(file: &File, covered: u64) -> Option<u64> {
    let len = covered.min(FINGERPRINT);
    let mut bytes = vec![0; 2 * len as usize];
    let (front, back) = bytes.split_at_mut(len as usize);
    file.read_exact_at(front, 0).ok()?;
    file.read_exact_at(back, covered - len).ok()?;
    (covered == 0 || bytes.last() == Some(&b'\n')).then(|| hash(&bytes))
}

/// Counts and sums what passes.
struct ChecksumStream<T> {
    inner: T,
    sum: u64,
    /// For a reader: bytes that may still be read.
    left: u64,
}

impl<T> ChecksumStream<T> {
    fn add(&mut self, bytes: &[u8]) {
        // Order matters, so that swapped rows do not pass.
        self.sum = self.sum.rotate_left(7) ^ hash(bytes);
    }
}

impl ChecksumStream<BufReader<File>> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.left = self.left.checked_sub(bytes.len() as u64)?;
        self.inner.read_exact(bytes).ok()?;
        self.add(bytes);
        Some(())
    }
}

impl ChecksumStream<BufWriter<File>> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes);
        self.inner.write_all(bytes)
    }
}
