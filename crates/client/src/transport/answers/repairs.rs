//! Parts of a result that rmcp's types do not take, replaced or left out, so that the rest arrives.

use std::collections::BTreeMap;

use rmcp::model::{ContentBlock, MetaObject};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::explain;

/// The member of a list's `_meta` that says what was left out of it.
const SKIPPED: &str = "mcp-proxy/skipped";

/// The member of a text item's `_meta` that says what the item was.
const UNKNOWN_CONTENT: &str = crate::UNKNOWN_CONTENT_KEY;

/// How deeply a definition may be nested, so that rmcp can read the message around it: it reads 128 levels.
const MAX_ITEM_DEPTH: usize = 120;

/// A definition that was left out of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SkippedDefinition {
    pub(crate) name: Option<String>,
    pub(crate) reason: String,
}

/// What an item is known by.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemKey<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    uri_template: Option<&'a RawValue>,
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

/// The list `member` of a result without what is not a `T`. Its `_meta` says what was left out.
pub(super) fn repaired_list<T: DeserializeOwned>(
    result: &RawValue,
    member: &str,
) -> Result<Value, serde_json::Error> {
    // Each definition is read by itself, so that one which is nested too deeply does not cost the others.
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(result.get())?;
    let mut repaired = Map::new();
    let mut skipped = Vec::new();
    for (name, value) in members {
        let value = match name == member {
            true => usable_items::<T>(value, &mut skipped)?,
            false => serde_json::from_str(value.get())?,
        };
        repaired.insert(name, value);
    }
    if !skipped.is_empty() {
        let meta = repaired.entry("_meta").or_insert(Value::Null);
        if !meta.is_object() {
            *meta = Map::new().into();
        }
        meta[SKIPPED] = json!(skipped);
    }
    Ok(repaired.into())
}

fn usable_items<T: DeserializeOwned>(
    list: &RawValue,
    skipped: &mut Vec<SkippedDefinition>,
) -> Result<Value, serde_json::Error> {
    let items: Vec<&RawValue> = serde_json::from_str(list.get())?;
    let mut usable = Vec::with_capacity(items.len());
    for item in items {
        let read = read_item(item).and_then(|item| decode_item::<T>(&item).map(|_| item));
        match read {
            Ok(item) => usable.push(item),
            Err(skip) => skipped.push(skip),
        }
    }
    Ok(usable.into())
}

/// A definition as JSON, or why it cannot be read.
pub(crate) fn read_item(item: &RawValue) -> Result<Value, SkippedDefinition> {
    let read = serde_json::from_str(item.get()).map_err(|error| explain(&error));
    let read = read.and_then(|item| match depth(&item) {
        ..=MAX_ITEM_DEPTH => Ok(item),
        _ => Err(format!(
            "it is nested more than {MAX_ITEM_DEPTH} levels deep"
        )),
    });
    read.map_err(|reason| {
        let key: Option<ItemKey<'_>> = serde_json::from_str(item.get()).ok();
        let key = key.and_then(|key| key.name.or(key.uri).or(key.uri_template));
        SkippedDefinition {
            name: key.and_then(|key| serde_json::from_str(key.get()).ok()),
            reason,
        }
    })
}

/// How many objects and arrays are open at the deepest place. A value that serde read is nested at most 128 levels deep.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
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
