//! All pages of a list, from servers that may be wrong about how many there are.

use std::collections::HashSet;

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::CallToolResult;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::discovery::takes_parameter;
use crate::error::ClientError;
use crate::operation::operation_arguments;
use crate::requests::within;
use crate::response_info::ProxyResponseInfo;
use crate::transform::{decode_embedded_resource, single_resource};

/// How many items are asked for at once.
const PAGE: u64 = 500;

/// The most items of one list. A server that has more does not end its list.
const MAX_ITEMS: usize = 100_000;

/// A list as it grows.
#[derive(Default)]
struct Pages {
    items: Vec<Value>,
    /// Names and URIs of the items.
    seen: HashSet<String>,
    offset: u64,
}

impl ProxyClient {
    /// Everything of this type behind the server.
    pub(super) async fn all_pages<T: DeserializeOwned>(
        &self,
        kind: CapabilityType,
    ) -> Result<Vec<T>, ClientError> {
        let tool = self.proxy_tool().ok_or_else(|| self.no_proxy_tool())?;
        // Servers of the older specification may refuse parameters that they do not know.
        let takes_limit = takes_parameter(tool, "limit");
        let takes_offset = takes_parameter(tool, "offset");
        let all_pages = async {
            let mut pages = Pages::default();
            loop {
                let mut arguments = operation_arguments(kind, ProxyAction::List, None, None);
                if takes_limit {
                    arguments.insert("limit".to_owned(), PAGE.into());
                }
                if takes_offset {
                    arguments.insert("offset".to_owned(), pages.offset.into());
                }
                let result = self.proxy_with(arguments, CallOptions::default()).await?;
                let info = ProxyResponseInfo::of_result(&result).unwrap_or_default();
                info.unavailable
                    .iter()
                    .for_each(|server| self.warn_of_unavailable(server));
                if !pages.add(page_items(result)?, &info) || !takes_offset {
                    return Ok(pages.items);
                }
                if pages.items.len() > MAX_ITEMS {
                    return Err(ClientError::decode(
                        format!("the list of {kind}s"),
                        "it does not end",
                    ));
                }
            }
        };
        let items = within(self.options.max_time, Box::pin(all_pages)).await?;
        Ok(self.decode_definitions(kind, &items))
    }
}

impl Pages {
    /// Adds a page. Whether there may be another, which then begins at `offset`.
    ///
    /// A full page means that there may be more, whatever the count says. A page that brings nothing new is the end: the
    /// server counts items that it does not have, or does not know `offset`.
    fn add(&mut self, page: Vec<Value>, info: &ProxyResponseInfo) -> bool {
        let length = page.len() as u64;
        let before = self.items.len();
        for item in page {
            let is_new = key(&item).is_none_or(|key| self.seen.insert(key));
            if is_new {
                self.items.push(item);
            }
        }
        if self.items.len() == before {
            return false;
        }
        let end = self.offset.saturating_add(length);
        let next = match info.next_offset {
            Some(next) => Some(next).filter(|next| *next > self.offset),
            None => {
                let counted = info.total_count.is_some_and(|total| end < total);
                (counted || length >= PAGE).then_some(end)
            }
        };
        self.offset = next.unwrap_or(end);
        next.is_some()
    }
}

/// The items of one page. Magg's empty page has no content at all.
fn page_items(result: CallToolResult) -> Result<Vec<Value>, ClientError> {
    if result.is_error == Some(true) {
        return Err(ClientError::from_failed_result(result));
    }
    if result.content.is_empty() {
        return Ok(Vec::new());
    }
    decode_embedded_resource(single_resource(&result, "the list")?)
}

/// What an item is known by. Without one it is never taken for another.
fn key(item: &Value) -> Option<String> {
    ["uri", "uriTemplate", "name"]
        .iter()
        .find_map(|member| Some(format!("{member} {}", item.get(*member)?.as_str()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(names: std::ops::Range<u64>) -> Vec<Value> {
        names
            .map(|name| json!({"name": name.to_string()}))
            .collect()
    }

    fn info(total: Option<u64>, next: Option<u64>) -> ProxyResponseInfo {
        ProxyResponseInfo {
            total_count: total,
            next_offset: next,
            ..ProxyResponseInfo::default()
        }
    }

    #[test]
    fn the_next_page_is_where_the_server_says() {
        let mut pages = Pages::default();
        assert!(pages.add(page(0..2), &info(Some(3), Some(2))));
        assert_eq!(pages.offset, 2);
        assert!(!pages.add(page(2..3), &info(Some(3), None)));
        assert_eq!(pages.items.len(), 3);
    }

    #[test]
    fn a_count_that_is_too_large_ends_with_a_page_that_brings_nothing() {
        let mut pages = Pages::default();
        assert!(pages.add(page(0..2), &info(Some(1_000_000), None)));
        assert!(!pages.add(page(0..0), &info(Some(1_000_000), None)));
    }

    #[test]
    fn a_server_without_offset_ends_with_the_second_page() {
        let mut pages = Pages::default();
        assert!(pages.add(page(0..2), &info(Some(100), None)));
        assert!(!pages.add(page(0..2), &info(Some(100), None)));
        assert_eq!(pages.items.len(), 2);
    }

    #[test]
    fn a_full_page_is_not_the_last_even_if_the_count_says_so() {
        let mut pages = Pages::default();
        assert!(pages.add(page(0..PAGE), &info(Some(3), None)));
        assert!(!pages.add(page(PAGE..PAGE + 3), &info(Some(3), None)));
        assert!(!Pages::default().add(page(0..3), &info(None, None)));
    }

    #[test]
    fn a_next_offset_that_does_not_advance_is_the_end() {
        let mut pages = Pages::default();
        assert!(!pages.add(page(0..2), &info(Some(9), Some(0))));
    }
}
