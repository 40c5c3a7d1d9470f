//! The tool as clients list it.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    CapabilityType, MAX_LIMIT, MAX_OPERATIONS, ProxyAction, ProxyParameter, ProxyToolOptions,
};

const DESCRIPTION: &str = r#"Finds and uses the tools, resources and prompts of all MCP servers behind this proxy.

1. Find: {"action":"list","type":"tool"}
2. See how it is called: {"action":"info","type":"tool","path":"calc_add"}
3. Use: {"action":"call","type":"tool","path":"calc_add","args":{"a":5,"b":3}}

With "type":"resource", call reads a resource; with "type":"prompt", it gets a prompt. If a list is as long as its limit, ask for the next part with offset."#;

/// The definition for `tools/list`.
pub fn definition(options: &ProxyToolOptions) -> Bytes {
    let properties: serde_json::Map<String, Value> = ProxyParameter::ALL
        .into_iter()
        .map(|parameter| (parameter.as_str().to_owned(), schema(parameter, options)))
        .collect();
    json!({
        "name": options.name,
        "title": "MCP proxy",
        "description": DESCRIPTION,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": [ProxyParameter::Action.as_str()],
            "additionalProperties": false,
        },
    })
    .to_string()
    .into()
}

fn schema(parameter: ProxyParameter, options: &ProxyToolOptions) -> Value {
    match parameter {
        ProxyParameter::Action => json!({
            "type": "string",
            "enum": ProxyAction::ALL.map(ProxyAction::as_str),
            "description": "list: show what there is. info: show one definition. call: call a tool, read a resource or get a prompt. batch: run several operations.",
        }),
        ProxyParameter::Type => json!({
            "type": "string",
            "enum": CapabilityType::ALL.map(CapabilityType::as_str),
            "description": "What to list, describe or call. Required, except for batch.",
        }),
        ProxyParameter::Path => json!({
            "type": "string",
            "description": "Name of the tool or prompt, or URI of the resource. Required for info and call.",
        }),
        ProxyParameter::Args => json!({
            "anyOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}],
            "description": "call only: the arguments of the tool or prompt, as an object or as a string that holds a JSON object.",
        }),
        ProxyParameter::Limit => json!({
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "default": options.default_limit.clamp(1, MAX_LIMIT),
            "description": "list only: the most items to return.",
        }),
        ProxyParameter::Offset => json!({
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "list only: how many items to skip.",
        }),
        ProxyParameter::FilterServer => json!({
            "type": "string",
            "description": "list only: one server, by its name, alias or prefix (such as calc_).",
        }),
        ProxyParameter::Filter => json!({
            "type": "object",
            "properties": {
                "prefix": {"type": "string", "description": "How the name or URI begins."},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Tags of which an item has at least one.",
                },
            },
            "additionalProperties": false,
            "description": "list only: further conditions.",
        }),
        ProxyParameter::Operations => json!({
            "type": "array",
            "items": {"type": "object"},
            "minItems": 1,
            "maxItems": MAX_OPERATIONS,
            "description": "batch only: the operations, each with the parameters of a single list, info or call. Results come in the same order; one that fails does not stop the others.",
        }),
    }
}
