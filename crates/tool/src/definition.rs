//! The tool as clients list it.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    CapabilityType, DEFAULT_SEARCH_LIMIT, ListDetail, MAX_LIMIT, MAX_OPERATIONS, ProxyAction,
    ProxyParameter, ProxyToolOptions, ToolParameter, ToolWord,
};

const OF_ALL_SERVERS: &str =
    "Finds and uses the tools, resources and prompts of all MCP servers behind this proxy.";

const OF_ONE_SERVER: &str = "Finds and uses the tools, resources and prompts of this server.";

const STEPS: &str = r#"1. Find: {"action":"search","query":"add numbers"}
2. Use: {"action":"call","type":"tool","path":"calc_add","args":{"a":5,"b":3}}
With "type":"resource", call reads a resource; with "type":"prompt", it gets a prompt. info shows a whole definition."#;

/// The member of `_meta` by which a client knows that a tool must be in the first request of its model.
pub const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// The definition for `tools/list`. `servers` is a line about the servers behind the tool, or empty.
pub fn definition(options: &ProxyToolOptions, servers: &str) -> Bytes {
    described(options, &format!("{OF_ALL_SERVERS}\n{STEPS}\n{servers}"))
}

/// The definition for a server with nothing behind it: the tool finds what the server itself has.
pub fn definition_of_one_server(options: &ProxyToolOptions) -> Bytes {
    described(options, &format!("{OF_ONE_SERVER}\n{STEPS}"))
}

fn described(options: &ProxyToolOptions, description: &str) -> Bytes {
    let input_schema = input_schema(|parameter| parameter_schema(parameter, options));
    json!({
        "name": options.name,
        "title": "MCP proxy",
        "description": description.trim_end(),
        "inputSchema": input_schema,
        "_meta": {ALWAYS_LOAD: true},
    })
    .to_string()
    .into()
}

/// The schema of the arguments of one of our tools.
pub fn input_schema<P: ToolParameter>(schema: impl Fn(P) -> Value) -> Value {
    let properties: serde_json::Map<String, Value> = P::all()
        .iter()
        .map(|parameter| (parameter.to_string(), schema(*parameter)))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": [P::ACTION.as_str()],
        "additionalProperties": false,
    })
}

/// What the value of a parameter may be.
pub fn parameter_schema(parameter: ProxyParameter, options: &ProxyToolOptions) -> Value {
    match parameter {
        ProxyParameter::Action => json!({
            "type": "string",
            "enum": ProxyAction::texts(),
            "description": "search: find something by what it does. list: show all. info: show one definition. call: call a tool, read a resource or get a prompt. batch: run several operations.",
        }),
        ProxyParameter::Query => json!({
            "type": "string",
            "description": "search: what it should do.",
        }),
        ProxyParameter::Type => json!({
            "type": "string",
            "enum": CapabilityType::texts(),
            "description": "What to find, describe or call. Required, except for search (default tool) and batch.",
        }),
        ProxyParameter::Path => json!({
            "type": "string",
            "description": "info, call: name of the tool or prompt, or URI of the resource.",
        }),
        ProxyParameter::Args => json!({
            "anyOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}],
            "description": "call: the arguments of the tool or prompt, as an object or as a string that holds a JSON object.",
        }),
        ProxyParameter::Limit => json!({
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "description": format!("search (default {DEFAULT_SEARCH_LIMIT}), list (default {}): maximum number of items.", options.default_limit()),
        }),
        ProxyParameter::Offset => json!({
            "type": "integer",
            "minimum": 0,
            "description": "list: how many items to skip.",
        }),
        ProxyParameter::FilterServer => json!({
            "type": "string",
            "description": "search, list: one server, by its name, alias or prefix (such as calc_).",
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
            "description": "list: further conditions.",
        }),
        ProxyParameter::Detail => json!({
            "type": "string",
            "enum": ListDetail::texts(),
            "description": "list: brief is one line for each item. Default full, all definitions.",
        }),
        ProxyParameter::Operations => json!({
            "type": "array",
            "items": {"type": "object"},
            "minItems": 1,
            "maxItems": MAX_OPERATIONS,
            "description": "batch: the operations, each with the parameters of a single one. Results come in the same order; one that fails does not stop the others.",
        }),
    }
}
