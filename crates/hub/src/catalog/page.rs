//! Pages of a list: prepared once, and found by a cursor that holds all it needs.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use super::{Catalog, ItemKind};
use crate::names::stable_hash;

/// One page of a list. Copies share their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPage {
    /// Definitions with commas between them.
    runs: Arc<[Bytes]>,
    next_cursor: Option<Arc<str>>,
}

/// A cursor that we did not give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one of this list")]
pub struct CursorError;

/// The listed entries of one kind, and their pages.
#[derive(Debug)]
pub(super) struct PreparedList {
    kind: ItemKind,
    /// Definitions of our own, which come first.
    own: Vec<Bytes>,
    entries: Vec<u32>,
    page_size: usize,
    pages: Vec<CatalogPage>,
}

/// Where a page begins: after this many entries, the last of which has this name.
struct Cursor {
    position: u32,
    last_name: u64,
}

const CURSOR_VERSION: u8 = 1;
const CURSOR_LENGTH: usize = 14;

impl CatalogPage {
    /// The cursor of the next page, if there is one.
    pub fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }

    /// How many bytes [`CatalogPage::write_items`] writes.
    pub fn items_len(&self) -> usize {
        let commas = self.runs.len().saturating_sub(1);
        2 + commas + self.runs.iter().map(Bytes::len).sum::<usize>()
    }

    /// Appends the definitions as a JSON array.
    pub fn write_items(&self, out: &mut Vec<u8>) {
        out.reserve(self.items_len());
        out.push(b'[');
        for (at, run) in self.runs.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(run);
        }
        out.push(b']');
    }

    /// The definitions as a JSON array, in one piece.
    pub fn items(&self) -> Bytes {
        let mut items = Vec::new();
        self.write_items(&mut items);
        items.into()
    }
}

impl PreparedList {
    pub(super) fn new(
        catalog: &Catalog,
        kind: ItemKind,
        own: Vec<Bytes>,
        entries: Vec<u32>,
        page_size: usize,
    ) -> PreparedList {
        let mut list = PreparedList {
            kind,
            own,
            entries,
            page_size: page_size.max(1),
            pages: Vec::new(),
        };
        // An empty list has one page.
        let starts = (0..list.entries.len().max(1)).step_by(list.page_size);
        list.pages = starts.map(|start| list.make_page(catalog, start)).collect();
        list
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + self.entries.len()
    }

    pub(super) fn page(
        &self,
        catalog: &Catalog,
        cursor: Option<&str>,
    ) -> Result<CatalogPage, CursorError> {
        let start = match cursor {
            Some(cursor) => self.find_start(catalog, &Cursor::decode(self.kind, cursor)?),
            None => 0,
        };
        let prepared = self.pages.get(start / self.page_size);
        Ok(match prepared {
            Some(page) if start % self.page_size == 0 => page.clone(),
            _ => self.make_page(catalog, start),
        })
    }

    /// Whether a client would see a difference between these lists.
    pub(super) fn differs(&self, catalog: &Catalog, other: &Self, other_catalog: &Catalog) -> bool {
        let definitions = |list: &PreparedList, catalog: &Catalog, at: usize| {
            let entry = *list.entries.get(at)?;
            Some(catalog.entry(entry as usize).definition.clone())
        };
        self.own != other.own
            || self.entries.len() != other.entries.len()
            || (0..self.entries.len())
                .any(|at| definitions(self, catalog, at) != definitions(other, other_catalog, at))
    }

    fn make_page(&self, catalog: &Catalog, start: usize) -> CatalogPage {
        let end = self.entries.len().min(start.saturating_add(self.page_size));
        let entries = self.entries.get(start..end).unwrap_or_default();
        let mut runs = Vec::new();
        if start == 0 {
            runs.extend(self.own.iter().cloned());
        }
        add_runs(catalog, entries, &mut runs);
        let next_cursor = (end < self.entries.len()).then(|| {
            let last = catalog.entry(self.entries[end - 1] as usize);
            Cursor::after(end, &last.public).encode(self.kind).into()
        });
        CatalogPage {
            runs: runs.into(),
            next_cursor,
        }
    }

    /// The catalog may have changed since the cursor was made. The page begins after the entry that was the last one,
    /// wherever it is now. If it is gone, an entry may be listed twice, but none is skipped because of it.
    fn find_start(&self, catalog: &Catalog, cursor: &Cursor) -> usize {
        let is_last =
            |at: &u32| stable_hash(&[&*catalog.entry(*at as usize).public]) == cursor.last_name;
        let expected = (cursor.position as usize).saturating_sub(1);
        if self.entries.get(expected).is_some_and(is_last) {
            return expected + 1;
        }
        match self.entries.iter().position(is_last) {
            Some(last) => last + 1,
            None => expected.min(self.entries.len()),
        }
    }
}

/// Entries that stand next to each other in their server's buffer become one run.
fn add_runs(catalog: &Catalog, entries: &[u32], runs: &mut Vec<Bytes>) {
    let mut entries = entries
        .iter()
        .map(|at| catalog.definition_place(*at as usize));
    let Some((mut buffer, mut run)) = entries.next() else {
        return;
    };
    for (next_buffer, next) in entries {
        // One byte for the comma.
        if std::ptr::eq(buffer, next_buffer) && next.start == run.end + 1 {
            run.end = next.end;
        } else {
            runs.push(buffer.slice(run));
            (buffer, run) = (next_buffer, next);
        }
    }
    runs.push(buffer.slice(run));
}

impl Cursor {
    fn after(position: usize, last: &str) -> Cursor {
        Cursor {
            position: u32::try_from(position).unwrap_or(u32::MAX),
            last_name: stable_hash(&[last]),
        }
    }

    fn encode(&self, kind: ItemKind) -> String {
        let mut bytes = vec![CURSOR_VERSION, kind.position() as u8];
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.last_name.to_le_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decode(kind: ItemKind, text: &str) -> Result<Cursor, CursorError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        let bytes: [u8; CURSOR_LENGTH] = bytes.try_into().map_err(|_| CursorError)?;
        let [version, of, p0, p1, p2, p3, name @ ..] = bytes;
        if version != CURSOR_VERSION || usize::from(of) != kind.position() {
            return Err(CursorError);
        }
        Ok(Cursor {
            position: u32::from_le_bytes([p0, p1, p2, p3]),
            last_name: u64::from_le_bytes(name),
        })
    }
}
