//! The one JSON cursor and the one JSON writer of the workspace.
//!
//! [`check`] looks at the grammar once. The others step through text that was checked before: they count brackets and skip
//! strings. On anything else their answers mean nothing, but every step goes forward and stays inside the text. The writer
//! copies tokens, so numbers, escapes and the order of members stay as they were written.

mod cursor;
mod walk;
mod writer;

pub use cursor::{Item, Items, string_end};
pub(crate) use cursor::{find, members};
pub use walk::{JsonToken, JsonWalk};
pub use writer::{
    ObjectWriter, compact, json_string, push_bytes, push_compact, push_escaped, push_string,
};

use crate::scan::{self, RootKind, ScanEnd};

/// The outermost value of a JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonRoot {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string, a number, `true`, `false` or `null`.
    Scalar,
}

/// What `text` is if it is one JSON value in UTF-8, nested at most [`MAX_DEPTH`](crate::MAX_DEPTH) deep.
pub fn check(text: &[u8]) -> Option<JsonRoot> {
    let scan = scan::scan(text, |_, _| {});
    if scan.end != ScanEnd::Complete || !scan.ascii && std::str::from_utf8(text).is_err() {
        return None;
    }
    match scan.root {
        RootKind::Object => Some(JsonRoot::Object),
        RootKind::Array => Some(JsonRoot::Array),
        RootKind::Scalar => Some(JsonRoot::Scalar),
        RootKind::Nothing => None,
    }
}
