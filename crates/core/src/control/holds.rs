//! Everything that viewers ask of [`Interceptor`]: the mode, the held messages, decisions, breakpoints.
//!
//! The engine decides who was first; this only puts its words into JSON and back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_control::{
    BreakpointNumber, BreakpointRow, BreakpointsAddRequest, BreakpointsListResult,
    BreakpointsRemoveRequest, ConnectionNumber, DecidedHold, Fault, HeaderChange, HeaderPatch,
    HeldRow, HoldAction, HoldClockResult, HoldEditRequest, HoldExtendRequest, HoldListRequest,
    HoldListResult, HoldNumber, HoldResolveRequest, InterceptResult, ModeChange, Replacement,
    with_member,
};
use mcp_proxy_session::{
    BodyInclusion, Filter, RawBody, Redaction, RequestSummary, raw_member, subject_name,
};
use mcp_proxy_wire::{ErrorCode, Kind, Message};
use serde_json::{Value, json};

use super::request_handler::{bodies, to_json};
use crate::intercept::{
    Breakpoint, EditedBody, HeldMessage, HoldId, HoldPolicy, HoldScope, InterceptAction,
    InterceptMode, Interceptor, JsonCheck, MessageEdit, NewBreakpoint, ResolveError, ResolvedHold,
    ViewerId,
};
use crate::proxy_run::ProxyRun;

/// The mode and the numbers of the holds: what the notice says as well.
pub(super) fn intercept_state(run: &ProxyRun) -> InterceptResult {
    present_of(run, &HoldScope::Run)
}

/// The same for a part of the run.
pub(super) fn present_of(run: &ProxyRun, scope: &HoldScope) -> InterceptResult {
    let state = run.intercept().state_of(scope);
    let decided = |decided: ResolvedHold| DecidedHold {
        hold: decided.hold.0,
        sequence: decided.sequence,
        action: decided.action.to_owned(),
        by: decided.by,
    };
    InterceptResult {
        mode: state.mode,
        held: state.held.iter().map(|held| held.hold.0).collect(),
        overrides: state.overrides,
        breakpoints: state.breakpoints,
        rules: run.rules().current().list().len(),
        decided: state.decided.into_iter().map(decided).collect(),
    }
}

/// `intercept.set`
pub(super) fn set(
    run: &ProxyRun,
    mode: ModeChange,
    scope: &HoldScope,
    by: &str,
) -> Result<InterceptResult, Fault> {
    let mode = match (mode, scope) {
        (ModeChange::Passthrough, _) => Some(InterceptMode::Passthrough),
        (ModeChange::Intercept, _) => Some(InterceptMode::Intercept),
        (ModeChange::Inherit, HoldScope::Run) => {
            return Err(Fault::params(
                "mode: only a connection or a server can inherit its mode",
            ));
        }
        (ModeChange::Inherit, _) => None,
    };
    run.intercept().set_mode_of(scope, mode, by);
    Ok(present_of(run, scope))
}

/// The numbers of the held messages that are wanted and answer something.
pub(super) fn answers(intercept: &Arc<Interceptor>, params: &HoldListRequest) -> Vec<u64> {
    let state = intercept.state();
    let wanted = state.held.iter().filter(|held| {
        let is_answer = matches!(held.message.kind(), Kind::Response | Kind::Error);
        is_answer && params.hold.is_none_or(|hold| hold == held.hold.0)
    });
    wanted.map(|held| held.sequence).collect()
}

/// `hold.list`. `asked` is what held answers answer.
pub(super) fn list(
    intercept: &Arc<Interceptor>,
    params: &HoldListRequest,
    now: Duration,
    (hidden, asked): (Option<&Redaction>, &BTreeMap<u64, RequestSummary>),
) -> Result<Vec<u8>, Fault> {
    let state = intercept.state();
    let wanted = |held: &&HeldMessage| params.hold.is_none_or(|hold| hold == held.hold.0);
    let empty = HoldListResult {
        mode: state.mode,
        holds: Vec::new(),
    };
    // The rows are written into the empty list, so that the bytes of a held message are copied once and never parsed.
    let mut out = to_json(&empty);
    out.truncate(out.len() - b"]}".len());
    for (index, held) in state.held.iter().filter(wanted).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let redacted = hidden.and_then(|hidden| hidden.message(&held.message));
        let shown = redacted
            .as_ref()
            .map_or(&held.message, |redacted| &redacted.message);
        let about = asked.get(&held.sequence);
        let policy = intercept.policy();
        out.extend(held_json(
            (held, about),
            shown,
            (now, policy),
            bodies(params.raw),
        ));
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

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
    let resolved = intercept.resolve(hold, action, by);
    resolved.map_err(|error| refused(&error))?;
    Ok(HoldNumber { hold: hold.0 })
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

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
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

/// `step`
pub(super) fn step(run: &ProxyRun, by: &str) -> InterceptResult {
    run.intercept().step(by);
    intercept_state(run)
}

/// `continue`
pub(super) fn resume(run: &ProxyRun, by: &str) -> InterceptResult {
    run.intercept().resume(by);
    intercept_state(run)
}

/// `breakpoints.list`
pub(super) fn breakpoints(intercept: &Arc<Interceptor>) -> BreakpointsListResult {
    let row = |breakpoint: Breakpoint| {
        let (connection, server) = match &breakpoint.scope {
            HoldScope::Run => (None, None),
            HoldScope::Connection { id, .. } => (Some(ConnectionNumber(*id)), None),
            HoldScope::Server(name) => (None, Some(name.as_ref().to_owned())),
        };
        BreakpointRow {
            id: breakpoint.number,
            filter: breakpoint.filter,
            direction: breakpoint.direction,
            connection,
            server,
            left: breakpoint.left,
            hits: breakpoint.hits,
            too_slow: breakpoint.too_slow,
        }
    };
    BreakpointsListResult {
        breakpoints: intercept.breakpoints().into_iter().map(row).collect(),
    }
}

/// `breakpoints.add`
pub(super) async fn add_breakpoint(
    intercept: &Arc<Interceptor>,
    new: BreakpointsAddRequest,
    scope: HoldScope,
) -> Result<BreakpointNumber, Fault> {
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
        direction: new.direction,
        hits: new.hits,
        scope,
    });
    Ok(BreakpointNumber { id })
}

/// `breakpoints.remove`
pub(super) fn remove_breakpoint(
    intercept: &Arc<Interceptor>,
    params: BreakpointsRemoveRequest,
) -> Result<BreakpointNumber, Fault> {
    if intercept.remove_breakpoint(params.id) {
        Ok(BreakpointNumber { id: params.id })
    } else {
        Err(Fault::params(format!(
            "id: there is no breakpoint {}",
            params.id
        )))
    }
}

/// A held message as viewers see it, an answer with what it answers. Times are relative: viewers have clocks of their own.
fn held_json(
    (held, asked): (&HeldMessage, Option<&RequestSummary>),
    message: &Message,
    (now, policy): (Duration, HoldPolicy),
    bodies: BodyInclusion,
) -> Vec<u8> {
    let (method, name) = match asked {
        Some(asked) => (Some(asked.method.clone()), asked.name.clone()),
        None => (
            message.method().map(Cow::into_owned),
            subject_name(message).map(Cow::into_owned),
        ),
    };
    let id = message
        .id_token()
        .and_then(|token| serde_json::from_slice::<Value>(token).ok());
    let row = to_json(&HeldRow {
        hold: held.hold.0,
        sequence: held.sequence,
        conn: ConnectionNumber(held.connection),
        server: held.server.as_ref().to_owned(),
        direction: held.direction,
        by: held.by.to_string(),
        held_ms: millis(now.saturating_sub(held.since)),
        left_ms: held.left.map(millis),
        clock: held.clock,
        editors: held.editors.clone(),
        on_timeout: policy,
        head_editable: held.has_head,
        method,
        name,
        jsonrpc_id: id,
        len: message.len(),
        raw: None,
        raw_text: None,
        raw_b64: None,
    });
    match bodies {
        BodyInclusion::Include => {
            with_member(row, &raw_member(&RawBody::classify(message.raw().clone())))
        }
        BodyInclusion::Omit => row,
    }
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
    use mcp_proxy_control::{HoldClock, read_params};
    use mcp_proxy_wire::Direction;

    use super::*;
    use crate::intercept::HoldReason;

    #[test]
    fn a_held_message_is_told_with_its_exact_bytes_and_its_time_left() {
        let held = HeldMessage {
            hold: HoldId(3),
            sequence: 7,
            connection: 2,
            server: "db".into(),
            direction: Direction::ClientToServer,
            message: Message::parse(r#"{"id":1.0,  "method":"ping"}"#),
            since: Duration::from_secs(10),
            clock: HoldClock::Stopped,
            left: Some(Duration::from_secs(53)),
            editors: vec!["user (attach, pid 7)".to_owned()],
            by: HoldReason::Breakpoint(4),
            has_head: false,
        };
        let told = held_json(
            (&held, None),
            &held.message,
            (Duration::from_secs(12), HoldPolicy::Drop),
            BodyInclusion::Include,
        );
        assert_eq!(
            String::from_utf8(told).unwrap(),
            r#"{"hold":3,"sequence":7,"conn":"c2","server":"db","direction":"client_to_server","by":"breakpoint 4","held_ms":2000,"left_ms":53000,"clock":"stopped","editors":["user (attach, pid 7)"],"on_timeout":"drop","head_editable":false,"method":"ping","name":null,"jsonrpc_id":1.0,"len":28,"raw":{"id":1.0,  "method":"ping"}}"#
        );
    }

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
