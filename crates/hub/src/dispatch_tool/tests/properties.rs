//! What holds for any input.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ItemKind, PublicDefinition};

/// JSON values with the names that matter here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        proptest::sample::select(vec![
            "array",
            "object",
            "string",
            "complete",
            "grep",
            "true",
            "7",
            "{\"a\": [1]}",
        ])
        .prop_map(Value::from),
    ];
    let mut names = vec![
        "type",
        "items",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "properties",
        "required",
        "inputSchema",
        "description",
        "title",
        "annotations",
        "name",
        "content",
        "text",
        "structuredContent",
        "isError",
        "start",
        "end",
    ];
    names.extend(DispatchParameter::texts());
    let key = prop_oneof![
        8 => proptest::sample::select(names).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Arguments that get past the choice of an action.
fn any_arguments() -> impl Strategy<Value = Value> {
    let actions = DispatchAction::texts();
    let members = proptest::sample::subsequence(DispatchParameter::all().to_vec(), 0..5);
    (
        proptest::sample::select(actions),
        members,
        proptest::collection::vec(any_json(), 5),
    )
        .prop_map(|(action, members, values)| {
            let mut arguments = json!({});
            for (member, value) in members.into_iter().zip(values) {
                arguments[member.as_str()] = value;
            }
            arguments["action"] = action.into();
            arguments
        })
}

fn bytes(value: &Value, pretty: bool) -> Bytes {
    let text = if pretty {
        serde_json::to_vec_pretty(value)
    } else {
        serde_json::to_vec(value)
    };
    text.unwrap().into()
}

fn check(arguments: &Bytes) -> Result<(), TestCaseError> {
    match parse_with(arguments, &DispatchToolOptions::default()) {
        Err(error) => {
            let result = value(&render_error(&error, None));
            prop_assert_eq!(&result["isError"], true);
            prop_assert_eq!(&result["_meta"]["mcp-proxy/dispatch"]["code"], error.code());
            prop_assert!(result["content"][0]["text"].as_str().unwrap().len() < 4000);
        }
        Ok((DispatchOperation::Call(call), _)) => {
            let inline = match call.arguments {
                DispatchArguments::Inline(arguments) => Some(arguments),
                _ => None,
            };
            for object in [inline, call.meta].into_iter().flatten() {
                prop_assert!(value(&object).is_object());
                prop_assert!(!object.contains(&b'\n'));
            }
        }
        Ok((DispatchOperation::Search(query), _)) => {
            prop_assert!((1..=MAX_SEARCH_LIMIT).contains(&query.limit));
        }
        Ok(_) => {}
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_arguments_or_an_error(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&raw.into())?;
    }

    #[test]
    fn any_json_is_arguments_or_an_error(arguments in prop_oneof![any_json(), any_arguments()], pretty: bool) {
        check(&bytes(&arguments, pretty))?;
    }

    #[test]
    fn results_keep_what_they_have(other in any_json(), items in proptest::collection::vec(any_json(), 0..4), own in any_json(), pretty: bool, tool: String) {
        let result = json!({"other": other, "content": items, "structuredContent": own});
        let arguments = DispatchArguments::Inline(bytes(&json!({"a": tool}), pretty));
        let call = DispatchedCall { alias: "c1", connection: "calc", tool: &tool, arguments: &arguments, not_stored: None };
        let rendered = value(&render_call(&bytes(&result, pretty), &call));
        prop_assert_eq!(&rendered["other"], &result["other"]);
        prop_assert_eq!(&rendered["content"], &result["content"]);
        prop_assert_eq!(&rendered["structuredContent"], &own);
        prop_assert_eq!(&rendered["_meta"]["mcp-proxy/dispatch"]["tool"], &tool);
    }

    #[test]
    fn any_definition_can_be_shown(definition in any_json(), schema in any_json(), pretty: bool, name: String) {
        let mut definition = definition;
        if definition.is_object() {
            definition["inputSchema"] = schema;
        }
        let text = bytes(&definition, pretty);
        let definition = PublicDefinition::from(text.clone());
        for kind in [ItemKind::Tool, ItemKind::Resource, ItemKind::Template, ItemKind::Prompt] {
            let hit = DispatchHit { line: String::new(), alias: "c1", connection: "s", kind, name: &name, public: None, definition: &definition, matched_fields: vec![&name] };
            for format in [DispatchFormat::Compact, DispatchFormat::Detail] {
                let query = DispatchSearchQuery {
                    query: name.clone(), connection: None, kind: CapabilityType::Tool, limit: 1,
                    include_input_schema: true, include_annotations: AnnotationUse::All, format,
                };
                let found = answer(&render_search(&query, 1, true, std::slice::from_ref(&hit), &[]));
                let found = &found["results"][0];
                if let Some(signature) = found["signature"].as_str() {
                    prop_assert!(signature.chars().count() <= 200);
                }
                if let Some(description) = found["description"].as_str() {
                    prop_assert!(description.chars().count() <= 160);
                }
            }
        }
        let tools = vec![DispatchTool { name: &name, public: Some(&name), line_name: &name, definition: &definition }];
        let problem = ConnectionProblem::Failed(name.clone());
        let connection = DispatchConnection { alias: "c1", name: &name, problem: Some(&problem), server_info: Some(text), last_refreshed_ms: Some(1), tools };
        let query = DispatchListQuery {
            connection: None, include_tools: true, include_input_schema: true, include_annotations: AnnotationUse::All, format: DispatchFormat::Detail, limit: 100, offset: 0,
        };
        prop_assert_eq!(&answer(&render_list(&[connection], &query))["connections"][0]["toolCount"], 1);
    }
}
