//! The signature of a tool in the error for a call with wrong arguments, for models that have not read its schema.

use mcp_proxy_wire::{ErrorCode, Field, Message, Span, json_string};
use serde_json::Value;

use super::calls::{AnswerForm, Call};
use crate::catalog::{Catalog, ItemKind};
use crate::json;
use crate::proxy_tool::{CapabilityType, tool_signature};

/// What servers write in front of an error about arguments that they return as a result.
const INVALID_PARAMS_TEXT: &str = "MCP error -32602";

/// The answer with the signature behind the text of its error, if the tool was called through one of the hub's own tools and
/// its arguments were wrong.
pub(super) fn with_signature(catalog: &Catalog, call: &Call, answer: Message) -> Message {
    let signed = signature_edit(catalog, call, &answer).and_then(|(span, new)| {
        let edits = [(span, new.as_bytes())];
        answer.splice(&edits).ok()
    });
    signed.unwrap_or(answer)
}

fn signature_edit(catalog: &Catalog, call: &Call, answer: &Message) -> Option<(Span, String)> {
    let name = match &call.form {
        AnswerForm::Dispatch(form) => &form.tool,
        AnswerForm::ProxyTool { kind, path } | AnswerForm::Part { kind, path, .. }
            if *kind == CapabilityType::Tool =>
        {
            path
        }
        _ => return None,
    };
    let text = error_text(answer)?;
    let said = answer.text_at(text)?;
    let is_sure = answer.error_code().is_some() || said.starts_with(INVALID_PARAMS_TEXT);
    let original = call.message.text(Field::Name)?;
    let at = catalog.find_of_server(ItemKind::Tool, call.server, &original)?;
    let definition = json::parse(catalog.entry(at).definition.to_bytes())?;
    let naming = catalog.server(call.server)?.naming();
    let fixed = naming.fixed_arguments.get(&*original);
    let is_fixed = |name: &str| fixed.is_some_and(|fixed| fixed.contains_key(name));
    if !is_sure && !are_wrong(&call.message, &definition, is_fixed)? {
        return None;
    }
    let signature = tool_signature(name, &definition);
    let text_with = format!("{}\nExpected: {signature}", said.trim_end());
    Some((text, json_string(&text_with)))
}

/// The text of an error that may be about the arguments: of the first text in a failed result, or of a JSON-RPC error that says so.
fn error_text(answer: &Message) -> Option<Span> {
    if let Some(code) = answer.error_code() {
        let is_of_arguments = code == ErrorCode::INVALID_PARAMS.get();
        return answer
            .member(answer.error()?, "message")
            .filter(|_| is_of_arguments);
    }
    let [is_error, content] = answer.members(answer.result()?, ["isError", "content"]);
    is_error.filter(|span| answer.slice(*span) == b"true")?;
    let items = json::elements(answer, content?);
    items
        .into_iter()
        .find_map(|item| answer.member(item, "text"))
}

/// Whether the arguments of a call lack something, have something that is not allowed, or have a value of another type.
fn are_wrong(
    call: &Message,
    definition: &Message,
    is_fixed: impl Fn(&str) -> bool,
) -> Option<bool> {
    let schema = definition.member(definition.root(), "inputSchema")?;
    let schema: Value = serde_json::from_slice(definition.slice(schema)).ok()?;
    let arguments = call.span(Field::Param("arguments"));
    let arguments = arguments.map_or(&b"{}"[..], |span| call.slice(span));
    let arguments: Value = serde_json::from_slice(arguments).ok()?;
    let Some(arguments) = arguments.as_object() else {
        return Some(true);
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let lacks_some = required
        .filter_map(Value::as_str)
        .any(|name| !arguments.contains_key(name));
    let is_closed = schema["additionalProperties"] == false;
    let has_wrong = arguments
        .iter()
        .filter(|(name, _)| !is_fixed(name))
        .any(|(name, value)| match schema["properties"].get(name) {
            Some(property) => !has_type(value, &property["type"]),
            None => is_closed,
        });
    Some(lacks_some || has_wrong)
}

/// Whether a value has the type of a schema, or one of its types. What is no type allows everything.
fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::String(wanted) => match &**wanted {
            "string" => value.is_string(),
            "number" | "integer" => value.is_number(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "null" => value.is_null(),
            _ => true,
        },
        Value::Array(wanted) => wanted.iter().any(|wanted| has_type(value, wanted)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn d11_wrong_arguments_are_recognised() {
        let schema = json!({
            "type": "object",
            "properties": {"timezone": {"type": "string"}, "n": {"type": ["integer", "null"]}, "any": {}},
            "required": ["timezone"],
        });
        let wrong = |arguments: Value, closed: bool| {
            let mut schema = schema.clone();
            schema["additionalProperties"] = json!(!closed);
            let definition = json!({"name": "f", "inputSchema": schema});
            let call = json!({"id": 1, "method": "tools/call", "params": {"name": "f", "arguments": arguments}});
            let definition = json::parse(definition.to_string()).unwrap();
            let is_fixed = |name: &str| name == "fixed";
            are_wrong(&Message::parse(call.to_string()), &definition, is_fixed).unwrap()
        };
        for (arguments, closed) in [
            (json!({"tz": "UTC"}), false),
            (json!({}), false),
            (json!([]), false),
            (json!({"timezone": 1}), false),
            (json!({"timezone": "x", "n": "1"}), false),
            (json!({"timezone": "x", "other": 1}), true),
        ] {
            assert!(wrong(arguments.clone(), closed), "{arguments}");
        }
        for (arguments, closed) in [
            (json!({"timezone": "x"}), true),
            (json!({"timezone": "x", "n": null, "any": [1]}), true),
            (json!({"timezone": "x", "fixed": 1}), true),
            (json!({"timezone": "x", "other": 1}), false),
        ] {
            assert!(!wrong(arguments.clone(), closed), "{arguments}");
        }
    }
}
