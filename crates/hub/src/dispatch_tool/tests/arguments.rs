//! What calls ask for, and every mistake in them.

use mcp_proxy_spill::{ReadLimit, ReadRequest};

use super::*;
use crate::proxy_tool::defaults_of;

fn list(arguments: &str) -> DispatchListQuery {
    match parse(arguments) {
        Ok(DispatchOperation::List(query)) => query,
        other => panic!("{arguments}: {other:?}"),
    }
}

fn search(arguments: &str) -> DispatchSearchQuery {
    match parse(arguments) {
        Ok(DispatchOperation::Search(query)) => query,
        other => panic!("{arguments}: {other:?}"),
    }
}

fn call(arguments: &str) -> DispatchCall {
    match parse(arguments) {
        Ok(DispatchOperation::Call(call)) => call,
        other => panic!("{arguments}: {other:?}"),
    }
}

fn read(arguments: &str) -> (String, ReadRequest) {
    match parse(arguments) {
        Ok(DispatchOperation::ReadResult { file, request, .. }) => (file, request),
        other => panic!("{arguments}: {other:?}"),
    }
}

#[test]
fn lists_and_status() {
    let plain = DispatchListQuery {
        connection: None,
        include_tools: true,
        include_input_schema: false,
        include_annotations: AnnotationUse::Notable,
        format: DispatchFormat::Text,
        limit: 100,
        offset: 0,
    };
    for nothing in [
        r#"{"action":"list"}"#,
        r#"{"action":"list","connection":"","format":"","query":"","tool":"","arguments":{},"limit":null}"#,
        r#" {"action":"bad","\u0061ction":"list"} "#,
    ] {
        assert_eq!(list(nothing), plain, "{nothing}");
    }
    let detail = DispatchListQuery {
        connection: Some("c1".to_owned()),
        include_tools: false,
        include_input_schema: true,
        include_annotations: AnnotationUse::All,
        format: DispatchFormat::Detail,
        limit: 100,
        offset: 0,
    };
    let arguments = r#"{"action":"list","connection":"c1","format":"detail","includeTools":"False","includeInputSchema":true}"#;
    assert_eq!(list(arguments), detail);
    let arguments = r#"{"action":"list","includeAnnotations":true}"#;
    assert_eq!(list(arguments).include_annotations, AnnotationUse::All);
    let status = parse(r#"{"action":"status","connection":"calc"}"#).unwrap();
    assert_eq!(status.action(), DispatchAction::Status);
    assert_eq!(status.connection(), Some("calc"));
}

#[test]
fn refresh_stands_beside_any_action() {
    for rest in [
        r#""action":"status""#,
        r#""action":"list""#,
        r#""action":"search","query":"x""#,
        r#""action":"call","tool":"x""#,
        r#""action":"readresult","resultFile":"x""#,
    ] {
        for (value, expected) in [
            ("true", Refresh::Yes),
            ("\"true\"", Refresh::Yes),
            ("false", Refresh::No),
            ("null", Refresh::No),
        ] {
            let arguments = Bytes::from(format!(r#"{{{rest},"refresh":{value}}}"#));
            let parsed = parse_with(&arguments, &DispatchToolOptions::default());
            assert_eq!(parsed.unwrap().1, expected, "{arguments:?}");
        }
    }
}

#[test]
fn searches() {
    let plain = search(r#"{"action":"search","query":"TWO numbers"}"#);
    assert_eq!(plain.query, "TWO numbers");
    assert_eq!((plain.kind, plain.limit), (CapabilityType::Tool, 10));
    let query = search(
        r#"{"action":"search","query":"x","type":"prompt","connection":"c2","limit":"7","format":"detail","includeInputSchema":"true","includeAnnotations":false}"#,
    );
    assert_eq!((query.kind, query.limit), (CapabilityType::Prompt, 7));
    assert_eq!(query.connection.as_deref(), Some("c2"));
    assert_eq!(query.format, DispatchFormat::Detail);
    assert!(query.include_input_schema);
    assert_eq!(query.include_annotations, AnnotationUse::None);
    for large in ["101", "99999999999999999999"] {
        let query = search(&format!(
            r#"{{"action":"search","query":"x","limit":{large}}}"#
        ));
        assert_eq!(query.limit, MAX_SEARCH_LIMIT);
    }
}

#[test]
fn the_default_limit_is_an_option_within_its_range() {
    for (default_search_limit, expected) in [(0, 1), (7, 7), (5000, 100)] {
        let options = DispatchToolOptions {
            default_search_limit,
            ..DispatchToolOptions::default()
        };
        let arguments = Bytes::from_static(br#"{"action":"search","query":"x"}"#);
        let Ok((DispatchOperation::Search(query), _)) = parse_with(&arguments, &options) else {
            panic!("not a search");
        };
        assert_eq!(query.limit, expected);
    }
}

#[test]
fn calls() {
    let plain = call(r#"{"action":"call","tool":"add"}"#);
    let expected = DispatchCall {
        tool: "add".to_owned(),
        connection: None,
        arguments: DispatchArguments::None,
        meta: None,
        spill: DispatchSpill::Configured,
    };
    assert_eq!(plain, expected);
    let inline = |arguments: &str| {
        let arguments = format!(
            r#"{{"action":"call","tool":"add","connection":"c1","arguments":{arguments}}}"#
        );
        call(&arguments).arguments
    };
    // The bytes are the client's, except for line breaks.
    let exact = r#"{ "a": 12345678901234567890123, "b" :1.50}"#;
    assert_eq!(inline(exact), DispatchArguments::Inline(exact.into()));
    assert_eq!(
        inline("{ \"a\": 1,\n \"b\": \" \" }"),
        DispatchArguments::Inline(r#"{"a":1,"b":" "}"#.into())
    );
    assert_eq!(
        inline(r#""{\"a\":1}""#),
        DispatchArguments::Inline(r#"{"a":1}"#.into())
    );
    assert_eq!(inline(r#""""#), DispatchArguments::None);
    let file = call(
        r#"{"action":"call","tool":"add","argumentsFile":"spill:X.json","meta":{"k":1},"arguments":null}"#,
    );
    assert_eq!(
        file.arguments,
        DispatchArguments::File("spill:X.json".to_owned())
    );
    assert_eq!(file.meta, Some(r#"{"k":1}"#.into()));
}

#[test]
fn no_arguments_next_to_a_file_are_not_a_contradiction() {
    for empty in ["{}", "{ }", "\"{}\"", "\"\"", "null"] {
        let arguments =
            format!(r#"{{"action":"call","tool":"add","arguments":{empty},"argumentsFile":"f"}}"#);
        let file = DispatchArguments::File("f".to_owned());
        assert_eq!(call(&arguments).arguments, file, "{empty}");
    }
}

/// A call of each action and operation with what it needs.
fn complete_calls() -> Vec<(DispatchAction, ReadResultOperation, String)> {
    let others = [
        (DispatchAction::Status, ""),
        (DispatchAction::List, ""),
        (DispatchAction::Search, r#","query":"x""#),
        (DispatchAction::Call, r#","tool":"x""#),
    ];
    let stat = ReadResultOperation::Stat;
    let others = others
        .into_iter()
        .map(|(action, needed)| (action, stat, format!(r#""action":"{action}"{needed}"#)));
    let reads = ReadResultOperation::all().iter().map(|&operation| {
        let needed = match operation {
            ReadResultOperation::Grep => r#","pattern":"x""#,
            ReadResultOperation::Jq => r#","filter":".""#,
            _ => "",
        };
        let action = DispatchAction::ReadResult;
        let rest = format!(r#""action":"{action}","resultFile":"f","op":"{operation}"{needed}"#);
        (action, operation, rest)
    });
    others.chain(reads).collect()
}

#[test]
fn g8_what_says_no_more_than_a_default_is_accepted_for_every_action() {
    for (action, operation, rest) in complete_calls() {
        let plain = format!("{{{rest}}}");
        let own = DispatchParameter::texts();
        // `proxy-read` has these too.
        let is_read = action == DispatchAction::ReadResult;
        let others = ["detail", "filter_server", "path", "args", "operations"];
        let others = others.into_iter().filter(|_| is_read);
        for name in own.iter().copied().chain(others) {
            if rest.contains(&format!(r#""{name}":"#)) {
                continue;
            }
            let known = DispatchParameter::named(name);
            let taken = known.is_some_and(|known| {
                known.actions().contains(&action)
                    && (!is_read || known.operations().contains(&operation))
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
                let filled = format!(r#"{{{rest},"{name}":{value}}}"#);
                match taken && value != "null" || is_read && name == "arguments" {
                    // An array there is not what nested parameters look like.
                    true => assert!(parse(&filled).is_ok() || value == "[]", "{filled}"),
                    false => assert_eq!(parse(&filled), parse(&plain), "{filled}"),
                }
            }
        }
    }
}

#[test]
fn g8_all_defaults_at_once_are_a_plain_call() {
    let filled = r#"{"action":"call","tool":"x","lines":50,"context":0,"op":"stat","limit":10,"type":"tool","format":"text","fromLine":1,"offset":0}"#;
    assert_eq!(parse(filled), parse(r#"{"action":"call","tool":"x"}"#));
    let options = DispatchToolOptions {
        default_search_limit: 7,
        ..DispatchToolOptions::default()
    };
    let configured = Bytes::from_static(br#"{"action":"call","tool":"x","limit":7}"#);
    assert!(parse_with(&configured, &options).is_ok());
}

#[test]
fn other_values_that_change_nothing_are_accepted() {
    for arguments in [
        r#"{"action":"readresult","resultFile":"f","connection":"c1","lines":20}"#,
        r#"{"action":"readresult","resultFile":"f","op":"head","context":3,"fromLine":1,"pattern":""}"#,
    ] {
        assert!(parse(arguments).is_ok(), "{arguments}");
    }
}

#[test]
fn a_call_says_when_its_result_is_stored() {
    for (rest, expected) in [
        (r#""resultToFile":true"#, DispatchSpill::Always),
        (
            r#""resultToFile":"true","resultSizeThreshold":0"#,
            DispatchSpill::Always,
        ),
        (r#""resultToFile":false"#, DispatchSpill::Configured),
        (r#""resultSizeThreshold":0"#, DispatchSpill::Never),
        (
            r#""resultSizeThreshold":"51200""#,
            DispatchSpill::Above(51200),
        ),
        (
            r#""resultToFile":false,"resultSizeThreshold":10"#,
            DispatchSpill::Above(10),
        ),
    ] {
        let arguments = format!(r#"{{"action":"call","tool":"x",{rest}}}"#);
        assert_eq!(call(&arguments).spill, expected, "{rest}");
    }
}

#[test]
fn parts_of_results() {
    let of = |rest: &str| {
        let (file, request) = read(&format!(
            r#"{{"action":"readresult","resultFile":"f"{rest}}}"#
        ));
        assert_eq!(file, "f");
        request
    };
    assert_eq!(of(""), ReadRequest::Stat);
    assert_eq!(of(r#","op":"""#), ReadRequest::Stat);
    assert_eq!(of(r#","op":"head""#), ReadRequest::Head { lines: 50 });
    let tail = ReadRequest::Tail { lines: 3 };
    assert_eq!(of(r#","op":"tail","lines":"3""#), tail);
    let slice = |from_line, to_line| ReadRequest::Slice {
        from_line,
        to_line,
        from_column: None,
    };
    assert_eq!(of(r#","op":"slice""#), slice(None, None));
    assert_eq!(
        of(r#","op":"slice","fromLine":2,"toLine":2"#),
        slice(Some(2), Some(2))
    );
    assert_eq!(
        of(r#","op":"slice","start":2,"end":9"#),
        slice(Some(2), Some(9))
    );
    assert_eq!(
        of(r#","op":"slice","start":1,"fromLine":5"#),
        slice(Some(5), None)
    );
    let grep = ReadRequest::Grep {
        pattern: "((".to_owned(),
        context: 2,
    };
    assert_eq!(of(r#","op":"grep","pattern":"((","context":2"#), grep);
    for (rest, expected) in [
        ("", None),
        (r#","maxBytes":0"#, Some(ReadLimit::MOST)),
        (r#","maxBytes":5"#, Some(ReadLimit::bytes(5))),
    ] {
        for op in ["read", "head", "tail", "slice", "stat"] {
            let arguments =
                format!(r#"{{"action":"readresult","resultFile":"f","op":"{op}"{rest}}}"#);
            let Ok(DispatchOperation::ReadResult { limit, .. }) = parse(&arguments) else {
                panic!("{arguments}");
            };
            assert_eq!(limit, expected, "{arguments}");
        }
    }
    let filter = ".a".to_owned();
    assert_eq!(
        of(r#","op":"jq","filter":".a""#),
        ReadRequest::Jq { filter }
    );
}

#[test]
fn nested_parameters_of_readresult_are_flattened() {
    let nested =
        r#"{"action":"readresult","arguments":{"resultFile":"f","op":"slice","start":1,"end":2}}"#;
    let slice = ReadRequest::Slice {
        from_line: Some(1),
        to_line: Some(2),
        from_column: None,
    };
    assert_eq!(read(nested), ("f".to_owned(), slice));
    let outside_counts = r#"{"action":"readresult","resultFile":"f","op":"tail","lines":1,"arguments":"{\"lines\":9,\"op\":\"head\",\"action\":\"x\"}"}"#;
    let tail = ReadRequest::Tail { lines: 1 };
    assert_eq!(read(outside_counts), ("f".to_owned(), tail));
}

/// Each with the code that its error has.
const WRONG: &[(&str, &[&str])] = &[
    (
        "invalid-arguments",
        &["", "[]", "7", "\"list\"", "{\"action\":", "null"],
    ),
    (
        "unsupported-action",
        &[
            r#"{"action":"frobnicate"}"#,
            r#"{"action":"bash"}"#,
            r#"{"action":"Call"}"#,
            r#"{"action":"read_result"}"#,
            r#"{"action":"serach"}"#,
        ],
    ),
    (
        "missing-parameter",
        &[
            "{}",
            r#"{"action":null}"#,
            r#"{"action":""}"#,
            r#"{"tool":"add","arguments":{}}"#,
            r#"{"query":"x"}"#,
            r#"{"resultFile":"x"}"#,
            r#"{"action":"search"}"#,
            r#"{"action":"search","query":" "}"#,
            r#"{"action":"call"}"#,
            r#"{"action":"call","tool":""}"#,
            r#"{"action":"call","name":"add","arguments":{}}"#,
            r#"{"action":"readresult"}"#,
            r#"{"action":"readresult","resultFile":"","op":"head"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"grep"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"jq"}"#,
        ],
    ),
    (
        "unknown-parameter",
        &[
            r#"{"action":"list","server":"c1"}"#,
            r#"{"action":"list","colour":"red"}"#,
            r#"{"action":"status","colour":"red"}"#,
            r#"{"action":"search","q":"x"}"#,
            r#"{"action":"search","query":"x","Limit":1}"#,
            r#"{"action":"readresult","result_file":"f"}"#,
            r#"{"action":"readresult","resultFile":"f","regex":"x"}"#,
            r#"{"action":"readresult","resultFile":"f","arguments":{"position":1}}"#,
            r#"{"action":"list","start":1}"#,
            "{\"action\":\"list\",\"line\\nbreak\":1}",
        ],
    ),
    (
        "parameter-not-allowed",
        &[
            r#"{"action":"list","query":"x"}"#,
            r#"{"action":"search","query":"x","offset":5}"#,
            r#"{"action":"list","resultToFile":true}"#,
            r#"{"action":"list","arguments":{"a":1}}"#,
            r#"{"action":"status","format":"detail"}"#,
            r#"{"action":"search","query":"x","includeTools":false}"#,
            r#"{"action":"search","query":"x","tool":"y"}"#,
            r#"{"action":"readresult","resultFile":"f","arguments":{"tool":"y"}}"#,
            r#"{"action":"readresult","resultFile":"f","op":"slice","lines":5}"#,
            r#"{"action":"readresult","resultFile":"f","pattern":"x"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"head","pattern":"x"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"grep","pattern":"x","fromLine":2}"#,
            r#"{"action":"readresult","resultFile":"f","op":"head","fromColumn":9}"#,
            r#"{"action":"readresult","resultFile":"f","op":"read","filter":"."}"#,
        ],
    ),
    (
        "invalid-value",
        &[
            r#"{"action":7}"#,
            r#"{"action":"list","connection":1}"#,
            r#"{"action":"list","format":"full"}"#,
            r#"{"action":"list","includeTools":"yes"}"#,
            r#"{"action":"list","includeInputSchema":1}"#,
            r#"{"action":"list","includeAnnotations":{}}"#,
            r#"{"action":"list","refresh":"now"}"#,
            r#"{"action":"search","query":["x"]}"#,
            r#"{"action":"search","query":"x","limit":0}"#,
            r#"{"action":"search","query":"x","limit":1.5}"#,
            r#"{"action":"search","query":"x","limit":"many"}"#,
            r#"{"action":"search","query":"x","type":"tools"}"#,
            r#"{"action":"search","query":"x","type":"widget"}"#,
            r#"{"action":"call","tool":7}"#,
            r#"{"action":"call","tool":"x","arguments":[1]}"#,
            r#"{"action":"call","tool":"x","arguments":"[1]"}"#,
            r#"{"action":"call","tool":"x","argumentsFile":{}}"#,
            r#"{"action":"call","tool":"x","meta":"no"}"#,
            r#"{"action":"call","tool":"x","resultToFile":1}"#,
            r#"{"action":"call","tool":"x","resultSizeThreshold":-1}"#,
            r#"{"action":"readresult","resultFile":7}"#,
            r#"{"action":"readresult","resultFile":"f","op":"bogus"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"GREP","pattern":"x"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"head","lines":0}"#,
            r#"{"action":"readresult","resultFile":"f","op":"slice","fromLine":0}"#,
            r#"{"action":"readresult","resultFile":"f","op":"slice","fromLine":5,"toLine":4}"#,
            r#"{"action":"readresult","resultFile":"f","op":"grep","pattern":1}"#,
            r#"{"action":"readresult","resultFile":"f","op":"grep","pattern":"x","context":-1}"#,
            r#"{"action":"readresult","resultFile":"f","op":"read","maxBytes":"all"}"#,
            r#"{"action":"readresult","resultFile":"f","op":"jq","filter":{}}"#,
            r#"{"action":"readresult","resultFile":"f","arguments":7}"#,
        ],
    ),
    (
        "arguments-twice",
        &[
            r#"{"action":"call","tool":"x","arguments":{"a":1},"argumentsFile":"f"}"#,
            r#"{"action":"call","tool":"x","arguments":{"a":null},"argumentsFile":"f"}"#,
        ],
    ),
    (
        "inputs-outside-arguments",
        &[
            r#"{"action":"call","tool":"add","connection":"c1","a":1,"b":2}"#,
            r#"{"action":"call","tool":"find","query":"x","limit":3}"#,
            r#"{"action":"call","tool":"add","args":{"a":1}}"#,
            r#"{"action":"call","tool":"add","a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11}"#,
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
    insta::assert_snapshot!("dispatch_tool_argument_errors", texts);
}

#[test]
fn no_arguments_are_an_empty_object() {
    let error =
        parse_arguments(&Message::parse("{}"), None, &DispatchToolOptions::default()).unwrap_err();
    assert_eq!(DispatchToolError::from(error), parse("{}").unwrap_err());
}
