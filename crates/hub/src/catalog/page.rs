//! Pages of a list: prepared once, and found by a cursor that holds all it needs.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use super::{Catalog, ItemKind, PublicDefinition};
use crate::names::stable_hash;

/// One page of a list. Copies share what they hold.
#[derive(Clone, Debug)]
pub struct CatalogPage {
    catalog: Arc<Catalog>,
    /// Definitions of our own, which come first.
    own: Arc<[Bytes]>,
    /// The entries of the whole list, and which of them are on this page.
    entries: Arc<[u32]>,
    part: Range<usize>,
    items_len: usize,
    /// The definitions as a JSON array, if the list is short enough to keep it.
    ready: Option<Bytes>,
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
    own: Arc<[Bytes]>,
    entries: Arc<[u32]>,
    page_size: usize,
    pages: Vec<CatalogPage>,
}

/// Where a page begins: after this many entries, the last of which has this name.
struct Cursor {
    position: u32,
    last_name: u64,
}

/// A list of up to this many bytes is kept as clients get it. Longer ones are put together for each answer, which takes a
/// fraction of a millisecond for a page, and are in memory once.
const READY_MAX: usize = 1 << 20;

const CURSOR_VERSION: u8 = 1;
const CURSOR_LENGTH: usize = 14;

impl CatalogPage {
    /// The cursor of the next page, if there is one.
    pub fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }

    /// How many bytes [`CatalogPage::write_items`] writes.
    pub fn items_len(&self) -> usize {
        self.items_len
    }

    /// Appends the definitions as a JSON array.
    pub fn write_items(&self, out: &mut Vec<u8>) {
        out.reserve(self.items_len());
        if let Some(ready) = &self.ready {
            return out.extend_from_slice(ready);
        }
        out.push(b'[');
        let start = out.len();
        for own in &*self.own {
            separate(start, out);
            out.extend_from_slice(own);
        }
        for definition in self.definitions() {
            separate(start, out);
            definition.write(out);
        }
        out.push(b']');
    }

    fn definitions(&self) -> impl ExactSizeIterator<Item = &PublicDefinition> {
        let entries = &self.entries[self.part.clone()];
        let entries = entries.iter().map(|at| self.catalog.entry(*at as usize));
        entries.map(|entry| &entry.definition)
    }

    /// The definitions as a JSON array, in one piece.
    pub fn items(&self) -> Bytes {
        if let Some(ready) = &self.ready {
            return ready.clone();
        }
        let mut items = Vec::with_capacity(self.items_len());
        self.write_items(&mut items);
        items.into()
    }
}

impl PreparedList {
    pub(super) fn new(
        catalog: &Arc<Catalog>,
        kind: ItemKind,
        own: Vec<Bytes>,
        entries: Vec<u32>,
        page_size: usize,
    ) -> PreparedList {
        let mut list = PreparedList {
            kind,
            own: own.into(),
            entries: entries.into(),
            page_size: page_size.max(1),
            pages: Vec::new(),
        };
        // An empty list has one page.
        let starts = (0..list.entries.len().max(1)).step_by(list.page_size);
        list.pages = starts.map(|start| list.make_page(catalog, start)).collect();
        let length: usize = list.pages.iter().map(CatalogPage::items_len).sum();
        if length <= READY_MAX {
            for page in &mut list.pages {
                page.ready = Some(page.items());
            }
        }
        list
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + self.entries.len()
    }

    pub(super) fn page(
        &self,
        catalog: &Arc<Catalog>,
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
        let mut entries = self.entries.iter().zip(&*other.entries);
        self.own != other.own
            || self.entries.len() != other.entries.len()
            || entries.any(|(at, other_at)| {
                catalog.entry(*at as usize).definition
                    != other_catalog.entry(*other_at as usize).definition
            })
    }

    fn make_page(&self, catalog: &Arc<Catalog>, start: usize) -> CatalogPage {
        let end = self.entries.len().min(start.saturating_add(self.page_size));
        let next_cursor = (end < self.entries.len()).then(|| {
            let last = catalog.entry(self.entries[end - 1] as usize);
            Cursor::after(end, &last.public).encode(self.kind).into()
        });
        let mut page = CatalogPage {
            catalog: Arc::clone(catalog),
            own: match start {
                0 => Arc::clone(&self.own),
                _ => Arc::default(),
            },
            entries: Arc::clone(&self.entries),
            part: start.min(end)..end,
            items_len: 0,
            ready: None,
            next_cursor,
        };
        let commas = (page.own.len() + page.part.len()).saturating_sub(1);
        let own: usize = page.own.iter().map(Bytes::len).sum();
        let others: usize = page.definitions().map(PublicDefinition::len).sum();
        page.items_len = 2 + commas + own + others;
        page
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

/// Puts a comma between what begins at `start` and what follows.
fn separate(start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
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
