//! Something that the server itself offers.

use bytes::Bytes;
use mcp_proxy_tool::{CapabilityType, ItemKind, ListedItem, ProxyToolError, near_names};
use serde_json::Value;

/// A tool, resource, template or prompt.
pub(super) struct ServedItem {
    kind: ItemKind,
    definition: Value,
}

impl ServedItem {
    pub(super) fn new(kind: ItemKind, definition: Value) -> ServedItem {
        ServedItem { kind, definition }
    }

    fn member(&self, name: &str) -> &str {
        self.definition
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl ListedItem for ServedItem {
    fn kind(&self) -> ItemKind {
        self.kind
    }

    fn public(&self) -> &str {
        self.member(self.kind.key_member())
    }

    fn definition(&self) -> Bytes {
        serde_json::to_vec(&self.definition)
            .unwrap_or_default()
            .into()
    }
}

/// The item that `path` stands for: its name or URI, or else the name of a resource.
pub(super) fn find<'a>(
    items: &'a [ServedItem],
    kind: CapabilityType,
    path: &str,
) -> Result<&'a ServedItem, ProxyToolError> {
    if let Some(item) = items.iter().find(|item| item.public() == path) {
        return Ok(item);
    }
    let by_name: Vec<&ServedItem> = items
        .iter()
        .filter(|item| item.member("name") == path)
        .collect();
    match by_name.as_slice() {
        [item] => Ok(item),
        [] => Err(ProxyToolError::NotFound {
            kind,
            path: path.to_owned(),
            near: near_names(path, items.iter().map(ServedItem::public)),
        }),
        several => Err(ProxyToolError::Ambiguous {
            kind,
            path: path.to_owned(),
            candidates: several
                .iter()
                .map(|item| item.public().to_owned())
                .collect(),
        }),
    }
}
