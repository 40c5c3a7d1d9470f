//! Asking the person at the client a question, in both eras.
//!
//! In a legacy session the server sends `elicitation/create` in the middle of the call and waits. In
//! 2026-07-28 servers send no requests: the call is answered with `input_required`, and the client calls
//! again with the answer. A tool that asks through [`ask`] need not know which of the two it is.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
        ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses,
        ServerRequest,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::Value;

use crate::reporter::is_modern;

/// One form to fill in.
pub struct FormQuestion {
    /// Names the question among those of the same request.
    pub key: &'static str,
    /// What the person reads.
    pub message: String,
    /// The form, as the JSON Schema subset that elicitation allows.
    pub form: Value,
}

/// What came of asking.
pub enum QuestionReply {
    /// The person accepted, declined or cancelled.
    Answered(ElicitResult),
    /// The client has to call again: return this from the tool.
    CallAgain(InputRequiredResult),
}

/// Asks one question, or takes its answer from the responses that the client brought.
pub async fn ask(
    question: FormQuestion,
    responses: Option<&InputResponses>,
    context: &RequestContext<RoleServer>,
) -> Result<QuestionReply, ErrorData> {
    if is_modern(context) {
        return match answer(&question, responses) {
            Some(answer) => Ok(QuestionReply::Answered(answer)),
            None => {
                require_elicitation(context)?;
                let key = question.key.to_owned();
                let requests = InputRequests::from([(key, question.into_input_request()?)]);
                Ok(QuestionReply::CallAgain(
                    InputRequiredResult::from_input_requests(requests),
                ))
            }
        };
    }
    if !takes_forms(context) {
        return Err(ErrorData::invalid_request(
            "this tool asks a question, and the client did not declare elicitation",
            None,
        ));
    }
    // rmcp's own method for this is behind a feature that brings in the Unicode tables of URL parsing.
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question.into_params()?));
    match context.peer.send_request(request).await {
        Ok(ClientResult::ElicitResult(answer)) => Ok(QuestionReply::Answered(answer)),
        Ok(_) => Err(client_failed(ServiceError::UnexpectedResponse)),
        Err(error) => Err(client_failed(error)),
    }
}

/// Whether the client of a legacy session declared that it shows forms. A bare `elicitation: {}` means that it does.
fn takes_forms(context: &RequestContext<RoleServer>) -> bool {
    let client = context.peer.peer_info();
    let declared = client
        .as_ref()
        .and_then(|client| client.capabilities.elicitation.as_ref());
    declared.is_some_and(|declared| declared.form.is_some() || declared.url.is_none())
}

/// Refuses a modern request whose client did not say that it can ask a person.
pub fn require_elicitation(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let declared = context.client_capabilities();
    if declared.is_some_and(|declared| declared.elicitation.is_some()) {
        return Ok(());
    }
    Err(ErrorData::missing_required_client_capability(
        ClientCapabilities::builder().enable_elicitation().build(),
    ))
}

/// The error for a call whose question to the client failed.
pub fn client_failed(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(format!("the client did not answer: {error}"), None)
}

/// A well-formed answer to this question; anything else counts as not answered, so that it is asked again.
pub fn answer(question: &FormQuestion, responses: Option<&InputResponses>) -> Option<ElicitResult> {
    let response = responses?.get(question.key)?;
    serde_json::from_value(response.clone()).ok()
}

impl FormQuestion {
    /// The question as an entry of `inputRequests`.
    pub fn into_input_request(self) -> Result<InputRequest, ErrorData> {
        let params = self.into_params()?;
        Ok(InputRequest::Elicitation(ElicitRequest::new(params)))
    }

    fn into_params(self) -> Result<ElicitRequestParams, ErrorData> {
        let form: ElicitationSchema = serde_json::from_value(self.form).map_err(|error| {
            ErrorData::internal_error(
                format!("the form is not an elicitation schema: {error}"),
                None,
            )
        })?;
        Ok(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message,
            requested_schema: form,
        })
    }
}
