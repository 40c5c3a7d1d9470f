//! The methods of both eras.
//!
//! Legacy clients open with `initialize`; modern ones say in each request which revision it is written in. Both may
//! talk to the same server at the same time, so the era is read from each request.

use mcp_proxy_wire::revision::{KNOWN, LATEST_LEGACY, MODERN, meta};
use mcp_proxy_wire::{Era, ErrorCode, Id, Kind, Message, era_of, error_response, request_era};
use serde_json::{Map, Value, json};

use crate::BuiltinServer;
use crate::tool::{call_result, clip};

/// How long clients may keep lists. They change only when the proxy is started again.
const TTL_MS: u64 = 300_000;

/// A JSON-RPC error.
struct RequestError {
    code: ErrorCode,
    message: String,
    data: Option<Value>,
}

pub(crate) fn answer(server: &BuiltinServer, message: &Message) -> Option<Message> {
    match message.kind() {
        Kind::Notification | Kind::Response | Kind::Error => None,
        Kind::Batch => answer_batch(server, message),
        Kind::Request => Some(answer_request(server, message)),
        Kind::Other => Some(refuse(message, ErrorCode::INVALID_REQUEST, "not a request")),
        // An answer that we cannot read is still not for us to answer.
        Kind::Malformed if message.is_answer() => None,
        Kind::Malformed => Some(refuse(message, ErrorCode::PARSE_ERROR, "not JSON")),
    }
}

/// Revision 2025-03-26 has batches.
fn answer_batch(server: &BuiltinServer, batch: &Message) -> Option<Message> {
    let parts = batch.parts().unwrap_or_default();
    if parts.is_empty() {
        return Some(refuse(batch, ErrorCode::INVALID_REQUEST, "empty batch"));
    }
    let answers: Vec<Message> = parts
        .iter()
        .filter_map(|part| match part.kind() {
            Kind::Batch => Some(refuse(part, ErrorCode::INVALID_REQUEST, "nested batch")),
            _ => answer(server, part),
        })
        .collect();
    if answers.is_empty() {
        return None;
    }
    let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.raw().as_ref()).collect();
    Some(Message::parse(
        [b"[".as_slice(), &answers.join(b",".as_slice()), b"]"].concat(),
    ))
}

fn refuse(message: &Message, code: ErrorCode, reason: &str) -> Message {
    error_response(message.id().as_ref(), code, reason, None)
}

fn answer_request(server: &BuiltinServer, message: &Message) -> Message {
    let id = message.id().unwrap_or_else(|| Id::from_token(b"null"));
    match request_result(server, message) {
        Ok(result) => {
            let result = result.to_string();
            Message::parse(
                [
                    br#"{"jsonrpc":"2.0","id":"#,
                    id.token(),
                    br#","result":"#,
                    result.as_bytes(),
                    b"}",
                ]
                .concat(),
            )
        }
        Err(error) => {
            let data = error.data.map(|data| data.to_string());
            error_response(Some(&id), error.code, &error.message, data.as_deref())
        }
    }
}

fn request_result(server: &BuiltinServer, message: &Message) -> Result<Value, RequestError> {
    let method = message.method().unwrap_or_default();
    let params = read_params(message)?;
    match era(message, &method, &params) {
        Era::Legacy => match method.as_ref() {
            "initialize" => initialize(server, &params),
            "ping" => Ok(json!({})),
            "tools/list" => list_tools(server, &params),
            "tools/call" => call_tool(server, &params),
            _ => Err(unknown_method(&method)),
        },
        Era::Modern => {
            check_meta(&params)?;
            let result = match method.as_ref() {
                "server/discover" => cacheable(discover(server)),
                "tools/list" => cacheable(list_tools(server, &params)?),
                "tools/call" => call_tool(server, &params)?,
                _ => return Err(unknown_method(&method)),
            };
            Ok(complete(server, result))
        }
    }
}

/// A request that names no version is legacy, unless it could only come from a modern client that forgot it.
fn era(message: &Message, method: &str, params: &Map<String, Value>) -> Era {
    request_era(message).unwrap_or_else(|| {
        let has_capabilities = params
            .get("_meta")
            .is_some_and(|meta| meta.get(meta::CLIENT_CAPABILITIES).is_some());
        match has_capabilities || method == "server/discover" {
            true => Era::Modern,
            false => Era::Legacy,
        }
    })
}

fn read_params(message: &Message) -> Result<Map<String, Value>, RequestError> {
    let Some(span) = message.params() else {
        return Ok(Map::new());
    };
    let params = message.slice(span);
    if !params.starts_with(b"{") {
        return Err(invalid_params("params must be an object"));
    }
    serde_json::from_slice(params)
        .map_err(|error| invalid_params(format!("params cannot be read: {error}")))
}

fn initialize(server: &BuiltinServer, params: &Map<String, Value>) -> Result<Value, RequestError> {
    let requested = params.get("protocolVersion").and_then(Value::as_str);
    let requested =
        requested.ok_or_else(|| invalid_params("params.protocolVersion must be a string"))?;
    let is_offered = KNOWN.contains(&requested) && era_of(requested) == Some(Era::Legacy);
    let version = if is_offered { requested } else { LATEST_LEGACY };
    Ok(json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(server),
        "instructions": server.instructions(),
    }))
}

fn discover(server: &BuiltinServer) -> Value {
    json!({
        "supportedVersions": KNOWN,
        "capabilities": capabilities(),
        "instructions": server.instructions(),
    })
}

/// The list has one page, so no cursor is ever valid.
fn list_tools(server: &BuiltinServer, params: &Map<String, Value>) -> Result<Value, RequestError> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(invalid_params("params.cursor is not a cursor of this list"));
    }
    let tools: Vec<Value> = server.tools().iter().map(|tool| tool.to_json()).collect();
    Ok(json!({ "tools": tools }))
}

fn call_tool(server: &BuiltinServer, params: &Map<String, Value>) -> Result<Value, RequestError> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| invalid_params("params.name must be a string"))?;
    let tool = server.tools().iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| {
        let name = clip(name, 64);
        invalid_params(format!("the {} server has no tool `{name}`", server.name()))
    })?;
    let none = Map::new();
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(invalid_params("params.arguments must be an object")),
    };
    Ok(call_result(server.call(tool, arguments)))
}

fn check_meta(params: &Map<String, Value>) -> Result<(), RequestError> {
    let key = |name: &str| params.get("_meta").and_then(|meta| meta.get(name));
    let version = key(meta::PROTOCOL_VERSION).and_then(Value::as_str);
    let Some(version) = version else {
        let key = meta::PROTOCOL_VERSION;
        return Err(invalid_params(format!("_meta[\"{key}\"] must be a string")));
    };
    if version != MODERN {
        let version = clip(version, 64);
        return Err(RequestError {
            code: ErrorCode::UNSUPPORTED_VERSION,
            message: format!("protocol version `{version}` is not supported"),
            data: Some(json!({ "supported": KNOWN, "requested": version })),
        });
    }
    if !key(meta::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        let key = meta::CLIENT_CAPABILITIES;
        return Err(invalid_params(format!(
            "_meta[\"{key}\"] must be an object"
        )));
    }
    Ok(())
}

/// What every modern result says.
fn complete(server: &BuiltinServer, mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({ (meta::SERVER_INFO): server_info(server) });
    result
}

/// Descriptions name the paths of roots, so caches must not share them between users.
fn cacheable(mut result: Value) -> Value {
    result["ttlMs"] = json!(TTL_MS);
    result["cacheScope"] = json!("private");
    result
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn server_info(server: &BuiltinServer) -> Value {
    json!({
        "name": format!("mcp-proxy-{}", server.name()),
        "title": server.title(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn unknown_method(method: &str) -> RequestError {
    RequestError {
        code: ErrorCode::METHOD_NOT_FOUND,
        message: format!("unknown method `{}`", clip(method, 64)),
        data: None,
    }
}

fn invalid_params(reason: impl Into<String>) -> RequestError {
    RequestError {
        code: ErrorCode::INVALID_PARAMS,
        message: reason.into(),
        data: None,
    }
}
