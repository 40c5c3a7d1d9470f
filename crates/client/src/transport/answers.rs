//! The answers of a server as rmcp's types, also those that rmcp would drop.
//!
//! rmcp skips a message that its types do not take, and the request waits until its time runs out. So answers are read
//! here first: one that can be repaired is repaired, and any other becomes an error for its request that says what is
//! wrong.

mod repairs;

use mcp_proxy_tool::json::readable_id;
use memchr::memmem;
use rmcp::model::{
    CallToolResult, ErrorCode, ErrorData, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, ReadResourceResult,
    RequestId, Resource, ResourceTemplate, ServerJsonRpcMessage, ServerResult, Tool,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::kept_facts::keep_facts_in_result;
pub(crate) use repairs::{
    SkippedDefinition, decode_item, read_item, repair_prompt_result, repair_tool_result,
    skipped_definitions,
};

/// The member of an error's `data` that holds why an answer cannot be decoded. Only this module writes it.
const UNDECODABLE: &str = "mcp-proxy/undecodable";

/// The member of an error's `data` that holds a code which is too large for rmcp's type.
const WIDE_CODE: &str = "mcp-proxy/code";

/// How much of a strange value is repeated in an error.
const SHOWN_VALUE: usize = 100;

/// An answer to a request.
pub(crate) struct Answer {
    pub(crate) message: ServerJsonRpcMessage,
    /// rmcp would read something else from the bytes, or nothing. It reads events itself.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only HTTP has events")
    )]
    pub(crate) is_repaired: bool,
}

/// What is behind the code and data of an error that this module wrote.
pub(crate) enum WrittenError {
    /// The answer cannot be decoded.
    Undecodable { reason: String },
    /// The server's error has a code that rmcp's type does not take.
    WideCode { code: i64, data: Option<Value> },
}

/// The outermost members of a message. Their values may be nested as deeply as they like.
#[derive(Deserialize)]
struct MessageMembers<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// The members of a result that tell what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultMembers<'a> {
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
    content: Option<IgnoredAny>,
    structured_content: Option<IgnoredAny>,
    is_error: Option<IgnoredAny>,
    contents: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
    tools: Option<IgnoredAny>,
    prompts: Option<IgnoredAny>,
    resources: Option<IgnoredAny>,
    resource_templates: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ErrorMembers {
    code: Option<Value>,
    message: Option<Value>,
    data: Option<Value>,
}

/// The answer in the bytes of a message. `None` if they are not an answer: a request, a notification, or not a message.
pub(crate) fn read_answer(bytes: &[u8]) -> Option<Answer> {
    // A struct could also be read from an array.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let members: MessageMembers<'_> = match serde_json::from_slice(bytes) {
        Ok(members) => members,
        // A line for people may be an object with an id too.
        Err(_) if memmem::find(bytes, b"\"jsonrpc\"").is_none() => return None,
        Err(error) => {
            let id = serde_json::from_slice(&readable_id(bytes)?).ok()?;
            return Some(undecodable(id, format!("it is not valid JSON: {error}")));
        }
    };
    if members.method.is_some() {
        return None;
    }
    let id: RequestId = serde_json::from_str(members.id?.get()).ok()?;
    let is_null = |value: &&RawValue| value.get() == "null";
    let answer = match (members.result, members.error) {
        (Some(result), None) => read_result(&id, result),
        (None, Some(error)) => Ok(read_error(&id, error)),
        // Servers of other versions of JSON-RPC write both.
        (Some(result), Some(error)) if is_null(&result) => Ok(read_error(&id, error)),
        (Some(result), Some(error)) if is_null(&error) => {
            read_result(&id, result).map(|answer| Answer {
                is_repaired: true,
                ..answer
            })
        }
        (Some(_), Some(_)) => Err("it has a result and an error".to_owned()),
        (None, None) if memmem::find(bytes, b"\"jsonrpc\"").is_none() => return None,
        (None, None) => Err("it has neither a result nor an error".to_owned()),
    };
    Some(answer.unwrap_or_else(|reason| undecodable(id, reason)))
}

/// The answer that tells the request `id` that its answer cannot be decoded.
pub(crate) fn undecodable(id: RequestId, reason: impl Into<String>) -> Answer {
    let reason: String = reason.into();
    let data = json!({UNDECODABLE: &reason});
    let error = ErrorData::new(ErrorCode::PARSE_ERROR, reason, Some(data));
    Answer {
        message: ServerJsonRpcMessage::error(error, Some(id)),
        is_repaired: true,
    }
}

/// What this module wrote into `error`, if it wrote it.
pub(crate) fn written_error(error: &ErrorData) -> Option<WrittenError> {
    let data = error.data.as_ref()?;
    if let Some(reason) = data.get(UNDECODABLE).and_then(Value::as_str) {
        let reason = reason.to_owned();
        return Some(WrittenError::Undecodable { reason });
    }
    let code = data.get(WIDE_CODE)?.as_i64()?;
    let data = data.get("data").cloned();
    Some(WrittenError::WideCode { code, data })
}

fn read_result(id: &RequestId, raw: &RawValue) -> Result<Answer, String> {
    let (result, is_repaired) = server_result(raw).map_err(|error| explain(&error))?;
    Ok(Answer {
        message: ServerJsonRpcMessage::response(result, id.clone()),
        is_repaired,
    })
}

/// The result by what it contains, and whether it was repaired.
fn server_result(raw: &RawValue) -> Result<(ServerResult, bool), serde_json::Error> {
    let members = match raw.get().starts_with('{') {
        true => serde_json::from_str::<ResultMembers<'_>>(raw.get()).ok(),
        false => None,
    };
    let is_complete = |members: &ResultMembers<'_>| {
        let result_type = members.result_type.map(RawValue::get);
        result_type.is_none_or(|result_type| result_type == "\"complete\"")
    };
    let Some(members) = members.filter(is_complete) else {
        return Ok((serde_json::from_str(raw.get())?, false));
    };
    let is_tool_result = members.content.is_some()
        || members.structured_content.is_some()
        || members.is_error.is_some();
    if is_tool_result {
        if memmem::find(raw.get().as_bytes(), b"\"proxyAction\"").is_some() {
            let mut value: Value = serde_json::from_str(raw.get())?;
            keep_facts_in_result(&mut value);
            repair_tool_result(&mut value);
            return Ok((
                serde_json::from_value::<CallToolResult>(value)?.into(),
                true,
            ));
        }
        typed::<CallToolResult>(raw, repair_tool_result)
    } else if members.contents.is_some() {
        typed::<ReadResourceResult>(raw, |_| {})
    } else if members.messages.is_some() {
        typed::<GetPromptResult>(raw, repair_prompt_result)
    } else if members.tools.is_some() {
        list::<ListToolsResult, Tool>(raw, "tools")
    } else if members.prompts.is_some() {
        list::<ListPromptsResult, Prompt>(raw, "prompts")
    } else if members.resources.is_some() {
        list::<ListResourcesResult, Resource>(raw, "resources")
    } else if members.resource_templates.is_some() {
        list::<ListResourceTemplatesResult, ResourceTemplate>(raw, "resourceTemplates")
    } else {
        Ok((serde_json::from_str(raw.get())?, false))
    }
}

fn typed<T: DeserializeOwned + Into<ServerResult>>(
    raw: &RawValue,
    repair: impl Fn(&mut Value),
) -> Result<(ServerResult, bool), serde_json::Error> {
    if let Ok(result) = serde_json::from_str::<T>(raw.get()) {
        return Ok((result.into(), false));
    }
    let mut value = serde_json::from_str(raw.get())?;
    repair(&mut value);
    Ok((serde_json::from_value::<T>(value)?.into(), true))
}

/// A list, without the definitions in `member` that are not a `T`.
fn list<L: DeserializeOwned + Into<ServerResult>, T: DeserializeOwned>(
    raw: &RawValue,
    member: &str,
) -> Result<(ServerResult, bool), serde_json::Error> {
    if let Ok(result) = serde_json::from_str::<L>(raw.get()) {
        return Ok((result.into(), false));
    }
    let value = repairs::repaired_list::<T>(raw, member)?;
    Ok((serde_json::from_value::<L>(value)?.into(), true))
}

/// The error of the server. Its code is any number that is whole; rmcp's type takes those of 32 bits.
fn read_error(id: &RequestId, raw: &RawValue) -> Answer {
    if let Ok(error) = serde_json::from_str::<ErrorData>(raw.get()) {
        return Answer {
            message: ServerJsonRpcMessage::error(error, Some(id.clone())),
            // There may be a `result` next to it.
            is_repaired: true,
        };
    }
    let error: ErrorMembers = match serde_json::from_str(raw.get()) {
        Ok(error) => error,
        Err(error) => {
            let reason = format!("its error is not one: {}", explain(&error));
            return undecodable(id.clone(), reason);
        }
    };
    let message = match error.message {
        Some(Value::String(text)) => text,
        Some(other) => shown(&other),
        None => "the server gives no reason".to_owned(),
    };
    let code = match &error.code {
        None => {
            let reason = format!("its error has no code; it says: {message}");
            return undecodable(id.clone(), reason);
        }
        Some(code) => whole_number(code),
    };
    let Some(code) = code else {
        let code = shown(&error.code.unwrap_or_default());
        let reason =
            format!("its error has the code {code}, which is not an integer; it says: {message}");
        return undecodable(id.clone(), reason);
    };
    let error = match i32::try_from(code) {
        Ok(code) => ErrorData::new(ErrorCode(code), message, error.data),
        Err(_) => {
            let mut data = json!({WIDE_CODE: code});
            if let Some(inner) = error.data {
                data["data"] = inner;
            }
            ErrorData::new(ErrorCode::INTERNAL_ERROR, message, Some(data))
        }
    };
    Answer {
        message: ServerJsonRpcMessage::error(error, Some(id.clone())),
        is_repaired: true,
    }
}

fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        // Up to here every whole number is one f64, so the cast is exact.
        let is_exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        is_exact.then_some(number as i64)
    })
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(SHOWN_VALUE).collect()
}

/// What serde says, where its words do not explain themselves.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.starts_with("recursion limit exceeded") {
        true => "it is nested more than 128 levels deep".to_owned(),
        false => text,
    }
}

/// A member that is there, also one that is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
