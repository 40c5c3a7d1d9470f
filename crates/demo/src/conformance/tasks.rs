//! Tools that run as tasks (the extension `io.modelcontextprotocol/tasks`, SEP-2663).
//!
//! A client that declares the extension gets a task handle at once and asks later how it went; the tools that
//! can also be answered in one go do that for everybody else.

use std::{future::Future, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::{CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult},
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskOptions},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    question::{FormQuestion, answer},
    server::DemoServer,
};

/// How often a client should ask. The suite does what it is told, so a short interval keeps its runs short.
const POLL_MS: u64 = 200;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    /// How long to pretend to compute, up to 120.
    #[serde(default)]
    seconds: u64,
    /// What to call the computation.
    #[serde(default)]
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct ConfirmDelete {
    /// The file that would be deleted if there were one.
    filename: String,
}

#[tool_router(router = task_tools, vis = "pub(crate)")]
impl DemoServer {
    /// Greet somebody, at once.
    #[tool]
    fn greet(&self, Parameters(Greet { name }): Parameters<Greet>) -> String {
        format!("Hello, {name}!")
    }

    /// Wait some seconds and pretend to have computed something.
    #[tool]
    async fn slow_compute(
        &self,
        Parameters(SlowCompute { seconds, label }): Parameters<SlowCompute>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let work = Duration::from_secs(seconds.min(120));
        let result = CallToolResult::success(vec![ContentBlock::text(format!("{label}: 42"))]);
        if require_tasks(&context).is_err() {
            tokio::time::sleep(work).await;
            return result.into();
        }
        self.start_task(move |task| async move {
            tokio::select! {
                () = tokio::time::sleep(work) => Ok(result),
                () = task.cancelled() => Err(TaskExit::Cancelled),
            }
        })
    }

    /// Run for a second and fail, as a tool fails.
    #[tool]
    fn failing_job(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        Ok(self.start_task(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "the job failed",
            )]))
        }))
    }

    /// Run and fail, as a server fails.
    #[tool]
    fn protocol_error_job(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        Ok(self.start_task(|_| async {
            Err(ErrorData::internal_error("the job broke down", None).into())
        }))
    }

    /// Ask whether a file should be deleted. Deletes nothing.
    #[tool]
    fn confirm_delete(
        &self,
        Parameters(ConfirmDelete { filename }): Parameters<ConfirmDelete>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        let question = FormQuestion {
            key: "confirm",
            message: format!("Delete {filename}?"),
            form: json!({ "type": "object", "properties": { "confirm": { "type": "boolean" } } }),
        };
        let request = question.into_input_request()?;
        Ok(self.start_task(|task| async move {
            let reply = task.request_input("confirm", request).await?;
            Ok(CallToolResult::success(vec![ContentBlock::text(format!(
                "{filename}: {reply}"
            ))]))
        }))
    }

    /// Ask two things at the same time.
    #[tool]
    fn multi_input(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        let name = user_name().into_input_request()?;
        let color = FormQuestion {
            key: "color",
            message: "What is your favourite color?".to_owned(),
            form: json!({ "type": "object", "properties": { "color": { "type": "string" } } }),
        };
        let color = color.into_input_request()?;
        Ok(self.start_task(|task| async move {
            let (name, color) = tokio::try_join!(
                task.request_input("user_name", name),
                task.request_input("color", color),
            )?;
            Ok(CallToolResult::success(vec![ContentBlock::text(format!(
                "{name} {color}"
            ))]))
        }))
    }

    /// Ask for a name first, then greet it from a task.
    #[tool]
    fn test_tool_with_task(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        let question = user_name();
        let Some(answer) = answer(&question, responses.as_ref()) else {
            let requests = [(question.key.to_owned(), question.into_input_request()?)];
            return Ok(
                rmcp::model::InputRequiredResult::from_input_requests(requests.into()).into(),
            );
        };
        let content = answer.content.unwrap_or_default();
        let text = format!("Hello, {}!", content["name"].as_str().unwrap_or("stranger"));
        Ok(self
            .start_task(|_| async { Ok(CallToolResult::success(vec![ContentBlock::text(text)])) }))
    }
}

impl DemoServer {
    fn start_task<F>(&self, work: impl FnOnce(TaskContext) -> F) -> CallToolResponse
    where
        F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
    {
        let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
        let task = self
            .state()
            .tasks
            .spawn(options, |context| Box::pin(work(context)));
        CreateTaskResult::new(task).into()
    }
}

/// Refuses a request whose client cannot take a task for an answer.
fn require_tasks(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if context
        .client_capabilities()
        .is_some_and(|declared| declared.supports_tasks())
    {
        return Ok(());
    }
    let required = ClientCapabilities::builder().enable_tasks().build();
    Err(ErrorData::missing_required_client_capability(required))
}

fn user_name() -> FormQuestion {
    FormQuestion {
        key: "user_name",
        message: "What is your name?".to_owned(),
        form: json!({ "type": "object", "properties": { "name": { "type": "string" } } }),
    }
}
