//! From the results of the proxy tool to those of the methods that it stands for.

use rmcp::model::{
    Annotations, CallToolResult, ContentBlock, EmbeddedResource, GetPromptResult,
    ReadResourceResult, ResourceContents,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ClientError;
use crate::response_info::ProxyResponseInfo;
use crate::transport::repair_prompt_result;

/// The data in an embedded resource of the proxy tool.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::{CallOptions, CapabilityType, ProxyAction, extract_embedded_data};
///
/// let result = client
///     .proxy(CapabilityType::Tool, ProxyAction::List, None, None, CallOptions::new())
///     .await?;
/// if let Some(resource) = result.content.first().and_then(|item| item.as_resource()) {
///     let data = extract_embedded_data(resource)?;
///     println!("{:?}, an array: {}", data.data_type, data.many);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EmbeddedData {
    /// What it is: `Tool`, `Prompt`, `GetPromptResult` …, if the server says so.
    pub data_type: Option<String>,
    /// Whether it is an array of that.
    pub many: bool,
    /// The data.
    pub json: Value,
}

/// The data that an embedded resource holds as JSON text.
///
/// ```
/// use mcp_proxy_client::extract_embedded_data;
/// use mcp_proxy_client::rmcp::model::EmbeddedResource;
/// use serde_json::json;
///
/// let resource: EmbeddedResource = serde_json::from_value(json!({
///     "resource": {"uri": "proxy:list/tool", "mimeType": "application/json", "text": "[]"},
///     "_meta": {"mcp-proxy/proxy": {"dataType": "Tool", "isArray": true}},
/// })).unwrap();
/// let data = extract_embedded_data(&resource)?;
/// assert_eq!((data.data_type.as_deref(), data.many), (Some("Tool"), true));
/// # Ok::<(), mcp_proxy_client::ClientError>(())
/// ```
pub fn extract_embedded_data(resource: &EmbeddedResource) -> Result<EmbeddedData, ClientError> {
    let (uri, text) = resource_text(resource)?;
    let json: Value =
        serde_json::from_str(text).map_err(|error| ClientError::decode(uri, error))?;
    let info = ProxyResponseInfo::of_meta(resource.meta.as_ref()).unwrap_or_default();
    Ok(EmbeddedData {
        data_type: info.data_type,
        many: info.many.unwrap_or(json.is_array()),
        json,
    })
}

/// The URI and the text of an embedded resource.
pub(crate) fn resource_text(resource: &EmbeddedResource) -> Result<(&str, &str), ClientError> {
    match &resource.resource {
        ResourceContents::TextResourceContents { uri, text, .. } => Ok((uri, text)),
        _ => Err(ClientError::decode(
            "the answer",
            "its resource is not text",
        )),
    }
}

/// The data of an embedded resource as a type: one, or a `Vec` of it.
///
/// ```
/// use mcp_proxy_client::decode_embedded_resource;
/// use mcp_proxy_client::rmcp::model::{EmbeddedResource, Prompt};
/// use serde_json::json;
///
/// let resource: EmbeddedResource = serde_json::from_value(json!({
///     "resource": {"uri": "proxy:list/prompt", "mimeType": "application/json",
///         "text": "[{\"name\":\"haiku\",\"arguments\":null}]"},
/// })).unwrap();
/// let prompts: Vec<Prompt> = decode_embedded_resource(&resource)?;
/// assert_eq!(prompts[0].name, "haiku");
/// # Ok::<(), mcp_proxy_client::ClientError>(())
/// ```
pub fn decode_embedded_resource<T: DeserializeOwned>(
    resource: &EmbeddedResource,
) -> Result<T, ClientError> {
    let data = extract_embedded_data(resource)?;
    let json = match data.json {
        Value::Array(items) => items.into_iter().map(as_on_the_wire).collect(),
        one => as_on_the_wire(one),
    };
    let what = data.data_type.unwrap_or_else(|| "the answer".to_owned());
    serde_json::from_value(json).map_err(|error| ClientError::decode(what, error))
}

/// The prompt in the result of `call` with the type `prompt`.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::{CallOptions, CapabilityType, ProxyAction, tool_result_as_prompt_result};
///
/// let result = client
///     .proxy(CapabilityType::Prompt, ProxyAction::Call, Some("haiku"), None, CallOptions::new())
///     .await?;
/// println!("{} messages", tool_result_as_prompt_result(&result)?.messages.len());
/// # Ok(())
/// # }
/// ```
pub fn tool_result_as_prompt_result(
    result: &CallToolResult,
) -> Result<GetPromptResult, ClientError> {
    let resource = single_resource(result, "the prompt")?;
    let mut json = as_on_the_wire(extract_embedded_data(resource)?.json);
    repair_prompt_result(&mut json);
    serde_json::from_value(json).map_err(|error| ClientError::decode("the prompt", error))
}

/// The contents in the result of `call` with the type `resource`.
///
/// JSON text that had another MIME type gets it back. Its white space is that of the proxy tool.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::{CallOptions, CapabilityType, ProxyAction, tool_result_as_resource_result};
///
/// let result = client
///     .proxy(CapabilityType::Resource, ProxyAction::Call, Some("config://settings"), None, CallOptions::new())
///     .await?;
/// println!("{} parts", tool_result_as_resource_result(&result)?.contents.len());
/// # Ok(())
/// # }
/// ```
pub fn tool_result_as_resource_result(
    result: &CallToolResult,
) -> Result<ReadResourceResult, ClientError> {
    let contents: Option<Vec<ResourceContents>> = result
        .content
        .iter()
        .map(|item| Some(restore_mime_type(item.as_resource()?.resource.clone())))
        .collect();
    let contents = contents
        .ok_or_else(|| ClientError::decode("the resource", "not all of the result is resources"))?;
    Ok(ReadResourceResult::new(contents))
}

/// The one embedded resource of a result. A list from which servers are missing says so in a text after it.
pub(crate) fn single_resource<'a>(
    result: &'a CallToolResult,
    what: &str,
) -> Result<&'a EmbeddedResource, ClientError> {
    match result.content.as_slice() {
        [item, notes @ ..] if notes.iter().all(|note| note.as_text().is_some()) => {
            item.as_resource()
        }
        _ => None,
    }
    .ok_or_else(|| ClientError::decode(what, "the result is not one embedded resource"))
}

/// The result without annotations of which rmcp has left nothing: those of the proxy tool.
pub(crate) fn without_empty_annotations(mut result: CallToolResult) -> CallToolResult {
    for item in &mut result.content {
        let annotations = match item {
            ContentBlock::Text(text) => &mut text.annotations,
            ContentBlock::Image(image) => &mut image.annotations,
            ContentBlock::Audio(audio) => &mut audio.annotations,
            ContentBlock::Resource(resource) => &mut resource.annotations,
            ContentBlock::ResourceLink(link) => &mut link.annotations,
            _ => continue,
        };
        annotations.take_if(|annotations| *annotations == Annotations::default());
    }
    result
}

fn restore_mime_type(mut contents: ResourceContents) -> ResourceContents {
    if let ResourceContents::TextResourceContents {
        mime_type, meta, ..
    } = &mut contents
        && let Some(info) = ProxyResponseInfo::of_meta(meta.as_ref())
        && let Some(original) = info.content_type
    {
        *mime_type = Some(original);
    }
    contents
}

/// Magg writes `_meta` by its name in Python.
pub(crate) fn as_on_the_wire(mut json: Value) -> Value {
    if let Some(object) = json.as_object_mut()
        && !object.contains_key("_meta")
        && let Some(meta) = object.remove("meta")
    {
        object.insert("_meta".to_owned(), meta);
    }
    json
}
