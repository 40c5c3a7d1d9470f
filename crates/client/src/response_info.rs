//! What an answer of the proxy tool says about itself.

use mcp_proxy_tool::{CapabilityType, META_KEY, ProxyAction, ToolWord};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::Value;

/// The facts in the annotations of an answer, or in its `_meta` under `mcp-proxy/proxy`.
///
/// rmcp's types drop annotations that they do not know. Clients made by this crate keep them: the facts of servers that
/// write only annotations, such as Magg, are copied to `_meta` as they arrive.
///
/// ```
/// use mcp_proxy_client::{CapabilityType, ProxyAction, ProxyResponseInfo};
/// use serde_json::json;
///
/// let annotations = json!({"proxyAction": "list", "proxyType": "tool", "totalCount": 250, "many": true});
/// let info = ProxyResponseInfo::from_annotations(annotations.as_object().unwrap());
/// assert_eq!(info.proxy_action, Some(ProxyAction::List));
/// assert_eq!(info.proxy_type, Some(CapabilityType::Tool));
/// assert_eq!(info.total_count, Some(250));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ProxyResponseInfo {
    /// The request's `action`.
    pub proxy_action: Option<ProxyAction>,
    /// The request's `type`.
    pub proxy_type: Option<CapabilityType>,
    /// The request's `path`.
    pub proxy_path: Option<String>,
    /// What JSON text holds: `Tool`, `Prompt`, `GetPromptResult` …
    pub data_type: Option<String>,
    /// Whether JSON text is an array.
    pub many: Option<bool>,
    /// How many items match, on all pages.
    pub total_count: Option<u64>,
    /// How many items were skipped.
    pub offset: Option<u64>,
    /// The most items on a page.
    pub limit: Option<u64>,
    /// The `offset` of the next page, if there is one.
    pub next_offset: Option<u64>,
    /// The MIME type that text had before it became JSON.
    pub content_type: Option<String>,
    /// Servers whose items are missing or old, each with its reason.
    pub unavailable: Vec<Value>,
    /// Why the operation failed, in a word for programs.
    pub error: Option<String>,
    /// The parameter that is wrong.
    pub parameter: Option<String>,
    /// The code of the JSON-RPC error of the server behind.
    pub server_code: Option<i64>,
}

impl ProxyResponseInfo {
    /// From the members of an `annotations` object, or of the object under `mcp-proxy/proxy`.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyResponseInfo;
    ///
    /// let facts = serde_json::json!({"error": "not-found"});
    /// let info = ProxyResponseInfo::from_annotations(facts.as_object().unwrap());
    /// assert_eq!(info.error.as_deref(), Some("not-found"));
    /// ```
    pub fn from_annotations(facts: &JsonObject) -> ProxyResponseInfo {
        let text = |name: &str| facts.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| facts.get(name)?.as_u64();
        let flag = |name: &str| facts.get(name)?.as_bool();
        ProxyResponseInfo {
            proxy_action: text("proxyAction").and_then(|word| ProxyAction::named(&word)),
            proxy_type: text("proxyType").and_then(|word| CapabilityType::named(&word)),
            proxy_path: text("proxyPath"),
            data_type: text("dataType").or_else(|| text("pythonType")),
            many: flag("isArray").or_else(|| flag("many")),
            total_count: number("totalCount"),
            offset: number("offset"),
            limit: number("limit"),
            next_offset: number("nextOffset"),
            content_type: text("contentType"),
            unavailable: match facts.get("unavailable") {
                Some(Value::Array(servers)) => servers.clone(),
                _ => Vec::new(),
            },
            error: text("error"),
            parameter: text("parameter"),
            server_code: facts.get("serverCode").and_then(Value::as_i64),
        }
    }

    /// Of an item of a result, or of anything else in JSON with `annotations` or `_meta`. What `_meta` says wins.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyResponseInfo;
    ///
    /// let item = serde_json::json!({"_meta": {"mcp-proxy/proxy": {"totalCount": 3}}});
    /// assert_eq!(ProxyResponseInfo::from_json(&item).unwrap().total_count, Some(3));
    /// ```
    pub fn from_json(item: &Value) -> Option<ProxyResponseInfo> {
        let meta = item.get("_meta").and_then(|meta| meta.get(META_KEY));
        let is_ours = |facts: &&Value| facts.get("proxyAction").is_some();
        let facts = meta.or_else(|| item.get("annotations").filter(is_ours))?;
        facts.as_object().map(ProxyResponseInfo::from_annotations)
    }

    /// Of one item of a result.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyResponseInfo;
    /// use mcp_proxy_client::rmcp::model::ContentBlock;
    ///
    /// assert_eq!(ProxyResponseInfo::of_content(&ContentBlock::text("8")), None);
    /// ```
    pub fn of_content(item: &ContentBlock) -> Option<ProxyResponseInfo> {
        let meta = match item {
            ContentBlock::Text(text) => &text.meta,
            ContentBlock::Image(image) => &image.meta,
            ContentBlock::Audio(audio) => &audio.meta,
            ContentBlock::Resource(resource) => &resource.meta,
            ContentBlock::ResourceLink(link) => &link.meta,
            _ => return None,
        };
        ProxyResponseInfo::of_meta(meta.as_ref())
    }

    /// Of a result: what it says as a whole, as errors do, or what its first item says.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyResponseInfo;
    /// use mcp_proxy_client::rmcp::model::CallToolResult;
    ///
    /// assert_eq!(ProxyResponseInfo::of_result(&CallToolResult::success(Vec::new())), None);
    /// ```
    pub fn of_result(result: &CallToolResult) -> Option<ProxyResponseInfo> {
        ProxyResponseInfo::of_whole(result)
            .or_else(|| ProxyResponseInfo::of_content(result.content.first()?))
    }

    /// What a result says as a whole. Only an error of the proxy tool itself says anything.
    pub(crate) fn of_whole(result: &CallToolResult) -> Option<ProxyResponseInfo> {
        ProxyResponseInfo::of_meta(result.meta.as_ref())
    }

    /// What the `_meta` of something says.
    pub(crate) fn of_meta(meta: Option<&MetaObject>) -> Option<ProxyResponseInfo> {
        let facts = meta?.get(META_KEY)?.as_object()?;
        Some(ProxyResponseInfo::from_annotations(facts))
    }
}
