//! Tools whose first answer asks for input, as 2026-07-28 has it (SEP-2322).
//!
//! The server keeps nothing between the rounds. What it has to remember travels as `requestState`, sealed with
//! a key of this process and bound to the tool's name, so that a client can neither change it nor use it elsewhere.

#![expect(
    deprecated,
    reason = "rmcp marks sampling and roots as deprecated; they are still allowed as input requests"
)]

use rmcp::{
    ErrorData, RoleServer,
    handler::server::tool::{InputResponses, RequestState},
    model::{
        CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
        CreateMessageRequestParams, InputRequest, InputRequests, InputRequiredResult,
        ListRootsRequest, SamplingMessage, SealOptions,
    },
    service::RequestContext,
    tool, tool_router,
};
use serde_json::{Value, json};

use crate::{
    question::{FormQuestion, QuestionReply, answer, ask},
    server::DemoServer,
};

type Responses = rmcp::model::InputResponses;

#[tool_router(router = input_required_tools, vis = "pub(crate)")]
impl DemoServer {
    /// Ask for a name.
    #[tool]
    async fn test_input_required_result_elicitation(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match ask(name_question(), responses.as_ref(), &context).await? {
            QuestionReply::CallAgain(request) => Ok(request.into()),
            QuestionReply::Answered(answer) => {
                let content = answer.content.unwrap_or_default();
                Ok(done(format!(
                    "Hello, {}!",
                    content["name"].as_str().unwrap_or("stranger")
                )))
            }
        }
    }

    /// Ask the client's model.
    #[tool]
    fn test_input_required_result_sampling(
        &self,
        InputResponses(responses): InputResponses,
    ) -> CallToolResponse {
        match object(responses.as_ref(), "capital_question") {
            Some(answer) => done(format!("The model said: {}", answer["content"])),
            None => {
                let question = sampling("What is the capital of France?", 100);
                request_input([("capital_question", question)], None)
            }
        }
    }

    /// Ask for the client's roots.
    #[tool]
    fn test_input_required_result_list_roots(
        &self,
        InputResponses(responses): InputResponses,
    ) -> CallToolResponse {
        match object(responses.as_ref(), "client_roots") {
            Some(answer) => done(format!("The roots are: {}", answer["roots"])),
            None => request_input([("client_roots", roots())], None),
        }
    }

    /// Ask for a confirmation, and check that the state came back whole.
    #[tool]
    fn test_input_required_result_request_state(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirm("test_input_required_result_request_state", responses, state)
    }

    /// Ask for a confirmation, and refuse state that somebody has changed.
    #[tool]
    fn test_input_required_result_tampered_state(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirm(
            "test_input_required_result_tampered_state",
            responses,
            state,
        )
    }

    /// Ask three things at once.
    #[tool]
    fn test_input_required_result_multiple_inputs(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        const TOOL: &str = "test_input_required_result_multiple_inputs";
        let keys = ["user_name", "greeting", "client_roots"];
        if keys
            .iter()
            .all(|key| object(responses.as_ref(), key).is_some())
        {
            self.open_state(TOOL, state.as_deref())?;
            return Ok(done("all three were answered"));
        }
        let requests = [
            ("user_name", name_question().into_input_request()?),
            ("greeting", sampling("Generate a greeting", 50)),
            ("client_roots", roots()),
        ];
        Ok(request_input(
            requests,
            Some(self.seal_state(TOOL, &json!(1))?),
        ))
    }

    /// Ask twice, one after the other.
    #[tool]
    fn test_input_required_result_multi_round(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        const TOOL: &str = "test_input_required_result_multi_round";
        let first = FormQuestion {
            key: "step1",
            message: "Step 1: What is your name?".to_owned(),
            form: text_form("name"),
        };
        let second = FormQuestion {
            key: "step2",
            message: "Step 2: What is your favorite color?".to_owned(),
            form: text_form("color"),
        };
        let known = match &state {
            Some(state) => self.open_state(TOOL, Some(state))?,
            None => Value::Null,
        };
        let (question, known) = match known["name"].as_str() {
            Some(name) => match answer(&second, responses.as_ref()) {
                Some(answer) => {
                    let color = answer.content.unwrap_or_default()["color"].clone();
                    return Ok(done(format!("{name} likes {color}")));
                }
                None => (second, known),
            },
            None => match answer(&first, responses.as_ref()) {
                Some(answer) => {
                    let content = answer.content.unwrap_or_default();
                    (
                        second,
                        json!({ "name": content["name"].as_str().unwrap_or("nobody") }),
                    )
                }
                None => (first, json!({})),
            },
        };
        let state = self.seal_state(TOOL, &known)?;
        Ok(request_input(
            [(question.key, question.into_input_request()?)],
            Some(state),
        ))
    }

    /// Ask only what the client says it can answer.
    #[tool]
    fn test_input_required_result_capabilities(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if responses.is_some_and(|responses| !responses.is_empty()) {
            return Ok(done("answered"));
        }
        let declared = context.client_capabilities().unwrap_or_default();
        let mut requests = Vec::new();
        if declared.elicitation.is_some() {
            requests.push(("user_name", name_question().into_input_request()?));
        }
        if declared.sampling.is_some() {
            requests.push(("greeting", sampling("Generate a greeting", 50)));
        }
        if declared.roots.is_some() {
            requests.push(("client_roots", roots()));
        }
        if requests.is_empty() {
            return Ok(done("the client can answer nothing, so nothing is asked"));
        }
        Ok(request_input(requests, None))
    }
}

impl DemoServer {
    fn confirm(
        &self,
        tool: &'static str,
        responses: Option<Responses>,
        state: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = FormQuestion {
            key: "confirm",
            message: "Please confirm".to_owned(),
            form: json!({
                "type": "object",
                "properties": { "ok": { "type": "boolean" } },
                "required": ["ok"],
            }),
        };
        if answer(&question, responses.as_ref()).is_some() {
            self.open_state(tool, state.as_deref())?;
            return Ok(done("state-ok"));
        }
        let state = self.seal_state(tool, &json!("asked"))?;
        Ok(request_input(
            [(question.key, question.into_input_request()?)],
            Some(state),
        ))
    }

    fn seal_state(&self, tool: &'static str, state: &Value) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(tool.as_bytes());
        let sealed = self.state().seal.seal_json_with(state, &options);
        sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn open_state(&self, tool: &'static str, sealed: Option<&str>) -> Result<Value, ErrorData> {
        let refuse =
            || ErrorData::invalid_params("requestState is not what this server sent", None);
        let opened = self
            .state()
            .seal
            .open_json_with(sealed.ok_or_else(refuse)?, tool.as_bytes());
        opened.map_err(|_| refuse())
    }
}

fn request_input(
    requests: impl IntoIterator<Item = (&'static str, InputRequest)>,
    state: Option<String>,
) -> CallToolResponse {
    let requests = requests
        .into_iter()
        .map(|(key, request)| (key.to_owned(), request));
    InputRequiredResult::new(Some(requests.collect::<InputRequests>()), state).into()
}

fn done(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// The response under a key, if it is an object at all; anything else counts as not answered.
fn object<'a>(responses: Option<&'a Responses>, key: &str) -> Option<&'a Value> {
    responses?.get(key).filter(|response| response.is_object())
}

fn name_question() -> FormQuestion {
    FormQuestion {
        key: "user_name",
        message: "What is your name?".to_owned(),
        form: text_form("name"),
    }
}

fn text_form(field: &str) -> Value {
    json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] })
}

fn sampling(text: &str, max_tokens: u32) -> InputRequest {
    let params =
        CreateMessageRequestParams::new(vec![SamplingMessage::user_text(text)], max_tokens);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DemoContent,
        state::{ClientSession, ServerState},
    };

    #[test]
    fn state_opens_only_for_the_tool_that_sealed_it_and_only_unchanged() {
        let server = DemoServer::new(
            ServerState::new(DemoContent::WithFixtures),
            ClientSession::new(Default::default()),
        );
        let sealed = server.seal_state("one", &json!({ "name": "Ada" })).unwrap();
        assert_eq!(
            server.open_state("one", Some(&sealed)).unwrap()["name"],
            "Ada"
        );
        assert!(server.open_state("two", Some(&sealed)).is_err());
        assert!(
            server
                .open_state("one", Some(&format!("{sealed}x")))
                .is_err()
        );
        assert!(server.open_state("one", None).is_err());
    }
}
