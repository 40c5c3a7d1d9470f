//! From listings to public definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_hub::{
    AllowedNames, Catalog, CatalogWarning, Hints, ItemKind, LookupError, ServerIndex,
    ServerListing, ServerNaming, UnusableDefinition, ViewFilter,
};

use crate::listings::{
    bare, catalog, prompts, public, resources, server, server_as, text, tools, unlisted,
};

fn tool(definition: &'static str, naming: ServerNaming) -> String {
    let listing = ServerListing {
        tools: vec![Bytes::from_static(definition.as_bytes())],
        ..ServerListing::default()
    };
    let catalog = catalog(vec![server_as(naming, listing)]);
    text(&catalog.entries(ItemKind::Tool)[0].definition.to_bytes()).to_owned()
}

fn map<V>(key: &str, value: V) -> BTreeMap<String, V> {
    BTreeMap::from([(key.to_owned(), value)])
}

#[test]
fn names_and_uris_get_the_prefix_of_their_server() {
    let catalog = catalog(vec![
        server("my_calc", tools(&["add", "sub"])),
        server("greet", prompts(&["hello"])),
        server(
            "files",
            resources(&["file:///a", "urn:x"], &["db://{table}"]),
        ),
    ]);
    assert_eq!(
        public(&catalog, ItemKind::Tool),
        ["mycalc_add", "mycalc_sub"]
    );
    assert_eq!(public(&catalog, ItemKind::Prompt), ["greet_hello"]);
    assert_eq!(
        public(&catalog, ItemKind::Resource),
        ["file://files/a", "urn:x"]
    );
    assert_eq!(public(&catalog, ItemKind::Template), ["db://files/{table}"]);
    assert_eq!(catalog.warnings(), []);
}

#[test]
fn prefix_and_separator_can_be_chosen() {
    let naming = ServerNaming {
        prefix: Some("m".to_owned()),
        separator: "--".to_owned(),
        ..ServerNaming::new("calc", "")
    };
    let catalog = catalog(vec![
        server_as(naming, tools(&["add"])),
        server_as(bare("other"), tools(&["mul"])),
    ]);
    assert_eq!(public(&catalog, ItemKind::Tool), ["m--add", "mul"]);
}

#[test]
fn a_definition_changes_only_where_it_has_to() {
    let shown = tool(
        r#" { "description" : "a\u0064ds", "name":"add","x":1.0, "name" : "sum" } "#,
        ServerNaming::new("calc", ""),
    );
    assert_eq!(
        shown,
        r#"{ "description" : "a\u0064ds", "name":"add","x":1.0, "name" : "calc_sum" }"#
    );
}

#[test]
fn hidden_and_fixed_arguments_are_not_shown() {
    let naming = ServerNaming {
        hidden_arguments: map("add", vec!["a".to_owned()]),
        fixed_arguments: map("add", map("c", "3".to_owned())),
        ..bare("calc")
    };
    let definition = r#"{"name":"add","inputSchema":{"type":"object","properties":{"a":{},"b":{"x":"a"},"c":{}},"required":["a","b"]}}"#;
    assert_eq!(
        tool(definition, naming),
        r#"{"name":"add","inputSchema":{"type":"object","properties":{"b":{"x":"a"}},"required":["b"]}}"#
    );
}

#[test]
fn tools_can_be_renamed_and_described() {
    let naming = ServerNaming {
        rename: map("add", "plus".to_owned()),
        descriptions: map("add", "Adds \"two\"".to_owned()),
        ..ServerNaming::new("calc", "")
    };
    assert_eq!(
        tool(r#"{"name":"add","description":"old"}"#, naming.clone()),
        r#"{"name":"calc_plus","description":"Adds \"two\""}"#
    );
    assert_eq!(
        tool(r#"{"name":"add"}"#, naming),
        r#"{"name":"calc_plus","description":"Adds \"two\""}"#
    );
}

#[test]
fn the_app_of_a_tool_is_named_by_its_public_uri() {
    assert_eq!(
        tool(
            r#"{"name":"add","_meta":{"ui":{"resourceUri":"ui://app"},"ui/resourceUri":"ui://app"}}"#,
            ServerNaming::new("calc", "")
        ),
        r#"{"name":"calc_add","_meta":{"ui":{"resourceUri":"ui://calc/app"},"ui/resourceUri":"ui://calc/app"}}"#
    );
}

#[test]
fn only_allowed_tools_are_mounted() {
    let naming = ServerNaming {
        tools: AllowedNames {
            allow: Some(vec!["get_*".to_owned()]),
            deny: vec!["*_secret".to_owned()],
            ..AllowedNames::default()
        },
        ..bare("x")
    };
    let listing = tools(&["get_a", "get_secret", "set_a"]);
    let catalog = catalog(vec![server_as(naming, listing)]);
    assert_eq!(public(&catalog, ItemKind::Tool), ["get_a"]);
    assert_eq!(catalog.warnings(), []);
}

#[test]
fn hints_are_read_from_annotations() {
    let listing = ServerListing {
        tools: vec![Bytes::from_static(
            br#"{"name":"a","annotations":{"readOnlyHint":true,"idempotentHint":"true"}}"#,
        )],
        ..ServerListing::default()
    };
    let catalog = catalog(vec![server("x", listing)]);
    let expected = Hints {
        read_only: true,
        idempotent: false,
    };
    assert_eq!(catalog.entries(ItemKind::Tool)[0].hints, expected);
}

#[test]
fn a_taken_prefix_is_told_apart_whoever_is_up() {
    let both = catalog(vec![
        server("a_b", tools(&["x"])),
        server("ab", tools(&["x"])),
    ]);
    let second_only = catalog(vec![unlisted("a_b"), server("ab", tools(&["x"]))]);
    assert_eq!(public(&both, ItemKind::Tool)[0], "ab_x");
    assert_eq!(
        public(&both, ItemKind::Tool)[1],
        public(&second_only, ItemKind::Tool)[0]
    );
    let [CatalogWarning::PrefixTaken { server, wanted, .. }] = both.warnings() else {
        panic!("{:?}", both.warnings());
    };
    assert_eq!((server.as_str(), wanted.as_str()), ("ab", "ab"));
}

#[test]
fn a_name_that_two_servers_want_is_nobodys() {
    let servers = || {
        vec![
            server_as(bare("one"), tools(&["read", "list"])),
            server_as(bare("two"), tools(&["read"])),
        ]
    };
    let both = catalog(servers());
    let names = public(&both, ItemKind::Tool);
    assert_eq!(names[1], "list");
    for (at, server) in [(0, "one"), (2, "two")] {
        assert!(names[at].starts_with("read_") && names[at].len() == 13);
        assert!(text(&both.entries(ItemKind::Tool)[at].definition.to_bytes()).contains(names[at]));
        assert!(both.warnings().iter().any(|warning| matches!(
            warning,
            CatalogWarning::NameTaken { server: named, given, .. }
                if named == server && given == names[at]
        )));
    }
    let view = both.view(&ViewFilter::default());
    let error = view.resolve(ItemKind::Tool, None, "read").unwrap_err();
    assert!(matches!(
        error,
        LookupError::Ambiguous { candidates, .. } if candidates == [names[0], names[2]]
    ));
    let mut more = servers();
    more.insert(1, server("between", tools(&["x"])));
    assert_eq!(public(&catalog(more), ItemKind::Tool)[3], names[2]);
}

#[test]
fn a_name_never_changes_its_meaning_because_another_server_comes_up() {
    // One is without a prefix, so that it can have a name with the prefix of the other.
    let other = || server_as(bare("b"), tools(&["a_x", "y"]));
    let early = catalog(vec![unlisted("a"), other()]);
    let late = catalog(vec![server("a", tools(&["x", "z"])), other()]);
    let meaning = |catalog: &Arc<Catalog>, name: &str| {
        let view = catalog.view(&ViewFilter::default());
        let found = view.resolve(ItemKind::Tool, None, name);
        found.map(|item| item.server()).ok()
    };
    assert_eq!(meaning(&early, "a_x"), Some(ServerIndex(1)));
    assert_eq!(meaning(&late, "a_x"), None);
    assert_eq!(meaning(&late, "y"), meaning(&early, "y"));
    // Whoever sees only one of them finds what it has.
    let only = ViewFilter {
        servers: Some(vec!["b".to_owned()]),
        ..ViewFilter::default()
    };
    let view = late.view(&only);
    let found = view.resolve(ItemKind::Tool, None, "a_x").unwrap();
    assert_eq!(found.server(), ServerIndex(1));
}

#[test]
fn own_tools_keep_their_names() {
    let (naming, listing) = server_as(bare("x"), tools(&["proxy"]));
    let catalog = Catalog::build_reserving(&[(naming, listing)], &["proxy"]);
    assert_ne!(public(&catalog, ItemKind::Tool), ["proxy"]);
    assert_eq!(catalog.warnings().len(), 1);
}

#[test]
fn what_is_not_a_definition_is_reported() {
    let items = [
        "1",
        r#"{"title":"t"}"#,
        r#"{"name":""}"#,
        r#"{"name":7}"#,
        "{",
        r#"{"name":"a"}"#,
    ];
    let listing = ServerListing {
        tools: items.map(|item| Bytes::from_static(item.as_bytes())).into(),
        ..ServerListing::default()
    };
    let catalog = catalog(vec![server("x", listing)]);
    assert_eq!(public(&catalog, ItemKind::Tool), ["x_a"]);
    let problems: Vec<_> = catalog
        .warnings()
        .iter()
        .map(|warning| match warning {
            CatalogWarning::Unusable {
                position, problem, ..
            } => (*position, *problem),
            other => panic!("{other:?}"),
        })
        .collect();
    let no_name = UnusableDefinition::NoName("name");
    let no_object = UnusableDefinition::NotAnObject;
    assert_eq!(
        problems,
        [
            (1, no_object),
            (2, no_name),
            (3, no_name),
            (4, no_name),
            (5, no_object)
        ]
    );
}

#[test]
fn a7_a_definition_that_is_nested_too_deeply_is_left_out_and_reported() {
    let deep = |levels: usize| {
        let schema = "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        Bytes::from(format!(r#"{{"name":"deep","inputSchema":{schema}}}"#))
    };
    let listing = |levels| ServerListing {
        tools: vec![deep(levels), Bytes::from_static(br#"{"name":"a"}"#)],
        ..ServerListing::default()
    };
    let with_deep = catalog(vec![server("x", listing(120))]);
    assert_eq!(public(&with_deep, ItemKind::Tool), ["x_a"]);
    assert!(matches!(
        with_deep.warnings(),
        [CatalogWarning::Unusable {
            problem: UnusableDefinition::TooDeep,
            position: 1,
            ..
        }]
    ));
    let without = catalog(vec![server("x", listing(119))]);
    assert_eq!(public(&without, ItemKind::Tool), ["x_deep", "x_a"]);
}

#[test]
fn the_same_name_twice_in_one_listing_is_reported() {
    let catalog = catalog(vec![server("x", tools(&["a", "a"]))]);
    assert_eq!(public(&catalog, ItemKind::Tool), ["x_a"]);
    assert!(matches!(
        catalog.warnings(),
        [CatalogWarning::Duplicate { original, .. }] if original == "a"
    ));
}

#[test]
fn warnings_read_well() {
    let namings = [
        bare("one"),
        bare("two"),
        ServerNaming::new("a", ""),
        ServerNaming::new("a!", ""),
    ];
    let mut listing = tools(&["read", "read"]);
    listing.tools.push(Bytes::from_static(b"[]"));
    let listing = Arc::new(listing);
    let servers = namings.map(|naming| (Arc::new(naming), Some(listing.clone())));
    let catalog = Catalog::build(&servers[..]);
    let texts: Vec<String> = catalog.warnings().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
}
