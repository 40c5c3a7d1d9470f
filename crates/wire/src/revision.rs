//! Protocol revisions and the two eras they fall into.
//!
//! *Legacy* revisions open with `initialize` and keep sessions; from 2026-07-28 on (*modern*) each request carries its
//! version in `_meta`. Translating between them is not done here.

use crate::{Field, Message};

/// One of the two families of protocol revisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25.
    Legacy,
    /// 2026-07-28 and later.
    Modern,
}

/// The last legacy revision.
pub const LATEST_LEGACY: &str = "2025-11-25";

/// The first modern revision.
pub const MODERN: &str = "2026-07-28";

/// Every published revision, oldest first.
pub const KNOWN: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    LATEST_LEGACY,
    MODERN,
];

/// Keys of `_meta` that revision 2026-07-28 defines.
pub mod meta {
    /// The revision that a request is written in.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client says it is.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The least severe log message that the client wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The id of the listen request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Who the server says it is.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// The era of a revision, by its date. Nothing if `version` is not a date.
pub fn era_of(version: &str) -> Option<Era> {
    let dated = version.len() == MODERN.len()
        && version.bytes().enumerate().all(|(at, byte)| {
            if at == 4 || at == 7 {
                byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        });
    dated.then(|| {
        if version < MODERN {
            Era::Legacy
        } else {
            Era::Modern
        }
    })
}

/// The era that a message from a client shows by itself. `initialize` is legacy; the version key in `_meta` is modern,
/// whatever version it names, since legacy requests have no such key; other messages show nothing.
pub fn request_era(message: &Message) -> Option<Era> {
    if message.method()? == "initialize" {
        return Some(Era::Legacy);
    }
    names_version(message).then_some(Era::Modern)
}

/// Whether a message says in its `_meta` which revision it is written in, as modern ones do.
pub fn names_version(message: &Message) -> bool {
    message.span(Field::Meta(meta::PROTOCOL_VERSION)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eras_split_at_the_modern_date() {
        let legacy = KNOWN
            .iter()
            .filter(|version| era_of(version) == Some(Era::Legacy))
            .count();
        assert_eq!(legacy, 4);
        assert_eq!(era_of(MODERN), Some(Era::Modern));
        assert_eq!(era_of("2031-01-01"), Some(Era::Modern));
        assert_eq!(era_of("draft"), None);
        assert_eq!(era_of("2026_07_28"), None);
    }

    #[test]
    fn a_request_shows_its_era() {
        let era = |text: &str| request_era(&Message::parse(text.to_owned()));
        assert_eq!(
            era(r#"{"id":1,"method":"initialize","params":{}}"#),
            Some(Era::Legacy)
        );
        let modern = r#"{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert_eq!(era(modern), Some(Era::Modern));
        assert_eq!(
            era(r#"{"id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#),
            None
        );
        assert_eq!(era(r#"{"id":1,"result":{}}"#), None);
    }
}
