//! Finds tools, resources and prompts by what people call them, offline and in memory.
//!
//! The documents of one server are one [`SearchSegment`]. An index is a list of segments, so a server that changes costs one
//! new segment and the others are used again.
//!
//! A query is cut into concepts ([`SearchIndex::search`]): its words and phrases, each with the words that may stand for it
//! (`data/thesaurus.txt`), or with corrections if nobody knows the word. A document scores the best term of each concept by
//! BM25F, in which a word of the name counts most. A name that is or contains the whole query comes first in any case.
//!
//! Word vectors were measured and left out. Static vectors of 48 to 384 dimensions, distilled from all-MiniLM-L6-v2, did not
//! raise recall@5 on the held-out queries: over the 976 tools that the set had then it was 0.925 without them, and 0.912 to
//! 0.929 with them blended in or used as further entries of the thesaurus. They would have cost about 700 KB in the program and
//! 64 bytes a document.
//!
//! It must not know MCP, JSON or I/O: it gets texts and returns positions.

#![warn(unreachable_pub)]

mod document;
mod index;
mod query;
mod segment;
mod stemmer;
mod terms;
#[cfg(feature = "testing")]
pub mod testing;
mod thesaurus;
mod typos;
mod vocabulary;
mod words;

pub use document::{SearchDocument, SearchField};
pub use index::{SearchHit, SearchIndex, SearchQuery, SearchResults};
pub use segment::SearchSegment;
