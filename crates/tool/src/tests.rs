//! The tool as its clients see it. The expected answers follow what was captured from the reference implementation.

mod arguments;
mod catalog_answers;
mod properties;
mod server_results;

use bytes::Bytes;
use serde_json::Value;

use super::*;

fn parse(arguments: &str) -> Result<ProxyOperation, ProxyToolError> {
    let arguments = Bytes::copy_from_slice(arguments.as_bytes());
    parse_arguments(Some(&arguments), &ProxyToolOptions::default(), &[])
        .map_err(ProxyToolError::from)
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

/// Something that a server offers.
struct TestItem {
    kind: ItemKind,
    server: u16,
    public: String,
    definition: Bytes,
}

impl ListedItem for TestItem {
    fn kind(&self) -> ItemKind {
        self.kind
    }

    fn public(&self) -> &str {
        &self.public
    }

    fn definition(&self) -> Bytes {
        self.definition.clone()
    }
}

fn entry(kind: ItemKind, server: u16, public: &str, definition: &str) -> TestItem {
    TestItem {
        kind,
        server,
        public: public.to_owned(),
        definition: Bytes::copy_from_slice(definition.as_bytes()),
    }
}

#[test]
fn the_definition_is_what_models_read() {
    let definition = definition(
        &ProxyToolOptions {
            name: "mcp:proxy".to_owned(),
            default_limit: 50,
        },
        "Servers: calc (Adds numbers), time.",
    );
    let pretty = serde_json::to_string_pretty(&value(&definition)).unwrap();
    insta::assert_snapshot!("proxy_tool_definition", pretty);
}

#[test]
fn the_texts_name_all_words() {
    assert_eq!(
        ProxyParameter::Action.allowed(),
        ProxyAction::alternatives()
    );
    assert_eq!(
        ProxyParameter::Type.allowed(),
        CapabilityType::alternatives()
    );
    assert_eq!(ProxyParameter::Detail.allowed(), ListDetail::alternatives());
}

#[test]
fn suggestions_are_close_or_mean_the_same() {
    let suggested = |given: &str| ProxyAction::meant_by(given);
    assert_eq!(suggested("LIST"), Some(ProxyAction::List));
    assert_eq!(suggested("inof"), Some(ProxyAction::Info));
    assert_eq!(suggested("Read "), Some(ProxyAction::Call));
    assert_eq!(suggested("delete"), None);
    assert_eq!(suggested(""), None);
    assert_eq!(suggested(&"l".repeat(1000)), None);
    assert_eq!(
        CapabilityType::meant_by("prompts"),
        Some(CapabilityType::Prompt)
    );
    assert_eq!(
        ProxyParameter::meant_by("OFFSET "),
        Some(ProxyParameter::Offset)
    );
    let among = [ProxyParameter::Path].into_iter();
    assert_eq!(ProxyParameter::meant_among("args", among), None);
}

#[test]
fn the_texts_agree_with_the_limits() {
    assert!(
        ProxyParameter::Limit
            .allowed()
            .ends_with(&MAX_LIMIT.to_string())
    );
    assert!(
        ProxyParameter::Operations
            .allowed()
            .contains(&format!("to {MAX_OPERATIONS} "))
    );
}

#[test]
fn a_batch_is_one_resource_with_all_results() {
    let error = render_error(&parse("{}").unwrap_err());
    let tool = Bytes::from_static(b"{\"content\": [ ],\n\"isError\": false}");
    let batch = value(&render_batch(&[tool.clone(), error.clone()]));
    assert_eq!(batch["isError"], false);
    let item = &batch["content"][0];
    assert_eq!(item["resource"]["uri"], "proxy:batch");
    assert_eq!(item["annotations"]["proxyAction"], "batch");
    assert_eq!(item["annotations"]["totalCount"], 2);
    let results = value(item["resource"]["text"].as_str().unwrap().as_bytes());
    assert_eq!(results[0], value(&tool));
    assert_eq!(results[1], value(&error));
    assert_eq!(results.as_array().unwrap().len(), 2);
}

#[test]
fn d26_g11_a_batch_says_nothing_twice() {
    let result = r#"{"content":[{"type":"text","text":"8"},{"type":"text","text":"9","annotations":{"priority":1}}]}"#;
    let called = render_tool_result(&Bytes::from_static(result.as_bytes()), "calc_add");
    assert!(!String::from_utf8_lossy(&called).contains("_meta"));
    let prompt = Bytes::from_static(br#"{"messages":[]}"#);
    let prompt = render_prompt_result(&prompt, "calc_help");
    let batch = value(&render_batch(&[called, prompt]));
    let text = batch["content"][0]["resource"]["text"].as_str().unwrap();
    let results = value(text.as_bytes());
    assert_eq!(
        results[0]["content"],
        serde_json::json!([{"type": "text", "text": "8"}, {"type": "text", "text": "9", "annotations": {"priority": 1}}])
    );
    let item = &results[1]["content"][0];
    assert!(item.get("annotations").is_none());
    assert_eq!(item["_meta"]["mcp-proxy/proxy"]["proxyPath"], "calc_help");
}
