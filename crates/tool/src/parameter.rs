//! The parameters of the tool: their names, what they may be, and which actions take them.

use crate::{ProxyAction, ToolParameter, ToolWord};

/// A parameter of the tool, in the order of the input schema.
///
/// ```
/// use mcp_proxy_tool::{ProxyAction, ProxyParameter, ToolParameter, ToolWord};
///
/// assert_eq!(ProxyParameter::FilterServer.as_str(), "filter_server");
/// assert_eq!(ProxyParameter::Path.actions(), [ProxyAction::Info, ProxyAction::Call]);
/// ```
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
#[strum(serialize_all = "snake_case")]
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

impl ToolWord for ProxyParameter {
    // `cursor` and the like have no counterpart.
    const SYNONYMS: &'static [(&'static str, ProxyParameter)] = &[
        ("arguments", ProxyParameter::Args),
        ("params", ProxyParameter::Args),
        ("parameters", ProxyParameter::Args),
        ("input", ProxyParameter::Args),
        ("name", ProxyParameter::Path),
        ("tool", ProxyParameter::Path),
        ("uri", ProxyParameter::Path),
        ("url", ProxyParameter::Path),
        ("resource", ProxyParameter::Path),
        ("prompt", ProxyParameter::Path),
        ("kind", ProxyParameter::Type),
        ("a_type", ProxyParameter::Type),
        ("server", ProxyParameter::FilterServer),
        ("connection", ProxyParameter::FilterServer),
        ("prefix", ProxyParameter::Filter),
        ("tags", ProxyParameter::Filter),
        ("q", ProxyParameter::Query),
        ("text", ProxyParameter::Query),
        ("keywords", ProxyParameter::Query),
        ("format", ProxyParameter::Detail),
        ("count", ProxyParameter::Limit),
        ("skip", ProxyParameter::Offset),
        ("calls", ProxyParameter::Operations),
        ("batch", ProxyParameter::Operations),
    ];
}

impl ToolParameter for ProxyParameter {
    type Action = ProxyAction;

    const ACTION: ProxyParameter = ProxyParameter::Action;

    fn actions(self) -> &'static [ProxyAction] {
        use ProxyAction::{Batch, Call, Info, List, Search};
        match self {
            ProxyParameter::Action => ProxyAction::all(),
            ProxyParameter::Query => &[Search],
            ProxyParameter::Type => &[Search, List, Info, Call],
            ProxyParameter::Path => &[Info, Call],
            ProxyParameter::Args => &[Call],
            ProxyParameter::Limit | ProxyParameter::FilterServer => &[Search, List],
            ProxyParameter::Offset | ProxyParameter::Filter | ProxyParameter::Detail => &[List],
            ProxyParameter::Operations => &[Batch],
        }
    }

    fn allowed(self) -> &'static str {
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
