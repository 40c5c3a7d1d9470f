//! The demo prompts, and completion of their arguments and of the resource template's.

use rmcp::{
    ErrorData,
    model::{
        ArgumentInfo, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage,
        Reference, Role,
    },
};
use serde_json::Value;

use crate::resources;

const NAMES: &[&str] = &["Ada", "Alan", "Barbara", "Edsger", "Grace"];
const TOPICS: &[&str] = &["autumn", "pipes", "proxies", "rain", "sockets"];
const MOODS: &[&str] = &["cheerful", "calm", "gloomy"];

/// What `prompts/list` shows.
pub(crate) fn list() -> Vec<Prompt> {
    vec![
        Prompt::new(
            "introduce",
            Some("Have the model introduce this server."),
            None,
        )
        .with_title("Introduce the server"),
        Prompt::new(
            "haiku",
            Some("Have the model write a haiku."),
            Some(vec![
                PromptArgument::new("topic")
                    .with_description("What the haiku is about.")
                    .with_required(true),
                PromptArgument::new("mood").with_description("How it should feel."),
            ]),
        )
        .with_title("Write a haiku"),
    ]
}

/// The prompt of that name, or `None` for one that is not ours.
pub(crate) fn get(
    name: &str,
    arguments: Option<&JsonObject>,
) -> Option<Result<GetPromptResult, ErrorData>> {
    match name {
        "introduce" => Some(Ok(prompt_result(
            "Read demo://readme and say in two sentences what this server can do.",
        ))),
        "haiku" => Some(prompt_argument(arguments, "topic").map(|topic| {
            match optional(arguments, "mood") {
                Some(mood) => prompt_result(format!("Write a {mood} haiku about {topic}.")),
                None => prompt_result(format!("Write a haiku about {topic}.")),
            }
        })),
        _ => None,
    }
}

/// Values for an argument that start with what was typed, in alphabetical order.
pub(crate) fn complete(reference: &Reference, argument: &ArgumentInfo) -> Vec<String> {
    let known = match reference {
        Reference::Prompt(prompt) if prompt.name == "haiku" => match argument.name.as_str() {
            "topic" => TOPICS,
            "mood" => MOODS,
            _ => &[],
        },
        Reference::Resource(template) if template.uri == resources::GREETING => NAMES,
        _ => &[],
    };
    let typed = argument.value.to_lowercase();
    let matching = known
        .iter()
        .filter(|value| value.to_lowercase().starts_with(&typed));
    matching.map(|value| (*value).to_owned()).collect()
}

/// A required prompt argument, or the error that names it.
pub fn prompt_argument<'a>(
    arguments: Option<&'a JsonObject>,
    name: &str,
) -> Result<&'a str, ErrorData> {
    optional(arguments, name).ok_or_else(|| {
        ErrorData::invalid_params(format!("the prompt needs the text argument {name:?}"), None)
    })
}

fn optional<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Option<&'a str> {
    arguments?.get(name).and_then(Value::as_str)
}

fn prompt_result(text: impl Into<String>) -> GetPromptResult {
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_argument_is_named() {
        let error = get("haiku", None).unwrap().unwrap_err();
        assert!(error.message.contains("topic"));
    }

    #[test]
    fn completion_keeps_what_starts_like_the_input() {
        let typed = |value: &str| {
            complete(
                &Reference::for_prompt("haiku"),
                &ArgumentInfo::new("topic", value),
            )
        };
        assert_eq!(typed("P"), ["pipes", "proxies"]);
        assert_eq!(typed("x"), Vec::<String>::new());
        let names = complete(
            &Reference::for_resource(resources::GREETING),
            &ArgumentInfo::new("name", "a"),
        );
        assert_eq!(names, ["Ada", "Alan"]);
    }
}
