//! What viewers ask of [`Interceptor`]: the mode, the held messages, breakpoints. Decisions are in [`super::decisions`].
//!
//! The engine decides who was first; this only puts its words into JSON and back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_control::{
    BreakpointNumber, BreakpointRow, BreakpointsAddRequest, BreakpointsListResult,
    BreakpointsRemoveRequest, ConnectionNumber, DecidedHold, Fault, HeldRow, HoldListRequest,
    HoldListResult, InterceptResult, ModeChange, with_member,
};
use mcp_proxy_session::{
    BodyInclusion, Filter, RawBody, Redaction, RequestSummary, raw_member, subject_name,
};
use mcp_proxy_wire::{Kind, Message};
use serde_json::Value;

use super::request_handler::{bodies, to_json};
use crate::intercept::{
    Breakpoint, HeldMessage, HoldPolicy, HoldScope, InterceptMode, Interceptor, NewBreakpoint,
    ResolvedHold,
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
        why: decided.why,
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
            "id: unknown breakpoint {}",
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
        head_made: held.makes_head,
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

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use mcp_proxy_control::HoldClock;
    use mcp_proxy_wire::Direction;

    use super::*;
    use crate::intercept::{HoldId, HoldReason};

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
            makes_head: true,
        };
        let told = held_json(
            (&held, None),
            &held.message,
            (Duration::from_secs(12), HoldPolicy::Drop),
            BodyInclusion::Include,
        );
        assert_eq!(
            String::from_utf8(told).unwrap(),
            r#"{"hold":3,"sequence":7,"conn":"c2","server":"db","direction":"client_to_server","by":"breakpoint 4","held_ms":2000,"left_ms":53000,"clock":"stopped","editors":["user (attach, pid 7)"],"on_timeout":"drop","head_editable":false,"head_made":true,"method":"ping","name":null,"jsonrpc_id":1.0,"len":28,"raw":{"id":1.0,  "method":"ping"}}"#
        );
    }
}
