//! Checks that `docs/config.schema.json` has the keys of the lists in `keys.rs`, and no others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::keys::{
    AUTH_KEYS, ENTRY_KEYS, FILE_KEYS, FILTER_KEYS, HUB_KEYS, OWN_KEY, PROFILE_KEYS, SERVER_KEYS,
};

const SCHEMA: &str = include_str!("../../../../docs/config.schema.json");

#[test]
fn the_schema_has_every_key_and_no_other() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (pointer, keys) in [
        ("", FILE_KEYS),
        ("/$defs/entry", ENTRY_KEYS),
        ("/$defs/hub", HUB_KEYS),
        ("/$defs/profile", PROFILE_KEYS),
        ("/$defs/filter", FILTER_KEYS),
        ("/$defs/server", SERVER_KEYS),
        ("/$defs/auth", AUTH_KEYS),
    ] {
        let object = schema.pointer(pointer).unwrap();
        let properties = object["properties"].as_object().unwrap();
        let in_schema: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let in_code: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(in_schema, in_code, "{pointer}");
        // Other programs' keys may be anywhere but under our own.
        let is_ours = !keys.contains(&OWN_KEY);
        let closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        assert_eq!(closed, is_ours, "{pointer}");
    }
}

#[test]
fn every_option_has_a_description() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for table in ["hub", "profile", "filter", "server", "auth"] {
        for (key, property) in schema["$defs"][table]["properties"].as_object().unwrap() {
            let referenced = property["$ref"].as_str().unwrap_or_default();
            let referenced = schema.pointer(referenced.trim_start_matches('#')).unwrap();
            let described = property
                .get("description")
                .or(referenced.get("description"));
            assert!(described.is_some(), "{table}: {key}");
        }
    }
}
