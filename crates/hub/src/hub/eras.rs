//! What changes when a client and a server speak revisions of different eras.
//!
//! Requests and results cross. What needs a conversation in the middle of a call does not yet: `input_required` towards a
//! legacy client is refused here, and a legacy server's question to a modern client in `asks.rs`. A translation of
//! those belongs in this file.

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, ErrorCode, Field, Message, Span, error_response, json_string};

use super::log_levels::LogLevel;
use crate::edit::{Place, with_member};
use crate::json::member_cuts;
use crate::server_link::ClientDescription;

/// The code that legacy servers have for a resource that does not exist. Modern ones say that the parameters are invalid.
const LEGACY_NOT_FOUND: i64 = -32002;

/// What a modern request says about its client. A legacy server knows that from the opening.
const MODERN_META: [&str; 4] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
];

/// Who a request comes from.
pub(super) struct Asker<'a> {
    /// The era of the client.
    pub(super) era: Era,
    /// The log messages that the client wants.
    pub(super) level: Option<LogLevel>,
    /// The client that the server knows.
    pub(super) description: &'a ClientDescription,
}

/// A client's request as a server of another era wants it.
pub(super) fn request(message: Message, from: &Asker<'_>, server: Era) -> Message {
    match (from.era, server) {
        (Era::Legacy, Era::Modern) => {
            // A legacy client says once what a modern request says each time.
            let level = from
                .level
                .map(|level| (meta::LOG_LEVEL, json_string(level.word())));
            let members = from.description.meta_members().into_iter().chain(level);
            members.fold(message, |message, (name, value)| {
                with_member(&message, Place::ParamsMeta, name, &value)
            })
        }
        (Era::Modern, Era::Legacy) => without_modern_meta(message),
        _ => message,
    }
}

/// With the revision in it, the message would be sent as a modern one over HTTP, without the session.
fn without_modern_meta(message: Message) -> Message {
    let params = message.params();
    let Some(object) = params.and_then(|params| message.member(params, "_meta")) else {
        return message;
    };
    let cuts = member_cuts(&message, object, |name| MODERN_META.contains(&name));
    let edits: Vec<(Span, &[u8])> = cuts.into_iter().map(|cut| (cut, &b""[..])).collect();
    message.splice(&edits).unwrap_or(message)
}

/// The answer of the server `name` as a client of another era wants it.
pub(super) fn answer(answer: Message, client: Era, server: Era, name: &str) -> Message {
    match (client, server) {
        (Era::Modern, Era::Legacy) => for_modern_client(answer),
        (Era::Legacy, Era::Modern) => for_legacy_client(answer, name),
        _ => answer,
    }
}

fn for_modern_client(answer: Message) -> Message {
    if answer.error_code() == Some(LEGACY_NOT_FOUND)
        && let Some(code) = answer
            .error()
            .and_then(|error| answer.member(error, "code"))
    {
        let invalid = ErrorCode::INVALID_PARAMS.to_string();
        return answer
            .splice(&[(code, invalid.as_bytes())])
            .unwrap_or(answer);
    }
    if answer.result().is_none() || answer.span(Field::ResultField("resultType")).is_some() {
        return answer;
    }
    let answer = with_member(&answer, Place::Result, "resultType", "\"complete\"");
    if answer.span(Field::ResultField("contents")).is_none() {
        return answer;
    }
    // What was read may not be kept: a legacy server says nothing about that.
    let answer = with_member(&answer, Place::Result, "ttlMs", "0");
    with_member(&answer, Place::Result, "cacheScope", "\"private\"")
}

fn for_legacy_client(answer: Message, name: &str) -> Message {
    let kind = answer.text(Field::ResultField("resultType"));
    if kind.as_deref() == Some("input_required") {
        let text = format!(
            "server {name} asks for input in a way that this client's protocol revision does not have; use a client that speaks 2026-07-28"
        );
        return error_response(answer.id().as_ref(), ErrorCode::CANNOT_CARRY, &text, None);
    }
    answer
}
