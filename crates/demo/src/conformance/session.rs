//! Tools that talk to the client while they run: log lines, progress, questions, change notices, hanging up.

#![expect(
    deprecated,
    reason = "rmcp marks sampling as deprecated by 2026-07-28; legacy servers use it"
)]

use std::time::Duration;

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::{
        CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateMessageRequestParams, ElicitResult, SamplingMessage,
    },
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    http::StreamCutter,
    question::{FormQuestion, QuestionReply, ask, client_failed},
    server::DemoServer,
    state::ContentChange,
};

/// The scenarios want to see that messages arrive one by one.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may stay away after the server has hung up.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// What the client's model is asked.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// What the person at the client reads.
    message: String,
}

#[tool_router(router = session_tools, vis = "pub(crate)")]
impl DemoServer {
    /// Send three log lines while running.
    #[tool]
    async fn test_tool_with_logging(&self, context: RequestContext<RoleServer>) -> String {
        let report = self.report(&context);
        report.info("Tool execution started").await;
        tokio::time::sleep(PAUSE).await;
        report.info("Tool processing data").await;
        tokio::time::sleep(PAUSE).await;
        report.info("Tool execution completed").await;
        "logged three lines".to_owned()
    }

    /// Send a log line, if the request asks for log lines.
    #[tool]
    async fn test_logging_tool(&self, context: RequestContext<RoleServer>) -> String {
        self.report(&context).info("a log line").await;
        "logged one line if that was wanted".to_owned()
    }

    /// Report progress three times while running.
    #[tool]
    async fn test_tool_with_progress(&self, context: RequestContext<RoleServer>) -> String {
        let report = self.report(&context);
        report.progress(0, 100, "started").await;
        tokio::time::sleep(PAUSE).await;
        report.progress(50, 100, "half").await;
        tokio::time::sleep(PAUSE).await;
        report.progress(100, 100, "done").await;
        "reported progress three times".to_owned()
    }

    /// Ask the client's model.
    #[tool]
    async fn test_sampling(
        &self,
        Parameters(Sampling { prompt }): Parameters<Sampling>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let messages = vec![SamplingMessage::user_text(prompt)];
        let request = CreateMessageRequestParams::new(messages, 100);
        let answer = context
            .peer
            .create_message(request)
            .await
            .map_err(client_failed)?;
        let text = answer.message.content.first().and_then(|it| it.as_text());
        Ok(format!(
            "LLM response: {}",
            text.map_or("", |it| it.text.as_str())
        ))
    }

    /// Refuse a client that has no model to ask.
    #[tool]
    fn test_missing_capability(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        match context.client_capabilities() {
            Some(declared) if declared.sampling.is_some() => Ok("sampling is declared".to_owned()),
            _ => Err(ErrorData::missing_required_client_capability(
                ClientCapabilities::builder().enable_sampling().build(),
            )),
        }
    }

    /// Ask the person at the client for a user name and an e-mail address.
    #[tool]
    async fn test_elicitation(
        &self,
        Parameters(Elicitation { message }): Parameters<Elicitation>,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = json!({
            "type": "object",
            "properties": {
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            },
            "required": ["username", "email"],
        });
        let question = FormQuestion {
            key: "user",
            message,
            form,
        };
        let reply = ask(question, responses.as_ref(), &context).await?;
        Ok(tell(reply, "User response"))
    }

    /// Ask with a form in which everything has a default.
    #[tool]
    async fn test_elicitation_sep1034_defaults(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = FormQuestion {
            key: "profile",
            message: "Please check these values.".to_owned(),
            form: form_with_defaults(),
        };
        let reply = ask(question, responses.as_ref(), &context).await?;
        Ok(tell(reply, "Elicitation completed"))
    }

    /// Ask with a form that has every kind of choice.
    #[tool]
    async fn test_elicitation_sep1330_enums(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = FormQuestion {
            key: "choices",
            message: "Please choose.".to_owned(),
            form: form_with_choices(),
        };
        let reply = ask(question, responses.as_ref(), &context).await?;
        Ok(tell(reply, "Elicitation completed"))
    }

    /// Report progress, then ask.
    #[tool]
    async fn test_streaming_elicitation(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.report(&context).progress(0, 1, "about to ask").await;
        let question = FormQuestion {
            key: "name",
            message: "What is your name?".to_owned(),
            form: json!({ "type": "object", "properties": { "name": { "type": "string" } } }),
        };
        let reply = ask(question, responses.as_ref(), &context).await?;
        Ok(tell(reply, "Elicitation completed"))
    }

    /// Say that the list of tools has changed.
    #[tool]
    async fn test_trigger_tool_change(&self, context: RequestContext<RoleServer>) -> String {
        self.announce(ContentChange::Tools, &context).await;
        "said that the tools changed".to_owned()
    }

    /// Say that the list of prompts has changed.
    #[tool]
    async fn test_trigger_prompt_change(&self, context: RequestContext<RoleServer>) -> String {
        self.announce(ContentChange::Prompts, &context).await;
        "said that the prompts changed".to_owned()
    }

    /// Hang up before answering; the client has to come back for the answer. Does nothing of the kind
    /// where there is no HTTP answer to end, or no session to come back to.
    #[tool]
    async fn test_reconnection(&self, context: RequestContext<RoleServer>) -> String {
        let cutter = context
            .extensions
            .get::<Parts>()
            .and_then(|parts| parts.extensions.get::<StreamCutter>());
        if let Some(cutter) = cutter
            && !crate::reporter::is_modern(&context)
        {
            let _ = tokio::time::timeout(PATIENCE, cutter.hang_up()).await;
        }
        "welcome back".to_owned()
    }
}

/// The answer to a question as the tool's own answer.
fn tell(reply: QuestionReply, prefix: &str) -> CallToolResponse {
    match reply {
        QuestionReply::CallAgain(request) => request.into(),
        QuestionReply::Answered(ElicitResult {
            action, content, ..
        }) => {
            let content = content.unwrap_or(Value::Null);
            let text = format!("{prefix}: action={}, content={content}", json!(action));
            CallToolResult::success(vec![ContentBlock::text(text)]).into()
        }
    }
}

/// SEP-1034 asks for one property of each primitive type.
fn form_with_defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

/// SEP-1330 asks for one property of each way to write a choice.
fn form_with_choices() -> Value {
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    { "const": "value1", "title": "First Option" },
                    { "const": "value2", "title": "Second Option" },
                    { "const": "value3", "title": "Third Option" },
                ],
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        { "const": "value1", "title": "First Choice" },
                        { "const": "value2", "title": "Second Choice" },
                        { "const": "value3", "title": "Third Choice" },
                    ],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use rmcp::model::ElicitationSchema;

    use super::*;

    /// rmcp reads a form into its own types; a keyword it does not know would be gone.
    #[test]
    fn forms_keep_every_keyword() {
        for form in [form_with_defaults(), form_with_choices()] {
            let typed: ElicitationSchema = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(
                serde_json::to_value(typed).unwrap()["properties"],
                form["properties"]
            );
        }
    }
}
