//! A layout changes white space and nothing else.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use mcp_proxy_wire::json::compact;

fn laid_out(json: &str) -> String {
    let mut out = Vec::new();
    write_laid_out(json.as_bytes(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn shape(json: &str) -> ResultShape {
    write_laid_out(json.as_bytes(), &mut io::sink()).unwrap()
}

/// The same layout, written for reading and not for speed.
fn expected(value: &Value, level: usize, out: &mut String) {
    let compact = value.to_string();
    if compact.len() <= LINE || !(value.is_array() || value.is_object()) {
        out.push_str(&compact);
        return;
    }
    let line_break = |level: usize| format!("\n{}", " ".repeat(level.min(DEEPEST_INDENT)));
    out.push_str(&compact[..1]);
    let mut comma = "";
    let mut member = |key: Option<&String>, value: &Value, out: &mut String| {
        out.push_str(comma);
        comma = ",";
        out.push_str(&line_break(level + 1));
        if let Some(key) = key {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push(':');
        }
        expected(value, level + 1, out);
    };
    match value {
        Value::Array(elements) => {
            for element in elements {
                member(None, element, out);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                member(Some(key), value, out);
            }
        }
        _ => {}
    }
    out.push_str(&line_break(level));
    out.push_str(&compact[compact.len() - 1..]);
}

#[test]
fn small_records_stand_on_a_line() {
    let records: Vec<_> = (1..=4)
        .map(|id| serde_json::json!({"id": id, "name": "a name, with {brackets}", "tags": ["a", "b"]}))
        .collect();
    let json = serde_json::json!({"total": 4, "records": records, "empty": {}, "next": null});
    insta::assert_snapshot!(laid_out(&json.to_string()), @r#"
    {
     "total":4,
     "records":[
      {"id":1,"name":"a name, with {brackets}","tags":["a","b"]},
      {"id":2,"name":"a name, with {brackets}","tags":["a","b"]},
      {"id":3,"name":"a name, with {brackets}","tags":["a","b"]},
      {"id":4,"name":"a name, with {brackets}","tags":["a","b"]}
     ],
     "empty":{},
     "next":null
    }
    "#);
}

#[test]
fn a_line_may_be_full() {
    let fits = format!("[\"{}\"]", "x".repeat(LINE - 4));
    assert_eq!(laid_out(&fits), fits);
    let longer = format!("[\"{}\"]", "x".repeat(LINE - 3));
    assert_eq!(laid_out(&longer).lines().count(), 3);
}

#[test]
fn deep_nesting_is_not_indented_for_ever() {
    let deep = "[".repeat(9000) + &"]".repeat(9000);
    assert!(laid_out(&deep).len() < 18_000 * (DEEPEST_INDENT + 3));
}

#[test]
fn the_outermost_value_is_described() {
    let keys = |keys: &[&str], key_count| ResultShape::Object {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        key_count,
    };
    assert_eq!(
        shape(r#"{"a":{"x":1},"b\n":[1,2]}"#),
        keys(&["a", "b\n"], 2)
    );
    assert_eq!(shape("{}"), keys(&[], 0));
    assert_eq!(shape("[]"), ResultShape::Array { length: 0 });
    assert_eq!(shape("[[1,2],3]"), ResultShape::Array { length: 2 });
    assert_eq!(shape("12"), ResultShape::Other);
    let many: serde_json::Map<_, _> = (0..30).map(|key| (key.to_string(), Value::Null)).collect();
    let ResultShape::Object { keys, key_count } = shape(&Value::from(many).to_string()) else {
        panic!("an object");
    };
    assert_eq!((keys.len(), key_count), (20, 30));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[a-z\\[\\]{},:\"\\\\ \n]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 12, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec(("[a-z\"]{0,8}", inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn a_text_that_is_written_in_parts_is_laid_out_likewise() {
    let records: Vec<_> = (0..3000)
        .map(|id| serde_json::json!({"id": id, "name": "x".repeat(id % 200), "tags": [[id], {}]}))
        .collect();
    let value = serde_json::json!({"records": records, "long": "y".repeat(3 * BUFFER), "end": [1]});
    let mut wanted = String::new();
    expected(&value, 0, &mut wanted);
    assert!(laid_out(&value.to_string()) == wanted);
}

proptest! {
    #[test]
    fn the_layout_is_as_described_and_loses_nothing(value in any_json()) {
        let json = value.to_string();
        let text = laid_out(&json);
        let mut wanted = String::new();
        expected(&value, 0, &mut wanted);
        prop_assert_eq!(&text, &wanted);
        prop_assert_eq!(compact(text.as_bytes()), json.as_bytes());
    }
}
