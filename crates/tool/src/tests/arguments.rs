//! What calls mean, and what is said about those that mean nothing.

use super::*;

fn query(kind: CapabilityType) -> ListQuery {
    ListQuery {
        kind,
        limit: 100,
        offset: 0,
        filter_server: None,
        filter: ListFilter::default(),
        detail: ListDetail::Full,
    }
}

fn call(kind: CapabilityType, path: &str, arguments: Option<&'static str>) -> ProxyOperation {
    ProxyOperation::Call {
        kind,
        path: path.to_owned(),
        arguments: arguments.map(Bytes::from),
    }
}

#[test]
fn lists() {
    let list = |arguments: &str| match parse(arguments) {
        Ok(ProxyOperation::List(query)) => query,
        other => panic!("{arguments}: {other:?}"),
    };
    let tools = query(CapabilityType::Tool);
    assert_eq!(list(r#"{"action":"list","type":"tool"}"#), tools);
    for nothing in [
        r#"{"action":"list","type":"tool","path":"","args":{},"filter_server":""}"#,
        r#"{"action":"list","type":"tool","path":null,"args":null,"limit":null,"offset":null,"filter_server":null,"filter":null,"operations":null}"#,
        r#"{"action":"list","type":"tool","args":"","filter":{"prefix":"","tags":[]}}"#,
        r#" {"action":"bad","\u0061ction":"list","type":"tool"} "#,
    ] {
        assert_eq!(list(nothing), tools, "{nothing}");
    }
    for limit in ["2", "\"2\"", "2.0", "\" 2 \"", "\"2.0\"", "2e0"] {
        let text = format!(r#"{{"action":"list","type":"prompt","limit":{limit},"offset":"7"}}"#);
        let found = list(&text);
        assert_eq!((found.limit, found.offset), (2, 7), "{limit}");
    }
    let everything = r#"{"action":"list","type":"resource","limit":1000,"offset":99999999999999999999,
        "filter_server":"calc_","filter":{"prefix":"config:","tags":["math","b"]}}"#;
    assert_eq!(
        list(everything),
        ListQuery {
            kind: CapabilityType::Resource,
            limit: 1000,
            offset: i64::MAX.unsigned_abs(),
            filter_server: Some("calc_".to_owned()),
            filter: ListFilter {
                prefix: Some("config:".to_owned()),
                tags: vec!["math".to_owned(), "b".to_owned()],
            },
            detail: ListDetail::Full,
        }
    );
}

#[test]
fn the_default_limit_is_an_option_within_its_range() {
    for (default_limit, expected) in [(0, 1), (7, 7), (5000, 1000)] {
        let options = ProxyToolOptions {
            default_limit,
            ..ProxyToolOptions::default()
        };
        let arguments = Bytes::from_static(br#"{"action":"list","type":"tool"}"#);
        let Ok(ProxyOperation::List(query)) = parse_arguments(Some(&arguments), &options, &[])
        else {
            panic!("not a list");
        };
        assert_eq!(query.limit, expected);
    }
}

/// A call of each action with what it needs.
const CALLS: [(ProxyAction, &str); 5] = [
    (ProxyAction::Search, r#""query":"x""#),
    (ProxyAction::List, r#""type":"tool""#),
    (ProxyAction::Info, r#""type":"tool","path":"x""#),
    (ProxyAction::Call, r#""type":"tool","path":"x""#),
    (
        ProxyAction::Batch,
        r#""operations":[{"action":"list","type":"prompt"}]"#,
    ),
];

/// Parameters that `proxy-read` has from another tool.
const OF_ANOTHER_TOOL: [&str; 6] = [
    "resultFile",
    "op",
    "lines",
    "fromLine",
    "context",
    "pattern",
];

#[test]
fn g8_what_says_no_more_than_a_default_is_accepted_for_every_action() {
    let own = ProxyParameter::texts();
    for (action, needed) in CALLS {
        let plain = format!(r#"{{"action":"{action}",{needed}}}"#);
        for name in own.iter().copied().chain(OF_ANOTHER_TOOL) {
            if needed.contains(&format!(r#""{name}":"#)) || name == "action" {
                continue;
            }
            let taken = ProxyParameter::all().iter().any(|parameter| {
                parameter.as_str() == name && parameter.actions().contains(&action)
            });
            let empty = ["\"\"", "{}", "\"{}\"", "[]"].map(str::to_owned);
            let defaults = defaults_of(name)
                .iter()
                .map(|default| match default.parse::<i64>() {
                    Ok(number) => number.to_string(),
                    Err(_) => format!("\"{default}\""),
                });
            let values = std::iter::once("null".to_owned()).chain(defaults);
            for value in values.chain(empty.into_iter().filter(|_| !taken)) {
                let filled = format!(r#"{{"action":"{action}",{needed},"{name}":{value}}}"#);
                match taken && value != "null" {
                    true => assert!(parse(&filled).is_ok(), "{filled}"),
                    false => assert_eq!(parse(&filled), parse(&plain), "{filled}"),
                }
            }
        }
    }
}

#[test]
fn g8_what_says_more_than_a_default_is_refused() {
    for other in [
        r#""limit":99"#,
        r#""offset":1"#,
        r#""filter_server":"a""#,
        r#""detail":"brief""#,
        r#""args":{"a":1}"#,
    ] {
        let arguments = format!(r#"{{"action":"info","type":"tool","path":"x",{other}}}"#);
        let error = parse(&arguments).unwrap_err();
        assert_eq!(error.code(), "parameter-not-allowed", "{other}");
    }
}

#[test]
fn g8_a_configured_limit_is_a_default_too() {
    let options = ProxyToolOptions {
        default_limit: 42,
        ..ProxyToolOptions::default()
    };
    let arguments = r#"{"action":"info","type":"tool","path":"x","limit":42}"#;
    assert!(parse_arguments(Some(&arguments.into()), &options, &[]).is_ok());
    assert!(parse(arguments).is_err());
}

#[test]
fn g8_the_schema_has_no_default() {
    let definition = definition(&ProxyToolOptions::default(), "");
    let schema: serde_json::Value = serde_json::from_slice(&definition).unwrap();
    assert!(!schema.to_string().contains(r#""default":"#));
}

#[test]
fn infos_and_calls() {
    let info = ProxyOperation::Info {
        kind: CapabilityType::Resource,
        path: "config://a/b".to_owned(),
    };
    assert_eq!(
        parse(r#"{"action":"info","type":"resource","path":"config:\/\/a/b","args":{}}"#),
        Ok(info)
    );
    let tool = |args: &str| {
        parse(&format!(
            r#"{{"action":"call","type":"tool","path":"calc_add","args":{args}}}"#
        ))
    };
    let expected = |args| Ok(call(CapabilityType::Tool, "calc_add", args));
    assert_eq!(tool("null"), expected(None));
    assert_eq!(tool(r#""""#), expected(None));
    assert_eq!(tool("{}"), expected(Some("{}")));
    // The bytes are the client's, except for line breaks.
    let large = r#"{ "a": 12345678901234567890123, "b" :1.50}"#;
    assert_eq!(tool(large), expected(Some(large)));
    assert_eq!(
        tool("{ \"a\": 1,\n \"b\": \" \" }"),
        expected(Some(r#"{"a":1,"b":" "}"#))
    );
    assert_eq!(
        tool(r#""{\"a\": 5,\n\"b\": \"\\n\"}""#),
        expected(Some(r#"{"a":5,"b":"\n"}"#))
    );
}

#[test]
fn resources_take_no_arguments_and_prompts_take_strings() {
    assert_eq!(
        parse(r#"{"action":"call","type":"resource","path":"notes://x","args":{"x":1}}"#),
        Ok(call(CapabilityType::Resource, "notes://x", None))
    );
    let prompt = r#"{"action":"call","type":"prompt","path":"greet",
        "args":{"name":"Ann \u00e9","times":2.50,"who":{"a": ["b"]},"mood":null,"loud":true}}"#;
    let strings = r#"{"name":"Ann \u00e9","times":"2.50","who":"{\"a\":[\"b\"]}","loud":"true"}"#;
    assert_eq!(
        parse(prompt),
        Ok(call(CapabilityType::Prompt, "greet", Some(strings)))
    );
}

#[test]
fn a_batch_keeps_its_order_and_its_mistakes() {
    let batch = parse(
        r#"{"action":"batch","operations":[
            {"action":"call","type":"tool","path":"one","args":{}},
            {"action":"call","type":"tool"},
            {"action":"batch","operations":[]},
            {"action":"readresult","resultFile":"spill:x"},
            7,
            {"action":"list","type":"prompt"}]}"#,
    );
    let Ok(ProxyOperation::Batch(operations)) = batch else {
        panic!("{batch:?}");
    };
    let codes: Vec<_> = operations
        .iter()
        .map(|operation| operation.as_ref().err().map(ProxyToolError::code))
        .collect();
    assert_eq!(
        codes,
        [
            None,
            Some("missing-parameter"),
            Some("nested-batch"),
            Some("not-in-batch"),
            Some("invalid-value"),
            None
        ]
    );
    let error = operations[4].as_ref().unwrap_err();
    assert_eq!(error.parameter(), Some("operations"));
    assert!(error.to_string().contains("operations[4]"));
    let most = vec![r#"{"action":"list","type":"tool"}"#; MAX_OPERATIONS];
    let batch = |operations: &[&str]| {
        parse(&format!(
            r#"{{"action":"batch","operations":[{}]}}"#,
            operations.join(",")
        ))
    };
    assert!(batch(&most).is_ok());
    let one_more = [&most[..], &most[..1]].concat();
    assert_eq!(batch(&one_more).unwrap_err().code(), "invalid-value");
}

/// Each with the code that its error has.
const WRONG: &[(&str, &[&str])] = &[
    (
        "invalid-arguments",
        &["", "[]", "7", "\"list\"", "{\"action\":", "null"],
    ),
    (
        "missing-parameter",
        &[
            "{}",
            r#"{"type":"tool"}"#,
            r#"{"action":null,"type":"tool"}"#,
            r#"{"action":"list"}"#,
            r#"{"action":"info","type":"tool"}"#,
            r#"{"action":"info","type":"tool","path":""}"#,
            r#"{"action":"call","type":"prompt"}"#,
            r#"{"action":"call","type":"tool","limit":5}"#,
            r#"{"action":"batch"}"#,
        ],
    ),
    (
        "unknown-parameter",
        &[
            r#"{"action":"list","type":"tool","foo":1}"#,
            r#"{"action":"list","type":"tool","ofset":1}"#,
            r#"{"action":"list","type":"tool","filterServer":"x"}"#,
            r#"{"action":"call","type":"tool","path":"x","arguments":{"a":1}}"#,
            r#"{"action":"call","type":"tool","name":"x"}"#,
            r#"{"action":"list","a_type":"tool"}"#,
            "{\"action\":\"list\",\"line\\nbreak\":1}",
            r#"{"action":"list","":1}"#,
        ],
    ),
    (
        "invalid-value",
        &[
            r#"{"action":"delete","type":"tool"}"#,
            r#"{"action":"lst","type":"tool"}"#,
            r#"{"action":"Call","type":"tool"}"#,
            r#"{"action":"read","type":"resource"}"#,
            r#"{"action":7,"type":"tool"}"#,
            r#"{"action":"list","type":"widget"}"#,
            r#"{"action":"list","type":"tools"}"#,
            r#"{"action":"list","type":"template"}"#,
            r#"{"action":"list","type":["tool"]}"#,
            r#"{"action":"info","type":"tool","path":7}"#,
            r#"{"action":"list","type":"tool","limit":0}"#,
            r#"{"action":"list","type":"tool","limit":1001}"#,
            r#"{"action":"list","type":"tool","limit":1.5}"#,
            r#"{"action":"list","type":"tool","limit":true}"#,
            r#"{"action":"list","type":"tool","limit":"many"}"#,
            r#"{"action":"list","type":"tool","limit":"NaN"}"#,
            r#"{"action":"list","type":"tool","limit":""}"#,
            r#"{"action":"list","type":"tool","offset":-1}"#,
            r#"{"action":"list","type":"tool","offset":"-1"}"#,
            r#"{"action":"list","type":"tool","offset":[0]}"#,
            r#"{"action":"list","type":"tool","filter_server":{}}"#,
            r#"{"action":"list","type":"tool","filter":"x"}"#,
            r#"{"action":"list","type":"tool","filter":{"prefix":1}}"#,
            r#"{"action":"list","type":"tool","filter":{"tags":"math"}}"#,
            r#"{"action":"list","type":"tool","filter":{"tags":[1]}}"#,
            r#"{"action":"list","type":"tool","filter":{"name":"x"}}"#,
            r#"{"action":"call","type":"tool","path":"x","args":[1,2]}"#,
            r#"{"action":"call","type":"tool","path":"x","args":7}"#,
            r#"{"action":"call","type":"tool","path":"x","args":"{not json"}"#,
            r#"{"action":"call","type":"tool","path":"x","args":"[1,2]"}"#,
            r#"{"action":"call","type":"resource","path":"x","args":[]}"#,
            r#"{"action":"batch","operations":[]}"#,
            r#"{"action":"batch","operations":{"action":"list"}}"#,
        ],
    ),
    (
        "parameter-not-allowed",
        &[
            r#"{"action":"list","type":"tool","path":"x"}"#,
            r#"{"action":"list","type":"tool","args":{"a":1}}"#,
            r#"{"action":"list","type":"tool","args":{"a":1},"path":"x"}"#,
            r#"{"action":"info","type":"tool","path":"x","args":{"a":1}}"#,
            r#"{"action":"call","type":"tool","path":"x","limit":5}"#,
            r#"{"action":"call","type":"tool","path":"x","filter_server":"calc"}"#,
            r#"{"action":"batch","type":"prompt","operations":[{}]}"#,
            r#"{"action":"batch","path":"x","operations":[{}]}"#,
            r#"{"action":"batch","args":{"a":1},"operations":[{}]}"#,
            r#"{"action":"batch","limit":1,"operations":[{}]}"#,
        ],
    ),
];

#[test]
fn every_mistake_has_its_text() {
    let mut texts = String::new();
    for (code, calls) in WRONG {
        texts.push_str(&format!("{code}\n"));
        for call in *calls {
            let error = parse(call).expect_err(call);
            assert_eq!(error.code(), *code, "{call}: {error}");
            texts.push_str(&format!("  {call}\n    {error}\n"));
        }
    }
    insta::assert_snapshot!("proxy_tool_argument_errors", texts);
}

#[test]
fn no_arguments_are_an_empty_object() {
    let error = parse_arguments(None, &ProxyToolOptions::default(), &[]).unwrap_err();
    assert_eq!(ProxyToolError::from(error), parse("{}").unwrap_err());
}

#[test]
fn errors_are_tool_results_with_a_code() {
    let path = || "no_such_thing".to_owned();
    let kind = CapabilityType::Tool;
    let errors = [
        parse(r#"{"action":"call","type":"tool"}"#).unwrap_err(),
        ProxyToolError::NotFound {
            kind,
            path: path(),
            near: Vec::new(),
        },
        ProxyToolError::NotFound {
            kind: CapabilityType::Resource,
            path: format!("a\n{}", "long".repeat(100)),
            near: vec!["a://b".to_owned(), "a://c".to_owned(), "a://d".to_owned()],
        },
        ProxyToolError::Ambiguous {
            kind: CapabilityType::Prompt,
            path: path(),
            candidates: vec!["a_x".to_owned(), "b_x".to_owned()],
        },
        ProxyToolError::UnfilledTemplate {
            path: "user://calc/{name}".to_owned(),
        },
        ProxyToolError::ServerUnavailable {
            server: "calc".to_owned(),
            reason: "it did not start".to_owned(),
        },
        ProxyToolError::ServerError {
            code: -32602,
            message: "the \"server's\" text".to_owned(),
        },
        parse(r#"{"action":"lst"}"#).unwrap_err(),
    ];
    let results = errors.iter().map(render_error);
    let lines: Vec<_> = results
        .inspect(|result| assert_eq!(value(result)["isError"], true))
        .map(|result| String::from_utf8(result.to_vec()).unwrap())
        .collect();
    insta::assert_snapshot!("proxy_tool_error_results", lines.join("\n"));
}

#[test]
fn a_long_value_says_something_without_being_read() {
    let long = format!("[{}]", vec!["null"; 300].join(","));
    assert!(!says_nothing("x", &long.into(), 100));
    assert!(!says_nothing("x", &" ".repeat(2000).into(), 100));
}
