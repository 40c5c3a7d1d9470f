//! jq programs, run as changes of a message's params: what they mean, and that all of them end.

use mcp_proxy_session::{Change, ChangeError, ChangePart, JqError};
use mcp_proxy_wire::Message;

fn with_params(params: &str) -> Message {
    Message::parse(format!(r#"{{"id":1,"method":"m","params":{params}}}"#))
}

/// What a program makes of a value.
fn run(program: &str, value: &str) -> Result<String, ChangeError> {
    let program = Change::parse(program).unwrap();
    let changed = program.apply(&with_params(value), ChangePart::Params)?;
    let params = changed.slice(changed.params().unwrap());
    Ok(String::from_utf8(params.to_vec()).unwrap())
}

#[test]
fn assignments_mean_what_they_mean_in_jq() {
    let run = |text: &str| run(text, r#"{"a":[1,2,3],"b":null}"#).unwrap();
    for (text, result) in [
        (".a[] += 1", r#"{"a":[2,3,4],"b":null}"#),
        (".a[0] = .b", r#"{"a":[null,2,3],"b":null}"#),
        (".a |= map(. * 2)", r#"{"a":[2,4,6],"b":null}"#),
        (".b //= 5", r#"{"a":[1,2,3],"b":5}"#),
        (".a[1] *= 10", r#"{"a":[1,20,3],"b":null}"#),
        (
            ".a[1] -= 1 | .a[2] /= 2 | .a[0] %= 1",
            r#"{"a":[0,1,1.5],"b":null}"#,
        ),
        ("del(.a[1])", r#"{"a":[1,3],"b":null}"#),
        (
            ".a |= (.[0] = (.[1] = 7 | .[1]))",
            r#"{"a":[7,2,3],"b":null}"#,
        ),
        ("[paths] | length", "5"),
        ("[path(..)] | length", "6"),
        (".a | walk(if isnumber then . + 1 else . end)", "[2,3,4]"),
        ("first(.a[] | select(. > 1))", "2"),
        ("[.a[] as $x | .a[] | . * $x] | add", "36"),
        ("\"a,b\" | split(\",\") | join(\"-\")", "\"a-b\""),
        ("\"aXbX\" | gsub(\"X\"; \"-\")", "\"a-b-\""),
        (
            "\"ab12\" | capture(\"(?<l>[a-z]+)(?<d>[0-9]+)\") | .d + .l",
            "\"12ab\"",
        ),
        ("\"x\" | @base64 | @base64d", "\"x\""),
        ("\"{\\\"a\\\":1}\" | fromjson | .a", "1"),
        ("[range(0; 10; 3)]", "[0,3,6,9]"),
        ("[range(3; 0; -1)]", "[3,2,1]"),
        ("[limit(2; .a[])]", "[1,2]"),
        (
            "with_entries(.value |= type)",
            r#"{"a":"array","b":"null"}"#,
        ),
        ("try error(\"x\") catch .", "\"x\""),
        ("[.a[] | if . == 2 then empty else . end]", "[1,3]"),
        ("reduce .a[] as $x (0; . + $x)", "6"),
        ("[foreach .a[] as $x (0; . + $x)]", "[1,3,6]"),
        (
            "label $out | .a[] | if . == 2 then ., break $out else empty end",
            "2",
        ),
    ] {
        assert_eq!(run(text), result, "{text}");
    }
}

#[test]
fn texts_have_the_form_that_other_programs_want() {
    let value = r#"{"row":["a \"b\"",1.5,true,null],"text":"a b/ü&<'>","tabs":["x\ty","\\"]}"#;
    for (text, result) in [
        (".row | @csv", r#""\"a \"\"b\"\"\",1.5,true,""#),
        (".tabs | @tsv", r#""x\\ty\t\\\\""#),
        (".text | @uri", r#""a%20b%2F%C3%BC%26%3C%27%3E""#),
        (".text | @uri | @urid", r#""a b/ü&<'>""#),
        (".text | @html", r#""a b/ü&amp;&lt;&#39;&gt;""#),
        (".text | @sh", r#""'a b/ü&<'\\''>'""#),
        (r#"@uri "q=\(.text)""#, r#""q=a%20b%2F%C3%BC%26%3C%27%3E""#),
        (
            "[[{}]] | try @csv catch .",
            r#""array is not valid in a row of CSV""#,
        ),
    ] {
        assert_eq!(run(text, value).unwrap(), result, "{text}");
    }
}

#[test]
fn dates_are_computed_with_in_utc() {
    for (text, result) in [
        ("1425599621 | todate", r#""2015-03-05T23:53:41Z""#),
        ("\"2015-03-05T23:53:41Z\" | fromdate", "1425599621"),
        ("1425599621 | gmtime", "[2015,2,5,23,53,41,4,63]"),
        ("1425599621 | gmtime | mktime", "1425599621"),
        (
            "1425599621 | strftime(\"%A, %B %d, %Y\")",
            r#""Thursday, March 05, 2015""#,
        ),
        (
            "\"2015-03-05T23:51:47Z\" | strptime(\"%Y-%m-%dT%H:%M:%SZ\") | mktime",
            "1425599507",
        ),
        ("1425599621 | gmtime | todate? // \"none\"", r#""none""#),
        ("1e300 | try todate catch \"none\"", r#""none""#),
        ("[1e300,1,1,1,1,1] | try mktime catch \"none\"", r#""none""#),
    ] {
        assert_eq!(run(text, "{}").unwrap(), result, "{text}");
    }
}

#[test]
fn values_are_indexed_and_streamed() {
    let value = r#"{"rows":[{"id":1,"n":"a"},{"id":2,"n":"b"}]}"#;
    for (text, result) in [
        ("2 | IN(1, 2)", "true"),
        ("[.rows[] | .id | IN(2, 3)]", "[false,true]"),
        ("IN(.rows[].id; 7, 8)", "false"),
        ("[.rows[].n] | INDEX(.) | keys", r#"["a","b"]"#),
        (".rows | INDEX(.id) | .[\"2\"].n", r#""b""#),
        ("INDEX(.rows[]; .n) | .a.id", "1"),
        (
            "[{a:[1,{}]} | tostream]",
            r#"[[["a",0],1],[["a",1],{}],[["a",1]],[["a"]]]"#,
        ),
    ] {
        assert_eq!(run(text, value).unwrap(), result, "{text}");
    }
}

#[test]
fn an_error_names_what_was_written() {
    for (program, name) in [
        ("1 | stderr", "`stderr`"),
        ("[.[] | debug]", "`debug`"),
        ("halt_error", "`halt_error`"),
        ("nonsense(1)", "`nonsense`"),
        ("env", "`env`"),
    ] {
        let error = Change::parse(program).unwrap_err().to_string();
        assert!(error.contains(name), "{program}: {error}");
        assert!(!error.contains("_empty"), "{program}: {error}");
    }
}

/// Programs that are `n` deep in every way there is.
fn deep(n: usize) -> Vec<String> {
    let mut programs: Vec<String> = [
        ("1", "+1"),
        (".", "|."),
        (".", ",."),
        (".", " and ."),
        (".", "//."),
        (".", "|=."),
        (".", "+=1"),
        (".", "[0]?"),
        (".a", ".a"),
        (".", "?"),
    ]
    .iter()
    .map(|(start, more)| format!("{start}{}", more.repeat(n)))
    .collect();
    for before in [
        "-",
        ". as $x|",
        ". as [$x]|",
        "def f:1;",
        "try ",
        "label $x|",
        "reduce . as $x (1; .)|",
    ] {
        programs.push(format!("{}1", before.repeat(n)));
    }
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("map(", ")"),
        ("first(", ")"),
        (".[", "]"),
        ("\"\\(", ")\""),
        ("if 1 then ", " end"),
        ("reduce 1 as $x (", ";.)"),
        ("def f: ", "; 1"),
        ("walk(", ")"),
        ("select(", ")"),
        ("try error(", ")"),
        ("[\")\",", "]"),
    ] {
        programs.push(format!("{}1{}", open.repeat(n), close.repeat(n)));
    }
    programs.push(format!("[.{}]", ",.".repeat(n)));
    programs
}

#[test]
fn no_program_is_too_deep_for_the_stack() {
    for n in [20, 30, 60, 64, 100, 200, 300, 490, 990, 5_000] {
        for text in deep(n) {
            if let Ok(program) = Change::parse(&text) {
                let _ = program.apply(&with_params("null"), ChangePart::Params);
            } else {
                assert!(n > 20, "{text}");
            }
        }
    }
    let alternatives = format!("1 == 0{}", " or 1 == 0".repeat(50));
    assert_eq!(run(&alternatives, "null").as_deref(), Ok("false"));
}

#[test]
fn no_value_is_too_deep_for_the_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = format!("{}1{}", open.repeat(250), close.repeat(250));
        let message = with_params(&text);
        for program in [
            ".",
            "tojson | fromjson",
            "walk(.)",
            "[..] | sort | length",
            ".. |= .",
            "[paths] | length",
            "[getpath(paths)] | unique | length",
            "del(.. | select(. == 1))",
            "reduce range(1000) as $i (.; [.])",
            "reduce range(1000) as $i (.; {a: .})",
            ". * .",
            "contains(.)",
        ] {
            let program = Change::parse(program).unwrap();
            let _ = program.apply(&message, ChangePart::Params);
        }
    }
}

#[test]
fn parts_are_found_in_texts_lists_and_objects() {
    let run = |text: &str| run(text, "null");
    for (text, result) in [
        (r#""foobar" | contains("bar")"#, "true"),
        (r#"["foobar", 1] | contains(["baz"])"#, "false"),
        (r#"{a: [1, "xy"], b: 2} | contains({a: ["y"]})"#, "true"),
        (r#"{a: 1} | contains({b: 1})"#, "false"),
        ("[1, [2]] | contains([[2], 1])", "true"),
        (r#""äbäbäb" | indices("bä")"#, "[1,3]"),
        (r#""aaaa" | indices("aa")"#, "[0,1,2]"),
        (
            r#""abc" | [indices(""), index("c"), rindex("a")]"#,
            "[[],2,0]",
        ),
        ("[1, 2, 1, 2, 1] | indices([1, 2])", "[0,2]"),
        ("[1, 2, 1] | [indices(1), indices([])]", "[[0,2],[]]"),
    ] {
        assert_eq!(run(text).as_deref(), Ok(result), "{text}");
    }
    assert!(matches!(
        run("1 | indices(1)"),
        Err(ChangeError::Program(JqError::Failed(_)))
    ));
}
