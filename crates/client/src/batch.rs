//! Several operations in one request.

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::discovery::knows_action;
use crate::error::ClientError;
use crate::operation::{operation_arguments, validate_operation};
use crate::transform::{extract_embedded_data, single_resource};
use crate::transport::keep_facts_in_result;

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
    pub fn list(kind: CapabilityType) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::List, None, None),
        }
    }

    /// Asks for one definition.
    pub fn info(kind: CapabilityType, path: &str) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::Info, Some(path), None),
        }
    }

    /// Calls a tool, reads a resource or gets a prompt.
    pub fn call(kind: CapabilityType, path: &str, arguments: Option<JsonObject>) -> BatchOperation {
        BatchOperation {
            arguments: operation_arguments(kind, ProxyAction::Call, Some(path), arguments),
        }
    }

    /// Any operation, by the arguments of the tool.
    pub fn from_arguments(arguments: JsonObject) -> BatchOperation {
        BatchOperation { arguments }
    }
}

impl ProxyClient {
    /// Runs operations at the same time. Their results come in the order of the operations, each as
    /// [`ProxyClient::proxy`] would have returned it. One that fails does not stop the others.
    ///
    /// If the server's tool does not know batches, as Magg's does not, each operation is a request of its own.
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
        self.batch_with(operations, CallOptions::default()).await
    }

    /// The same with options. Progress counts operations.
    pub async fn batch_with(
        &self,
        operations: Vec<BatchOperation>,
        options: CallOptions,
    ) -> Result<Vec<CallToolResult>, ClientError> {
        let count = operations.len();
        let tool = self.proxy_tool().ok_or_else(|| self.no_proxy_tool())?;
        let operations: Vec<JsonObject> = operations
            .into_iter()
            .map(|operation| operation.arguments)
            .collect();
        if !knows_action(tool, ProxyAction::Batch.as_str()) {
            return self.one_by_one(operations, options).await;
        }
        let mut arguments = JsonObject::new();
        arguments.insert("action".to_owned(), ProxyAction::Batch.as_str().into());
        let operations = operations.into_iter().map(Value::Object).collect();
        arguments.insert("operations".to_owned(), Value::Array(operations));
        let result = self.proxy_with(arguments, options).await?;
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

    async fn one_by_one(
        &self,
        operations: Vec<JsonObject>,
        options: CallOptions,
    ) -> Result<Vec<CallToolResult>, ClientError> {
        operations.iter().try_for_each(validate_operation)?;
        let mut running = JoinSet::new();
        for (place, arguments) in operations.into_iter().enumerate() {
            let (client, options) = (self.clone(), options.clone());
            running.spawn(async move { (place, client.proxy_with(arguments, options).await) });
        }
        let mut results = Vec::with_capacity(running.len());
        while let Some(done) = running.join_next().await {
            let (place, result) =
                done.map_err(|error| ClientError::decode("a result of the batch", error))?;
            results.push((place, result?));
        }
        results.sort_by_key(|(place, _)| *place);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }
}

fn decode_result(mut result: Value) -> Result<CallToolResult, ClientError> {
    keep_facts_in_result(&mut result);
    serde_json::from_value(result)
        .map_err(|error| ClientError::decode("a result of the batch", error))
}
