//! The one list of parameters: their names, what they may be, and which actions take them.

use std::fmt;

use super::ProxyAction;

/// A parameter of the tool.
///
/// ```
/// use mcp_proxy_tool::{ProxyAction, ProxyParameter};
///
/// assert_eq!(ProxyParameter::Path.as_str(), "path");
/// assert_eq!(ProxyParameter::Path.actions(), [ProxyAction::Info, ProxyAction::Call]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyParameter {
    /// `action`
    Action,
    /// `query`
    Query,
    /// `type`
    Type,
    /// `path`
    Path,
    /// `args`
    Args,
    /// `limit`
    Limit,
    /// `offset`
    Offset,
    /// `filter_server`
    FilterServer,
    /// `filter`
    Filter,
    /// `detail`
    Detail,
    /// `operations`
    Operations,
}

impl ProxyParameter {
    /// All parameters, in the order of the input schema.
    pub const ALL: [ProxyParameter; 11] = [
        ProxyParameter::Action,
        ProxyParameter::Query,
        ProxyParameter::Type,
        ProxyParameter::Path,
        ProxyParameter::Args,
        ProxyParameter::Limit,
        ProxyParameter::Offset,
        ProxyParameter::FilterServer,
        ProxyParameter::Filter,
        ProxyParameter::Detail,
        ProxyParameter::Operations,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyParameter::Action => "action",
            ProxyParameter::Query => "query",
            ProxyParameter::Type => "type",
            ProxyParameter::Path => "path",
            ProxyParameter::Args => "args",
            ProxyParameter::Limit => "limit",
            ProxyParameter::Offset => "offset",
            ProxyParameter::FilterServer => "filter_server",
            ProxyParameter::Filter => "filter",
            ProxyParameter::Detail => "detail",
            ProxyParameter::Operations => "operations",
        }
    }

    /// The actions that take it.
    pub fn actions(self) -> &'static [ProxyAction] {
        use ProxyAction::{Call, Info, List, Search};
        match self {
            ProxyParameter::Action => &ProxyAction::ALL,
            ProxyParameter::Query => &[Search],
            ProxyParameter::Type => &[Search, List, Info, Call],
            ProxyParameter::Path => &[Info, Call],
            ProxyParameter::Args => &[Call],
            ProxyParameter::Limit | ProxyParameter::FilterServer => &[Search, List],
            ProxyParameter::Offset | ProxyParameter::Filter | ProxyParameter::Detail => &[List],
            ProxyParameter::Operations => &[ProxyAction::Batch],
        }
    }

    /// What it may be, to follow "must be".
    pub(super) fn allowed(self) -> &'static str {
        match self {
            ProxyParameter::Action => "'search', 'list', 'info', 'call' or 'batch'",
            ProxyParameter::Query => "a string that says what to look for",
            ProxyParameter::Type => "'tool', 'resource' or 'prompt'",
            ProxyParameter::Path => "a string with the name or URI",
            ProxyParameter::Args => "an object, or a string that holds a JSON object",
            ProxyParameter::Limit => "a whole number from 1 to 1000",
            ProxyParameter::Offset => "a whole number, 0 or more",
            ProxyParameter::FilterServer => "a string with a server's name, alias or prefix",
            ProxyParameter::Filter => {
                "an object with 'prefix' (a string), 'tags' (strings) or both"
            }
            ProxyParameter::Detail => "'brief' or 'full'",
            ProxyParameter::Operations => "an array of 1 to 100 operations",
        }
    }
}

impl fmt::Display for ProxyParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
