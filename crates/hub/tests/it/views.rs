//! What clients list: pages, cursors, exposure and changes.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_hub::proxy_tool::ProxyToolOptions;
use mcp_proxy_hub::{
    Catalog, CatalogView, ChangedKinds, ItemKind, ListExposure, OwnTool, ServerListing,
    ServerNaming, ToolExposure, ViewFilter, changed_kinds,
};

use crate::listings::{catalog, prompts, resources, server, server_as, text, tools};

fn names_on(page: &Bytes) -> Vec<String> {
    let items: Vec<serde_json::Value> = serde_json::from_slice(page).unwrap();
    let name = |item: &serde_json::Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

/// All pages of the tools, from a cursor on.
fn tool_pages(view: &CatalogView, cursor: Option<&str>) -> Vec<Vec<String>> {
    let mut cursor = cursor.map(str::to_owned);
    let mut pages = Vec::new();
    loop {
        let page = view.page(ItemKind::Tool, cursor.as_deref()).unwrap();
        let items = page.items();
        assert_eq!(items.len(), page.items_len());
        pages.push(names_on(&items));
        match page.next_cursor() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return pages,
        }
    }
}

fn filter(page_size: usize) -> ViewFilter {
    ViewFilter {
        page_size,
        ..ViewFilter::default()
    }
}

fn letters() -> Arc<Catalog> {
    catalog(vec![
        server("a", tools(&["1", "2", "3"])),
        server("b", tools(&["1", "2"])),
    ])
}

#[test]
fn pages_hold_all_tools_once_and_in_order() {
    let catalog = letters();
    let all = ["a_1", "a_2", "a_3", "b_1", "b_2"];
    for size in 1..7 {
        let pages = tool_pages(&catalog.view(&filter(size)), None);
        assert_eq!(pages.concat(), all, "{size}");
        assert!(pages.iter().all(|page| page.len() <= size));
    }
    assert_eq!(tool_pages(&catalog.view(&filter(0)), None).len(), 5);
}

#[test]
fn an_empty_list_is_one_empty_page() {
    let view = letters().view(&filter(10));
    let page = view.page(ItemKind::Prompt, None).unwrap();
    assert_eq!(text(&page.items()), "[]");
    assert_eq!(page.next_cursor(), None);
}

#[test]
fn a_page_is_made_of_the_definitions_as_they_are() {
    let view = letters().view(&filter(10));
    let definitions = view.entries(ItemKind::Tool);
    let definitions: Vec<_> = definitions
        .map(|entry| text(&entry.definition.to_bytes()).to_owned())
        .collect();
    let page = view.page(ItemKind::Tool, None).unwrap();
    assert_eq!(text(&page.items()), format!("[{}]", definitions.join(",")));
}

#[test]
fn own_tools_come_first() {
    let view = letters().view(&ViewFilter {
        own_tools: vec![OwnTool::Proxy(ProxyToolOptions::default())],
        ..filter(2)
    });
    assert_eq!(
        tool_pages(&view, None),
        [vec!["proxy", "a_1", "a_2"], vec!["a_3", "b_1"], vec!["b_2"]]
    );
    assert_eq!(view.listed_count(ItemKind::Tool), 6);
    assert_eq!(view.count(ItemKind::Tool), 5);
}

#[test]
fn tools_can_be_pinned_by_public_name_or_by_their_server() {
    let naming = ServerNaming {
        pinned: vec!["3".to_owned()],
        ..ServerNaming::new("a", "")
    };
    let catalog = catalog(vec![
        server_as(naming, tools(&["1", "2", "3"])),
        server("b", tools(&["1", "2"])),
    ]);
    let view = catalog.view(&ViewFilter {
        tools: ToolExposure::None,
        pinned: vec!["b_*".to_owned()],
        ..ViewFilter::default()
    });
    assert_eq!(tool_pages(&view, None), [["a_3", "b_1", "b_2"]]);
    assert!(view.resolve(ItemKind::Tool, None, "a_1").is_ok());
}

#[test]
fn resources_and_prompts_can_be_left_out_of_the_lists() {
    let catalog = catalog(vec![
        server("a", prompts(&["p"])),
        server("b", resources(&["demo://r"], &["demo://{t}"])),
    ]);
    let view = catalog.view(&ViewFilter {
        resources: ListExposure::Empty,
        prompts: ListExposure::Empty,
        ..ViewFilter::default()
    });
    for kind in [ItemKind::Resource, ItemKind::Template, ItemKind::Prompt] {
        assert_eq!(text(&view.page(kind, None).unwrap().items()), "[]");
        assert_eq!(view.count(kind), 1);
    }
}

#[test]
fn a_view_has_its_own_servers_tools_and_counts() {
    let view = letters().view(&ViewFilter {
        servers: Some(vec!["a".to_owned(), "unknown".to_owned()]),
        deny: vec!["*_2".to_owned()],
        ..ViewFilter::default()
    });
    assert_eq!(tool_pages(&view, None), [["a_1", "a_3"]]);
    assert_eq!(view.servers().len(), 1);
    assert_eq!(view.count(ItemKind::Tool), 2);
}

#[test]
fn a_cursor_survives_changes_of_the_catalog() {
    let view = letters().view(&filter(2));
    let page = view.page(ItemKind::Tool, None).unwrap();
    let cursor = page.next_cursor().unwrap();
    let after = |servers| tool_pages(&catalog(servers).view(&filter(9)), Some(cursor)).concat();
    let a = || server("a", tools(&["1", "2", "3"]));
    assert_eq!(after(vec![a()]), ["a_3"]);
    assert_eq!(
        after(vec![server("new", tools(&["1", "2", "3"])), a()]),
        ["a_3"]
    );
    assert_eq!(after(vec![server("a", tools(&["1", "3"]))]), ["a_3"]);
    assert!(after(vec![]).is_empty());
}

#[test]
fn a_cursor_of_our_own_making_only() {
    let view = letters().view(&filter(2));
    let page = view.page(ItemKind::Tool, None).unwrap();
    let good = page.next_cursor().unwrap();
    assert!(view.page(ItemKind::Tool, Some(good)).is_ok());
    assert!(view.page(ItemKind::Prompt, Some(good)).is_err());
    for bad in [
        "",
        "x",
        "1",
        "AAAAAAAAAAAAAAAAAAA",
        "é",
        &good[1..],
        &format!("{good}A"),
    ] {
        assert!(view.page(ItemKind::Tool, Some(bad)).is_err(), "{bad}");
    }
}

#[test]
fn only_lists_that_differ_are_announced() {
    let full = || {
        vec![
            server("a", tools(&["1"])),
            server("b", prompts(&["p"])),
            server("c", resources(&["demo://r"], &["demo://{t}"])),
        ]
    };
    let old = catalog(full()).view(&filter(1));
    let changed =
        |servers, filter: &ViewFilter| changed_kinds(&old, &catalog(servers).view(filter));
    assert_eq!(changed(full(), &filter(1)), ChangedKinds::default());
    assert_eq!(changed(full(), &filter(9)), ChangedKinds::default());
    let mut other = full();
    other[0] = server("a", tools(&["1", "2"]));
    other[2] = server("c", resources(&["demo://r"], &[]));
    let expected = ChangedKinds {
        tools: true,
        resources: true,
        prompts: false,
    };
    assert_eq!(changed(other, &filter(1)), expected);
    let own = ViewFilter {
        own_tools: vec![OwnTool::Proxy(ProxyToolOptions::default())],
        ..filter(1)
    };
    assert!(changed(full(), &own).tools);
}

#[test]
fn a_long_list_is_put_together_for_each_answer() {
    let description = "d".repeat(60_000);
    let tool = |number: usize| {
        let text = format!(r#"{{"name":"t{number}","description":"{description}"}}"#);
        Bytes::from(text)
    };
    let listing = ServerListing {
        tools: (0..20).map(tool).collect(),
        ..ServerListing::default()
    };
    let view = catalog(vec![server("s", listing)]).view(&filter(15));
    let first = view.page(ItemKind::Tool, None).unwrap();
    let second = view.page(ItemKind::Tool, first.next_cursor()).unwrap();
    let mut names = Vec::new();
    for page in [first, second] {
        let items = page.items();
        assert_eq!(items.len(), page.items_len());
        let tools: Vec<serde_json::Value> = serde_json::from_slice(&items).unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].to_string()));
    }
    assert_eq!(names.len(), 20);
    assert_eq!(names[19], r#""s_t19""#);
}
