//! Several operations in one request.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use mcp_proxy_tool::{CapabilityType, ProxyAction, ProxyToolError, ToolWord, render_error};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::Value;

use crate::call_options::{CallOptions, Progress};
use crate::client::ProxyClient;
use crate::discovery::knows_action;
use crate::error::ClientError;
use crate::operation::{operation_arguments, validate_operation};
use crate::requests::within;
use crate::transform::{extract_embedded_data, single_resource};
use crate::transport::{keep_facts_in_result, repair_tool_result};

/// How many operations run at the same time if each is a request of its own.
const MAX_AT_ONCE: usize = 16;

/// One operation of a batch.
///
/// ```
/// use mcp_proxy_client::{BatchOperation, CapabilityType};
///
/// let operations = vec![
///     BatchOperation::list(CapabilityType::Tool),
///     BatchOperation::info(CapabilityType::Tool, "calculator_add"),
///     BatchOperation::call(CapabilityType::Resource, "config://settings.json", None),
/// ];
/// # assert_eq!(operations.len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BatchOperation {
    arguments: JsonObject,
}

impl BatchOperation {
    /// Lists what there is of this type: the first page.
    ///
    /// ```
    /// use mcp_proxy_client::{BatchOperation, CapabilityType};
    ///
    /// let operation = BatchOperation::list(CapabilityType::Prompt);
    /// # let _ = operation;
    /// ```
    pub fn list(kind: CapabilityType) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::List, None, None),
        }
    }

    /// Asks for one definition.
    ///
    /// ```
    /// use mcp_proxy_client::{BatchOperation, CapabilityType};
    ///
    /// let operation = BatchOperation::info(CapabilityType::Tool, "calculator_add");
    /// # let _ = operation;
    /// ```
    pub fn info(kind: CapabilityType, path: &str) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::Info, Some(path), None),
        }
    }

    /// Calls a tool, reads a resource or gets a prompt.
    ///
    /// ```
    /// use mcp_proxy_client::{BatchOperation, CapabilityType};
    ///
    /// let arguments = serde_json::json!({"a": 1, "b": 2}).as_object().cloned();
    /// let operation = BatchOperation::call(CapabilityType::Tool, "calculator_add", arguments);
    /// # let _ = operation;
    /// ```
    pub fn call(kind: CapabilityType, path: &str, arguments: Option<JsonObject>) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::Call, Some(path), arguments),
        }
    }

    /// Any operation, by the arguments of the tool.
    ///
    /// ```
    /// use mcp_proxy_client::{BatchOperation, CapabilityType};
    ///
    /// let arguments = serde_json::json!({"action": "list", "type": "tool"}).as_object().cloned().unwrap();
    /// assert_eq!(BatchOperation::from_arguments(arguments), BatchOperation::list(CapabilityType::Tool));
    /// ```
    pub fn from_arguments(arguments: JsonObject) -> BatchOperation {
        BatchOperation { arguments }
    }
}

impl ProxyClient {
    /// Runs operations at the same time. Their results come in the order of the operations, each as
    /// [`ProxyClient::proxy`] would have returned it. One that fails does not stop the others.
    ///
    /// If the server's tool does not know batches, as Magg's does not, each operation is a request of its own,
    /// 16 at a time. Progress counts operations.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::{BatchOperation, CapabilityType};
    ///
    /// let results = client
    ///     .batch(vec![
    ///         BatchOperation::list(CapabilityType::Tool),
    ///         BatchOperation::list(CapabilityType::Prompt),
    ///     ])
    ///     .await?;
    /// assert_eq!(results.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn batch(
        &self,
        operations: Vec<BatchOperation>,
    ) -> Result<Vec<CallToolResult>, ClientError> {
        let count = operations.len();
        let tool = self.proxy_tool().ok_or_else(|| self.no_proxy_tool())?;
        let mut arguments = JsonObject::new();
        arguments.insert("action".to_owned(), ProxyAction::Batch.as_str().into());
        let values = operations
            .iter()
            .map(|operation| Value::Object(operation.arguments.clone()));
        arguments.insert("operations".to_owned(), values.collect());
        if !knows_action(tool, ProxyAction::Batch.as_str()) {
            validate_operation(&arguments)?;
            let running = Box::pin(self.run_separately(operations));
            return within(self.options.max_time, running).await;
        }
        let result = self.proxy_with(arguments, CallOptions::new()).await?;
        if result.is_error == Some(true) {
            return Err(ClientError::from_failed_result(result));
        }
        let resource = single_resource(&result, "the results of the batch")?;
        let Value::Array(results) = extract_embedded_data(resource)?.json else {
            return Err(ClientError::decode(
                "the results of the batch",
                "they are not an array",
            ));
        };
        if results.len() != count {
            let reason = format!("there are {} for {count} operations", results.len());
            return Err(ClientError::decode("the results of the batch", reason));
        }
        results.into_iter().map(decode_result).collect()
    }

    /// Sends each operation as a request of its own, several at a time. Only the end of the connection ends them all.
    async fn run_separately(
        &self,
        operations: Vec<BatchOperation>,
    ) -> Result<Vec<CallToolResult>, ClientError> {
        let count = operations.len();
        let done = AtomicUsize::new(0);
        // Their own progress would be mixed up.
        let mut quiet = self.clone();
        quiet.options.progress = None;
        let run = async |operation: BatchOperation| {
            let arguments = operation.arguments;
            let result = quiet.proxy_with(arguments, CallOptions::new()).await;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(report) = &self.options.progress {
                report(Progress {
                    progress: done as f64,
                    total: Some(count as f64),
                    message: None,
                });
            }
            result.or_else(result_of_error)
        };
        let running: Vec<_> = operations.into_iter().map(run).collect();
        stream::iter(running)
            .buffered(MAX_AT_ONCE)
            .try_collect()
            .await
    }
}

/// The result that reports the failure of one operation. If the connection is closed, the others fail too.
fn result_of_error(error: ClientError) -> Result<CallToolResult, ClientError> {
    match error {
        ClientError::Closed => Err(error),
        ClientError::Protocol { code, message, .. } => {
            let bytes = render_error(&ProxyToolError::ServerError { code, message });
            let result = serde_json::from_slice(&bytes);
            result.map_err(|error| ClientError::decode("a result of the batch", error))
        }
        error => Ok(CallToolResult::error(vec![ContentBlock::text(
            error.with_causes(),
        )])),
    }
}

fn decode_result(mut result: Value) -> Result<CallToolResult, ClientError> {
    keep_facts_in_result(&mut result);
    repair_tool_result(&mut result);
    serde_json::from_value(result)
        .map_err(|error| ClientError::decode("a result of the batch", error))
}
