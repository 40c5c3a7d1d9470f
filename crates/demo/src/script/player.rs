//! The steps of the script, one method for each part of MCP that it shows.

#![expect(
    deprecated,
    reason = "rmcp marks logging as deprecated by 2026-07-28; it is still part of both eras"
)]

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, GetPromptRequestParams, JsonObject, LoggingLevel,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResult, RequestMetaObject,
        ResourceContents, SetLevelRequestParams,
    },
    service::{ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    OnStep, ScriptEra, ScriptStep,
    client::{NotificationCounts, ScriptedPerson},
};
use crate::{BoxedReader, BoxedWriter, DemoError};

/// How long the last notification of a step may come after its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What `count_down` counts from, and so how many progress reports it sends.
const COUNT: usize = 3;
/// `count_down` logs when it starts and when it ends.
const LOG_LINES: usize = 2;

/// The session while the script runs.
pub(super) struct ScriptPlayer<'a> {
    client: RunningService<RoleClient, ScriptedPerson>,
    heard: watch::Receiver<NotificationCounts>,
    pause: Duration,
    on_step: OnStep<'a>,
}

impl<'a> ScriptPlayer<'a> {
    pub(super) async fn open(
        streams: (BoxedReader, BoxedWriter),
        era: ScriptEra,
        pause: Duration,
        on_step: OnStep<'a>,
    ) -> Result<ScriptPlayer<'a>, DemoError> {
        let lifecycle = match era {
            ScriptEra::Legacy => ClientLifecycleMode::Initialize,
            ScriptEra::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let (person, heard) = ScriptedPerson::new();
        let client = Box::pin(person.serve_with_lifecycle(streams, lifecycle)).await;
        let client = client.map_err(|error| DemoError::Open(Box::new(error)))?;
        let outcome = match client.peer_info() {
            Some(server) => {
                let name = server
                    .server_info
                    .as_ref()
                    .map_or("a server", |it| it.name.as_str());
                format!("{name} speaks {}", server.protocol_version)
            }
            None => "the server did not say who it is".to_owned(),
        };
        let mut player = ScriptPlayer {
            client,
            heard,
            pause,
            on_step,
        };
        player.done("open a session", outcome);
        Ok(player)
    }

    pub(super) async fn ask_for_log_lines(&mut self) -> Result<(), DemoError> {
        let title = "ask for log lines";
        self.pause_before_step().await;
        let level = SetLevelRequestParams::new(LoggingLevel::Info);
        self.client.set_level(level).await.map_err(at(title))?;
        self.done(title, "level info");
        Ok(())
    }

    pub(super) async fn list_tools(&mut self) -> Result<(), DemoError> {
        let title = "list the tools";
        self.pause_before_step().await;
        let tools = self.client.list_all_tools().await.map_err(at(title))?;
        self.done(title, format!("{} tools", tools.len()));
        Ok(())
    }

    pub(super) async fn call_tools(&mut self) -> Result<(), DemoError> {
        let title = "call echo";
        self.pause_before_step().await;
        let answer = self
            .call(title, "echo", json!({ "message": "Hello!" }))
            .await?;
        let text = expect_text(title, &answer, "Hello!")?;
        self.done(title, text);

        let title = "call add";
        self.pause_before_step().await;
        let answer = self
            .call(title, "add", json!({ "a": 40, "b": 2, "unit": "apples" }))
            .await?;
        let sum = answer.structured_content.unwrap_or_default();
        if sum["sum"] != json!(42.0) {
            return Err(unexpected(title, &sum));
        }
        self.done(title, "42 apples");
        Ok(())
    }

    /// A call with progress and log lines on the way.
    pub(super) async fn count_down(&mut self, era: ScriptEra) -> Result<(), DemoError> {
        let title = "call count_down";
        self.pause_before_step().await;
        let pause = self.pause.as_millis().min(1000) / 2;
        let mut request = call(
            "count_down",
            json!({ "from": COUNT, "pause_ms": pause as u64 }),
        );
        if era == ScriptEra::Modern {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(LoggingLevel::Info);
            request.meta = Some(meta);
        }
        let answer = self.client.call_tool(request).await.map_err(at(title))?;
        expect_text(title, &answer, "Lift-off!")?;
        // Notifications and the answer are handled by different tasks, so they may be counted a moment later.
        let all_heard = self
            .heard
            .wait_for(|heard| heard.progress >= COUNT && heard.log_lines >= LOG_LINES);
        let complete = matches!(tokio::time::timeout(PATIENCE, all_heard).await, Ok(Ok(_)));
        let NotificationCounts {
            progress,
            log_lines,
        } = *self.heard.borrow();
        if !complete {
            return Err(unexpected(
                title,
                &json!({ "progress": progress, "log_lines": log_lines }),
            ));
        }
        self.done(
            title,
            format!("{progress} progress reports, {log_lines} log lines"),
        );
        Ok(())
    }

    /// A call in which the server asks and the client answers.
    pub(super) async fn be_asked(&mut self) -> Result<(), DemoError> {
        let title = "call ask_name and answer its question";
        self.pause_before_step().await;
        let answer = self.call(title, "ask_name", json!({})).await?;
        let text = expect_text(title, &answer, "Hello, Ada!")?;
        self.done(title, text);
        Ok(())
    }

    pub(super) async fn read_resources(&mut self) -> Result<(), DemoError> {
        let title = "list the resources";
        self.pause_before_step().await;
        let resources = self.client.list_all_resources().await.map_err(at(title))?;
        let templates = self
            .client
            .list_all_resource_templates()
            .await
            .map_err(at(title))?;
        self.done(
            title,
            format!(
                "{} resources, {} templates",
                resources.len(),
                templates.len()
            ),
        );

        let title = "read a resource";
        self.pause_before_step().await;
        let text = self.read(title, "demo://readme").await?;
        self.done(title, text.lines().next().unwrap_or_default());

        let title = "read a resource made from a template";
        self.pause_before_step().await;
        let text = self.read(title, "demo://greeting/Ada").await?;
        self.done(title, text);
        Ok(())
    }

    pub(super) async fn complete_and_get_prompt(&mut self) -> Result<(), DemoError> {
        let title = "complete a prompt's argument";
        self.pause_before_step().await;
        let values = self
            .client
            .complete_prompt_simple("haiku", "topic", "p")
            .await;
        let values = values.map_err(at(title))?;
        self.done(title, values.join(", "));

        let title = "get a prompt";
        self.pause_before_step().await;
        let arguments = object(json!({ "topic": "proxies", "mood": "cheerful" }));
        let request = GetPromptRequestParams::new("haiku").with_arguments(arguments);
        let prompt = self.client.get_prompt(request).await.map_err(at(title))?;
        let text = prompt
            .messages
            .first()
            .and_then(|message| message.content.as_text());
        self.done(title, text.map_or("no text", |text| text.text.as_str()));
        Ok(())
    }

    /// Once as a tool fails, for a model to read; once as a request fails, for a program.
    pub(super) async fn fail_twice(&mut self) -> Result<(), DemoError> {
        let title = "call roll_dice with a one-sided die";
        self.pause_before_step().await;
        let answer = self.call(title, "roll_dice", json!({ "sides": 1 })).await?;
        if answer.is_error != Some(true) {
            return Err(unexpected(title, &json!(answer)));
        }
        self.done(title, first_text(&answer));

        let title = "call a tool that does not exist";
        self.pause_before_step().await;
        match self.client.call_tool(call("make_tea", json!({}))).await {
            Err(ServiceError::McpError(error)) => {
                self.done(title, format!("error {}: {}", error.code.0, error.message));
                Ok(())
            }
            Err(error) => Err(at(title)(error)),
            Ok(answer) => Err(unexpected(title, &json!(answer))),
        }
    }

    pub(super) async fn close(mut self) -> Result<(), DemoError> {
        self.pause_before_step().await;
        self.client.close().await.map_err(DemoError::Session)?;
        self.done("close the session", "good-bye");
        Ok(())
    }

    async fn call(
        &mut self,
        title: &'static str,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, DemoError> {
        self.client
            .call_tool(call(tool, arguments))
            .await
            .map_err(at(title))
    }

    async fn read(&mut self, title: &'static str, uri: &str) -> Result<String, DemoError> {
        let request = ReadResourceRequestParams::new(uri);
        let ReadResourceResult { contents, .. } = self
            .client
            .read_resource(request)
            .await
            .map_err(at(title))?;
        match contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text),
            other => Err(unexpected(title, &json!(other))),
        }
    }

    async fn pause_before_step(&mut self) {
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
    }

    fn done(&mut self, title: &'static str, outcome: impl Into<String>) {
        (self.on_step)(&ScriptStep {
            title,
            outcome: outcome.into(),
        });
    }
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(object(arguments))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn first_text(answer: &CallToolResult) -> String {
    let text = answer.content.first().and_then(|block| block.as_text());
    text.map_or_else(String::new, |text| text.text.clone())
}

fn expect_text(
    title: &'static str,
    answer: &CallToolResult,
    expected: &str,
) -> Result<String, DemoError> {
    let text = first_text(answer);
    if text == expected {
        Ok(text)
    } else {
        Err(unexpected(title, &json!(answer)))
    }
}

fn at(step: &'static str) -> impl Fn(ServiceError) -> DemoError {
    move |source| DemoError::Step {
        step,
        source: Box::new(source),
    }
}

fn unexpected(step: &'static str, answer: &Value) -> DemoError {
    let answer = answer.to_string().chars().take(200).collect();
    DemoError::Unexpected { step, answer }
}
