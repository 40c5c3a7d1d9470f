//! Everything that viewers ask of [`Intercept`]: the mode, the held messages, decisions, breakpoints.
//!
//! The engine decides who was first; this only puts its words into JSON and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_session::redact::fill;
use mcp_proxy_session::{Asked, Bodies, Filter, Raw, Redaction, name_of, raw_member};
use mcp_proxy_wire::{ErrorCode, Kind, Message};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::desk::{Fault, to_json};
use super::params;
use crate::intercept::{
    Check, HeldMessage, HoldId, Intercept, InterceptAction, InterceptMode, NewBreakpoint,
    ResolveError, ViewerGuard,
};

/// The mode and the numbers of the holds: what the notice says as well.
pub fn present(intercept: &Arc<Intercept>) -> Value {
    let state = intercept.state();
    let held: Vec<u64> = state.held.iter().map(|held| held.hold.0).collect();
    json!({"mode": state.mode.as_str(), "held": held})
}

/// What changes at every hold and every decision.
pub fn watch(intercept: &Arc<Intercept>) -> watch::Receiver<u64> {
    intercept.watch()
}

/// Somebody looks now.
pub fn viewer_came(intercept: &Arc<Intercept>) -> ViewerGuard {
    intercept.viewer_came()
}

/// `intercept.set`
pub fn set(intercept: &Arc<Intercept>, params: &params::Set, by: &str) -> Result<Vec<u8>, Fault> {
    let mode = match params.mode.as_str() {
        "passthrough" => InterceptMode::Passthrough,
        "intercept" => InterceptMode::Intercept,
        other => {
            return Err(Fault::params(format!(
                "mode: `{other}` is neither passthrough nor intercept"
            )));
        }
    };
    intercept.set_mode(mode, by);
    Ok(to_json(&present(intercept)))
}

/// The numbers of the held messages that are wanted and answer something.
pub fn answers(intercept: &Arc<Intercept>, params: &params::List) -> Vec<u64> {
    let state = intercept.state();
    let wanted = state.held.iter().filter(|held| {
        let is_answer = matches!(held.message.kind(), Kind::Response | Kind::Error);
        is_answer && params.hold.is_none_or(|hold| hold == held.hold.0)
    });
    wanted.map(|held| held.sequence).collect()
}

/// `hold.list`. `asked` is what held answers answer.
pub fn list(
    intercept: &Arc<Intercept>,
    params: &params::List,
    now: Duration,
    (hidden, asked): (Option<&Redaction>, &BTreeMap<u64, Asked>),
) -> Result<Vec<u8>, Fault> {
    let state = intercept.state();
    let wanted = |held: &&HeldMessage| params.hold.is_none_or(|hold| hold == held.hold.0);
    let mut out = format!("{{\"mode\":\"{}\",\"holds\":[", state.mode.as_str()).into_bytes();
    for (index, held) in state.held.iter().filter(wanted).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let redacted = hidden.and_then(|hidden| hidden.message(&held.message));
        let shown = redacted
            .as_ref()
            .map_or(&held.message, |redacted| &redacted.message);
        let about = asked.get(&held.sequence);
        let bodies = params::bodies(params.raw);
        out.extend(held_json((held, about), shown, now, bodies));
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

/// `hold.resolve`
pub fn resolve(
    intercept: &Arc<Intercept>,
    params: params::Resolve<'_>,
    by: &str,
    hidden: Option<&Redaction>,
) -> Result<Vec<u8>, Fault> {
    let hold = HoldId(params.hold);
    let action = action(params)?;
    if let (Some(hidden), InterceptAction::Modify(bytes, _)) = (hidden, &action) {
        whole(bytes, hidden)?;
    }
    match intercept.resolve(hold, action, by) {
        Ok(()) => Ok(to_json(&json!({"hold": hold.0}))),
        Err(error) => {
            let (code, data) = match &error {
                ResolveError::Unknown(_) => (Fault::NO_SUCH_HOLD, None),
                ResolveError::Resolved { by, action, .. } => {
                    let data = json!({"hold": hold.0, "by": by, "action": action});
                    (Fault::RESOLVED, Some(data))
                }
                ResolveError::NotJson => (Fault::params("").code, None),
            };
            Err(Fault {
                code,
                text: error.to_string(),
                data,
            })
        }
    }
}

/// A mark stands for a value that only the proxy knows: a message with one in it is not what anybody means to send.
fn whole(bytes: &Bytes, hidden: &Redaction) -> Result<(), Fault> {
    let message = Message::parse(bytes.clone());
    fill(&message, hidden.facts(), &BTreeMap::new())
        .map(drop)
        .map_err(|unfilled| {
            let text = "the changed message has marks in the place of";
            Fault::params(format!("{text} redacted values ({unfilled})"))
        })
}

/// `step`
pub fn step(intercept: &Arc<Intercept>, by: &str) -> Result<Vec<u8>, Fault> {
    intercept.step(by);
    Ok(to_json(&present(intercept)))
}

/// `continue`
pub fn resume(intercept: &Arc<Intercept>, by: &str) -> Result<Vec<u8>, Fault> {
    intercept.resume(by);
    Ok(to_json(&present(intercept)))
}

/// `breakpoints.list`
pub fn breakpoints(intercept: &Arc<Intercept>) -> Result<Vec<u8>, Fault> {
    let list: Vec<_> = intercept
        .breakpoints()
        .iter()
        .map(|breakpoint| {
            json!({
                "id": breakpoint.number,
                "filter": breakpoint.filter,
                "direction": breakpoint.direction.map(|direction| direction.as_str()),
                "left": breakpoint.left,
                "hits": breakpoint.hits,
                "too_slow": breakpoint.too_slow,
            })
        })
        .collect();
    Ok(to_json(&json!({"breakpoints": list})))
}

/// `breakpoints.add`
pub async fn add_breakpoint(
    intercept: &Arc<Intercept>,
    new: params::NewBreak,
) -> Result<Vec<u8>, Fault> {
    let direction = match new.direction.as_deref() {
        None => None,
        Some(word) => Some(word.parse().map_err(|_| {
            Fault::params(format!(
                "direction: `{word}` is neither client_to_server nor server_to_client"
            ))
        })?),
    };
    if new.hits == Some(0) {
        return Err(Fault::params(
            "hits: a breakpoint that holds nothing is none",
        ));
    }
    // A large pattern takes a while to compile.
    let filter = tokio::task::spawn_blocking(move || Filter::parse(&new.filter)).await;
    let filter = filter.map_err(|error| Fault::new(Fault::FAILED, error.to_string()))?;
    let filter = filter.map_err(|error| Fault::params(format!("filter: {error}")))?;
    if filter.is_empty() {
        return Err(Fault::params(
            "filter: an empty one is for every message; use intercept.set for that",
        ));
    }
    let id = intercept.add_breakpoint(NewBreakpoint {
        filter,
        direction,
        hits: new.hits,
    });
    Ok(to_json(&json!({"id": id})))
}

/// `breakpoints.remove`
pub fn remove_breakpoint(
    intercept: &Arc<Intercept>,
    params: &params::Remove,
) -> Result<Vec<u8>, Fault> {
    if intercept.remove_breakpoint(params.id) {
        Ok(to_json(&json!({"id": params.id})))
    } else {
        Err(Fault::params(format!(
            "id: there is no breakpoint {}",
            params.id
        )))
    }
}

/// A held message as viewers see it, an answer with what it answers. Times are relative: viewers have clocks of their own.
fn held_json(
    (held, asked): (&HeldMessage, Option<&Asked>),
    message: &Message,
    now: Duration,
    bodies: Bodies,
) -> Vec<u8> {
    let (method, name) = match asked {
        Some(asked) => (
            Some(asked.method.as_str().into()),
            asked.name.as_deref().map(Into::into),
        ),
        None => (message.method(), name_of(message)),
    };
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let by = held.by.to_string();
    let id = message
        .id_token()
        .and_then(|token| serde_json::from_slice::<Value>(token).ok());
    let left = held.deadline.map(|end| millis(end.saturating_sub(now)));
    let mut out = to_json(&json!({
        "hold": held.hold.0,
        "sequence": held.sequence,
        "conn": format!("c{}", held.connection),
        "direction": held.direction.as_str(),
        "by": by,
        "held_ms": millis(now.saturating_sub(held.since)),
        "left_ms": left,
        "method": method,
        "name": name,
        "jsonrpc_id": id,
        "len": message.len(),
    }));
    if bodies == Bodies::Given {
        out.pop();
        out.push(b',');
        out.extend(raw_member(&Raw::of(message.raw().clone())));
        out.push(b'}');
    }
    out
}

fn action(params: params::Resolve<'_>) -> Result<InterceptAction, Fault> {
    let wants = |name: &str, given: bool| {
        if given && params.action != name {
            let text = format!("`{}` takes none of the parameters of {name}", params.action);
            return Err(Fault::params(text));
        }
        Ok(())
    };
    let replaced = params.raw.is_some() || params.raw_text.is_some() || params.raw_b64.is_some();
    wants("modify", replaced || params.as_is)?;
    wants("error", params.code.is_some() || params.message.is_some())?;
    match params.action.as_str() {
        "forward" => Ok(InterceptAction::Forward),
        "drop" => Ok(InterceptAction::Drop),
        "error" => Ok(InterceptAction::Error {
            code: params.code.unwrap_or(ErrorCode::WITHHELD.get()),
            message: params
                .message
                .unwrap_or_else(|| "refused at the proxy".to_owned()),
        }),
        "modify" => {
            let check = if params.as_is {
                Check::AsIs
            } else {
                Check::Json
            };
            Ok(InterceptAction::Modify(replacement(params)?, check))
        }
        other => Err(Fault::params(format!(
            "action: `{other}` is none of forward, modify, drop, error"
        ))),
    }
}

/// The new message, byte for byte as it was given.
fn replacement(params: params::Resolve<'_>) -> Result<Bytes, Fault> {
    match (params.raw, params.raw_text, params.raw_b64) {
        (Some(raw), None, None) => Ok(Bytes::copy_from_slice(raw.get().as_bytes())),
        (None, Some(text), None) => Ok(text.into()),
        (None, None, Some(text)) => STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(|error| Fault::params(format!("raw_b64: {error}"))),
        _ => Err(Fault::params(
            "modify needs the new message: one of raw, raw_text, raw_b64",
        )),
    }
}

#[cfg(test)]
mod tests {
    use mcp_proxy_wire::Direction;

    use super::*;
    use crate::intercept::HeldBy;

    #[test]
    fn a_held_message_is_told_with_its_exact_bytes_and_its_time_left() {
        let held = HeldMessage {
            hold: HoldId(3),
            sequence: 7,
            connection: 2,
            direction: Direction::ClientToServer,
            message: Message::parse(r#"{"id":1.0,  "method":"ping"}"#),
            since: Duration::from_secs(10),
            deadline: Some(Duration::from_secs(65)),
            by: HeldBy::Breakpoint(4),
        };
        let told = held_json(
            (&held, None),
            &held.message,
            Duration::from_secs(12),
            Bodies::Given,
        );
        assert_eq!(
            String::from_utf8(told).unwrap(),
            r#"{"hold":3,"sequence":7,"conn":"c2","direction":"client_to_server","by":"breakpoint 4","held_ms":2000,"left_ms":53000,"method":"ping","name":null,"jsonrpc_id":1.0,"len":28,"raw":{"id":1.0,  "method":"ping"}}"#
        );
    }

    fn parsed(text: &str) -> Result<InterceptAction, Fault> {
        action(params::read(Some(text.as_bytes())).unwrap())
    }

    #[test]
    fn a_replacement_keeps_its_bytes() {
        let given = parsed(r#"{"hold":1,"action":"modify","raw":{"b":1.0,  "a":2}}"#);
        let Ok(InterceptAction::Modify(bytes, Check::Json)) = given else {
            panic!("{given:?}")
        };
        assert_eq!(bytes, r#"{"b":1.0,  "a":2}"#);
        let given = parsed(r#"{"hold":1,"action":"modify","raw_text":"no\njson","as_is":true}"#);
        let Ok(InterceptAction::Modify(bytes, Check::AsIs)) = given else {
            panic!("{given:?}")
        };
        assert_eq!(bytes, "no\njson");
    }

    #[test]
    fn actions_that_make_no_sense_are_named() {
        let texts = [
            r#"{"hold":1,"action":"explode"}"#,
            r#"{"hold":1,"action":"modify"}"#,
            r#"{"hold":1,"action":"modify","raw":1,"raw_text":"1"}"#,
            r#"{"hold":1,"action":"modify","raw_b64":"?"}"#,
            r#"{"hold":1,"action":"forward","raw":1}"#,
            r#"{"hold":1,"action":"drop","code":1}"#,
        ];
        let said: Vec<_> = texts
            .iter()
            .map(|text| parsed(text).unwrap_err().text)
            .collect();
        assert!(
            said[0].contains("explode") && said[1].contains("raw_text"),
            "{said:?}"
        );
        assert!(
            said[2].contains("one of") && said[3].starts_with("raw_b64"),
            "{said:?}"
        );
        assert!(
            said[4].contains("modify") && said[5].contains("error"),
            "{said:?}"
        );
    }
}
