//! The demo tools: small, useful, and each showing one thing that MCP can do.
//!
//! | tool | shows |
//! |---|---|
//! | `echo` | the simplest call there is |
//! | `add` | structured output with a schema, and a header made from an argument (2026-07-28) |
//! | `roll_dice` | arguments with defaults, and an error that the model can read |
//! | `count_down` | progress and log lines while a call runs, and cancelling it |
//! | `ask_name` | a question to the person at the client |

use std::time::Duration;

use rmcp::{
    ErrorData, Json, RoleServer,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::{CallToolResponse, CallToolResult, ContentBlock, ElicitationAction},
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    question::{FormQuestion, QuestionReply, ask},
    server::DemoServer,
};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text to send back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
    /// What is being counted, such as "apples".
    // Modern clients repeat this argument as the header `Mcp-Param-Unit`, and the server compares the two.
    #[schemars(extend("x-mcp-header" = "Unit"))]
    #[serde(default)]
    unit: String,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// `a` plus `b`.
    sum: f64,
    /// The unit that was given.
    unit: String,
}

#[derive(Deserialize, JsonSchema)]
struct RollDice {
    /// How many dice, 1 to 20.
    #[serde(default = "one")]
    count: u32,
    /// How many sides each of them has, 2 to 1000.
    #[serde(default = "six")]
    sides: u32,
}

fn one() -> u32 {
    1
}

fn six() -> u32 {
    6
}

#[derive(Deserialize, JsonSchema)]
struct CountDown {
    /// The number to start from, 1 to 60.
    #[serde(default = "three")]
    from: u32,
    /// Milliseconds between two numbers, up to 1000.
    #[serde(default)]
    pause_ms: u64,
}

fn three() -> u32 {
    3
}

#[tool_router(router = demo_tools, vis = "pub(crate)")]
impl DemoServer {
    /// Send a text back unchanged.
    #[tool(annotations(title = "Echo", read_only_hint = true))]
    fn echo(&self, Parameters(Echo { message }): Parameters<Echo>) -> String {
        message
    }

    /// Add two numbers.
    #[tool(annotations(title = "Add", read_only_hint = true, idempotent_hint = true))]
    fn add(&self, Parameters(Add { a, b, unit }): Parameters<Add>) -> Json<Sum> {
        Json(Sum { sum: a + b, unit })
    }

    /// Roll some dice and add them up.
    #[tool(annotations(title = "Roll dice", read_only_hint = true))]
    fn roll_dice(
        &self,
        Parameters(RollDice { count, sides }): Parameters<RollDice>,
    ) -> CallToolResult {
        if !(1..=20).contains(&count) || !(2..=1000).contains(&sides) {
            return CallToolResult::error(vec![ContentBlock::text(format!(
                "cannot roll {count} dice with {sides} sides: count is 1 to 20, sides is 2 to 1000"
            ))]);
        }
        let rolls: Vec<u32> = (0..count).map(|_| roll(sides)).collect();
        let total: u32 = rolls.iter().sum();
        CallToolResult::structured(json!({ "rolls": rolls, "total": total }))
    }

    /// Count down to zero, telling how far it has come.
    #[tool(annotations(title = "Count down", read_only_hint = true))]
    async fn count_down(
        &self,
        Parameters(CountDown { from, pause_ms }): Parameters<CountDown>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        if !(1..=60).contains(&from) || pause_ms > 1000 {
            return CallToolResult::error(vec![ContentBlock::text(format!(
                "cannot count down from {from} every {pause_ms} ms: from is 1 to 60, pause_ms at most 1000"
            ))]);
        }
        let report = self.report(&context);
        report.info(format!("counting down from {from}")).await;
        for done in 1..=from {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
                () = context.ct.cancelled() => {
                    return CallToolResult::error(vec![ContentBlock::text("stopped")]);
                }
            }
            let left = from - done;
            report.progress(done, from, format!("{left} to go")).await;
        }
        report.info("lift-off").await;
        CallToolResult::success(vec![ContentBlock::text("Lift-off!")])
    }

    /// Ask the person at the client for a name, and greet them.
    #[tool(annotations(title = "Ask for a name", read_only_hint = true))]
    async fn ask_name(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = FormQuestion {
            key: "name",
            message: "What is your name?".to_owned(),
            form: json!({
                "type": "object",
                "properties": { "name": { "type": "string", "title": "Name" } },
                "required": ["name"],
            }),
        };
        let answer = match ask(question, responses.as_ref(), &context).await? {
            QuestionReply::Answered(answer) => answer,
            QuestionReply::CallAgain(request) => return Ok(request.into()),
        };
        let name = match answer.action {
            ElicitationAction::Accept => answer.content.as_ref().and_then(|it| it["name"].as_str()),
            _ => None,
        };
        let greeting = match name {
            Some(name) => format!("Hello, {name}!"),
            None => "Hello, stranger!".to_owned(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(greeting)]).into())
    }
}

/// One die. The low half of a random UUID is 62 random bits below 2 fixed ones; 32 of them are enough here.
fn roll(sides: u32) -> u32 {
    let (_, low) = uuid::Uuid::new_v4().as_u64_pair();
    let random = u32::try_from(low & u64::from(u32::MAX)).unwrap_or_default();
    random % sides + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_stays_on_its_sides() {
        assert!((0..1000).all(|_| (1..=6).contains(&roll(6))));
    }

    #[test]
    fn every_tool_says_what_it_does() {
        let tools = DemoServer::demo_tools().list_all();
        assert_eq!(tools.len(), 5);
        for tool in tools {
            assert!(
                tool.description.is_some_and(|text| !text.is_empty()),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn add_has_a_schema_for_its_answer_and_a_header_for_its_unit() {
        let tool = DemoServer::add_tool_attr();
        assert!(tool.output_schema.is_some());
        assert_eq!(
            tool.input_schema["properties"]["unit"]["x-mcp-header"],
            "Unit"
        );
    }
}
