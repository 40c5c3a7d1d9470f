//! What a name stands for that is not in the list as it was typed: behind a hub, a tool or prompt has its server's prefix in
//! front of its own name, and may be called without it.

use mcp_proxy_client::{CapabilityType, ClientError};

use crate::catalog::{CatalogItem, CatalogPart};
use crate::conversation::Conversation;
use crate::failure::CommandFailure;
use crate::near_names::quoted;

/// What a hub calls itself.
const HUB: &str = "mcp-proxy";

/// An item, and the name to call it by.
pub(crate) struct FoundItem {
    pub(crate) item: CatalogItem,
    pub(crate) name: String,
}

/// The item that is called `name`. Nothing if there is none; a mistake if several servers have one.
pub(crate) async fn find(
    conversation: &Conversation,
    part: &CatalogPart,
    name: &str,
) -> Result<Option<FoundItem>, CommandFailure> {
    if let Some(item) = part.find(name) {
        let (item, name) = (item.clone(), name.to_owned());
        return Ok(Some(FoundItem { item, name }));
    }
    match (part.kind, conversation.client.offers_proxy_tool()) {
        (CapabilityType::Resource, _) => Ok(None),
        (kind, true) if conversation.client.is_proxied() => {
            ask_proxy_tool(conversation, kind, name).await
        }
        _ if is_hub(conversation) => find_by_own_name(part, name),
        _ => Ok(None),
    }
}

/// The `proxy` tool knows which server has what.
async fn ask_proxy_tool(
    conversation: &Conversation,
    kind: CapabilityType,
    name: &str,
) -> Result<Option<FoundItem>, CommandFailure> {
    match conversation.client.info(kind, name).await {
        Ok(definition) => {
            let item = CatalogItem::new(kind, definition);
            let name = item.name.clone();
            Ok(Some(FoundItem { item, name }))
        }
        Err(ClientError::ToolFailed { code, text, .. }) if code.as_deref() == Some("ambiguous") => {
            Err(CommandFailure::Mistake(text))
        }
        Err(ClientError::ToolFailed { .. } | ClientError::Protocol { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Without that tool, the only item whose name is this one but for a prefix. It is called as it was typed, and the hub decides
/// whether that is its own name: the prefix of another tool's name is not taken for a server's.
fn find_by_own_name(part: &CatalogPart, name: &str) -> Result<Option<FoundItem>, CommandFailure> {
    let is_meant =
        |item: &&CatalogItem| has_prefix(&item.name, name) || has_prefix(name, &item.name);
    let meant: Vec<&CatalogItem> = part.items.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [] => Ok(None),
        [item] => Ok(Some(FoundItem {
            item: (*item).clone(),
            name: name.to_owned(),
        })),
        several => {
            let names: Vec<String> = several.iter().map(|item| item.name.clone()).collect();
            let text = format!(
                "several {}s may be `{name}`: {}",
                part.kind,
                quoted(&names, "and")
            );
            Err(CommandFailure::Mistake(text))
        }
    }
}

/// Whether `whole` is `name` with a prefix and a separator in front of it.
fn has_prefix(whole: &str, name: &str) -> bool {
    let prefix = whole.strip_suffix(name).filter(|_| !name.is_empty());
    prefix.is_some_and(|prefix| {
        let before = prefix.trim_end_matches(|c: char| !c.is_alphanumeric());
        !before.is_empty() && before.len() < prefix.len()
    })
}

fn is_hub(conversation: &Conversation) -> bool {
    let info = conversation.client.server_info();
    let name = info.and_then(|info| Some(info.server_info.clone()?.name));
    name.as_deref() == Some(HUB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_with_a_separator() {
        assert!(has_prefix("git_git_log", "git_log"));
        assert!(has_prefix("web__fetch", "fetch"));
        for (whole, name) in [
            ("catalog", "log"),
            ("log", "log"),
            ("_log", "log"),
            ("git_log", ""),
            ("log", "git_log"),
        ] {
            assert!(!has_prefix(whole, name), "{whole} {name}");
        }
    }
}
