//! The arguments of the proxy tool, checked before they are sent.

use bytes::Bytes;
use mcp_proxy_tool::{
    ArgumentError, CapabilityType, ProxyAction, ProxyOperation, ProxyToolError, ProxyToolOptions,
    ToolWord, parse_arguments,
};
use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::Value;

use crate::error::ClientError;

/// The arguments of one operation.
pub(crate) fn operation_arguments(
    kind: CapabilityType,
    action: ProxyAction,
    path: Option<&str>,
    arguments: Option<JsonObject>,
) -> JsonObject {
    let mut object = JsonObject::new();
    object.insert("action".to_owned(), action.as_str().into());
    object.insert("type".to_owned(), kind.as_str().into());
    if let Some(path) = path {
        object.insert("path".to_owned(), path.into());
    }
    if let Some(arguments) = arguments {
        object.insert("args".to_owned(), Value::Object(arguments));
    }
    object
}

/// The arguments of a call from anything that serialises to an object, or to null if there are none.
pub(crate) fn call_arguments(arguments: impl Serialize) -> Result<Option<JsonObject>, ClientError> {
    match serde_json::to_value(arguments) {
        Ok(Value::Object(arguments)) => Ok(Some(arguments)),
        Ok(Value::Null) => Ok(None),
        _ => Err(ProxyToolError::from(ArgumentError::not_an_object()).into()),
    }
}

/// Whether these are arguments that a proxy tool accepts, by the definition that servers use too.
///
/// ```
/// use mcp_proxy_client::validate_operation;
/// use serde_json::json;
///
/// let arguments = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
/// assert!(validate_operation(&arguments(json!({"action": "list", "type": "tool"}))).is_ok());
/// let error = validate_operation(&arguments(json!({"action": "info", "type": "tool"}))).unwrap_err();
/// assert_eq!(error.code(), "missing-parameter");
/// ```
pub fn validate_operation(arguments: &JsonObject) -> Result<(), ProxyToolError> {
    let bytes = serde_json::to_vec(arguments).map_err(|_| ArgumentError::not_an_object())?;
    let operation = parse_arguments(Some(&Bytes::from(bytes)), &ProxyToolOptions::default(), &[])?;
    match operation {
        ProxyOperation::Batch(operations) => operations
            .into_iter()
            .try_for_each(|operation| operation.map(drop)),
        _ => Ok(()),
    }
}
