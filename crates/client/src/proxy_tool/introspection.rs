//! What the server itself offers: all pages of its own lists.

use mcp_proxy_tool::{CapabilityType, ItemKind};
use rmcp::model::{ErrorCode, ErrorData, ServerResult};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, Service};
use serde::Serialize;
use serde_json::Value;

use super::ProxyTool;
use super::served_item::ServedItem;
use crate::list_pages::{PageCursors, list_request};

/// The definitions on one page, and where the next one begins.
type Page = (Vec<Value>, Option<String>);

impl<S: Service<RoleServer>> ProxyTool<S> {
    /// Everything of this type.
    pub(super) async fn items(
        &self,
        kind: CapabilityType,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<ServedItem>, ErrorData> {
        let mut items = Vec::new();
        for kind in kind.item_kinds() {
            match self.items_of_kind(*kind, context).await {
                Ok(more) => items.extend(more),
                // A server need not have every list.
                Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        // The tool does not show itself.
        items.retain(|item| {
            use mcp_proxy_tool::ListedItem as _;
            item.kind() != ItemKind::Tool || item.public() != self.options.name
        });
        Ok(items)
    }

    async fn items_of_kind(
        &self,
        kind: ItemKind,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<ServedItem>, ErrorData> {
        let mut items = Vec::new();
        let mut cursors = PageCursors::default();
        let mut cursor = None;
        loop {
            let request = list_request(kind, cursor);
            let result = self.server.handle_request(request, context.clone()).await?;
            let (page, next) = list_page(result)?;
            items.extend(page.into_iter().map(|item| ServedItem::new(kind, item)));
            // What there is of a list that does not end is better than nothing.
            cursor = cursors.follow(next).unwrap_or(None);
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }
}

fn list_page(result: ServerResult) -> Result<Page, ErrorData> {
    match result {
        ServerResult::ListToolsResult(page) => Ok((definitions(&page.tools)?, page.next_cursor)),
        ServerResult::ListResourcesResult(page) => {
            Ok((definitions(&page.resources)?, page.next_cursor))
        }
        ServerResult::ListResourceTemplatesResult(page) => {
            Ok((definitions(&page.resource_templates)?, page.next_cursor))
        }
        ServerResult::ListPromptsResult(page) => {
            Ok((definitions(&page.prompts)?, page.next_cursor))
        }
        _ => Err(ErrorData::internal_error(
            "the server's list is not a list",
            None,
        )),
    }
}

fn definitions<T: Serialize>(items: &[T]) -> Result<Vec<Value>, ErrorData> {
    items
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
