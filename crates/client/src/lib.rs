//! A client for MCP servers that offer a `proxy` tool, and that tool for servers written with rmcp.
//!
//! [`ProxyClient`] talks to a server at a URL, to one that it starts, or over any rmcp transport, in either era of the
//! protocol. With [`ProxyClientBuilder::transparent`] its methods reach what is *behind* the server: they go through the
//! `proxy` tool, follow pages to the end, and return the types of a native call. [`ProxyTool`] adds the `proxy` tool to
//! any rmcp server.
//!
//! ```no_run
//! use mcp_proxy_client::ProxyClient;
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), mcp_proxy_client::ClientError> {
//! let client = ProxyClient::builder()
//!     .transparent(true)
//!     .connect("http://localhost:8080/mcp")
//!     .await?;
//! for tool in client.list_tools().await? {
//!     println!("{}", tool.name);
//! }
//! let sum = client.call_tool("calculator_add", json!({"a": 5, "b": 3})).await?;
//! println!("{:?}", sum.content);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The tool itself (its parameters, the form of its answers) is defined in `mcp-proxy-tool`, which this crate shares
//! with the server side. What a call needs is checked here before anything is sent.

#![warn(unreachable_pub, missing_docs)]

mod batch;
mod builder;
mod call_options;
mod client;
mod connect_error;
mod discovery;
mod dispatch;
mod error;
mod list_pages;
mod native;
mod operation;
mod proxied;
#[cfg(feature = "proxy-tool")]
mod proxy_tool;
mod requests;
mod response_info;
mod server_requests;
mod target;
mod transform;
mod transport;
mod warning;

pub use batch::BatchOperation;
pub use builder::ProxyClientBuilder;
pub use call_options::{CallOptions, Progress, ProgressHandler};
pub use client::ProxyClient;
pub use connect_error::ConnectError;
pub use dispatch::{KeptResultPart, ResultText, SearchAnswer, SearchMatch, SearchOptions};
pub use error::ClientError;
pub use mcp_proxy_tool::{
    ArgumentError, CapabilityType, ProxyAction, ProxyParameter, ProxyToolError, ToolParameter,
    ToolWord,
};
pub use operation::validate_operation;
pub use proxied::ListedResource;
#[cfg(all(feature = "proxy-tool", feature = "http"))]
pub use proxy_tool::{AnnotatedBody, write_annotations};
#[cfg(feature = "proxy-tool")]
pub use proxy_tool::{ProxyTool, ProxyToolHandler};
pub use response_info::ProxyResponseInfo;
pub use target::{ClientTarget, ServerStderr};
pub use transform::{
    EmbeddedData, decode_embedded_resource, extract_embedded_data, tool_result_as_prompt_result,
    tool_result_as_resource_result,
};
pub use warning::ClientWarning;

/// The member of `_meta` that marks a text item which stands for an item that rmcp's types do not take: one of an unknown
/// `type`, or without what its type needs. The text is the item as JSON. The member has its `type` and the `reason`.
///
/// ```
/// use mcp_proxy_client::UNKNOWN_CONTENT_KEY;
/// use mcp_proxy_client::rmcp::model::ContentBlock;
///
/// fn is_unknown(item: &ContentBlock) -> bool {
///     let meta = item.as_text().and_then(|text| text.meta.as_ref());
///     meta.is_some_and(|meta| meta.contains_key(UNKNOWN_CONTENT_KEY))
/// }
/// assert!(!is_unknown(&ContentBlock::text("words")));
/// ```
pub const UNKNOWN_CONTENT_KEY: &str = "mcp-proxy/unknown-content";

/// The SDK whose types are part of this crate's interface.
pub use rmcp;

/// Compiles the programs of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct DocumentedPrograms;
