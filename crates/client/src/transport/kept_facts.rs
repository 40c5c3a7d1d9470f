//! Facts that rmcp's types would drop, copied to where they are kept.
//!
//! rmcp knows three annotations and forgets all others, among them everything that the proxy tool says about its
//! answers. `_meta` it keeps. So annotations of the proxy tool are copied to `_meta` before rmcp parses a message,
//! unless the server has written them there itself.

use mcp_proxy_tool::META_KEY;
use serde_json::{Map, Value};

/// The annotations that rmcp's type has.
const KNOWN_ANNOTATIONS: [&str; 3] = ["audience", "priority", "lastModified"];

/// Copies the facts of a tool's result to where rmcp keeps them.
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

    fn kept(item: Value) -> Value {
        let mut result = json!({"content": [item]});
        keep_facts_in_result(&mut result);
        result["content"][0].clone()
    }

    #[test]
    fn annotations_of_the_tool_are_copied_to_meta() {
        let item = kept(json!({"type": "resource",
            "resource": {"uri": "x:y", "mimeType": "application/json", "text": "{}", "contentType": "text/plain"},
            "annotations": {"priority": 0.5, "proxyAction": "call", "proxyType": "resource", "proxyPath": "x:y"}}));
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
        assert_eq!(kept(item.clone()), item);
    }
}
