//! The pages of a server's own lists, for clients that follow them and for the proxy tool, which asks its own server.

use std::collections::HashSet;

use mcp_proxy_tool::ItemKind;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};

/// The most pages of one list. A server that has more does not end its list.
const MAX_PAGES: usize = 10_000;

/// The cursors of a list so far.
#[derive(Default)]
pub(crate) struct PageCursors {
    seen: HashSet<String>,
}

impl PageCursors {
    /// Where the page after this one begins, if there is one. An error if the list would not end.
    pub(crate) fn follow(&mut self, next: Option<String>) -> Result<Option<String>, &'static str> {
        let Some(next) = next else {
            return Ok(None);
        };
        if self.seen.len() == MAX_PAGES {
            return Err("the list does not end");
        }
        match self.seen.insert(next.clone()) {
            true => Ok(Some(next)),
            false => Err("the list repeats a page"),
        }
    }
}

/// Asks for the page of a list that begins at `cursor`.
pub(crate) fn list_request(kind: ItemKind, cursor: Option<String>) -> ClientRequest {
    let page = PaginatedRequestParams::default().with_cursor(cursor);
    match kind {
        ItemKind::Tool => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
        ItemKind::Resource => {
            ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page))
        }
        ItemKind::Template => ClientRequest::ListResourceTemplatesRequest(
            ListResourceTemplatesRequest::with_param(page),
        ),
        ItemKind::Prompt => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_without_a_cursor_and_fails_with_an_old_one() {
        let mut cursors = PageCursors::default();
        let next = |text: &str| Some(text.to_owned());
        assert_eq!(cursors.follow(next("2")), Ok(next("2")));
        assert_eq!(cursors.follow(next("3")), Ok(next("3")));
        assert!(cursors.follow(next("2")).is_err());
        assert_eq!(cursors.follow(None), Ok(None));
        for number in 0..MAX_PAGES - 2 {
            assert!(cursors.follow(next(&format!("page {number}"))).is_ok());
        }
        assert!(cursors.follow(next("one more")).is_err());
    }
}
