//! What holds for any listing.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_hub::{Catalog, ItemKind, ServerIndex, ServerListing, ServerNaming, ViewFilter};
use mcp_proxy_wire::Message;
use proptest::prelude::*;

use crate::listings::{Mounted, catalog, index_of};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c_]{1,4}",
        1 => "[a-z./ é世\"\\\\]{1,8}",
        1 => "[a-b]{60,70}",
    ]
}

fn uri() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(a|file|https)://[ab/]{0,4}",
        1 => "(urn|data):[ab]{0,3}",
        1 => "[a-z:/#?{}é]{1,10}",
        1 => Just("a://b#mcp-aaaaaaaa".to_owned()),
    ]
}

fn json_items(member: &'static str, texts: Vec<String>) -> Vec<Bytes> {
    let item = |text: String| Bytes::from(serde_json::json!({ member: text }).to_string());
    texts.into_iter().map(item).collect()
}

fn listing() -> impl Strategy<Value = ServerListing> {
    let names = || prop::collection::vec(name(), 0..5);
    let uris = || prop::collection::vec(uri(), 0..4);
    (names(), names(), uris(), uris()).prop_map(|(tools, prompts, resources, templates)| {
        ServerListing {
            tools: json_items("name", tools),
            resources: json_items("uri", resources),
            templates: json_items("uriTemplate", templates),
            prompts: json_items("name", prompts),
            about: None,
        }
    })
}

/// Any prefixes and separators, so that names collide.
fn any_server() -> impl Strategy<Value = (Option<String>, String, Option<ServerListing>)> {
    let prefix = prop::option::weighted(0.7, "[abA_]{0,2}");
    let separator = prop_oneof![
        Just("_".to_owned()),
        Just(String::new()),
        Just(".".to_owned())
    ];
    (prefix, separator, prop::option::weighted(0.8, listing()))
}

fn any_servers() -> impl Strategy<Value = Vec<Mounted>> {
    prop::collection::vec(any_server(), 1..5).prop_map(|servers| {
        let server = |(at, (prefix, separator, listing)): (usize, (_, _, Option<_>))| {
            let naming = ServerNaming {
                prefix,
                separator,
                ..ServerNaming::new(format!("server{at}"), "")
            };
            (Arc::new(naming), listing.map(Arc::new))
        };
        servers.into_iter().enumerate().map(server).collect()
    })
}

/// Servers with different default prefixes, which are all listed.
fn plain_servers() -> impl Strategy<Value = Vec<Mounted>> {
    prop::collection::vec(listing(), 1..5).prop_map(|listings| {
        let server = |(at, listing)| {
            let naming = ServerNaming::new(format!("server{at}"), "");
            (Arc::new(naming), Some(Arc::new(listing)))
        };
        listings.into_iter().enumerate().map(server).collect()
    })
}

fn names_of(catalog: &Catalog, server: ServerIndex) -> Vec<(ItemKind, String, String)> {
    let kinds = ItemKind::ALL.into_iter();
    kinds
        .flat_map(|kind| catalog.entries(kind))
        .filter(|entry| entry.server == server)
        .map(|entry| {
            (
                entry.kind,
                entry.original.to_string(),
                entry.public.to_string(),
            )
        })
        .collect()
}

proptest! {
    #[test]
    fn public_names_are_acceptable_and_unique_and_lead_back(servers in any_servers()) {
        let catalog = catalog(servers);
        let view = catalog.view(&ViewFilter::default());
        for kind in ItemKind::ALL {
            let mut seen = HashSet::new();
            for entry in catalog.entries(kind) {
                prop_assert!(seen.insert(&entry.public), "{} twice", entry.public);
                if matches!(kind, ItemKind::Tool | ItemKind::Prompt) {
                    prop_assert!((1..=64).contains(&entry.public.len()));
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                    prop_assert!(entry.public.bytes().all(plain), "{}", entry.public);
                }
                let item = view.resolve(kind, None, &entry.public).unwrap();
                // A template may be written like a resource, which is then preferred.
                if kind != ItemKind::Template {
                    prop_assert_eq!(item.server(), entry.server);
                    prop_assert_eq!(item.original(), &*entry.original);
                }
                let definition: serde_json::Value =
                    serde_json::from_slice(&entry.definition.to_bytes()).unwrap();
                let member = match kind {
                    ItemKind::Tool | ItemKind::Prompt => "name",
                    ItemKind::Resource => "uri",
                    ItemKind::Template => "uriTemplate",
                };
                prop_assert_eq!(definition[member].as_str(), Some(&*entry.public));
            }
        }
    }

    #[test]
    fn nothing_is_dropped_without_a_warning(servers in any_servers()) {
        let catalog = catalog(servers.clone());
        let entries: usize = ItemKind::ALL.map(|kind| catalog.entries(kind).len()).iter().sum();
        let listings = servers.iter().filter_map(|(_, listing)| listing.as_deref());
        let given: usize = listings
            .map(|listing| ItemKind::ALL.map(|kind| listing.items(kind).len()).iter().sum::<usize>())
            .sum();
        prop_assert!(given - entries <= catalog.warnings().len());
    }

    #[test]
    fn other_servers_change_neither_names_nor_order(servers in plain_servers(), keep in 0_usize..5) {
        let keep = keep % servers.len();
        let all = catalog(servers.clone());
        let alone = catalog(vec![servers[keep].clone()]);
        let name = &servers[keep].0.name;
        let without_prefixless = |names: Vec<(ItemKind, String, String)>| -> Vec<_> {
            // Two servers may have the same URI without a place for a prefix.
            names.into_iter().filter(|(_, original, public)| original != public && !public.contains("#mcp-")).collect()
        };
        let there = without_prefixless(names_of(&all, index_of(&all, name)));
        let here = without_prefixless(names_of(&alone, index_of(&alone, name)));
        prop_assert_eq!(there, here);
    }

    #[test]
    fn a_published_uri_leads_back(servers in any_servers(), uri in uri(), server in 0_u16..5) {
        let catalog = catalog(servers);
        let server = ServerIndex(server);
        if let Some(public) = catalog.publish_uri(server, &uri) {
            let view = catalog.view(&ViewFilter::default());
            let item = view.resolve(ItemKind::Resource, None, &public).unwrap();
            prop_assert_eq!(item.server(), server);
            prop_assert_eq!(item.original(), uri);
        }
    }

    #[test]
    fn no_bytes_do_harm(items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6), text in "\\PC{0,12}") {
        let items: Vec<Bytes> = items.into_iter().map(Bytes::from).collect();
        let listing = ServerListing {
            tools: items.clone(),
            resources: items.clone(),
            templates: items.clone(),
            prompts: items.clone(),
            about: None,
        };
        let naming = Arc::new(ServerNaming::new(&text, &text));
        let catalog = Arc::new(Catalog::build(&[(naming, Some(Arc::new(listing)))]));
        let view = catalog.view(&ViewFilter::default());
        for kind in ItemKind::ALL {
            let _ = view.resolve(kind, None, &text);
            let _ = view.resolve(kind, Some(&text), &text);
            let _ = view.page(kind, Some(&text));
        }
        for item in &items {
            catalog.publish_result(ServerIndex(0), item);
            catalog.notification_edits(ServerIndex(1), &Message::parse(item.clone()));
            catalog.call_arguments(ServerIndex(0), &text, Some(item.clone()));
        }
    }
}
