//! Facts that rmcp's types would drop, copied to where they are kept.
//!
//! rmcp knows three annotations and forgets all others, among them everything that the proxy tool says about its
//! answers. `_meta` it keeps. So annotations of the proxy tool are copied to `_meta` before rmcp parses a message,
//! unless the server has written them there itself.

use std::borrow::Cow;

use mcp_proxy_tool::META_KEY;
use memchr::memmem;
use serde_json::{Map, Value};

/// The annotations that rmcp's type has.
const KNOWN_ANNOTATIONS: [&str; 3] = ["audience", "priority", "lastModified"];

/// A message of the server, with the facts of its result where rmcp keeps them. One without such facts stays as it is.
pub(crate) fn keep_facts(message: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(message, b"\"proxyAction\"").is_none() {
        return Cow::Borrowed(message);
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(message) else {
        return Cow::Borrowed(message);
    };
    match value.get_mut("result") {
        Some(result) => keep_facts_in_result(result),
        None => return Cow::Borrowed(message),
    }
    match serde_json::to_vec(&value) {
        Ok(message) => Cow::Owned(message),
        Err(_) => Cow::Borrowed(message),
    }
}

/// The same for the result of a tool call alone.
pub(crate) fn keep_facts_in_result(result: &mut Value) {
    let Some(Value::Array(items)) = result.get_mut("content") else {
        return;
    };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        let facts = match item.get("annotations") {
            Some(Value::Object(annotations)) => unknown_members(annotations),
            _ => continue,
        };
        if facts.contains_key("proxyAction") {
            add_facts(item, facts);
        }
        if let Some(Value::Object(resource)) = item.get_mut("resource")
            && let Some(content_type) = resource.get("contentType").cloned()
        {
            let mut facts = Map::new();
            facts.insert("contentType".to_owned(), content_type);
            add_facts(resource, facts);
        }
    }
}

fn unknown_members(annotations: &Map<String, Value>) -> Map<String, Value> {
    annotations
        .iter()
        .filter(|(name, _)| !KNOWN_ANNOTATIONS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn add_facts(holder: &mut Map<String, Value>, facts: Map<String, Value>) {
    let meta = holder
        .entry("_meta")
        .or_insert_with(|| Value::Object(Map::new()));
    if meta.is_null() {
        *meta = Value::Object(Map::new());
    }
    if let Value::Object(meta) = meta {
        meta.entry(META_KEY).or_insert(Value::Object(facts));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(message: Value) -> Value {
        let bytes = serde_json::to_vec(&message).unwrap();
        serde_json::from_slice(&keep_facts(&bytes)).unwrap()
    }

    #[test]
    fn annotations_of_the_tool_are_copied_to_meta() {
        let item = json!({"type": "resource",
            "resource": {"uri": "x:y", "mimeType": "application/json", "text": "{}", "contentType": "text/plain"},
            "annotations": {"priority": 0.5, "proxyAction": "call", "proxyType": "resource", "proxyPath": "x:y"}});
        let message = kept(json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [item]}}));
        let item = &message["result"]["content"][0];
        assert_eq!(
            item["_meta"][META_KEY],
            json!({"proxyAction": "call", "proxyType": "resource", "proxyPath": "x:y"})
        );
        assert_eq!(
            item["resource"]["_meta"][META_KEY]["contentType"],
            "text/plain"
        );
        assert_eq!(item["annotations"]["priority"], 0.5);
    }

    #[test]
    fn what_the_server_wrote_in_meta_stays() {
        let item = json!({"type": "text", "text": "", "annotations": {"proxyAction": "call"},
            "_meta": {META_KEY: {"proxyAction": "list", "nextOffset": 5}, "other": 1}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [item]}});
        assert_eq!(kept(message.clone()), message);
    }

    #[test]
    fn other_messages_keep_their_bytes() {
        for message in [
            "{\"id\": 1,  \"result\":{}}",
            "not \"proxyAction\" JSON",
            "[\"proxyAction\"]",
        ] {
            assert_eq!(keep_facts(message.as_bytes()), message.as_bytes());
        }
    }
}
