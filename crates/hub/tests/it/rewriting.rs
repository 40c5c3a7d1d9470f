//! Requests and results between public and original names.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_hub::{Catalog, ItemKind, ServerIndex, ServerNaming, ViewFilter};
use mcp_proxy_wire::{Message, Span};

use crate::listings::{
    bare, catalog, index_of, prompts, resources, server, server_as, text, tools,
};

const FIRST: ServerIndex = ServerIndex(0);

fn files() -> Arc<Catalog> {
    catalog(vec![server(
        "files",
        resources(&["https://e.org/listed"], &["https://e.org/items/{id}"]),
    )])
}

fn published(result: &'static str) -> String {
    let result = Bytes::from_static(result.as_bytes());
    text(&files().publish_result(FIRST, &result)).to_owned()
}

fn spliced(message: &Message, edits: &[(Span, Vec<u8>)]) -> String {
    let edits: Vec<_> = edits.iter().map(|(span, new)| (*span, &new[..])).collect();
    let raw = message.splice_raw(&edits).unwrap();
    text(&raw).to_owned()
}

/// The request as the server gets it.
fn sent(catalog: &Arc<Catalog>, kind: ItemKind, name: &str, request: &'static str) -> String {
    let view = catalog.view(&ViewFilter::default());
    let item = view.resolve(kind, None, name).unwrap();
    let request = Message::parse(request);
    spliced(&request, &catalog.request_edits(&request, &item).unwrap())
}

#[test]
fn uris_in_results_are_public() {
    assert_eq!(
        published(r#"{"contents":[{"uri":"file:///a","text":"uri"}, {"uri" : "urn:x"}]}"#),
        r#"{"contents":[{"uri":"file://files/a","text":"uri"}, {"uri" : "urn:x"}]}"#
    );
    assert_eq!(
        published(
            r#"{"content":[{"type":"text","uri":"a://b"},{"type":"resource","resource":{"uri":"a:\/\/b"}},{"uri":"a://c","type":"resource_link"}],"structuredContent":{"uri":"a://b"}}"#
        ),
        r#"{"content":[{"type":"text","uri":"a://b"},{"type":"resource","resource":{"uri":"a://files/b"}},{"uri":"a://files/c","type":"resource_link"}],"structuredContent":{"uri":"a://b"}}"#
    );
    assert_eq!(
        published(
            r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a://b"}}},{"content":[{"type":"resource_link","uri":"a://c"}]}]}"#
        ),
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a://files/b"}}},{"content":[{"type":"resource_link","uri":"a://files/c"}]}]}"#
    );
}

#[test]
fn web_addresses_are_public_only_if_the_server_offers_them() {
    let catalog = files();
    let publish = |uri| catalog.publish_uri(FIRST, uri);
    assert_eq!(publish("https://e.org/other"), None);
    assert_eq!(
        publish("https://e.org/listed").as_deref(),
        Some("https://files/e.org/listed")
    );
    assert_eq!(
        publish("https://e.org/items/1").as_deref(),
        Some("https://files/e.org/items/1")
    );
}

#[test]
fn opaque_uris_of_two_servers_are_listed_and_read_back() {
    let listing = || resources(&["urn:isbn:1"], &["urn:issn:{n}"]);
    let catalog = catalog(vec![
        server("one", listing()),
        server("two", listing()),
        server("three", resources(&["urn:isbn:3"], &[])),
    ]);
    let view = catalog.view(&ViewFilter::default());
    for entry in view.entries(ItemKind::Resource) {
        let item = view
            .resolve(ItemKind::Resource, None, &entry.public)
            .unwrap();
        assert_eq!(
            (item.server(), item.original()),
            (entry.server, &*entry.original)
        );
    }
    for entry in view.entries(ItemKind::Template) {
        let expanded = entry.public.replace("{n}", "7");
        let item = view.resolve(ItemKind::Resource, None, &expanded).unwrap();
        assert_eq!(
            (item.server(), item.original()),
            (entry.server, "urn:issn:7")
        );
    }
    // A result may name what its server does not list.
    for name in ["one", "two", "three"] {
        let server = index_of(&catalog, name);
        for uri in ["urn:isbn:1", "urn:isbn:2", "urn:issn:5", "tag:x:y"] {
            let public = catalog.publish_uri(server, uri).unwrap();
            let item = view.resolve(ItemKind::Resource, None, &public).unwrap();
            assert_eq!((item.server(), item.original()), (server, uri));
        }
        for uri in ["data:,text", "no uri"] {
            assert_eq!(catalog.publish_uri(server, uri), None);
        }
    }
}

#[test]
fn what_is_not_a_result_passes_as_it_is() {
    for result in [
        "",
        "uri",
        "[]",
        r#"{"uri":1,"content":"uri"}"#,
        r#"{"content":[{"type":"resource_link","uri":7}]}"#,
        r#"{"contents":{"uri":"a://b"}}"#,
    ] {
        assert_eq!(published(result), result);
    }
}

#[test]
fn updates_name_the_public_uri() {
    let catalog = files();
    let message =
        Message::parse(r#"{"method":"notifications/resources/updated","params":{"uri":"a://b"}}"#);
    let edits = catalog.notification_edits(FIRST, &message);
    assert_eq!(
        spliced(&message, &edits),
        r#"{"method":"notifications/resources/updated","params":{"uri":"a://files/b"}}"#
    );
}

#[test]
fn edits_of_a_message_can_be_made_in_place() {
    let message =
        Message::parse(r#"{"id":1,"result":{"contents":[{"uri":"a://b"}]},"uri":"a://b"}"#);
    let edits = files().result_edits(FIRST, &message, message.result().unwrap());
    assert_eq!(
        spliced(&message, &edits),
        r#"{"id":1,"result":{"contents":[{"uri":"a://files/b"}]},"uri":"a://b"}"#
    );
}

#[test]
fn requests_name_what_the_server_knows() {
    let mut listing = resources(&["a://b"], &["a://{x}/y"]);
    listing.tools = tools(&["add"]).tools;
    listing.prompts = prompts(&["p"]).prompts;
    let catalog = catalog(vec![server("s", listing)]);
    assert_eq!(
        sent(
            &catalog,
            ItemKind::Tool,
            "s_add",
            r#"{"id":1,"method":"tools/call","params":{"name":"s_add","arguments":{"a":1.0}}}"#
        ),
        r#"{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1.0}}}"#
    );
    assert_eq!(
        sent(
            &catalog,
            ItemKind::Resource,
            "a://s/b",
            r#"{"id":1,"method":"resources/read","params":{"uri":"a://s/b"}}"#
        ),
        r#"{"id":1,"method":"resources/read","params":{"uri":"a://b"}}"#
    );
    assert_eq!(
        sent(
            &catalog,
            ItemKind::Prompt,
            "s_p",
            r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"s_p"},"argument":{"name":"x"}}}"#
        ),
        r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x"}}}"#
    );
    assert_eq!(
        sent(
            &catalog,
            ItemKind::Template,
            "a://s/{x}/y",
            r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a://s/{x}/y"}}}"#
        ),
        r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a://{x}/y"}}}"#
    );
}

#[test]
fn fixed_arguments_are_added_and_hidden_ones_removed() {
    let fixed = BTreeMap::from([("key".to_owned(), r#"{"k":1}"#.to_owned())]);
    let naming = ServerNaming {
        fixed_arguments: BTreeMap::from([("add".to_owned(), fixed)]),
        hidden_arguments: BTreeMap::from([
            ("add".to_owned(), vec!["debug".to_owned()]),
            ("sub".to_owned(), vec!["debug".to_owned()]),
        ]),
        ..ServerNaming::new("s", "")
    };
    let catalog = catalog(vec![server_as(naming, tools(&["add", "sub", "mul"]))]);
    let arguments = |tool: &str, given: Option<&'static str>| {
        let given = given.map(|given| Bytes::from_static(given.as_bytes()));
        let sent = catalog.call_arguments(FIRST, tool, given);
        sent.map(|sent| text(&sent).to_owned())
    };
    for (given, expected) in [
        (r#"{"a":1, "key":"mine"}"#, r#"{"a":1,"key":{"k":1}}"#),
        (
            r#"{"key":1,"a":2,"\u006bey":3,"debug":1 }"#,
            r#"{"a":2 ,"key":{"k":1}}"#,
        ),
        (r#"{"debug":1}"#, r#"{"key":{"k":1}}"#),
        (" { } ", r#" { "key":{"k":1}} "#),
        (r#"{"Key":1,"DEBUG":1,"b":2}"#, r#"{"b":2,"key":{"k":1}}"#),
        ("{\"\u{212a}ey\":1}", r#"{"key":{"k":1}}"#),
        ("null", r#"{"key":{"k":1}}"#),
    ] {
        assert_eq!(arguments("add", Some(given)).as_deref(), Some(expected));
    }
    for given in ["[1]", "{", r#""{\"key\":1}""#, "1"] {
        assert_eq!(arguments("add", Some(given)), None);
        assert_eq!(arguments("mul", Some(given)).as_deref(), Some(given));
    }
    assert_eq!(
        arguments("add", None).as_deref(),
        Some(r#"{"key":{"k":1}}"#)
    );
    assert_eq!(arguments("sub", None).as_deref(), Some("{}"));
    assert_eq!(arguments("mul", None), None);
    assert_eq!(
        arguments("sub", Some(r#"{"debug":1}"#)).as_deref(),
        Some("{}")
    );
    assert_eq!(arguments("mul", Some("{}")).as_deref(), Some("{}"));
    assert_eq!(
        sent(
            &catalog,
            ItemKind::Tool,
            "s_add",
            r#"{"id":1,"method":"tools/call","params":{"name":"s_add"}}"#
        ),
        r#"{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"key":{"k":1}}}}"#
    );
}

#[test]
fn a_uri_that_would_lead_to_another_server_is_marked() {
    let catalog = catalog(vec![
        server_as(bare("one"), resources(&["a://x"], &["t://{id}"])),
        server_as(bare("two"), resources(&["a://x"], &["t://{id}"])),
        server("calc", resources(&["urn:x"], &[])),
        server("other", resources(&[], &[])),
    ]);
    let view = catalog.view(&ViewFilter::default());
    for (name, uri) in [
        ("one", "a://x"),
        ("two", "a://x"),
        ("one", "t://1"),
        ("two", "t://1"),
        ("one", "a://calc/unlisted"),
        ("two", "a://unlisted"),
        ("calc", "a://calc/x"),
        ("other", "urn:x"),
        ("calc", "urn:isbn:unlisted"),
        ("other", "urn:isbn:unlisted"),
        ("other", "a://x#mcp-aaaaaaaa"),
    ] {
        let server = index_of(&catalog, name);
        let public = catalog.publish_uri(server, uri);
        let public = public.as_deref().unwrap_or(uri);
        let item = view.resolve(ItemKind::Resource, None, public).unwrap();
        assert_eq!((item.server(), item.original()), (server, uri), "{public}");
    }
}

#[test]
fn a_uri_that_another_server_has_as_a_template_is_marked() {
    let catalog = catalog(vec![
        server_as(bare("plain"), resources(&[], &["a://b/"])),
        server("b", resources(&[], &[])),
    ]);
    let second = ServerIndex(1);
    let public = catalog.publish_uri(second, "a://").unwrap();
    let view = catalog.view(&ViewFilter::default());
    let item = view.resolve(ItemKind::Resource, None, &public).unwrap();
    assert_eq!((item.server(), item.original()), (second, "a://"));
}
