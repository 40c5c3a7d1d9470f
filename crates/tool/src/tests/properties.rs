//! What holds for any input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// JSON values with the names that matter here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof![
            Just("complete"),
            Just("list"),
            Just("batch"),
            Just("tool"),
            Just("{\"a\": [1]}")
        ]
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        8 => proptest::sample::select(vec![
            "action", "type", "path", "args", "limit", "filter", "operations", "content", "contents", "messages",
            "text", "blob", "mimeType", "contentType", "annotations", "_meta", "mcp-proxy/proxy", "proxyType",
            "resultType", "tags", "name",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A result whose array `name` has objects in it.
fn result_with(name: &'static str) -> impl Strategy<Value = Value> {
    (any_json(), proptest::collection::vec(any_json(), 0..4)).prop_map(move |(other, items)| {
        let mut result = json!({"other": other});
        result[name] = items.into();
        result
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

proptest! {
    #[test]
    fn any_bytes_are_arguments_or_an_error(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        let options = ProxyToolOptions::default();
        if let Err(error) = parse_arguments(Some(&raw.clone().into()), &options, &[]) {
            value(&render_error(&error.into()));
        }
        let raw = Bytes::from(raw);
        for render in [render_tool_result, render_resource_result, render_prompt_result] {
            // Random bytes are not a result.
            prop_assert_eq!(render(&raw, "path"), raw.clone());
        }
    }

    #[test]
    fn any_json_is_arguments_or_an_error(arguments in any_json(), pretty: bool) {
        let parsed = parse_arguments(Some(&bytes(&arguments, pretty)), &ProxyToolOptions::default(), &[]);
        match parsed {
            Err(error) => {
                let error = ProxyToolError::from(error);
                let result = value(&render_error(&error));
                prop_assert_eq!(&result["isError"], true);
                prop_assert_eq!(&result["_meta"]["mcp-proxy/proxy"]["error"], error.code());
            }
            Ok(ProxyOperation::Call { arguments: Some(arguments), .. }) => {
                prop_assert!(value(&arguments).is_object());
                prop_assert!(!arguments.contains(&b'\n'));
            }
            Ok(_) => {}
        }
    }

    #[test]
    fn tool_results_keep_what_they_have(result in result_with("content"), pretty: bool, path: String) {
        let rendered = value(&render_tool_result(&bytes(&result, pretty), &path));
        prop_assert_eq!(&rendered["other"], &result["other"]);
        for (before, after) in result["content"].as_array().unwrap().iter().zip(rendered["content"].as_array().unwrap()) {
            let Some(before) = before.as_object() else {
                prop_assert_eq!(before, after);
                continue;
            };
            for (key, old) in before {
                if key != "annotations" && key != "_meta" {
                    prop_assert_eq!(&after[key], old);
                }
            }
            let is_open = before.get("annotations").is_none_or(|old| old.is_object() || old.is_null());
            if is_open {
                prop_assert_eq!(&after["annotations"]["proxyPath"], &json!(path));
            }
        }
    }

    #[test]
    fn resource_and_prompt_results_stay_json(
        contents in result_with("contents"), messages in result_with("messages"), pretty: bool, path: String,
    ) {
        let rendered = value(&render_resource_result(&bytes(&contents, pretty), &path));
        prop_assert_eq!(&rendered["other"], &contents["other"]);
        let count = contents["contents"].as_array().map(Vec::len);
        prop_assert_eq!(rendered["content"].as_array().map(Vec::len), count);

        let prompt = bytes(&messages, pretty);
        let rendered = render_prompt_result(&prompt, &path);
        let text = value(&rendered)["content"][0]["resource"]["text"].as_str().map(str::to_owned);
        let mut messages = messages;
        messages.as_object_mut().unwrap().retain(|_, member| !member.is_null());
        prop_assert_eq!(value(text.unwrap().as_bytes()), messages);
        value(&render_batch(&[prompt, rendered]));
    }

    #[test]
    fn lists_and_infos_are_json(definitions in proptest::collection::vec(any_json(), 0..5), path: String, tag: String) {
        let entries: Vec<_> = definitions
            .iter()
            .map(|definition| entry(ItemKind::Template, 0, "x", &definition.to_string()))
            .collect();
        for entry in &entries {
            value(&render_info(entry, &path));
        }
        let query = ListQuery {
            kind: CapabilityType::Resource,
            limit: 2,
            offset: 1,
            filter_server: None,
            filter: ListFilter::default(),
            detail: ListDetail::Full,
        };
        let list = value(&render_list(entries.iter(), &query, None, &[]));
        let item = &list["content"][0];
        prop_assert_eq!(&item["annotations"]["totalCount"], entries.len());
        value(item["resource"]["text"].as_str().unwrap().as_bytes());
        let filter = ListFilter { prefix: Some(path), tags: vec![tag] };
        value(&render_list(entries.iter(), &ListQuery { filter, ..query }, None, &[]));
    }
}
