//! All pages of a list, from servers that may be wrong about how many there are.

use std::collections::HashSet;

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::CallToolResult;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::discovery::takes_parameter;
use crate::error::ClientError;
use crate::operation::operation_arguments;
use crate::requests::within;
use crate::response_info::ProxyResponseInfo;
use crate::transform::{as_on_the_wire, resource_text, single_resource};
use crate::transport::{SkippedDefinition, read_item};

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

/// A page as the server sent it.
#[derive(Default)]
struct ReadPage {
    items: Vec<Value>,
    skipped: Vec<SkippedDefinition>,
    /// How many items the server counts, with those that were skipped.
    length: u64,
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
                let page = read_page(result)?;
                for skipped in page.skipped {
                    self.warn_of_skipped(kind, skipped);
                }
                if !pages.add(page.items, page.length, &info) || !takes_offset {
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
    fn add(&mut self, page: Vec<Value>, length: u64, info: &ProxyResponseInfo) -> bool {
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

/// The items of one page, each read by itself, so that one which is nested too deeply does not cost the others. Magg's
/// empty page has no content at all.
fn read_page(result: CallToolResult) -> Result<ReadPage, ClientError> {
    if result.is_error == Some(true) {
        return Err(ClientError::from_failed_result(result));
    }
    let mut page = ReadPage::default();
    if result.content.is_empty() {
        return Ok(page);
    }
    let (uri, text) = resource_text(single_resource(&result, "the list")?)?;
    let items: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| ClientError::decode(uri, error))?;
    page.length = items.len() as u64;
    for item in items {
        match read_item(item) {
            Ok(item) => page.items.push(as_on_the_wire(item)),
            Err(skipped) => page.skipped.push(skipped),
        }
    }
    Ok(page)
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

    fn add(pages: &mut Pages, page: Vec<Value>, info: &ProxyResponseInfo) -> bool {
        let length = page.len() as u64;
        pages.add(page, length, info)
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
        assert!(add(&mut pages, page(0..2), &info(Some(3), Some(2))));
        assert_eq!(pages.offset, 2);
        assert!(!add(&mut pages, page(2..3), &info(Some(3), None)));
        assert_eq!(pages.items.len(), 3);
    }

    #[test]
    fn a_count_that_is_too_large_ends_with_a_page_that_brings_nothing() {
        let mut pages = Pages::default();
        assert!(add(&mut pages, page(0..2), &info(Some(1_000_000), None)));
        assert!(!add(&mut pages, page(0..0), &info(Some(1_000_000), None)));
    }

    #[test]
    fn a_server_without_offset_ends_with_the_second_page() {
        let mut pages = Pages::default();
        assert!(add(&mut pages, page(0..2), &info(Some(100), None)));
        assert!(!add(&mut pages, page(0..2), &info(Some(100), None)));
        assert_eq!(pages.items.len(), 2);
    }

    #[test]
    fn a_full_page_is_not_the_last_even_if_the_count_says_so() {
        let mut pages = Pages::default();
        assert!(add(&mut pages, page(0..PAGE), &info(Some(3), None)));
        assert!(!add(&mut pages, page(PAGE..PAGE + 3), &info(Some(3), None)));
        assert!(!add(&mut Pages::default(), page(0..3), &info(None, None)));
    }

    #[test]
    fn a_next_offset_that_does_not_advance_is_the_end() {
        let mut pages = Pages::default();
        assert!(!add(&mut pages, page(0..2), &info(Some(9), Some(0))));
    }
}
