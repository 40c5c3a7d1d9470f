//! Checks that `docs/config.schema.json` has the keys of the types that are read, and no others.

use std::collections::BTreeSet;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::entry::WrittenEntry;
use super::keys::FILE_KEYS;
use super::{AuthOptions, HubOptions, HubProfile, ServerOptions};
use crate::names::AllowedNames;

const SCHEMA: &str = include_str!("../../../../docs/config.schema.json");

/// Asks a type for its keys, and reads nothing.
struct KeyFinder<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for KeyFinder<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(fields);
        Err(Error::custom("nothing is read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn keys_of<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut keys = Vec::new();
    let _ = T::deserialize(KeyFinder(&mut keys));
    keys
}

#[test]
fn the_schema_has_every_key_and_no_other() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (pointer, keys, is_ours) in [
        ("", FILE_KEYS.to_vec(), false),
        ("/$defs/entry", keys_of::<WrittenEntry>(), false),
        ("/$defs/hub", keys_of::<HubOptions>(), true),
        ("/$defs/profile", keys_of::<HubProfile>(), true),
        ("/$defs/filter", keys_of::<AllowedNames>(), true),
        ("/$defs/server", keys_of::<ServerOptions>(), true),
        ("/$defs/auth", keys_of::<AuthOptions>(), true),
    ] {
        let object = schema.pointer(pointer).unwrap();
        let properties = object["properties"].as_object().unwrap();
        let in_schema: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let in_code: BTreeSet<&str> = keys.into_iter().collect();
        assert_eq!(in_schema, in_code, "{pointer}");
        // Other programs' keys may be anywhere but under our own.
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
