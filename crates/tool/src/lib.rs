//! The `proxy` tool: everything that servers offer, through one tool.
//!
//! Here are its definition, the meaning of its arguments, and the form of its answers: the same for the hub, for the client
//! library and for other people's servers. All of it is functions on bytes: the caller resolves paths, calls servers, and
//! rewrites URIs in their results before they are rendered here.
//!
//! It must not know the hub, any transport or any SDK.

#![warn(unreachable_pub)]

mod arguments;
mod batch;
mod catalog_answers;
mod definition;
mod error;
mod facts;
mod given;
mod item_kind;
pub mod json;
mod lines;
mod near_names;
mod parameter;
mod parameter_defaults;
mod server_results;
mod signature;
pub mod tool_values;
mod without_nulls;
mod word;
pub mod wording;

use bytes::Bytes;

pub use arguments::parse_arguments;
pub use batch::render_batch;
pub use catalog_answers::{
    ListedItem, UnavailableServer, UnavailableState, page_of, render_info, render_list,
};
pub use definition::{
    ALWAYS_LOAD, definition, definition_of_one_server, input_schema, parameter_schema,
};
pub use error::{ProxyToolError, render_error};
pub use facts::{DISPATCH_META_KEY, META_KEY};
pub use given::{ArgumentError, GivenParameters, ToolParameter};
pub use item_kind::ItemKind;
pub use lines::{item_line, more_line, render_lines, render_search, search_lines};
pub use near_names::near_names;
pub use parameter::ProxyParameter;
pub use parameter_defaults::{defaults_of, says_nothing};
pub use server_results::{
    render_items, render_prompt_result, render_resource_result, render_tool_result,
};
pub use signature::{prompt_signature, tool_signature};
pub use word::ToolWord;

/// The largest `limit`.
pub const MAX_LIMIT: u32 = 1000;

/// How many items `search` returns when the call does not say.
pub const DEFAULT_SEARCH_LIMIT: u32 = 10;

/// The most operations in one batch.
pub const MAX_OPERATIONS: usize = 100;

/// What an administrator can choose about the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyToolOptions {
    /// The tool's name: `proxy`, or another such as `mcp:proxy`.
    pub name: String,
    /// How many items `list` returns when the call does not say, from 1 to [`MAX_LIMIT`].
    pub default_limit: u32,
}

/// The values of `action`.
///
/// ```
/// use mcp_proxy_tool::{ProxyAction, ToolWord};
///
/// assert_eq!(ProxyAction::texts(), ["search", "list", "info", "call", "batch"]);
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
#[strum(serialize_all = "lowercase")]
pub enum ProxyAction {
    /// Find something by what it does.
    Search,
    /// Show what there is.
    List,
    /// Show one definition.
    Info,
    /// Call a tool, read a resource or get a prompt.
    Call,
    /// Run several operations.
    Batch,
}

/// The values of `type`. Resource templates are listed and described as resources.
///
/// ```
/// use mcp_proxy_tool::{CapabilityType, ToolWord};
///
/// assert_eq!(CapabilityType::texts(), ["tool", "resource", "prompt"]);
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
#[strum(serialize_all = "lowercase")]
pub enum CapabilityType {
    /// Tools.
    Tool,
    /// Resources and resource templates.
    Resource,
    /// Prompts.
    Prompt,
}

/// What a call of the tool asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyOperation {
    /// What fits a description best.
    Search(SearchWords),
    /// One page of the catalog.
    List(ListQuery),
    /// The definition of one item.
    Info {
        /// What is looked for.
        kind: CapabilityType,
        /// Its name or URI.
        path: String,
    },
    /// A call of a tool, the contents of a resource, or a prompt.
    Call {
        /// What is called.
        kind: CapabilityType,
        /// Its name or URI.
        path: String,
        /// The arguments, a JSON object on one line. For a prompt all values are strings; for a resource there are none.
        arguments: Option<Bytes>,
    },
    /// Several operations, none of them a batch. Those that cannot be run keep their place.
    Batch(Vec<Result<ProxyOperation, ProxyToolError>>),
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWords {
    /// The words; not empty.
    pub query: String,
    /// What is searched.
    pub kind: CapabilityType,
    /// The most items to return.
    pub limit: u32,
    /// The only server to search, by its name, alias or prefix.
    pub filter_server: Option<String>,
}

/// How much a list says about each item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ListDetail {
    /// One line.
    Brief,
    /// Its whole definition, as JSON.
    #[default]
    Full,
}

/// Which items a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// What is listed.
    pub kind: CapabilityType,
    /// The most items to return.
    pub limit: u32,
    /// How many items to skip.
    pub offset: u64,
    /// A server's name, alias or prefix, or the beginning of the items' names.
    pub filter_server: Option<String>,
    /// Names and tags to look for.
    pub filter: ListFilter,
    /// How much is said about each.
    pub detail: ListDetail,
}

/// The `filter` of a list. An empty one lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// How names or URIs begin.
    pub prefix: Option<String>,
    /// Tags of which an item has at least one.
    pub tags: Vec<String>,
}

impl Default for ProxyToolOptions {
    fn default() -> ProxyToolOptions {
        ProxyToolOptions {
            name: "proxy".to_owned(),
            default_limit: 100,
        }
    }
}

impl ProxyToolOptions {
    fn default_limit(&self) -> u32 {
        self.default_limit.clamp(1, MAX_LIMIT)
    }
}

impl ToolWord for ProxyAction {
    const SYNONYMS: &'static [(&'static str, ProxyAction)] = &[
        ("ls", ProxyAction::List),
        ("find", ProxyAction::Search),
        ("query", ProxyAction::Search),
        ("discover", ProxyAction::Search),
        ("describe", ProxyAction::Info),
        ("show", ProxyAction::Info),
        ("schema", ProxyAction::Info),
        ("help", ProxyAction::Info),
        ("read", ProxyAction::Call),
        ("get", ProxyAction::Call),
        ("run", ProxyAction::Call),
        ("use", ProxyAction::Call),
        ("invoke", ProxyAction::Call),
        ("execute", ProxyAction::Call),
    ];
}

impl ToolWord for CapabilityType {
    const SYNONYMS: &'static [(&'static str, CapabilityType)] = &[
        ("function", CapabilityType::Tool),
        ("template", CapabilityType::Resource),
        ("resource_template", CapabilityType::Resource),
        ("file", CapabilityType::Resource),
    ];
}

impl ToolWord for ListDetail {}

impl CapabilityType {
    /// The catalog's kinds that are of this type, in the order in which they are listed.
    pub fn item_kinds(self) -> &'static [ItemKind] {
        match self {
            CapabilityType::Tool => &[ItemKind::Tool],
            CapabilityType::Resource => &[ItemKind::Resource, ItemKind::Template],
            CapabilityType::Prompt => &[ItemKind::Prompt],
        }
    }
}

impl From<ItemKind> for CapabilityType {
    fn from(kind: ItemKind) -> CapabilityType {
        match kind {
            ItemKind::Tool => CapabilityType::Tool,
            ItemKind::Resource | ItemKind::Template => CapabilityType::Resource,
            ItemKind::Prompt => CapabilityType::Prompt,
        }
    }
}

#[cfg(test)]
mod tests;
