//! A server with everything that clients ask for, and clients for it.

use std::sync::Arc;

use mcp_proxy_client::rmcp::model::*;
use mcp_proxy_client::rmcp::service::{ClientLifecycleMode, RequestContext};
use mcp_proxy_client::rmcp::{RoleServer, ServerHandler, ServiceExt};
use mcp_proxy_client::{ProxyClient, ProxyClientBuilder, ProxyTool};
use serde_json::{Value, json};

/// How many tools there are besides those that do something.
pub(crate) const FILLERS: usize = 623;
/// How many items a page of the server's own lists has.
const PAGE: usize = 100;

pub(crate) const BINARY: &str = "AAECAwT/";

#[derive(Clone, Default)]
pub(crate) struct PlainServer {
    /// Notified when a call that never ends is cancelled.
    pub(crate) cancelled: Arc<tokio::sync::Notify>,
}

pub(crate) fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

fn tool(name: &str) -> Tool {
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    Tool::new(name.to_owned(), format!("Does {name}"), object(schema))
}

fn all_tools() -> Vec<Tool> {
    let working = ["add", "fail", "refuse", "count", "hang", "ask", "mixed"];
    let fillers = (0..FILLERS).map(|number| tool(&format!("filler_{number}")));
    working.into_iter().map(tool).chain(fillers).collect()
}

fn page<T>(items: Vec<T>, params: Option<PaginatedRequestParams>) -> (Vec<T>, Option<String>) {
    let start = params
        .and_then(|params| params.cursor)
        .map_or(0, |cursor| cursor.parse().unwrap());
    let total = items.len();
    let items = items.into_iter().skip(start).take(PAGE).collect();
    let end = start + PAGE;
    (items, (end < total).then(|| end.to_string()))
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::text(text)]
}

impl PlainServer {
    async fn count(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        for step in 1..=3 {
            if let Some(token) = context.meta.get_progress_token() {
                let report = ProgressNotificationParam::new(token, f64::from(step))
                    .with_total(3.0)
                    .with_message(format!("step {step}"));
                context.peer.notify_progress(report).await.unwrap();
            }
        }
        CallToolResult::success(text("counted"))
    }

    async fn ask(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let question = json!({"mode": "form", "message": "Your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}});
        let params: ElicitRequestParams = serde_json::from_value(question).unwrap();
        let is_modern = context
            .protocol_version()
            .is_some_and(|version| version == ProtocolVersion::V_2026_07_28);
        let name = match &request.input_responses {
            Some(responses) => {
                assert_eq!(request.request_state.as_deref(), Some("asked"));
                responses["who"]["content"]["name"].clone()
            }
            None if is_modern => {
                let question = InputRequest::Elicitation(ElicitRequest::new(params));
                let questions = [("who".to_owned(), question)].into();
                let required = InputRequiredResult::new(Some(questions), Some("asked".to_owned()));
                return CallToolResponse::InputRequired(required);
            }
            None => {
                let question = ServerRequest::ElicitRequest(ElicitRequest::new(params));
                let answer = context.peer.send_request(question).await.unwrap();
                let ClientResult::ElicitResult(answer) = answer else {
                    panic!("{answer:?}");
                };
                answer.content.unwrap()["name"].clone()
            }
        };
        let name = name.as_str().unwrap();
        CallToolResponse::Complete(CallToolResult::success(text(&format!("Hello {name}"))))
    }
}

impl ServerHandler for PlainServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("plain", "1.0"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (tools, next) = page(all_tools(), request);
        Ok(ListToolsResult {
            tools,
            next_cursor: next,
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        Ok(CallToolResponse::Complete(match &*request.name {
            "add" => {
                let sum = arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap();
                let mut result = CallToolResult::success(text(&sum.to_string()));
                result.structured_content = Some(json!({"sum": sum}));
                result
            }
            "fail" => CallToolResult::error(text("it failed")),
            "refuse" => {
                return Err(ErrorData::new(
                    ErrorCode(-32_050),
                    "refused",
                    Some(json!({"why": "so"})),
                ));
            }
            "count" => self.count(&context).await,
            "hang" => {
                context.ct.cancelled().await;
                self.cancelled.notify_one();
                CallToolResult::success(Vec::new())
            }
            "ask" => return Ok(self.ask(&request, &context).await),
            "mixed" => CallToolResult::success(vec![
                ContentBlock::text("a picture"),
                ContentBlock::image(BINARY, "image/png"),
                ContentBlock::resource(ResourceContents::text("inner", "note://inner")),
            ]),
            name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        }))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let notes = (0..150)
            .map(|number| Resource::new(format!("note://{number}"), format!("note {number}")));
        let (resources, next) = page(notes.collect(), request);
        Ok(ListResourcesResult {
            resources,
            next_cursor: next,
            ..ListResourcesResult::default()
        })
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult {
            resource_templates: vec![ResourceTemplate::new("greeting://{name}", "greeting")],
            ..ListResourceTemplatesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let contents = match uri.as_str() {
            "note://0" => ResourceContents::text("plain words", &uri),
            // JSON under another type.
            "note://1" => ResourceContents::text("{\"b\": 1,  \"a\": [2]}", &uri),
            "note://2" => ResourceContents::BlobResourceContents {
                uri: uri.clone(),
                mime_type: Some("application/octet-stream".to_owned()),
                blob: BINARY.to_owned(),
                meta: None,
            },
            "greeting://Ada" => ResourceContents::text("Hello Ada", &uri),
            _ => return Err(ErrorData::resource_not_found("no such resource", None)),
        };
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(
            vec![contents],
        )))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = PromptArgument::new("topic").with_required(true);
        Ok(ListPromptsResult {
            prompts: vec![Prompt::new("haiku", Some("A poem"), Some(vec![argument]))],
            ..ListPromptsResult::default()
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(topic) = arguments.get("topic").and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params("topic is missing", None));
        };
        let message = PromptMessage::new_text(Role::User, format!("A haiku about {topic}"));
        let mut result = GetPromptResult::new(vec![message]);
        result.description = Some("A poem".to_owned());
        Ok(GetPromptResponse::Complete(result))
    }
}

/// How a client opens the conversation.
pub(crate) fn legacy() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

pub(crate) fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// A client of any service in this process.
pub(crate) async fn connect<S>(service: S, builder: ProxyClientBuilder) -> ProxyClient
where
    S: mcp_proxy_client::rmcp::Service<RoleServer>,
{
    try_connect(service, builder).await.unwrap()
}

pub(crate) async fn try_connect<S>(
    service: S,
    builder: ProxyClientBuilder,
) -> Result<ProxyClient, mcp_proxy_client::ClientError>
where
    S: mcp_proxy_client::rmcp::Service<RoleServer>,
{
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        if let Ok(running) = service.serve(theirs).await {
            let _ = running.waiting().await;
        }
    });
    builder.connect_transport(ours).await
}

/// A transparent client of the plain server with the proxy tool, in each era.
pub(crate) async fn clients() -> [ProxyClient; 3] {
    let builder = || ProxyClient::builder().transparent(true);
    let server = || ProxyTool::new(PlainServer::default()).hide_other_tools();
    [
        connect(server(), builder().lifecycle(legacy())).await,
        connect(server(), builder().lifecycle(modern())).await,
        connect(server().into_handler(), builder()).await,
    ]
}
