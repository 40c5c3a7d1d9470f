//! Parts of a result that rmcp's types do not take, replaced or left out, so that the rest arrives.

use rmcp::model::{ContentBlock, MetaObject};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The member of a list's `_meta` that says what was left out of it.
const SKIPPED: &str = "mcp-proxy/skipped";

/// The member of a text item's `_meta` that says what the item was.
const UNKNOWN_CONTENT: &str = crate::UNKNOWN_CONTENT_KEY;

/// A definition that was left out of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SkippedDefinition {
    pub(crate) name: Option<String>,
    pub(crate) reason: String,
}

/// Makes text of the items that are not content.
pub(crate) fn repair_tool_result(result: &mut Value) {
    if let Some(Value::Array(items)) = result.get_mut("content") {
        items.iter_mut().for_each(repair_content);
    }
}

/// The same for the messages of a prompt.
pub(crate) fn repair_prompt_result(result: &mut Value) {
    let Some(Value::Array(messages)) = result.get_mut("messages") else {
        return;
    };
    for message in messages {
        if let Some(content) = message.get_mut("content") {
            repair_content(content);
        }
    }
}

/// Leaves out of the list `member` what is not a `T`, and says so in its `_meta`.
pub(super) fn list<T: DeserializeOwned>(member: &'static str) -> impl Fn(&mut Value) {
    move |result| {
        let mut skipped = Vec::new();
        if let Some(Value::Array(items)) = result.get_mut(member) {
            items.retain(|item| match decode_item::<T>(item) {
                Ok(_) => true,
                Err(skip) => {
                    skipped.push(json!(skip));
                    false
                }
            });
        }
        if !skipped.is_empty()
            && let Some(result) = result.as_object_mut()
        {
            let meta = result.entry("_meta").or_insert(Value::Null);
            if !meta.is_object() {
                *meta = Map::new().into();
            }
            meta[SKIPPED] = skipped.into();
        }
    }
}

/// The definition in `item`, or why there is none.
pub(crate) fn decode_item<T: DeserializeOwned>(item: &Value) -> Result<T, SkippedDefinition> {
    T::deserialize(item).map_err(|error| SkippedDefinition {
        name: ["name", "uri", "uriTemplate"]
            .iter()
            .find_map(|member| item.get(*member)?.as_str().map(str::to_owned)),
        reason: error.to_string(),
    })
}

/// What was left out of a list with this `_meta`.
pub(crate) fn skipped_definitions(meta: Option<&MetaObject>) -> Vec<SkippedDefinition> {
    meta.and_then(|meta| Vec::deserialize(meta.get(SKIPPED)?).ok())
        .unwrap_or_default()
}

fn repair_content(item: &mut Value) {
    let Err(error) = ContentBlock::deserialize(&*item) else {
        return;
    };
    let kind = item.get("type").cloned().unwrap_or_default();
    *item = json!({"type": "text", "text": item.to_string(),
        "_meta": {UNKNOWN_CONTENT: {"type": kind, "reason": error.to_string()}}});
}
