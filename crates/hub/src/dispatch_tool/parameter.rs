//! The one list of parameters: their names, what they may be, and which actions and operations take them.

use std::fmt;

use super::{DispatchAction, ReadResultOperation};

/// A parameter of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl DispatchParameter {
    /// All parameters, in the order of the input schema.
    pub const ALL: [DispatchParameter; 27] = [
        DispatchParameter::Action,
        DispatchParameter::Query,
        DispatchParameter::Tool,
        DispatchParameter::Arguments,
        DispatchParameter::Connection,
        DispatchParameter::Type,
        DispatchParameter::Limit,
        DispatchParameter::Offset,
        DispatchParameter::Format,
        DispatchParameter::IncludeTools,
        DispatchParameter::IncludeInputSchema,
        DispatchParameter::IncludeAnnotations,
        DispatchParameter::ArgumentsFile,
        DispatchParameter::Meta,
        DispatchParameter::ResultToFile,
        DispatchParameter::ResultSizeThreshold,
        DispatchParameter::ResultFile,
        DispatchParameter::Op,
        DispatchParameter::Lines,
        DispatchParameter::FromLine,
        DispatchParameter::ToLine,
        DispatchParameter::FromColumn,
        DispatchParameter::Pattern,
        DispatchParameter::Context,
        DispatchParameter::MaxBytes,
        DispatchParameter::Filter,
        DispatchParameter::Refresh,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            DispatchParameter::Action => "action",
            DispatchParameter::Query => "query",
            DispatchParameter::Tool => "tool",
            DispatchParameter::Arguments => "arguments",
            DispatchParameter::Connection => "connection",
            DispatchParameter::Type => "type",
            DispatchParameter::Limit => "limit",
            DispatchParameter::Offset => "offset",
            DispatchParameter::Format => "format",
            DispatchParameter::IncludeTools => "includeTools",
            DispatchParameter::IncludeInputSchema => "includeInputSchema",
            DispatchParameter::IncludeAnnotations => "includeAnnotations",
            DispatchParameter::ArgumentsFile => "argumentsFile",
            DispatchParameter::Meta => "meta",
            DispatchParameter::ResultToFile => "resultToFile",
            DispatchParameter::ResultSizeThreshold => "resultSizeThreshold",
            DispatchParameter::ResultFile => "resultFile",
            DispatchParameter::Op => "op",
            DispatchParameter::Lines => "lines",
            DispatchParameter::FromLine => "fromLine",
            DispatchParameter::ToLine => "toLine",
            DispatchParameter::FromColumn => "fromColumn",
            DispatchParameter::Pattern => "pattern",
            DispatchParameter::Context => "context",
            DispatchParameter::MaxBytes => "maxBytes",
            DispatchParameter::Filter => "filter",
            DispatchParameter::Refresh => "refresh",
        }
    }

    /// The parameter of this name.
    pub(super) fn named(name: &str) -> Option<DispatchParameter> {
        DispatchParameter::ALL
            .into_iter()
            .find(|parameter| parameter.as_str() == name)
    }

    /// The actions that take it.
    pub fn actions(self) -> &'static [DispatchAction] {
        use DispatchAction::{Call, List, ReadResult, Search};
        match self {
            DispatchParameter::Action | DispatchParameter::Refresh => &DispatchAction::ALL,
            // Where a stored result came from does not matter, but models like to say it.
            DispatchParameter::Connection => &DispatchAction::ALL,
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
            _ => &ReadResultOperation::ALL,
        }
    }

    /// What it may be, to follow "must be".
    pub(super) fn allowed(self) -> &'static str {
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

impl fmt::Display for DispatchParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
