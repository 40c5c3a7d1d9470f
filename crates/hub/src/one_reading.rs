//! A client's message has one reading, or is refused.
//!
//! The hub decides by the method, the name or URI, the arguments and the ids of a message, and forwards its bytes. A server
//! whose parser ignores case, or takes the first of two members with one name, must not find another message in them.

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{AmbiguousMember, Message, Span, fold_name};

const OUTER: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: &[&str] = &[
    "_meta",
    "name",
    "uri",
    "arguments",
    "ref",
    "argument",
    "context",
    "task",
    "taskId",
    "requestId",
    "progressToken",
    "cursor",
    "level",
    "inputResponses",
    "requestState",
];
const REFERENCE: &[&str] = &["type", "name", "uri"];
const ARGUMENT: &[&str] = &["name", "value"];
const META: &[&str] = &[
    "progressToken",
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    meta::SUBSCRIPTION_ID,
];

/// Why a message of a client can be read in more than one way, if so.
pub(crate) fn second_reading(message: &Message) -> Option<String> {
    if let Some(found) = message.ambiguous_outer_member(OUTER) {
        return Some(refusal("the message", found));
    }
    let params = message.params()?;
    let [meta, reference, argument] = message.members(params, ["_meta", "ref", "argument"]);
    let places: [(Option<Span>, &str, &[&str]); 4] = [
        (Some(params), "params", PARAMS),
        (meta, "params._meta", META),
        (reference, "params.ref", REFERENCE),
        (argument, "params.argument", ARGUMENT),
    ];
    places.into_iter().find_map(|(object, place, names)| {
        let found = message.ambiguous_member(object?, names)?;
        Some(refusal(place, found))
    })
}

/// Whether a member of `_meta` is one of those that a server may read as another.
pub(crate) fn is_misspelt_meta(name: &str) -> bool {
    let folded = fold_name(name);
    let mut known = META.iter();
    known.any(|known| fold_name(known) == folded && *known != name)
}

fn refusal(place: &str, found: AmbiguousMember<'_>) -> String {
    match found.name {
        Some(name) => {
            format!(
                "{place} must have `{name}` once at most, and nothing that differs from it only in case"
            )
        }
        None => {
            format!("{place} has two members whose names are the same but for case, or too many")
        }
    }
}
