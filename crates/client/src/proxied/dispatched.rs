//! Tools behind the dispatch tool, for transparent clients of a server that has no proxy tool.

use mcp_proxy_tool::CapabilityType;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::dispatch::{object, text_of};
use crate::error::ClientError;

/// The answer to `list`.
#[derive(Deserialize)]
struct DispatchList {
    connections: Vec<DispatchedServer>,
}

#[derive(Deserialize)]
struct DispatchedServer {
    #[serde(default)]
    tools: Vec<Value>,
    /// Its name, and what is wrong with it, if anything is.
    #[serde(flatten)]
    problem: JsonObject,
}

impl ProxyClient {
    /// The tools of all servers, by the names that `call` takes.
    pub(super) async fn dispatch_tools(&self) -> Result<Vec<Tool>, ClientError> {
        let arguments =
            object(json!({"action": "list", "format": "detail", "includeInputSchema": true}));
        let result = self.dispatch(arguments, CallOptions::new()).await?;
        let list: DispatchList = serde_json::from_str(&text_of(result)?.text)
            .map_err(|error| ClientError::decode("the list of tools", error))?;
        let mut tools = Vec::new();
        for connection in list.connections {
            if connection.problem.contains_key("lastError")
                || connection.problem.contains_key("state")
            {
                self.warn_of_unavailable(&Value::Object(connection.problem));
            }
            tools.extend(connection.tools.into_iter().map(with_public_name));
        }
        Ok(self.decode_definitions(CapabilityType::Tool, &tools))
    }

    /// The result of a tool behind the dispatch tool. If the server keeps it in a file, this is a description with a handle.
    pub(super) async fn dispatch_call(
        &self,
        name: &str,
        call_arguments: Option<JsonObject>,
        options: CallOptions,
    ) -> Result<CallToolResult, ClientError> {
        let mut arguments = object(json!({"action": "call", "tool": name}));
        if let Some(call_arguments) = call_arguments {
            arguments.insert("arguments".to_owned(), Value::Object(call_arguments));
        }
        self.dispatch(arguments, options).await
    }
}

/// The name of a tool that several servers have is its public one.
fn with_public_name(mut tool: Value) -> Value {
    if let Value::Object(tool) = &mut tool
        && let Some(public) = tool.remove("public")
    {
        tool.insert("name".to_owned(), public);
    }
    tool
}
