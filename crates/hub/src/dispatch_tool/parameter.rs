//! The one list of parameters: their names, what they may be, and which actions and operations take them.

use super::{DispatchAction, ReadResultOperation};
use crate::proxy_tool::{ToolParameter, ToolWord};

/// A parameter of the tool.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "camelCase")]
pub enum DispatchParameter {
    /// `action`
    Action,
    /// `query`
    Query,
    /// `tool`
    Tool,
    /// `arguments`
    Arguments,
    /// `connection`
    Connection,
    /// `type`
    Type,
    /// `limit`
    Limit,
    /// `offset`
    Offset,
    /// `format`
    Format,
    /// `includeTools`
    IncludeTools,
    /// `includeInputSchema`
    IncludeInputSchema,
    /// `includeAnnotations`
    IncludeAnnotations,
    /// `argumentsFile`
    ArgumentsFile,
    /// `meta`
    Meta,
    /// `resultToFile`
    ResultToFile,
    /// `resultSizeThreshold`
    ResultSizeThreshold,
    /// `resultFile`
    ResultFile,
    /// `op`
    Op,
    /// `lines`
    Lines,
    /// `fromLine`
    FromLine,
    /// `toLine`
    ToLine,
    /// `fromColumn`
    FromColumn,
    /// `pattern`
    Pattern,
    /// `context`
    Context,
    /// `maxBytes`
    MaxBytes,
    /// `filter`
    Filter,
    /// `refresh`
    Refresh,
}

impl ToolWord for DispatchParameter {
    const SYNONYMS: &'static [(&'static str, DispatchParameter)] = &[
        ("args", DispatchParameter::Arguments),
        ("params", DispatchParameter::Arguments),
        ("parameters", DispatchParameter::Arguments),
        ("input", DispatchParameter::Arguments),
        ("inputs", DispatchParameter::Arguments),
        ("name", DispatchParameter::Tool),
        ("toolname", DispatchParameter::Tool),
        ("tool_name", DispatchParameter::Tool),
        ("function", DispatchParameter::Tool),
        ("server", DispatchParameter::Connection),
        ("server_name", DispatchParameter::Connection),
        ("alias", DispatchParameter::Connection),
        ("q", DispatchParameter::Query),
        ("text", DispatchParameter::Query),
        ("search", DispatchParameter::Query),
        ("keywords", DispatchParameter::Query),
        ("kind", DispatchParameter::Type),
        ("count", DispatchParameter::Limit),
        ("max_results", DispatchParameter::Limit),
        ("detail", DispatchParameter::Format),
        ("schema", DispatchParameter::IncludeInputSchema),
        ("file", DispatchParameter::ResultFile),
        ("path", DispatchParameter::ResultFile),
        ("handle", DispatchParameter::ResultFile),
        ("uri", DispatchParameter::ResultFile),
        ("operation", DispatchParameter::Op),
        ("regex", DispatchParameter::Pattern),
        ("start_line", DispatchParameter::FromLine),
        ("end_line", DispatchParameter::ToLine),
        ("jq", DispatchParameter::Filter),
        ("_meta", DispatchParameter::Meta),
    ];
}

impl ToolParameter for DispatchParameter {
    type Action = DispatchAction;

    const ACTION: DispatchParameter = DispatchParameter::Action;

    fn actions(self) -> &'static [DispatchAction] {
        use DispatchAction::{Call, List, ReadResult, Search};
        match self {
            DispatchParameter::Action | DispatchParameter::Refresh => DispatchAction::all(),
            // Where a stored result came from does not matter, but models like to say it.
            DispatchParameter::Connection => DispatchAction::all(),
            DispatchParameter::IncludeTools => &[List],
            DispatchParameter::Format
            | DispatchParameter::IncludeInputSchema
            | DispatchParameter::IncludeAnnotations => &[List, Search],
            DispatchParameter::Query | DispatchParameter::Type => &[Search],
            DispatchParameter::Limit => &[List, Search],
            DispatchParameter::Offset => &[List],
            DispatchParameter::Tool
            | DispatchParameter::Arguments
            | DispatchParameter::ArgumentsFile
            | DispatchParameter::Meta
            | DispatchParameter::ResultToFile
            | DispatchParameter::ResultSizeThreshold => &[Call],
            DispatchParameter::ResultFile
            | DispatchParameter::Op
            | DispatchParameter::Lines
            | DispatchParameter::FromLine
            | DispatchParameter::ToLine
            | DispatchParameter::FromColumn
            | DispatchParameter::Pattern
            | DispatchParameter::Context
            | DispatchParameter::MaxBytes
            | DispatchParameter::Filter => &[ReadResult],
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            DispatchParameter::Action => "'status', 'list', 'search', 'call' or 'readresult'",
            DispatchParameter::Query => "a string that says what to look for",
            DispatchParameter::Tool => "a string with the tool's name",
            DispatchParameter::Arguments | DispatchParameter::Meta => {
                "an object, or a string that holds a JSON object"
            }
            DispatchParameter::Connection => {
                "a string with a connection's alias, such as 'c1', or its name"
            }
            DispatchParameter::Type => "'tool', 'resource' or 'prompt'",
            DispatchParameter::Limit => "a whole number, 1 or more",
            DispatchParameter::Offset => "a whole number, 0 or more",
            DispatchParameter::Format => "'text', 'compact' or 'detail'",
            DispatchParameter::IncludeTools
            | DispatchParameter::IncludeInputSchema
            | DispatchParameter::IncludeAnnotations
            | DispatchParameter::ResultToFile
            | DispatchParameter::Refresh => "true or false",
            DispatchParameter::ArgumentsFile | DispatchParameter::ResultFile => {
                "a string with the resultFile of an earlier call"
            }
            DispatchParameter::ResultSizeThreshold => {
                "a whole number of bytes; 0 returns a result of any size"
            }
            DispatchParameter::Op => "'stat', 'read', 'head', 'tail', 'slice', 'grep' or 'jq'",
            DispatchParameter::Lines
            | DispatchParameter::FromLine
            | DispatchParameter::FromColumn => "a whole number, 1 or more",
            DispatchParameter::ToLine => "a whole number, not less than 'fromLine'",
            DispatchParameter::Pattern => "a string with a regular expression",
            DispatchParameter::Context => "a whole number of lines, 0 or more",
            DispatchParameter::MaxBytes => "a whole number of bytes; 0 means the maximum",
            DispatchParameter::Filter => "a string with a jq filter",
        }
    }
}

impl DispatchParameter {
    /// The operations of `readresult` that take it.
    pub(super) fn operations(self) -> &'static [ReadResultOperation] {
        match self {
            DispatchParameter::Lines => &[ReadResultOperation::Head, ReadResultOperation::Tail],
            DispatchParameter::FromLine
            | DispatchParameter::ToLine
            | DispatchParameter::FromColumn => &[ReadResultOperation::Slice],
            DispatchParameter::Pattern => &[ReadResultOperation::Grep],
            DispatchParameter::Filter => &[ReadResultOperation::Jq],
            // Lines around what is not a match change nothing.
            _ => ReadResultOperation::all(),
        }
    }
}
