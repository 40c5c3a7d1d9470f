//! One resolver for everything that can be named.

use mcp_proxy_hub::{
    CatalogView, ItemKind, LookupError, ResolvedItem, ServerIndex, ServerNaming, ToolExposure,
    ViewFilter,
};

use crate::listings::{
    bare, catalog, prompts, resources, server, server_as, tools, unlisted, view,
};

fn found(view: &CatalogView, kind: ItemKind, server: Option<&str>, name: &str) -> (u16, String) {
    match view.resolve(kind, server, name) {
        Ok(item) => (item.server().0, item.original().to_owned()),
        Err(error) => panic!("{name}: {error}"),
    }
}

fn tool(view: &CatalogView, server: Option<&str>, name: &str) -> (u16, String) {
    found(view, ItemKind::Tool, server, name)
}

fn resource(view: &CatalogView, name: &str) -> (u16, String) {
    found(view, ItemKind::Resource, None, name)
}

fn at(server: u16, original: &str) -> (u16, String) {
    (server, original.to_owned())
}

fn two_servers() -> CatalogView {
    view(vec![
        server("Calc One", tools(&["add", "both", "files.read"])),
        server("other", tools(&["mul", "both"])),
    ])
}

#[test]
fn a_tool_is_found_by_each_of_its_names() {
    let view = two_servers();
    for name in ["CalcOne_add", "add"] {
        assert_eq!(tool(&view, None, name), at(0, "add"));
    }
    for server in [
        "Calc One", "c1", "CalcOne", "CalcOne_", "default", "Primary",
    ] {
        for name in ["add", "CalcOne_add"] {
            assert_eq!(tool(&view, Some(server), name), at(0, "add"), "{server}");
        }
    }
    assert_eq!(tool(&view, Some("c2"), "both"), at(1, "both"));
}

#[test]
fn a_shortened_name_is_found_by_both_forms() {
    let view = two_servers();
    let short = view.entries(ItemKind::Tool).nth(2).unwrap().public.clone();
    for name in [&*short, "CalcOne_files.read", "files.read"] {
        assert_eq!(tool(&view, None, name), at(0, "files.read"));
    }
}

#[test]
fn a_renamed_tool_is_found_by_both_names() {
    let mut naming = ServerNaming::new("calc", "");
    naming.rename.insert("add".to_owned(), "plus".to_owned());
    let view = view(vec![server_as(naming, tools(&["add"]))]);
    for name in ["calc_plus", "calc_add", "plus", "add"] {
        assert_eq!(tool(&view, None, name), at(0, "add"), "{name}");
    }
}

#[test]
fn a_name_of_several_servers_is_ambiguous() {
    let view = two_servers();
    let Err(LookupError::Ambiguous { candidates, .. }) = view.resolve(ItemKind::Tool, None, "both")
    else {
        panic!();
    };
    assert_eq!(candidates, ["CalcOne_both", "other_both"]);
}

#[test]
fn d7_a_prefix_that_the_name_has_is_not_doubled_and_both_forms_are_found() {
    let view = view(vec![
        server("git", tools(&["git_log", "git_status", "clone"])),
        server("fetch", tools(&["fetch"])),
        server("web", tools(&["fetch", "open"])),
    ]);
    let names: Vec<&str> = view
        .entries(ItemKind::Tool)
        .map(|entry| &*entry.public)
        .collect();
    let expected = [
        "git_log",
        "git_status",
        "git_clone",
        "fetch",
        "web_fetch",
        "web_open",
    ];
    assert_eq!(names, expected);
    for name in ["git_log", "git_git_log"] {
        assert_eq!(tool(&view, None, name), at(0, "git_log"), "{name}");
        assert_eq!(tool(&view, Some("git"), name), at(0, "git_log"), "{name}");
    }
    for name in ["fetch", "fetch_fetch"] {
        assert_eq!(tool(&view, None, name), at(1, "fetch"), "{name}");
    }
    // The own name alone, if only one server has it.
    assert_eq!(tool(&view, None, "open"), at(2, "open"));
    assert_eq!(tool(&view, None, "clone"), at(0, "clone"));
}

#[test]
fn d7_rules_and_pins_know_both_forms() {
    let catalog = catalog(vec![server(
        "git",
        tools(&["git_log", "git_push", "log_all"]),
    )]);
    for (allow, deny, seen) in [
        (None, "git_git_push", &["git_log", "git_log_all"][..]),
        (None, "git_push", &["git_log", "git_log_all"]),
        (Some("git_git_*"), "", &["git_log", "git_push"]),
        (Some("git_log"), "", &["git_log"]),
    ] {
        let view = catalog.view(&ViewFilter {
            allow: allow.map(|glob| vec![glob.to_owned()]),
            deny: vec![deny.to_owned()],
            ..ViewFilter::default()
        });
        let names: Vec<&str> = view
            .entries(ItemKind::Tool)
            .map(|entry| &*entry.public)
            .collect();
        assert_eq!(names, seen, "{allow:?} {deny}");
    }
    let view = catalog.view(&ViewFilter {
        tools: ToolExposure::None,
        pinned: vec!["git_git_log".to_owned()],
        ..ViewFilter::default()
    });
    assert_eq!(view.listed_count(ItemKind::Tool), 1);
}

#[test]
fn d7_a_server_that_has_both_forms_gets_neither_of_them_confused() {
    let view = view(vec![server("git", tools(&["git_log", "log", "git_show"]))]);
    let names: Vec<&str> = view
        .entries(ItemKind::Tool)
        .map(|entry| &*entry.public)
        .collect();
    assert_eq!((names[0], names[2]), ("git_git_log", "git_show"));
    assert!(names[1].starts_with("git_log_"));
    let Err(LookupError::Ambiguous { candidates, .. }) =
        view.resolve(ItemKind::Tool, None, "git_log")
    else {
        panic!();
    };
    assert_eq!(candidates, [names[0], names[1]]);
    for (name, original) in [(names[0], "git_log"), (names[1], "log"), ("log", "log")] {
        assert_eq!(tool(&view, None, name), at(0, original));
    }
    assert_eq!(tool(&view, Some("git"), "git_log"), at(0, "git_log"));
}

#[test]
fn d7_no_other_server_gets_a_form_of_a_name() {
    // A server without a prefix wants the long form of another's name, or the short one.
    for wanted in ["git_log", "git_git_log"] {
        let view = view(vec![
            server("git", tools(&["git_log"])),
            server_as(bare("other"), tools(&[wanted])),
        ]);
        let found = view.resolve(ItemKind::Tool, None, wanted);
        assert_eq!(found.unwrap_err().code(), "ambiguous", "{wanted}");
        // It means nothing else while one of them is not up, but for what that one has.
        let early = self::view(vec![unlisted("fetch"), server("web", tools(&["fetch"]))]);
        let found = early.resolve(ItemKind::Tool, None, "fetch").unwrap();
        assert_eq!(found.server(), ServerIndex(0));
    }
}

#[test]
fn near_names_are_given_for_what_is_not_found() {
    let view = two_servers();
    let Err(error) = view.resolve(ItemKind::Tool, None, "other_mull") else {
        panic!();
    };
    assert_eq!(error.code(), "not-found");
    let LookupError::NotFound { near, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(near[0], "other_mul");
    let unknown = view.resolve(ItemKind::Tool, Some("othr"), "mul");
    let expected = LookupError::UnknownServer {
        server: "othr".to_owned(),
        near: vec!["other".to_owned()],
    };
    assert_eq!(unknown.unwrap_err(), expected);
    assert!(view.resolve(ItemKind::Prompt, None, "add").is_err());
}

#[test]
fn a_name_with_the_prefix_of_an_unlisted_server_leads_there() {
    let mut naming = ServerNaming::new("down", "");
    naming.tools.deny.push("secret".to_owned());
    naming.rename.insert("old".to_owned(), "new".to_owned());
    let catalog = catalog(vec![server("up", tools(&["add"])), (naming.into(), None)]);
    let view = catalog.view(&ViewFilter {
        deny: vec!["down_hidden".to_owned()],
        ..ViewFilter::default()
    });
    for (name, original) in [("down_x", "x"), ("down_new", "old")] {
        let Ok(ResolvedItem::Unlisted {
            server,
            original: found,
        }) = view.resolve(ItemKind::Tool, None, name)
        else {
            panic!("{name}");
        };
        assert_eq!((server, found.as_str()), (ServerIndex(1), original));
    }
    assert_eq!(tool(&view, Some("down"), "x"), at(1, "x"));
    for name in ["down_secret", "down_hidden", "up_nothing", "nothing"] {
        let lookup = view.resolve(ItemKind::Tool, None, name);
        assert_eq!(lookup.unwrap_err().code(), "not-found", "{name}");
    }
}

#[test]
fn a_resource_is_found_by_its_uris_and_by_its_name() {
    let view = view(vec![
        server(
            "files",
            resources(&["file:///a", "urn:x", "https://e.org/a"], &[]),
        ),
        server("Other", resources(&["demo://b"], &["demo://items/{id}"])),
    ]);
    for uri in [
        "file://files/a",
        "file://FILES/a",
        "file://files//a",
        "file:///a",
    ] {
        assert_eq!(resource(&view, uri), at(0, "file:///a"));
    }
    assert_eq!(resource(&view, "urn:x"), at(0, "urn:x"));
    assert_eq!(
        resource(&view, "https://files/e.org/a"),
        at(0, "https://e.org/a")
    );
    for uri in ["demo://Other/b", "demo://other/b", "demo://b"] {
        assert_eq!(resource(&view, uri), at(1, "demo://b"));
    }
    for uri in ["demo://Other/items/7", "demo://items/7"] {
        let item = view.resolve(ItemKind::Resource, None, uri).unwrap();
        assert!(matches!(item, ResolvedItem::Covered { .. }), "{uri}");
        assert_eq!(item.original(), "demo://items/7");
    }
    for template in ["demo://Other/items/{id}", "demo://items/{id}"] {
        let item = view.resolve(ItemKind::Template, None, template).unwrap();
        assert_eq!(item.entry().unwrap().kind, ItemKind::Template);
    }
}

#[test]
fn an_unlisted_resource_of_a_known_server_can_be_asked_for() {
    let view = view(vec![server("files", resources(&[], &[])), unlisted("down")]);
    assert_eq!(resource(&view, "file://files/b"), at(0, "file:///b"));
    assert_eq!(resource(&view, "file://files//b"), at(0, "file:///b"));
    assert_eq!(
        resource(&view, "file://files/%2Fhost/b"),
        at(0, "file://host/b")
    );
    assert_eq!(resource(&view, "file://down//b"), at(1, "file:///b"));
    for uri in ["file://nobody//b", "https://files/b", "urn:y", "name"] {
        let lookup = view.resolve(ItemKind::Resource, None, uri);
        assert_eq!(lookup.unwrap_err().code(), "not-found", "{uri}");
    }
}

#[test]
fn resource_names_are_a_last_resort() {
    let mut listing = resources(&["demo://b"], &[]);
    listing
        .resources
        .push(r#"{"uri":"demo://c","name":"The c"}"#.into());
    let view = view(vec![server("x", listing)]);
    assert_eq!(resource(&view, "The c"), at(0, "demo://c"));
    assert_eq!(
        found(&view, ItemKind::Resource, Some("x"), "The c"),
        at(0, "demo://c")
    );
}

#[test]
fn a_view_hides_the_rest_from_lookups() {
    let catalog = catalog(vec![
        server("a", tools(&["x", "y"])),
        server("b", tools(&["x"])),
        unlisted("c"),
    ]);
    let view = catalog.view(&ViewFilter {
        servers: Some(vec!["a".to_owned()]),
        deny: vec!["a_y".to_owned()],
        ..ViewFilter::default()
    });
    assert_eq!(tool(&view, None, "x"), at(0, "x"));
    for name in ["b_x", "a_y", "y", "c_x"] {
        assert!(view.resolve(ItemKind::Tool, None, name).is_err(), "{name}");
    }
    let uri = view.resolve(ItemKind::Resource, None, "demo://c/x");
    assert!(uri.unwrap().server() == ServerIndex(0));
    assert_eq!(view.find_server("b"), None);
}

#[test]
fn equal_names_without_prefixes_stay_reachable() {
    let view = view(vec![
        server_as(bare("one"), prompts(&["p"])),
        server_as(bare("two"), prompts(&["p"])),
    ]);
    let names: Vec<_> = view.entries(ItemKind::Prompt).collect();
    for entry in names {
        let found = found(&view, ItemKind::Prompt, None, &entry.public);
        assert_eq!(found, (entry.server.0, "p".to_owned()));
    }
}

#[test]
fn errors_read_well() {
    let view = two_servers();
    let text = |kind, server, name| match view.resolve(kind, server, name) {
        Ok(item) => panic!("{item:?}"),
        Err(error) => error.to_string(),
    };
    let texts = [
        text(ItemKind::Tool, None, "both"),
        text(ItemKind::Tool, None, "other_mull"),
        text(ItemKind::Prompt, None, "zzz"),
        text(ItemKind::Tool, Some("othr"), "x"),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
