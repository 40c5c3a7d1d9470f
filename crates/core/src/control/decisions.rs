//! Decisions of viewers about held messages, and how much time they take for them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_control::{
    Fault, HeaderChange, HeaderPatch, HoldAction, HoldClockResult, HoldEditRequest,
    HoldExtendRequest, HoldNumber, HoldResolveRequest, Replacement,
};
use mcp_proxy_session::Redaction;
use mcp_proxy_wire::{ErrorCode, Message, Side};
use serde_json::json;

use super::holds::millis;
use crate::intercept::{
    EditedBody, HeldMessage, HoldId, InterceptAction, Interceptor, JsonCheck, MessageEdit,
    ResolveError, ViewerId,
};

/// `hold.resolve`
pub(super) fn resolve(
    intercept: &Arc<Interceptor>,
    request: HoldResolveRequest,
    by: &str,
    hidden: Option<&Redaction>,
) -> Result<HoldNumber, Fault> {
    let hold = HoldId(request.hold);
    let mut action = action(request.action)?;
    if !request.headers.is_empty() {
        action = with_headers(action, &request.headers)?;
    }
    if let (Some(hidden), InterceptAction::Modify(edit)) = (hidden, &mut action)
        && let Some(body) = &mut edit.body
    {
        let held = intercept.held(hold).map_err(|error| refused(&error))?;
        put_values_back(body, &held.message, hidden)?;
    }
    let note = match &action {
        InterceptAction::Drop => intercept.held(hold).ok().and_then(|held| drop_note(&held)),
        _ => None,
    };
    let resolved = intercept.resolve(hold, action, by);
    resolved.map_err(|error| refused(&error))?;
    Ok(HoldNumber { hold: hold.0, note })
}

/// Who is left without an answer by a drop, and what would give it one. It is shown as it is: `error` is an action of the
/// protocol and a command of the terminal UI.
fn drop_note(held: &HeldMessage) -> Option<String> {
    let asked_by = match (held.message.expects_any_answer(), held.message.is_answer()) {
        (true, _) => held.direction,
        (false, true) => held.direction.reverse(),
        (false, false) => return None,
    };
    let who = match asked_by.from() {
        Side::Client => "client",
        Side::Server => "server",
    };
    Some(format!(
        "the {who} gets no answer; `error` answers it with an error"
    ))
}

fn refused(error: &ResolveError) -> Fault {
    let (code, data) = match error {
        ResolveError::Unknown(_) => (Fault::NO_SUCH_HOLD, None),
        ResolveError::Resolved(decided) => {
            let data = json!({
                "hold": decided.hold.0,
                "sequence": decided.sequence,
                "by": decided.by,
                "action": decided.action,
            });
            (Fault::RESOLVED, Some(data))
        }
        ResolveError::NotJson => (ErrorCode::INVALID_PARAMS.get(), None),
        ResolveError::NoHead => {
            let data = json!({"reason": "header"});
            (ErrorCode::INVALID_PARAMS.get(), Some(data))
        }
    };
    Fault {
        code,
        text: error.to_string(),
        data,
    }
}

/// `hold.edit`
pub(super) fn edit(
    intercept: &Arc<Interceptor>,
    request: HoldEditRequest,
    (viewer, name): (ViewerId, &str),
) -> Result<HoldClockResult, Fault> {
    let hold = HoldId(request.hold);
    let held = match request.open {
        true => intercept.open_editor(hold, viewer, name),
        false => intercept.close_editor(hold, viewer),
    };
    held.map(clock).map_err(|error| refused(&error))
}

/// `hold.extend`
pub(super) fn extend(
    intercept: &Arc<Interceptor>,
    request: HoldExtendRequest,
) -> Result<HoldClockResult, Fault> {
    let most = HoldExtendRequest::MOST_SECONDS;
    let seconds = request
        .seconds
        .unwrap_or(HoldExtendRequest::DEFAULT_SECONDS);
    if !(1..=most).contains(&seconds) {
        return Err(Fault::params(format!("seconds: must be 1 to {most}")));
    }
    let held = intercept.extend(HoldId(request.hold), Duration::from_secs(seconds));
    held.map(clock).map_err(|error| refused(&error))
}

fn clock(held: HeldMessage) -> HoldClockResult {
    HoldClockResult {
        hold: held.hold.0,
        clock: held.clock,
        left_ms: held.left.map(millis),
        editors: held.editors,
    }
}

/// A mark stands for a value that only the proxy knows: that is what is sent. The record still shows the mark, because a rule
/// that hides a value in one place may not hide it in another.
fn put_values_back(
    edit: &mut EditedBody,
    original: &Message,
    hidden: &Redaction,
) -> Result<(), Fault> {
    let restored = hidden.restore(&edit.bytes, original);
    let restored =
        restored.map_err(|unknown| Fault::params(unknown.to_string()).because("redacted"))?;
    if restored != edit.bytes {
        edit.shown = Some(std::mem::replace(&mut edit.bytes, restored));
    }
    Ok(())
}

fn action(action: HoldAction) -> Result<InterceptAction, Fault> {
    Ok(match action {
        HoldAction::Forward => InterceptAction::Forward,
        HoldAction::Drop => InterceptAction::Drop,
        HoldAction::Error { code, message } => InterceptAction::Error {
            code: code.unwrap_or(ErrorCode::WITHHELD.get()),
            message: message.unwrap_or_else(|| "refused at the proxy".to_owned()),
        },
        HoldAction::Modify { message, as_is } => {
            let check = match as_is {
                true => JsonCheck::AsIs,
                false => JsonCheck::Json,
            };
            InterceptAction::Modify(MessageEdit::new(replacement(message)?, check))
        }
    })
}

/// The same action on a message whose head is changed too.
fn with_headers(action: InterceptAction, patch: &HeaderPatch) -> Result<InterceptAction, Fault> {
    let mut edit = match action {
        InterceptAction::Modify(edit) => edit,
        _ => MessageEdit::default(),
    };
    for (name, change) in &patch.0 {
        let edits = &mut edit.headers;
        let changed = match change {
            HeaderChange::Value(value) => edits.set(name, [value.as_str()]),
            HeaderChange::Values(values) => edits.set(name, values.iter().map(String::as_str)),
            HeaderChange::Removed => edits.remove(name),
        };
        changed.map_err(|error| Fault::params(format!("headers: {error}")).because("header"))?;
    }
    Ok(InterceptAction::Modify(edit))
}

/// The new message, byte for byte as it was given.
fn replacement(message: Replacement) -> Result<Bytes, Fault> {
    match message {
        Replacement::Json(raw) => Ok(String::from(Box::<str>::from(raw)).into()),
        Replacement::Text(text) => Ok(text.into()),
        Replacement::Base64(text) => STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(|error| Fault::params(format!("raw_b64: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use mcp_proxy_control::read_params;

    use super::*;

    fn parsed(text: &str) -> Result<InterceptAction, Fault> {
        let request: HoldResolveRequest = read_params(Some(text.as_bytes()))?;
        action(request.action)
    }

    #[test]
    fn a_replacement_keeps_its_bytes() {
        let given = parsed(r#"{"hold":1,"action":"modify","raw":{"b":1.0,  "a":2}}"#);
        let Ok(InterceptAction::Modify(edit)) = given else {
            panic!("{given:?}")
        };
        let edit = edit.body.unwrap();
        assert_eq!(
            (&*edit.bytes, edit.check),
            (&br#"{"b":1.0,  "a":2}"#[..], JsonCheck::Json)
        );
        let given = parsed(r#"{"hold":1,"action":"modify","raw_text":"no\njson","as_is":true}"#);
        let Ok(InterceptAction::Modify(edit)) = given else {
            panic!("{given:?}")
        };
        let edit = edit.body.unwrap();
        assert_eq!(
            (&*edit.bytes, edit.check),
            (&b"no\njson"[..], JsonCheck::AsIs)
        );
    }

    #[test]
    fn actions_that_make_no_sense_are_named() {
        for (text, word) in [
            (r#"{"hold":1,"action":"explode"}"#, "explode"),
            (r#"{"hold":1,"action":"modify"}"#, "raw_text"),
            (
                r#"{"hold":1,"action":"modify","raw":1,"raw_text":"1"}"#,
                "raw_text",
            ),
            (r#"{"hold":1,"action":"modify","raw_b64":"?"}"#, "raw_b64"),
            (r#"{"hold":1,"action":"forward","raw":1}"#, "modify"),
            (r#"{"hold":1,"action":"drop","code":1}"#, "error"),
        ] {
            let fault = parsed(text).unwrap_err();
            assert_eq!(fault.code, ErrorCode::INVALID_PARAMS.get(), "{text}");
            assert!(fault.text.contains(word), "{text}: {fault:?}");
        }
    }
}
