//! Results as arguments of the next tool, and whole results.

use mcp_proxy_spill::{ReadRequest, SpillError, SpillFormat};
use serde_json::{Value, json};

use crate::test_store::{OWNER, TestStore, one_text, records};

fn arguments(store: &TestStore, file: &str) -> Result<String, SpillError> {
    let bytes = store.store.arguments(OWNER, file, store.now)?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn an_object_comes_back_on_one_line_as_it_was() {
    let store = TestStore::new();
    let object = format!(
        r#"{{"number":123456789012345678901234567890,"other":1.50e+400,"text":"é\u00e9 \" {{}}","list":[{}1]}}"#,
        "\"x y\", ".repeat(50)
    );
    let result = one_text(&object);
    let spilled = store
        .store
        .spill(OWNER, result.as_bytes(), SpillFormat::Json, store.now)
        .unwrap();
    assert!(spilled.line_count > 50);
    assert_eq!(
        arguments(&store, &spilled.handle).unwrap(),
        object.replace(", ", ",")
    );
}

#[test]
fn toon_is_used_where_it_pays_and_comes_back_as_json() {
    let store = TestStore::new();
    let value = json!({"rows": records(50)});
    let result = one_text(&value.to_string());
    let spill = |result: &str| {
        store
            .store
            .spill(OWNER, result.as_bytes(), SpillFormat::Toon, store.now)
            .unwrap()
    };
    let spilled = spill(&result);
    assert_eq!(spilled.format, SpillFormat::Toon);
    assert!(spilled.handle.ends_with(".toon"));
    assert!(
        spilled
            .preview
            .starts_with("rows[50]{id,name,ok}:\n  1,record 1,false\n")
    );
    assert_eq!(spilled.line_count, 51);
    assert_eq!(
        arguments(&store, &spilled.handle).unwrap(),
        value.to_string()
    );
    let filter = ReadRequest::Jq {
        filter: ".rows[49].name".to_owned(),
    };
    assert_eq!(store.text(&spilled.handle, &filter), "\"record 50\"");

    let exact = spill(&one_text(
        r#"{"rows":[{"id":123456789012345678901},{"id":2}]}"#,
    ));
    assert_eq!(exact.format, SpillFormat::Json);
}

#[test]
fn anything_but_an_object_is_refused() {
    let store = TestStore::new();
    let list = store.spill(&records(3));
    let refused = arguments(&store, &list.handle);
    assert!(matches!(refused, Err(SpillError::NotAnObject)));
    for (name, content) in [
        ("broken.json", &b"{\"a\":"[..]),
        ("list.toon", b"[2]: 1,2"),
        ("binary", b"\xff\xfe{}"),
        ("empty.json", b""),
    ] {
        let path = store.in_root(name);
        std::fs::write(&path, content).unwrap();
        let refused = arguments(&store, path.to_str().unwrap());
        assert!(matches!(refused, Err(SpillError::NotAnObject)), "{name}");
    }
}

#[test]
fn files_below_a_root_are_arguments_too() {
    let store = TestStore::new();
    let json = store.in_root("arguments.json");
    std::fs::write(&json, "{\n  \"a\": [1, 2.0]\n}\n").unwrap();
    assert_eq!(
        arguments(&store, json.to_str().unwrap()).unwrap(),
        r#"{"a":[1,2.0]}"#
    );
    let toon = store.in_root("arguments.toon");
    std::fs::write(&toon, "a[2]: 1,2\nb: text\n").unwrap();
    assert_eq!(
        arguments(&store, toon.to_str().unwrap()).unwrap(),
        r#"{"a":[1,2],"b":"text"}"#
    );
    let large = store.in_root("large.json");
    let file = std::fs::File::create(&large).unwrap();
    file.set_len(257 << 20).unwrap();
    let refused = arguments(&store, large.to_str().unwrap());
    assert!(matches!(refused, Err(SpillError::TooLarge { .. })));
}

#[test]
fn the_lines_of_a_file_do_not_count_against_the_size_of_arguments() {
    let store = TestStore::with_quota(1 << 30);
    // A few megabytes of values, deep down, so that each is on an indented line of its own.
    let (depth, numbers) = (60, vec!["1"; 1_200_000].join(","));
    let object = format!(
        r#"{{"a":{}{numbers}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let result = one_text(&object);
    let spilled = store
        .store
        .spill(OWNER, result.as_bytes(), SpillFormat::Json, store.now);
    let spilled = spilled.unwrap();
    assert!(spilled.byte_size > 64 << 20);
    assert!(arguments(&store, &spilled.handle).unwrap() == object);
}

#[test]
fn the_contents_are_the_file() {
    let store = TestStore::new();
    let value = records(100);
    let spilled = store.spill(&value);
    let (format, contents) = store
        .store
        .contents(OWNER, &spilled.handle, store.now)
        .unwrap();
    assert_eq!(format, SpillFormat::Json);
    assert_eq!(contents.len() as u64, spilled.byte_size);
    assert_eq!(serde_json::from_slice::<Value>(&contents).unwrap(), value);
}
