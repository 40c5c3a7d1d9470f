//! The tool as its clients see it. The expected names and texts follow what was captured from the reference
//! implementation.

mod arguments;
mod calls;
mod catalog_answers;
mod properties;
mod results;

use bytes::Bytes;
use mcp_proxy_wire::Message;
use serde_json::Value;

use super::*;
use crate::proxy_tool::ToolParameter;

fn parse(arguments: &str) -> Result<DispatchOperation, DispatchToolError> {
    let arguments = Bytes::copy_from_slice(arguments.as_bytes());
    let parsed = parse_with(&arguments, &DispatchToolOptions::default());
    parsed.map(|(operation, _)| operation)
}

fn parse_with(
    arguments: &Bytes,
    options: &DispatchToolOptions,
) -> Result<(DispatchOperation, Refresh), DispatchToolError> {
    let message = Message::parse(arguments.clone());
    Ok(parse_arguments(&message, Some(message.root()), options)?)
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

/// The object that the only item of a result holds as text.
fn answer(result: &[u8]) -> Value {
    let result = value(result);
    assert_eq!(result["isError"], false);
    assert!(result.get("structuredContent").is_none());
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    value(result["content"][0]["text"].as_str().unwrap().as_bytes())
}

fn text(result: &[u8]) -> String {
    let result = value(result);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_definition_is_what_models_read() {
    let definition = definition(&DispatchToolOptions::default(), "");
    let tokens = definition.len().div_ceil(4);
    assert!(tokens <= 752, "{tokens} tokens");
    let pretty = serde_json::to_string_pretty(&value(&definition)).unwrap();
    insta::assert_snapshot!("dispatch_tool_definition", pretty);
}

#[test]
fn the_definition_has_every_parameter_of_the_reference() {
    let definition = value(&definition(&DispatchToolOptions::default(), ""));
    let schema = &definition["inputSchema"];
    assert_eq!(schema["required"], serde_json::json!(["action"]));
    assert_eq!(schema["additionalProperties"], false);
    let names = "action connection query tool arguments argumentsFile meta resultToFile resultSizeThreshold limit \
        includeTools includeInputSchema includeAnnotations refresh resultFile op fromLine toLine lines pattern context \
        maxBytes format type filter";
    for name in names.split_whitespace() {
        assert!(schema["properties"].get(name).is_some(), "{name}");
    }
}

#[test]
fn the_texts_agree_with_the_limits() {
    for action in DispatchAction::all() {
        assert!(
            DispatchParameter::Action
                .allowed()
                .contains(action.as_str())
        );
    }
    for operation in ReadResultOperation::all() {
        assert!(DispatchParameter::Op.allowed().contains(operation.as_str()));
    }
}
