//! The `proxy-read` tool: the parameters of `proxy` and those of `readresult`, for everything that changes nothing.
//!
//! Whoever allows it once and for all allows nothing but reading: tools that their server does not mark as read-only are
//! refused.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::dispatch_tool::{self, DispatchAction, DispatchParameter};
use crate::proxy_tool::{
    self, ProxyAction, ProxyParameter, ProxyToolOptions, ToolParameter, ToolWord,
};

/// What the tool is called.
pub const READ_TOOL_NAME: &str = "proxy-read";

/// What its definition depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadToolOptions {
    /// The tool's name: `proxy-read`.
    pub name: String,
    /// The options of the `proxy` tool, whose parameters it has.
    pub proxy: ProxyToolOptions,
    /// Whether the `proxy` tool is listed next to it, and explains these parameters.
    pub with_proxy: bool,
    /// The name of the `proxy-dispatch` tool, if that is listed next to it and explains `readresult`.
    pub dispatch: Option<String>,
}

impl ReadToolOptions {
    /// The tool without any other next to it.
    pub fn alone(proxy: ProxyToolOptions) -> ReadToolOptions {
        ReadToolOptions {
            name: READ_TOOL_NAME.to_owned(),
            proxy,
            with_proxy: false,
            dispatch: None,
        }
    }
}

/// The definition for `tools/list`. `servers` names the servers behind it; another tool in the list does that already.
pub(crate) fn definition(options: &ReadToolOptions, servers: &str) -> Bytes {
    let is_alone = !options.with_proxy && options.dispatch.is_none();
    let mut description = description(options);
    if is_alone && !servers.is_empty() {
        description = format!("{description}\n{servers}");
    }
    json!({
        "name": options.name,
        "title": "MCP proxy, read only",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties(options),
            "required": [ProxyParameter::Action.as_str()],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
        "_meta": {proxy_tool::ALWAYS_LOAD: true},
    })
    .to_string()
    .into()
}

fn description(options: &ReadToolOptions) -> String {
    if options.with_proxy {
        return format!(
            "{} for reading only: finds everything, reads resources and stored results, gets prompts, and calls only tools that are marked read-only.",
            options.proxy.name
        );
    }
    let other = match &options.dispatch {
        Some(name) => format!(" Other tools: {name}."),
        None => String::new(),
    };
    format!(
        r#"Finds what the MCP servers behind this proxy offer, and uses what only reads: resources, prompts, and tools that are marked read-only.{other}
1. {{"action":"search","query":"read a file"}}
2. {{"action":"call","type":"tool","path":"files_read","args":{{"path":"a.txt"}}}}
3. Only if the result was written to a file: {{"action":"readresult","resultFile":"…","op":"grep","pattern":"error"}}"#
    )
}

fn properties(options: &ReadToolOptions) -> Map<String, Value> {
    let mut properties = Map::new();
    for &parameter in ProxyParameter::all() {
        let mut schema = proxy_tool::parameter_schema(parameter, &options.proxy);
        if options.with_proxy {
            remove_descriptions(&mut schema);
        }
        properties.insert(parameter.as_str().to_owned(), schema);
    }
    let mut actions = ProxyAction::texts();
    actions.push(DispatchAction::ReadResult.as_str());
    properties[ProxyParameter::Action.as_str()]["enum"] = json!(actions);
    for &parameter in DispatchParameter::all() {
        let is_of_read = parameter.actions() == [DispatchAction::ReadResult];
        // `filter` of `list` is an object, and that of jq a text.
        if parameter == DispatchParameter::Filter {
            let list = properties[parameter.as_str()].take();
            let jq = json!({"type": "string", "description": "readresult with jq: the filter"});
            properties[parameter.as_str()] = json!({"anyOf": [list, jq]});
        } else if is_of_read {
            let mut schema = dispatch_tool::parameter_schema(parameter, &Default::default());
            if options.dispatch.is_some() {
                remove_descriptions(&mut schema);
            }
            properties.insert(parameter.as_str().to_owned(), schema);
        }
    }
    properties
}

/// Takes out what the definition of another tool says already.
fn remove_descriptions(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        // A property may have the name `description`; its schema is not a text.
        if schema.get("description").is_some_and(Value::is_string) {
            schema.remove("description");
        }
        schema.values_mut().for_each(remove_descriptions);
    }
}
