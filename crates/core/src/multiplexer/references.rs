//! Where a message names a request, and how that place is rewritten.

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Field, IdKey, Message, Span, json_string};

/// The ids under which clients see the server's requests.
#[derive(Debug, Default)]
pub(super) struct AskedIds {
    prefix: Option<Box<str>>,
}

impl AskedIds {
    pub(super) fn prefixed(prefix: &str) -> AskedIds {
        AskedIds {
            prefix: Some(format!("{prefix}-").into()),
        }
    }

    /// The JSON of the id under `number`.
    pub(super) fn token(&self, number: u64) -> String {
        match &self.prefix {
            Some(prefix) => json_string(&format!("{prefix}{number}")),
            None => number.to_string(),
        }
    }

    /// The number that an id of ours stands for.
    pub(super) fn number(&self, token: &[u8]) -> Option<u64> {
        let Some(prefix) = &self.prefix else {
            return number(token);
        };
        let IdKey::String(text) = IdKey::of_token(token) else {
            return None;
        };
        std::str::from_utf8(&text)
            .ok()?
            .strip_prefix(&**prefix)?
            .parse()
            .ok()
    }
}

/// The number that stands in a message.
pub(super) fn number(token: &[u8]) -> Option<u64> {
    // Some servers return a subscription id as a string.
    let text = std::str::from_utf8(token).ok()?;
    text.trim_matches('"').parse().ok()
}

pub(super) fn is_cancel(message: &Message) -> bool {
    message.method().as_deref() == Some("notifications/cancelled")
}

/// The places where a server's notification names a client's request.
pub(super) fn references(message: &Message) -> Vec<(Field<'static>, Span)> {
    [
        Field::ProgressToken,
        Field::Meta(meta::SUBSCRIPTION_ID),
        Field::RequestId,
    ]
    .into_iter()
    .filter_map(|field| Some((field, message.span(field)?)))
    .collect()
}

/// The number that all these places agree on.
pub(super) fn named_number(
    message: &Message,
    references: &[(Field<'static>, Span)],
) -> Option<u64> {
    let mut numbers = references
        .iter()
        .map(|(_, span)| number(message.slice(*span)));
    let first = numbers.next()?;
    numbers.all(|other| other == first).then_some(first)?
}

/// A request with `ours` as its id and, if it has one, as its progress token, which stands at `token`.
pub(super) fn renumber(request: &Message, token: Option<Span>, ours: &[u8]) -> Message {
    let id = request.span(Field::Id);
    let mut edits: Vec<_> = id
        .into_iter()
        .chain(token)
        .map(|span| (span, ours))
        .collect();
    splice(request, &mut edits)
}

pub(super) fn splice(message: &Message, edits: &mut [(Span, &[u8])]) -> Message {
    edits.sort_by_key(|(span, _)| span.start);
    // Cannot fail: the spans were read from this very message, and no two fields that are rewritten overlap.
    message.splice(edits).unwrap_or_else(|_| message.clone())
}
