//! Every method has a request type, which reads and writes what the list of methods says about it.

use std::collections::BTreeSet;

use mcp_proxy_control::{
    BreakpointsAddRequest, BreakpointsListRequest, BreakpointsRemoveRequest,
    ConnectionsListRequest, ContinueRequest, ControlRequest, ExportRequest, Fault, GetRequest,
    HelloRequest, HoldEditRequest, HoldExtendRequest, HoldListRequest, HoldResolveRequest,
    InterceptGetRequest, InterceptSetRequest, METHODS, Method, NoteRequest, ParamKind,
    RelayPairRequest, ReplayRequest, RulesListRequest, RulesReloadRequest, SaveRequest,
    ServersDisableRequest, ServersEnableRequest, ServersListRequest, ServersReloadRequest,
    ServersRestartRequest, ShutdownRequest, StatsRequest, StepRequest, SubscribeRequest,
    read_params,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads and writes parameters as the method's own type does. A method without an arm does not compile.
fn rewritten(method: Method, params: &Value) -> Result<Value, Fault> {
    match method {
        Method::Hello => through::<HelloRequest>(method, params),
        Method::Subscribe => through::<SubscribeRequest>(method, params),
        Method::ServersList => through::<ServersListRequest>(method, params),
        Method::ServersRestart => through::<ServersRestartRequest>(method, params),
        Method::ServersEnable => through::<ServersEnableRequest>(method, params),
        Method::ServersDisable => through::<ServersDisableRequest>(method, params),
        Method::ServersReload => through::<ServersReloadRequest>(method, params),
        Method::ConnectionsList => through::<ConnectionsListRequest>(method, params),
        Method::Get => through::<GetRequest>(method, params),
        Method::Stats => through::<StatsRequest>(method, params),
        Method::InterceptGet => through::<InterceptGetRequest>(method, params),
        Method::InterceptSet => through::<InterceptSetRequest>(method, params),
        Method::HoldList => through::<HoldListRequest>(method, params),
        Method::HoldEdit => through::<HoldEditRequest>(method, params),
        Method::HoldExtend => through::<HoldExtendRequest>(method, params),
        Method::HoldResolve => through::<HoldResolveRequest>(method, params),
        Method::Step => through::<StepRequest>(method, params),
        Method::Continue => through::<ContinueRequest>(method, params),
        Method::BreakpointsList => through::<BreakpointsListRequest>(method, params),
        Method::BreakpointsAdd => through::<BreakpointsAddRequest>(method, params),
        Method::BreakpointsRemove => through::<BreakpointsRemoveRequest>(method, params),
        Method::RulesList => through::<RulesListRequest>(method, params),
        Method::RulesReload => through::<RulesReloadRequest>(method, params),
        Method::Replay => through::<ReplayRequest>(method, params),
        Method::Note => through::<NoteRequest>(method, params),
        Method::Export => through::<ExportRequest>(method, params),
        Method::Save => through::<SaveRequest>(method, params),
        Method::RelayPair => through::<RelayPairRequest>(method, params),
        Method::Shutdown => through::<ShutdownRequest>(method, params),
    }
}

fn through<R: ControlRequest + DeserializeOwned>(
    method: Method,
    params: &Value,
) -> Result<Value, Fault> {
    assert_eq!(R::METHOD, method);
    let request: R = read_params(Some(params.to_string().as_bytes()))?;
    Ok(serde_json::from_str(&request.params()).unwrap())
}

/// Parameters that are valid together. What a method has in all of its examples is all that it takes.
fn examples(method: Method) -> Vec<Value> {
    match method {
        Method::Hello => vec![json!({}), json!({"name": "ctl"})],
        Method::ConnectionsList => vec![json!({}), json!({"server": "db", "limit": 5})],
        Method::Get => vec![
            json!({}),
            json!({"from": 1, "to": 2, "limit": 3, "raw": true}),
            json!({"last": 4}),
        ],
        Method::InterceptGet | Method::RulesList => {
            vec![json!({}), json!({"connection": 1}), json!({"server": "db"})]
        }
        Method::InterceptSet => vec![
            json!({"mode": "intercept"}),
            json!({"mode": "inherit", "connection": 1}),
            json!({"mode": "passthrough", "server": "db"}),
        ],
        Method::HoldList => vec![json!({}), json!({"hold": 1, "raw": true})],
        Method::HoldEdit => vec![json!({"hold": 1, "open": true})],
        Method::HoldExtend => vec![json!({"hold": 1}), json!({"hold": 1, "seconds": 5})],
        Method::HoldResolve => vec![
            json!({"hold": 1, "action": "forward"}),
            json!({"hold": 1, "action": "forward", "headers": {"x-a": "1", "x-b": null}}),
            json!({"hold": 1, "action": "drop"}),
            json!({"hold": 1, "action": "error"}),
            json!({"hold": 1, "action": "error", "code": -1, "message": "no"}),
            json!({"hold": 1, "action": "modify", "raw": {"id": 1}, "as_is": false}),
            json!({"hold": 1, "action": "modify", "raw_text": "x", "as_is": true}),
            json!({"hold": 1, "action": "modify", "raw_b64": "AA==", "as_is": true}),
        ],
        Method::BreakpointsAdd => vec![
            json!({"filter": "ping"}),
            json!({"filter": "ping", "direction": "server_to_client", "hits": 1, "server": "db"}),
            json!({"filter": "ping", "connection": 1}),
        ],
        Method::BreakpointsRemove => vec![json!({"id": 2})],
        Method::Replay => vec![
            json!({"sequence": 4}),
            json!({"sequence": 4, "session": "live", "connection": 1, "timeout_ms": 5}),
            json!({"sequence": 4, "session": "fresh", "raw": "x", "as_is": true, "server": "db"}),
        ],
        Method::Note => vec![
            json!({"text": "here"}),
            json!({"sequence": 4, "mark": "set"}),
            json!({"sequence": 4, "mark": "removed"}),
        ],
        Method::Export => vec![
            json!({"format": "har", "output": "/x"}),
            json!({"format": "har", "output": "/x", "force": true}),
        ],
        Method::Save => vec![json!({"output": "/x"})],
        Method::RelayPair => vec![
            json!({"user": "ada"}),
            json!({"user": "ada", "lifetime_s": 60, "connection_url": "wss://relay.test"}),
        ],
        Method::ServersRestart | Method::ServersEnable | Method::ServersDisable => {
            vec![json!({"server": "db"})]
        }
        Method::Subscribe
        | Method::ServersList
        | Method::ServersReload
        | Method::Stats
        | Method::Step
        | Method::Continue
        | Method::BreakpointsList
        | Method::RulesReload
        | Method::Shutdown => vec![json!({})],
    }
}

#[test]
fn the_parameters_of_every_method_are_read_and_written_without_loss() {
    for info in METHODS {
        for params in examples(info.method) {
            assert_eq!(rewritten(info.method, &params), Ok(params), "{}", info.name);
        }
    }
}

#[test]
fn the_list_names_every_parameter_and_no_other() {
    for info in METHODS {
        let examples = examples(info.method);
        let members = examples.iter().flat_map(|one| one.as_object().unwrap());
        let taken: BTreeSet<&str> = members.map(|(name, _)| name.as_str()).collect();
        let listed: BTreeSet<&str> = info.params.iter().map(|param| param.name).collect();
        assert_eq!(listed, taken, "{}", info.name);
        // A script's mistake is refused by its name.
        let fault = rewritten(info.method, &json!({"nonsense": 1})).unwrap_err();
        assert!(fault.text.contains("`nonsense`"), "{}", fault.text);
    }
}

#[test]
fn a_parameter_is_text_where_every_value_is_a_string() {
    for info in METHODS {
        let examples = examples(info.method);
        for param in info.params {
            let mut values = examples.iter().filter_map(|one| one.get(param.name));
            match param.kind {
                ParamKind::Text => assert!(values.all(Value::is_string), "{}", param.name),
                ParamKind::Json => assert!(!values.any(Value::is_string), "{}", param.name),
                ParamKind::Message => {}
            }
        }
    }
}

#[test]
fn names_are_unique_and_found() {
    for info in METHODS {
        assert_eq!(Method::named(info.name), Some(info.method));
        assert_eq!(info.method.info().name, info.name);
    }
    let methods: Vec<Method> = METHODS.iter().map(|info| info.method).collect();
    for (place, method) in methods.iter().enumerate() {
        assert!(
            !methods[..place].contains(method),
            "{method:?} is listed twice"
        );
    }
    assert_eq!(Method::named("nonsense"), None);
}

#[test]
fn what_takes_its_time_does_not_delay_a_hold() {
    for slow in [Method::Replay, Method::Export, Method::Save] {
        assert!(slow.is_slow(), "{slow:?}");
    }
    for quick in [Method::HoldResolve, Method::HoldList, Method::Get] {
        assert!(!quick.is_slow(), "{quick:?}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (method, params, text) in [
        (
            Method::InterceptSet,
            json!({"mode": "on"}),
            "mode: unknown variant `on`",
        ),
        (
            Method::InterceptSet,
            json!({"mode": "intercept", "connection": "x1"}),
            "connection: `x1`",
        ),
        (
            Method::BreakpointsAdd,
            json!({"filter": "a", "direction": "up"}),
            "direction: `up`",
        ),
        (
            Method::Replay,
            json!({"sequence": 1, "session": "dead"}),
            "session: unknown variant `dead`",
        ),
        (
            Method::Note,
            json!({"sequence": 1, "mark": "on"}),
            "mark: unknown variant `on`",
        ),
        (Method::HoldResolve, json!({"action": "drop"}), "`hold`"),
    ] {
        let fault = rewritten(method, &params).unwrap_err();
        assert_eq!(fault.code, -32602);
        assert!(fault.text.contains(text), "{}", fault.text);
        assert!(!fault.text.contains("line"), "{}", fault.text);
    }
    let fault = read_params::<StatsRequest>(Some(b"[1]")).unwrap_err();
    assert_eq!(fault.text, "params must be an object");
    assert!(read_params::<StatsRequest>(None).is_ok());
}
