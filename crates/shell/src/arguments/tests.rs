//! Words, JSON and files as arguments, and what is said about wrong ones.

use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 2},
            "n": {"type": "integer", "minimum": 1, "maximum": 10},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "mode": {"$ref": "#/$defs/Mode"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "options": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            "anything": {}
        },
        "required": ["text"],
        "$defs": {"Mode": {"enum": ["fast", "slow", "1"]}}
    })
}

fn read(given: &[&str]) -> Value {
    Value::Object(typed_arguments(given, &schema()).unwrap())
}

fn refusal(given: &[&str]) -> String {
    let schema = schema();
    let outcome = typed_arguments(given, &schema)
        .and_then(|arguments| check_arguments("sample", &schema, &arguments));
    let failure = outcome.unwrap_err();
    assert_eq!(failure.exit_code(), 2);
    failure.text().to_owned()
}

#[test]
fn words_are_typed_by_the_schema() {
    assert_eq!(
        read(&[
            "text=3",
            "n=3",
            "ratio=2",
            "flag=true",
            "maybe=null",
            "mode=1"
        ]),
        json!({"text": "3", "n": 3, "ratio": 2, "flag": true, "maybe": null, "mode": "1"})
    );
    assert_eq!(read(&["text=a=b"]), json!({"text": "a=b"}));
    assert_eq!(read(&["text=@@home"]), json!({"text": "@home"}));
    assert_eq!(
        read(&["text=", "anything=3"]),
        json!({"text": "", "anything": 3})
    );
    assert_eq!(read(&["anything=x y"]), json!({"anything": "x y"}));
}

#[test]
fn lists_come_by_repetition_or_as_json() {
    assert_eq!(read(&["tags=a", "tags=b,c"]), json!({"tags": ["a", "b,c"]}));
    assert_eq!(read(&["sizes=1", "sizes=2"]), json!({"sizes": [1, 2]}));
    assert_eq!(read(&["tags=[\"a\",\"b\"]"]), json!({"tags": ["a", "b"]}));
    assert_eq!(read(&["tags:=[]"]), json!({"tags": []}));
    assert_eq!(
        read(&["options={\"deep\":true}"]),
        json!({"options": {"deep": true}})
    );
    assert!(refusal(&["text=ab", "tags=a", "tags:=[]"]).contains("twice"));
    assert!(refusal(&["text=ab", "text=cd"]).contains("twice"));
}

#[test]
fn explicit_json_wins_over_the_schema_until_it_is_checked() {
    assert_eq!(read(&["n:=\"3\""]), json!({"n": "3"}));
    assert!(refusal(&["text=ab", "n:={"]).contains("not JSON"));
    assert!(refusal(&["text=ab", "noequals"]).contains("key=value"));
    assert!(refusal(&["text=ab", "=x"]).contains("key=value"));
}

#[test]
fn values_come_from_files() {
    let path = std::env::temp_dir().join(format!("mcp-proxy-arguments-{}", std::process::id()));
    std::fs::write(&path, "[1, 2]").unwrap();
    let (text, json) = (
        format!("text=@{}", path.display()),
        format!("sizes:=@{}", path.display()),
    );
    assert_eq!(
        read(&[&text, &json]),
        json!({"text": "[1, 2]", "sizes": [1, 2]})
    );
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&[&text]).contains("cannot read"));
}

#[test]
fn names_that_do_not_exist_are_refused_with_near_ones() {
    assert!(refusal(&["txet=a"]).contains("did you mean `text`?"));
    let open = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true});
    assert!(typed_arguments(&["b=1"], &open).is_ok());
    assert!(typed_arguments(&["b=1"], &json!({"type": "object"})).is_ok());
    let none = json!({"type": "object", "properties": {}});
    assert!(typed_arguments(&["b=1"], &none).is_err());
}

#[test]
fn the_broken_line_of_the_schema_is_shown() {
    insta::assert_snapshot!("wrong-type", refusal(&["text=ab", "n=many"]));
    insta::assert_snapshot!("missing", refusal(&["n=3"]));
    insta::assert_snapshot!("not-listed", refusal(&["text=ab", "mode=fsat"]));
    insta::assert_snapshot!("several", refusal(&["text=a", "n=11", "tags=a", "tags=a"]));
    insta::assert_snapshot!("nested", refusal(&["text=ab", "options={\"deep\":1}"]));
    insta::assert_snapshot!("alternatives", refusal(&["text=ab", "maybe=x"]));
}

#[test]
fn prompts_take_texts() {
    let given = text_arguments(&["n=3"], &["n"]).unwrap();
    assert_eq!(Value::Object(given), json!({"n": "3"}));
    assert!(text_arguments(&["m=3"], &["n"]).is_err());
}

#[test]
fn json_arguments_are_an_object() {
    assert!(json_arguments("{\"a\":1}", "--args").is_ok());
    for text in ["[1]", "{", ""] {
        assert_eq!(
            json_arguments(text, "--args").unwrap_err().exit_code(),
            2,
            "{text}"
        );
    }
}

#[test]
fn a_number_that_cannot_be_sent_exactly_is_refused() {
    let long = "12345678901234567890123";
    for word in [
        format!("n={long}"),
        format!("ratio=0.{long}"),
        format!("maybe={long}"),
        format!("anything={long}"),
        format!("n:={long}"),
        format!("options={{\"deep\":{long}}}"),
        format!("sizes=[1,{long}]"),
        format!("sizes={long}"),
    ] {
        let text = refusal(&["text=ab", &word]);
        assert!(text.contains(long), "{word}: {text}");
    }
    let arguments = format!("{{\"n\": {long}}}");
    assert_eq!(
        json_arguments(&arguments, "--args")
            .unwrap_err()
            .exit_code(),
        2
    );
    // A text is sent as it is.
    assert_eq!(read(&[&format!("text={long}")]), json!({"text": long}));
    assert_eq!(read(&["n=18446744073709551615"])["n"], u64::MAX);
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"},
        "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}}});
    let arguments = typed_arguments(&["x=1"], &schema).unwrap();
    assert!(check_arguments("sample", &schema, &arguments).is_ok());
    let around = json!({"anyOf": [{"$ref": "#"}]});
    assert!(check_arguments("sample", &around, &arguments).is_ok());
}

#[test]
fn whole_numbers_are_integers_however_they_are_typed() {
    let given = read(&["text=xx", "n=1e1", "maybe=2.0", "ratio=2.0"]);
    assert_eq!(
        given.to_string(),
        json!({"text": "xx", "n": 10, "maybe": 2, "ratio": 2.0}).to_string()
    );
}
