//! The tool as clients list it.
//!
//! Every model pays for this text in every conversation, so it says only what cannot be guessed from a name, and
//! leaves the rest to the errors.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    DEFAULT_LINES, DEFAULT_LIST_LIMIT, DispatchAction, DispatchFormat, DispatchParameter,
    DispatchToolOptions, MAX_SEARCH_LIMIT, ReadResultOperation,
};
use crate::proxy_tool::{ALWAYS_LOAD, CapabilityType, ToolWord, input_schema};

const DESCRIPTION: &str = r#"Finds and calls the tools of all MCP servers behind this proxy.
1. {"action":"search","query":"read a file"}
2. {"action":"call","tool":"files_read","arguments":{"path":"a.txt"}}
3. Only if the result was written to a file: {"action":"readresult","resultFile":"…","op":"grep","pattern":"error"}"#;

/// The definition for `tools/list`. `servers` is a line about the servers behind the tool, or empty.
pub fn definition(options: &DispatchToolOptions, servers: &str) -> Bytes {
    let input_schema = input_schema(|parameter| parameter_schema(parameter, options));
    json!({
        "name": options.name,
        "description": format!("{DESCRIPTION}\n{servers}").trim_end(),
        "inputSchema": input_schema,
        "_meta": {ALWAYS_LOAD: true},
    })
    .to_string()
    .into()
}

/// What the value of a parameter may be.
pub(crate) fn parameter_schema(
    parameter: DispatchParameter,
    options: &DispatchToolOptions,
) -> Value {
    match parameter {
        DispatchParameter::Action => json!({
            "type": "string",
            "enum": DispatchAction::texts(),
            "description": "list: all tools by server. status: how many there are",
        }),
        DispatchParameter::Query => text("search: what the tool should do"),
        DispatchParameter::Tool => text("call: the tool's name"),
        DispatchParameter::Arguments => json!({
            "type": "object",
            "description": "call: the tool's inputs. {\"$resultFile\":…,\"jq\":…} is a file's content",
        }),
        DispatchParameter::Connection => {
            text("A server's alias (c1) or name. For call, only if several have the tool")
        }
        DispatchParameter::Type => json!({
            "type": "string",
            "enum": CapabilityType::texts(),
            "description": "search: default tool",
        }),
        DispatchParameter::Limit => json!({
            "type": "integer",
            "minimum": 1,
            "description": format!("search: default {}; list: {DEFAULT_LIST_LIMIT}", options.default_search_limit.clamp(1, MAX_SEARCH_LIMIT)),
        }),
        DispatchParameter::Offset => number(0, "list: skip"),
        DispatchParameter::Format => json!({
            "type": "string",
            "enum": DispatchFormat::texts(),
            "description": "list, search: default text; others are JSON",
        }),
        DispatchParameter::IncludeTools => flag("list: default true"),
        DispatchParameter::IncludeInputSchema => flag("list, search: default false"),
        DispatchParameter::IncludeAnnotations => flag("list, search: default true"),
        DispatchParameter::ArgumentsFile => text("call: a resultFile to use as arguments"),
        DispatchParameter::Meta => json!({
            "type": "object",
            "description": "call: _meta for the server",
        }),
        DispatchParameter::ResultToFile => {
            flag("call: write the result to a file and return resultFile")
        }
        DispatchParameter::ResultSizeThreshold => {
            number(0, "call: write results of more bytes to a file; 0 = never")
        }
        DispatchParameter::ResultFile => text("readresult: as returned by call"),
        DispatchParameter::Op => json!({
            "type": "string",
            "enum": ReadResultOperation::texts(),
            "description": "readresult: what to do with the file; default stat (its size)",
        }),
        DispatchParameter::Lines => number(1, &format!("head, tail: default {DEFAULT_LINES}")),
        DispatchParameter::FromLine => number(1, "slice: counts from 1"),
        DispatchParameter::ToLine => number(1, "slice: inclusive"),
        DispatchParameter::FromColumn => number(1, "slice: where to begin in a long line"),
        DispatchParameter::Pattern => text("grep: regex, ignores case"),
        DispatchParameter::Context => number(0, "grep: lines around"),
        DispatchParameter::MaxBytes => {
            number(0, "readresult: most bytes to return; 0 = up to 256 KiB")
        }
        DispatchParameter::Filter => text("jq: the filter"),
        DispatchParameter::Refresh => flag("Ask servers for their tools again first"),
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn number(least: u32, description: &str) -> Value {
    json!({"type": "integer", "minimum": least, "description": description})
}
