//! Fixture prompts: plain, with arguments, with a resource, with a picture, and one that asks back.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt,
        PromptArgument, PromptMessage, ResourceContents, Role,
    },
    service::RequestContext,
};
use serde_json::json;

use crate::{
    prompts::argument,
    question::{FormQuestion, QuestionReply, ask},
    resources::logo_base64,
};

pub(crate) fn list() -> Vec<Prompt> {
    let required = |name, text| {
        PromptArgument::new(name)
            .with_description::<&str>(text)
            .with_required(true)
    };
    vec![
        Prompt::new(
            "test_simple_prompt",
            Some("A prompt without arguments."),
            None,
        ),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("A prompt with two arguments."),
            Some(vec![
                required("arg1", "First test argument"),
                required("arg2", "Second test argument"),
            ]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("A prompt that contains a resource."),
            Some(vec![required(
                "resourceUri",
                "URI of the resource to embed",
            )]),
        ),
        Prompt::new(
            "test_prompt_with_image",
            Some("A prompt that contains a picture."),
            None,
        ),
        Prompt::new(
            "test_input_required_result_prompt",
            Some("A prompt that asks for its context first."),
            None,
        ),
    ]
}

/// The prompt of that name, or `None` for one that is not a fixture.
pub(crate) async fn get(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let arguments = request.arguments.as_ref();
    let text = |name| argument(arguments, name);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => Ok(vec![user("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => text("arg1").and_then(|first| {
            let second = text("arg2")?;
            let text = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
            Ok(vec![user(text)])
        }),
        "test_prompt_with_embedded_resource" => text("resourceUri").map(|uri| {
            let resource = ResourceContents::text("Embedded resource content for testing.", uri);
            let block = ContentBlock::resource(resource.with_mime_type("text/plain"));
            let last = user("Please process the embedded resource above.");
            vec![PromptMessage::new(Role::User, block), last]
        }),
        "test_prompt_with_image" => {
            let picture = ContentBlock::image(logo_base64(), "image/png");
            let last = user("Please analyze the image above.");
            Ok(vec![PromptMessage::new(Role::User, picture), last])
        }
        "test_input_required_result_prompt" => {
            return Some(ask_for_context(request, context).await);
        }
        _ => return None,
    };
    Some(messages.map(|messages| GetPromptResult::new(messages).into()))
}

async fn ask_for_context(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let question = FormQuestion {
        key: "user_context",
        message: "What context should the prompt use?".to_owned(),
        form: json!({
            "type": "object",
            "properties": { "context": { "type": "string" } },
            "required": ["context"],
        }),
    };
    match ask(question, request.input_responses.as_ref(), context).await? {
        QuestionReply::CallAgain(request) => Ok(request.into()),
        QuestionReply::Answered(answer) => {
            let content = answer.content.unwrap_or_default();
            let context = content["context"].as_str().unwrap_or("none");
            Ok(GetPromptResult::new(vec![user(format!("Use this context: {context}"))]).into())
        }
    }
}

fn user(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}
