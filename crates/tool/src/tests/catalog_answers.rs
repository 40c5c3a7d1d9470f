//! `list` and `info`.

use super::*;

fn catalog() -> Vec<TestItem> {
    // Entries come server by server, as in the configuration.
    vec![
        entry(
            ItemKind::Tool,
            0,
            "calc_add",
            "{\"name\": \"calc_add\", \"title\": null,\n \"description\": \"Add \\\"two\\\" numbers\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"a\": {\"default\": null, \"maximum\": 12345678901234567890.0}}}, \"_meta\": {\"fastmcp\": {\"tags\": [\"math\"]}}}",
        ),
        entry(
            ItemKind::Tool,
            0,
            "calc_divide",
            r#"{"name":"calc_divide","inputSchema":{},"_meta":{"tags":["slow","exact"]}}"#,
        ),
        entry(
            ItemKind::Resource,
            0,
            "config://calc/settings.json",
            r#"{"name":"settings","uri":"config://calc/settings.json"}"#,
        ),
        entry(
            ItemKind::Template,
            0,
            "user://calc/{name}/profile",
            r#"{"name":"profile","uriTemplate":"user://calc/{name}/profile"}"#,
        ),
        entry(
            ItemKind::Tool,
            1,
            "ev_echo",
            r#"{"name":"ev_echo","inputSchema":{},"_meta":{"_fastmcp":{"tags":["math"]}}}"#,
        ),
        entry(
            ItemKind::Resource,
            1,
            "demo://ev/one",
            r#"{"name":"one","uri":"demo://ev/one"}"#,
        ),
    ]
}

fn list(arguments: &str) -> Value {
    list_of(arguments, None, &[])
}

fn list_of(arguments: &str, selected: Option<u16>, unavailable: &[UnavailableServer]) -> Value {
    let Ok(ProxyOperation::List(query)) = parse(arguments) else {
        panic!("not a list: {arguments}");
    };
    let catalog = catalog();
    let is_selected = selected.map(|server| move |item: &TestItem| item.server == server);
    let is_selected = is_selected
        .as_ref()
        .map(|is_selected| is_selected as &dyn Fn(&TestItem) -> bool);
    let result = render_list(catalog.iter(), &query, is_selected, unavailable);
    let mut result = value(&result);
    assert_eq!(result["isError"], false);
    result["content"][0].take()
}

/// The names or URIs in the text of an answer.
fn names(item: &Value) -> Vec<String> {
    let items = value(item["resource"]["text"].as_str().unwrap().as_bytes());
    let name = |item: &Value| {
        ["uri", "uriTemplate", "name"]
            .into_iter()
            .find_map(|key| item[key].as_str())
            .unwrap()
            .to_owned()
    };
    items.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_list_is_one_annotated_resource() {
    let Ok(ProxyOperation::List(query)) = parse(r#"{"action":"list","type":"tool","limit":1}"#)
    else {
        panic!("not a list");
    };
    let catalog = catalog();
    let result = render_list(catalog.iter(), &query, None, &[]);
    let facts = r#""pythonType":"Tool","many":true,"proxyAction":"list","proxyType":"tool","totalCount":3,"offset":0,"limit":1,"dataType":"Tool","isArray":true"#;
    let text = r#"[{\"name\":\"calc_add\",\"description\":\"Add \\\"two\\\" numbers\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"default\":null,\"maximum\":12345678901234567890.0}}},\"_meta\":{\"fastmcp\":{\"tags\":[\"math\"]}}}]"#;
    let expected = format!(
        r#"{{"content":[{{"type":"resource","resource":{{"uri":"proxy:list/tool","mimeType":"application/json","text":"{text}"}},"annotations":{{{facts}}},"_meta":{{"mcp-proxy/proxy":{{{facts},"nextOffset":1}}}}}}],"isError":false}}"#
    );
    assert_eq!(String::from_utf8_lossy(&result), expected);
}

#[test]
fn resources_come_before_templates() {
    let item = list(r#"{"action":"list","type":"resource"}"#);
    assert_eq!(
        names(&item),
        [
            "config://calc/settings.json",
            "demo://ev/one",
            "user://calc/{name}/profile"
        ]
    );
    assert_eq!(
        item["annotations"]["pythonType"],
        "mcp.types.Resource | mcp.types.ResourceTemplate"
    );
    assert_eq!(item["annotations"]["dataType"], "Resource|ResourceTemplate");
}

#[test]
fn an_empty_list_is_a_list() {
    for nothing in [
        r#"{"action":"list","type":"prompt"}"#,
        r#"{"action":"list","type":"tool","filter_server":"nosuch_"}"#,
    ] {
        let item = list(nothing);
        assert_eq!(item["resource"]["text"], "[]", "{nothing}");
        assert_eq!(item["annotations"]["totalCount"], 0, "{nothing}");
    }
    let past_the_end = list(r#"{"action":"list","type":"tool","offset":5000}"#);
    assert_eq!(past_the_end["resource"]["text"], "[]");
    assert_eq!(past_the_end["annotations"]["totalCount"], 3);
    assert_eq!(past_the_end["annotations"]["offset"], 5000);
    assert!(past_the_end["_meta"]["mcp-proxy/proxy"]["nextOffset"].is_null());
}

#[test]
fn pages_lead_to_each_other() {
    let mut offset = 0;
    let mut found = Vec::new();
    loop {
        let page = list(&format!(
            r#"{{"action":"list","type":"resource","limit":2,"offset":{offset}}}"#
        ));
        found.extend(names(&page));
        match page["_meta"]["mcp-proxy/proxy"]["nextOffset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(found.len(), 3);
}

#[test]
fn filters() {
    let tools = |rest: &str| {
        names(&list(&format!(
            r#"{{"action":"list","type":"tool",{rest}}}"#
        )))
    };
    assert_eq!(tools(r#""filter_server":"calc_d""#), ["calc_divide"]);
    assert_eq!(
        tools(r#""filter":{"prefix":"calc_"}"#),
        ["calc_add", "calc_divide"]
    );
    assert_eq!(
        tools(r#""filter":{"tags":["math","none"]}"#),
        ["calc_add", "ev_echo"]
    );
    assert_eq!(tools(r#""filter":{"tags":["exact"]}"#), ["calc_divide"]);
    assert_eq!(
        tools(r#""filter":{"prefix":"calc_","tags":["math"]}"#),
        ["calc_add"]
    );
    let resources = |rest: &str| {
        names(&list(&format!(
            r#"{{"action":"list","type":"resource",{rest}}}"#
        )))
    };
    assert_eq!(
        resources(r#""filter_server":"settings""#),
        ["config://calc/settings.json"]
    );
    assert_eq!(
        resources(r#""filter":{"prefix":"demo:"}"#),
        ["demo://ev/one"]
    );
}

#[test]
fn a_selected_server_filters_resources_too() {
    let arguments = r#"{"action":"list","type":"resource","filter_server":"c2"}"#;
    let item = list_of(arguments, Some(1), &[]);
    assert_eq!(names(&item), ["demo://ev/one"]);
    assert_eq!(item["annotations"]["totalCount"], 1);
}

#[test]
fn missing_servers_are_named() {
    let down = |stale| UnavailableServer {
        server: "files".to_owned(),
        reason: "it does not answer".to_owned(),
        stale,
        state: UnavailableState::Down,
    };
    let item = list_of(
        r#"{"action":"list","type":"tool"}"#,
        None,
        &[down(false), down(true)],
    );
    assert_eq!(
        item["_meta"]["mcp-proxy/proxy"]["unavailable"],
        serde_json::json!([
            {"server": "files", "reason": "it does not answer"},
            {"server": "files", "reason": "it does not answer", "stale": true},
        ])
    );
    assert!(item["annotations"]["unavailable"].is_null());
}

#[test]
fn g6_the_text_names_servers_that_are_missing() {
    let down = |server: &str, stale| UnavailableServer {
        server: server.to_owned(),
        reason: "it is starting".to_owned(),
        stale,
        state: UnavailableState::Down,
    };
    let unavailable = [down("time", false), down("old", true)];
    let arguments = br#"{"action":"list","type":"tool"}"#[..].into();
    let parsed = parse_arguments(Some(&arguments), &ProxyToolOptions::default(), &[]);
    let Ok(ProxyOperation::List(query)) = parsed else {
        panic!("{parsed:?}");
    };
    let list = |unavailable: &[UnavailableServer]| -> Value {
        let result = render_list(catalog().iter(), &query, None, unavailable);
        serde_json::from_slice(&result).unwrap()
    };
    let items = list(&unavailable)["content"].as_array().unwrap().clone();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0], {
        let mut item = list(&[down("x", true)])["content"][0].clone();
        item["_meta"]["mcp-proxy/proxy"]["unavailable"] =
            items[0]["_meta"]["mcp-proxy/proxy"]["unavailable"].clone();
        item
    });
    let text = items[1]["text"].as_str().unwrap();
    assert!(text.contains("time (it is starting)") && !text.contains("old"));
    assert_eq!(list(&[])["content"].as_array().unwrap().len(), 1);
}

#[test]
fn an_info_is_one_annotated_resource() {
    let catalog = catalog();
    let result = render_info(&catalog[3], "user://calc/{name}/profile");
    let facts = r#""pythonType":"mcp.types.Resource | mcp.types.ResourceTemplate","many":false,"proxyAction":"info","proxyType":"resource","proxyPath":"user://calc/{name}/profile","dataType":"ResourceTemplate","isArray":false"#;
    let expected = format!(
        r#"{{"content":[{{"type":"resource","resource":{{"uri":"proxy:info/resource/user://calc/%7Bname%7D/profile","mimeType":"application/json","text":"{{\"name\":\"profile\",\"uriTemplate\":\"user://calc/{{name}}/profile\"}}"}},"annotations":{{{facts}}},"_meta":{{"mcp-proxy/proxy":{{{facts}}}}}}}],"isError":false}}"#
    );
    assert_eq!(String::from_utf8_lossy(&result), expected);
}

#[test]
fn d14_a_server_that_is_turned_off_is_not_missed() {
    let off = UnavailableServer {
        server: "off".to_owned(),
        reason: "turned off in the config".to_owned(),
        stale: false,
        state: UnavailableState::TurnedOff,
    };
    let arguments = br#"{"action":"list","type":"tool"}"#[..].into();
    let parsed = parse_arguments(Some(&arguments), &ProxyToolOptions::default(), &[]);
    let Ok(ProxyOperation::List(query)) = parsed else {
        panic!("{parsed:?}");
    };
    let result = render_list(catalog().iter(), &query, None, &[off]);
    let result: Value = serde_json::from_slice(&result).unwrap();
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    let unavailable = &content[0]["_meta"]["mcp-proxy/proxy"]["unavailable"];
    assert_eq!(unavailable[0]["state"], "disabled");
}
