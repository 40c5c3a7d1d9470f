//! Each keyword with a value that obeys it and one that does not.

use serde_json::json;

use super::*;

#[test]
fn each_keyword_is_checked() {
    let odd = json!({"type": "integer", "multipleOf": 2});
    for (schema, good, bad) in [
        (json!({"type": ["string", "null"]}), json!(null), json!(1)),
        (json!({"type": "number"}), json!(1), json!("1")),
        (json!({"type": "integer"}), json!(2.0), json!(2.5)),
        (json!({"enum": [1, "a"]}), json!("a"), json!("b")),
        (json!({"const": {"a": 1}}), json!({"a": 1}), json!({})),
        (json!({"minimum": 1.5}), json!(1.5), json!(1)),
        (json!({"maximum": 2}), json!(2), json!(3)),
        (json!({"exclusiveMinimum": 1}), json!(1.1), json!(1)),
        (json!({"exclusiveMaximum": 1}), json!(0), json!(1)),
        (odd, json!(4), json!(5)),
        (json!({"multipleOf": 0.1}), json!(0.3), json!(0.35)),
        (json!({"minLength": 2}), json!("né"), json!("n")),
        (json!({"maxLength": 2}), json!("né"), json!("abc")),
        (json!({"pattern": "^a+$"}), json!("aa"), json!("ab")),
        (json!({"minItems": 1}), json!([1]), json!([])),
        (json!({"maxItems": 1}), json!([1]), json!([1, 2])),
        (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
        (
            json!({"items": {"type": "string"}}),
            json!(["a"]),
            json!(["a", 1]),
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": false}),
            json!(["a"]),
            json!(["a", 1]),
        ),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({})),
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"properties": {"a": false}}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            json!({"patternProperties": {"^x": {"type": "string"}}}),
            json!({"y": 1}),
            json!({"x1": 1}),
        ),
        (
            json!({"additionalProperties": false, "patternProperties": {"^x": {}}}),
            json!({"x": 1}),
            json!({"y": 1}),
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"a": "b"}),
            json!({"a": 1}),
        ),
        (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
        (
            json!({"maxProperties": 1}),
            json!({"a": 1}),
            json!({"a": 1, "b": 2}),
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
            json!(2),
            json!(3),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}),
            json!(4),
            json!(2),
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 3}]}),
            json!(2),
            json!(4),
        ),
        (json!({"not": {"type": "string"}}), json!(1), json!("a")),
        (
            json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"maximum": 3}}),
            json!(10),
            json!(6),
        ),
        (
            json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"maximum": 3}}),
            json!(3),
            json!(4),
        ),
        (
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}),
            json!(1),
            json!("a"),
        ),
    ] {
        assert_eq!(violations(&schema, &good), [], "{schema} {good}");
        let found = violations(&schema, &bad);
        assert!(!found.is_empty(), "{schema} {bad}");
        // The keyword that is named exists, so that its line can be shown.
        let place = crate::schema::pointer(&found[0].path);
        assert!(schema.pointer(&place).is_some(), "{schema}: {place}");
    }
}

#[test]
fn what_is_not_understood_is_left_to_the_server() {
    for schema in [
        json!(true),
        json!({"type": 3}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"format": "email", "contentEncoding": "base64"}),
    ] {
        assert_eq!(violations(&schema, &json!("x")), [], "{schema}");
    }
}

#[test]
fn a_deep_value_and_a_schema_that_refers_to_itself_end() {
    let tree = json!({"items": {"$ref": "#"}});
    let deep = (0..200).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(violations(&tree, &deep), []);
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let schema = json!({keyword: [{"$ref": "#"}, {"$ref": "#"}, {"type": "string"}]});
        let _ = violations(&schema, &json!(1));
    }
    let _ = violations(&json!({"not": {"$ref": "#"}}), &json!(1));
}

#[test]
fn problems_are_said_in_words() {
    let schema = json!({
        "type": "object",
        "properties": {
            "size": {"type": ["integer", "null"], "minimum": 3},
            "items": {"items": {"properties": {"name": {"enum": ["red", "green"]}}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 3}]}
        },
        "required": ["size"],
        "additionalProperties": false
    });
    let values = [
        json!({"sizes": 3}),
        json!({"size": "3"}),
        json!({"size": 1, "items": [{"name": "red"}, {"name": "gren"}]}),
        json!({"size": 3, "either": 4}),
        json!({"size": 3, "either": []}),
    ];
    let found = values.iter().flat_map(|value| violations(&schema, value));
    let said = found.map(|violation| format!("{}: {}", violation.place, violation.problem));
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
}
