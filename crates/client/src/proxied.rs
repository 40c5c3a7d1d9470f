//! The typed methods: through the proxy tool or the dispatch tool if the client is transparent, and the server's own
//! otherwise.

mod dispatched;
mod pages;

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::{
    CallToolResult, GetPromptResult, JsonObject, Prompt, ReadResourceResult, Resource,
    ResourceTemplate, Tool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call_options::CallOptions;
use crate::client::{ProxyClient, Route};
use crate::error::ClientError;
use crate::operation::call_arguments;
use crate::response_info::ProxyResponseInfo;
use crate::transform::{
    extract_embedded_data, single_resource, tool_result_as_prompt_result,
    tool_result_as_resource_result, without_empty_annotations,
};

/// A resource, or a template for the URIs of resources. The proxy tool lists both together.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::ListedResource;
///
/// for listed in client.list_resources_and_templates().await? {
///     match listed {
///         ListedResource::Template(template) => println!("fill in {}", template.uri_template),
///         listed => println!("read {}", listed.uri()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ListedResource {
    /// A resource.
    Resource(Resource),
    /// A template.
    Template(ResourceTemplate),
}

impl ListedResource {
    /// The URI, or the template of URIs.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for listed in client.list_resources_and_templates().await? {
    ///     println!("{}", listed.uri());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn uri(&self) -> &str {
        match self {
            ListedResource::Resource(resource) => &resource.uri,
            ListedResource::Template(template) => &template.uri_template,
        }
    }

    /// Its name.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for listed in client.list_resources_and_templates().await? {
    ///     println!("{}", listed.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        match self {
            ListedResource::Resource(resource) => &resource.name,
            ListedResource::Template(template) => &template.name,
        }
    }
}

impl ProxyClient {
    /// All tools.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for tool in client.list_tools().await? {
    ///     println!("{}", tool.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        match self.route() {
            Route::ProxyTool => self.all_pages(CapabilityType::Tool).await,
            Route::DispatchTool => self.dispatch_tools().await,
            Route::Native => self.native_tools().await,
        }
    }

    /// All resources, and after them all templates.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// println!("{} of both", client.list_resources_and_templates().await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_resources_and_templates(&self) -> Result<Vec<ListedResource>, ClientError> {
        if self.route() == Route::ProxyTool {
            return self.all_pages(CapabilityType::Resource).await;
        }
        let resources = self.native_resources().await?;
        let templates = self.native_resource_templates().await?;
        let resources = resources.into_iter().map(ListedResource::Resource);
        Ok(resources
            .chain(templates.into_iter().map(ListedResource::Template))
            .collect())
    }

    /// All resources.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for resource in client.list_resources().await? {
    ///     println!("{}", resource.uri);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        if self.route() != Route::ProxyTool {
            return self.native_resources().await;
        }
        let all = self.list_resources_and_templates().await?.into_iter();
        Ok(all
            .filter_map(|listed| match listed {
                ListedResource::Resource(resource) => Some(resource),
                ListedResource::Template(_) => None,
            })
            .collect())
    }

    /// All resource templates.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for template in client.list_resource_templates().await? {
    ///     println!("{}", template.uri_template);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        if self.route() != Route::ProxyTool {
            return self.native_resource_templates().await;
        }
        let all = self.list_resources_and_templates().await?.into_iter();
        Ok(all
            .filter_map(|listed| match listed {
                ListedResource::Template(template) => Some(template),
                ListedResource::Resource(_) => None,
            })
            .collect())
    }

    /// All prompts.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// for prompt in client.list_prompts().await? {
    ///     println!("{}", prompt.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        if self.route() == Route::ProxyTool {
            return self.all_pages(CapabilityType::Prompt).await;
        }
        self.native_prompts().await
    }

    /// Calls a tool. `arguments` is anything that serialises to an object, or `()`. A tool that fails by itself has a result
    /// with `isError`, as in a native call.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CallOptions;
    /// use serde_json::json;
    ///
    /// let sum = client.call_tool("calculator_add", json!({"a": 5, "b": 3})).await?;
    /// let options = CallOptions::new().progress(|progress| println!("{}", progress.progress));
    /// let report = client.with_options(options).call_tool("report", ()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, ClientError> {
        let arguments = call_arguments(arguments)?;
        let options = CallOptions::default();
        match self.route() {
            Route::ProxyTool => {}
            Route::DispatchTool => return self.dispatch_call(name, arguments, options).await,
            Route::Native => return self.call_native_tool(name, arguments, &options).await,
        }
        let (kind, action) = (CapabilityType::Tool, ProxyAction::Call);
        let result = self
            .proxy(kind, action, Some(name), arguments, options)
            .await?;
        let info = ProxyResponseInfo::of_whole(&result);
        match info.and_then(|info| info.error) {
            Some(_) => Err(ClientError::from_failed_result(result)),
            None => Ok(without_empty_annotations(result)),
        }
    }

    /// Reads a resource.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// let result = client.read_resource("config://settings.json").await?;
    /// println!("{:?}", result.contents);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ClientError> {
        if self.route() != Route::ProxyTool {
            return self.native_resource(uri).await;
        }
        let result = self
            .proxied_call(CapabilityType::Resource, uri, None)
            .await?;
        tool_result_as_resource_result(&result)
    }

    /// Gets a prompt. `arguments` is anything that serialises to an object of texts, or `()`.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// let prompt = client.get_prompt("haiku", serde_json::json!({"topic": "rain"})).await?;
    /// println!("{} messages", prompt.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, ClientError> {
        let arguments = call_arguments(arguments)?;
        if self.route() != Route::ProxyTool {
            return self.native_prompt(name, arguments).await;
        }
        let result = self
            .proxied_call(CapabilityType::Prompt, name, arguments)
            .await?;
        tool_result_as_prompt_result(&result)
    }

    /// The definition of one tool, resource, template or prompt, as JSON, so that nothing of it is lost.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CapabilityType;
    ///
    /// let definition = client.info(CapabilityType::Tool, "calculator_add").await?;
    /// println!("{}", definition["inputSchema"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn info(&self, kind: CapabilityType, path: &str) -> Result<Value, ClientError> {
        if self.route() != Route::ProxyTool {
            return self.info_from_list(kind, path).await;
        }
        let result = self
            .proxy(
                kind,
                ProxyAction::Info,
                Some(path),
                None,
                CallOptions::default(),
            )
            .await?;
        if result.is_error == Some(true) {
            return Err(ClientError::from_failed_result(result));
        }
        let resource = single_resource(&result, "the definition")?;
        Ok(extract_embedded_data(resource)?.json)
    }

    async fn info_from_list(&self, kind: CapabilityType, path: &str) -> Result<Value, ClientError> {
        let items: Vec<Value> = match kind {
            CapabilityType::Tool => to_json(self.list_tools().await?)?,
            CapabilityType::Prompt => to_json(self.list_prompts().await?)?,
            CapabilityType::Resource => to_json(self.list_resources_and_templates().await?)?,
        };
        let is_it = |item: &Value| {
            ["uri", "uriTemplate", "name"]
                .iter()
                .any(|member| item.get(*member).is_some_and(|value| value == path))
        };
        let found = items.iter().find(|item| is_it(item)).cloned();
        found.ok_or_else(|| {
            let names = items.iter().filter_map(|item| item.get("name")?.as_str());
            ClientError::InvalidArguments(mcp_proxy_tool::ProxyToolError::NotFound {
                kind,
                path: path.to_owned(),
                near: mcp_proxy_tool::near_names(path, names),
            })
        })
    }

    /// Reads a resource or gets a prompt.
    async fn proxied_call(
        &self,
        kind: CapabilityType,
        path: &str,
        arguments: Option<JsonObject>,
    ) -> Result<CallToolResult, ClientError> {
        let result = self
            .proxy(
                kind,
                ProxyAction::Call,
                Some(path),
                arguments,
                CallOptions::default(),
            )
            .await?;
        match result.is_error {
            Some(true) => Err(ClientError::from_failed_result(result)),
            _ => Ok(result),
        }
    }
}

fn to_json<T: Serialize>(items: Vec<T>) -> Result<Vec<Value>, ClientError> {
    items
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()
        .map_err(|error| ClientError::decode("the definition", error))
}
