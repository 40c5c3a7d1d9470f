//! Commands against policies.

use super::*;

fn check(policy: &RelayPolicy, method: &str, params: &str) -> Result<(), i64> {
    let text = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
    let checked = policy.check(method, &Message::parse(text));
    checked.map_err(|fault| fault.code())
}

#[test]
fn cookies_files_and_other_targets_are_denied_by_default() {
    let policy = RelayPolicy::standard();
    for method in DENIED_CDP {
        let method = method.replace('*', "x");
        let params = format!(r#"{{"method":"{method}"}}"#);
        assert_eq!(
            check(&policy, FORWARD_CDP, &params),
            Err(-32008),
            "{method}"
        );
    }
    let params = r#"{"method":"Runtime.evaluate","params":{"expression":"1"}}"#;
    assert_eq!(check(&policy, FORWARD_CDP, params), Ok(()));
    assert_eq!(check(&policy, FORWARD_CDP, "{}"), Err(-32602));
    assert_eq!(
        check(&policy, "createTab", r#"{"url":"https://a.test"}"#),
        Ok(())
    );
}

#[test]
fn urls_are_checked_where_tabs_are_opened_and_navigated() {
    let denied = ["*://*.bank.test/*".to_owned()];
    let policy = RelayPolicy::standard()
        .with(PolicyList::Urls, None, Some(&denied))
        .unwrap();
    let opened = r#"{"url":"https://my.bank.test/x"}"#;
    assert_eq!(check(&policy, "createTab", opened), Err(-32008));
    let several = r#"{"url":["https://a.test/","https:my.bank.test"]}"#;
    assert_eq!(check(&policy, "createWindow", several), Err(-32008));
    let listed = r#"{"args":[{"url":"https://my.bank.test:443/"}]}"#;
    assert_eq!(check(&policy, "chrome.tabs.create", listed), Err(-32008));
    for name in CARRYING_MEMBERS
        .iter()
        .chain(&["Params", "create_properties", "cdpMethod"])
    {
        for (open, close) in [("", ""), ("[1,", "]")] {
            let wrapped = format!(r#"{{"{name}":{open}{{"url":"https://my.bank.test/"}}{close}}}"#);
            assert_eq!(
                check(&policy, "anything", &wrapped),
                Err(-32008),
                "{wrapped}"
            );
        }
    }
    for method in [
        "Page.navigate",
        "Network.loadNetworkResource",
        "Fetch.continueRequest",
    ] {
        let sent =
            format!(r#"{{"method":"{method}","params":{{"url":"https://my.bank.test/x"}}}}"#);
        assert_eq!(check(&policy, FORWARD_CDP, &sent), Err(-32008), "{method}");
    }
    assert_eq!(
        check(&policy, "createTab", r#"{"url":"https://a.test/"}"#),
        Ok(())
    );
    assert_eq!(
        check(&policy, "type", r#"{"title":"https://my.bank.test/"}"#),
        Ok(())
    );
}

#[test]
fn a16_urls_are_checked_under_other_names() {
    let denied = ["*://*.bank.test/*".to_owned()];
    let policy = RelayPolicy::standard()
        .with(PolicyList::Urls, None, Some(&denied))
        .unwrap();
    for name in [
        "url",
        "URL",
        "Url",
        "uri",
        "URI",
        "href",
        "urls",
        "uris",
        "hrefs",
        "u_r_l",
        "\\u0075rl",
    ] {
        for url in [
            r#""https://my.bank.test/x""#,
            r#"["https://a.test/","https://my.bank.test/x"]"#,
        ] {
            for params in [
                format!(r#"{{"{name}":{url}}}"#),
                format!(r#"{{"options":{{"{name}":{url}}}}}"#),
            ] {
                assert_eq!(
                    check(&policy, "createTab", &params),
                    Err(-32008),
                    "{params}"
                );
            }
        }
    }
}

#[test]
fn a16_more_methods_of_the_denied_kinds_are_denied() {
    let policy = RelayPolicy::standard();
    for method in [
        "Page.deleteCookie",
        "Target.disposeBrowserContext",
        "Target.getTargets",
        "Target.detachFromTarget",
        "Target.openDevTools",
        "Network.loadNetworkResource",
        "Extensions.loadUnpacked",
        "Extensions.getStorageItems",
        "Security.setIgnoreCertificateErrors",
        "Browser.setPermission",
    ] {
        let params = format!(r#"{{"method":"{method}"}}"#);
        assert_eq!(
            check(&policy, FORWARD_CDP, &params),
            Err(-32008),
            "{method}"
        );
        assert_eq!(check(&policy, method, "{}"), Err(-32008), "{method}");
    }
}

#[test]
fn a16_blanks_and_case_do_not_hide_a_method() {
    let policy = RelayPolicy::standard();
    for method in [
        " Network.getCookies",
        "Network.getCookies ",
        "Network.getCookies\\u0000",
        "Network.\\u0000getCookies",
        "\\u00a0Network.getCookies",
        "Network .getCookies",
        "\\tNetwork.getCookies",
        "Network.GETCOOKIES",
    ] {
        for params in [
            format!(r#"{{"method":"{method}"}}"#),
            format!(r#"{{"command":"{method}"}}"#),
        ] {
            let command = match params.starts_with(r#"{"method"#) {
                true => FORWARD_CDP,
                false => "sendCommand",
            };
            assert_eq!(check(&policy, command, &params), Err(-32008), "{params}");
        }
        let plain: String = serde_json::from_str(&format!("\"{method}\"")).unwrap();
        assert_eq!(check(&policy, &plain, "{}"), Err(-32008), "{method}");
    }
    for method in [
        " get_debug_storage",
        "GET_DEBUG_STORAGE",
        "get_debug_storage\u{0}",
    ] {
        assert_eq!(check(&policy, method, "{}"), Err(-32008), "{method}");
    }
    let texts = r#"{"args":["a text. With a dot","file.txt"]}"#;
    assert_eq!(check(&policy, "type", texts), Ok(()));
}

#[test]
fn a16_a_command_has_one_reading() {
    let policy = RelayPolicy::standard();
    for message in [
        r#"{"id":1,"method":"createTab","method":"getTabs"}"#,
        r#"{"id":1,"method":"getTabs","Method":"Network.getCookies"}"#,
        r#"{"id":1,"method":"getTabs","params":{},"Params":{"url":"x"}}"#,
        r#"{"id":1,"method":"createTab","params":{"url":"https://a.test","URL":"https://b.test"}}"#,
    ] {
        let checked = policy.check("getTabs", &Message::parse(message));
        assert_eq!(checked.map_err(|fault| fault.code()), Err(-32602));
    }
}

#[test]
fn cdp_methods_are_found_in_other_commands_than_the_usual_one() {
    let policy = RelayPolicy::standard();
    for (method, params) in [
        ("Network.getCookies", "{}"),
        ("sendCommand", r#"{"method":"Network.getCookies"}"#),
        ("sendCommand", r#"{"command":"Network.getCookies"}"#),
        (
            "sendCommand",
            r#"{"command":{"method":"Network.getCookies"}}"#,
        ),
        ("cdp", r#"{"cdpMethod":"Network.\u0067etCookies"}"#),
        (
            "chrome.debugger.sendCommand",
            r#"{"target":{"tabId":1},"method":"Page.enable","commandParams":{"method":"Network.getCookies"}}"#,
        ),
        (
            "batch",
            r#"{"commands":[{"method":"Page.enable"},{"method":"Network.getCookies"}]}"#,
        ),
        (
            "chrome.debugger.sendCommand",
            r#"{"args":[{"tabId":1},"Network.getCookies",{}]}"#,
        ),
        (
            "anything",
            r#"{"params":{"params":{"method":"Network.getCookies"}}}"#,
        ),
        ("batch", r#"{"args":[{"method":"Network.getCookies"}]}"#),
        (
            "batch",
            r#"{"args": [1, [ {"params" : [ "Network.getCookies" ]} ] ]}"#,
        ),
        (
            FORWARD_CDP,
            r#"{"method":"Input.dispatchDragEvent","params":{"data":{"files":["/etc/passwd"]}}}"#,
        ),
        (
            FORWARD_CDP,
            r#"{"method":"Page.enable","command":"Network.getCookies"}"#,
        ),
        (
            FORWARD_CDP,
            r#"{"method":"Page.enable","params":{"method":"Network.getCookies"}}"#,
        ),
    ] {
        assert_eq!(
            check(&policy, method, params),
            Err(-32008),
            "{method} {params}"
        );
    }
    for (method, params) in [
        ("sendCommand", r#"{"method":"Page.reload"}"#),
        ("type", r#"{"text":"Network.getCookies"}"#),
        (
            FORWARD_CDP,
            r#"{"method":"Fetch.continueRequest","params":{"method":"POST"}}"#,
        ),
    ] {
        assert_eq!(check(&policy, method, params), Ok(()), "{method} {params}");
    }
    for (open, close) in [(r#"{"params":"#, "}"), (r#"{"args":["#, "]}")] {
        let deep = format!("{}{{}}{}", open.repeat(20), close.repeat(20));
        assert_eq!(check(&policy, "anything", &deep), Err(-32602), "{open}");
    }
}

#[test]
fn the_extensions_storage_stays_denied_next_to_other_methods() {
    let dump = |policy: &RelayPolicy| check(policy, "get_debug_storage", "{}");
    let standard = RelayPolicy::standard;
    let denying = |denied: &[String]| {
        let policy = standard().with(PolicyList::Methods, None, Some(denied));
        policy.unwrap()
    };
    assert_eq!(dump(&standard()), Err(-32008));
    let more = denying(&["reloadSelf".to_owned()]);
    assert_eq!(dump(&more), Err(-32008));
    assert_eq!(check(&more, "reloadSelf", "{}"), Err(-32008));
    assert_eq!(dump(&denying(&[])), Ok(()));
}

#[test]
fn an_allow_list_of_cdp_methods_counts_for_every_way_to_send_them() {
    let allowed = ["Page.*".to_owned()];
    let policy = RelayPolicy::standard()
        .with(PolicyList::Cdp, Some(&allowed), None)
        .unwrap();
    for (method, params, expected) in [
        ("Page.reload", "{}", Ok(())),
        ("Runtime.evaluate", "{}", Err(-32008)),
        (
            "sendCommand",
            r#"{"method":"Runtime.evaluate"}"#,
            Err(-32008),
        ),
        (FORWARD_CDP, r#"{"method":"evaluate"}"#, Err(-32008)),
        ("click", "{}", Ok(())),
    ] {
        assert_eq!(
            check(&policy, method, params),
            expected,
            "{method} {params}"
        );
    }
}

#[test]
fn a_policy_for_reading_allows_nothing_that_changes_a_page() {
    let policy = RelayPolicy::standard().read_only(true);
    for (method, params) in [
        ("getTabs", "{}"),
        ("selectTab", "{}"),
        ("screenshot", "{}"),
        (FORWARD_CDP, r#"{"method":"Page.captureScreenshot"}"#),
        (FORWARD_CDP, r#"{"method":"Accessibility.getFullAXTree"}"#),
        ("DOM.getDocument", "{}"),
    ] {
        assert_eq!(check(&policy, method, params), Ok(()), "{method} {params}");
    }
    for (method, params) in [
        ("createTab", "{}"),
        ("click", "{}"),
        ("neverHeardOf", "{}"),
        ("Runtime.evaluate", "{}"),
        (FORWARD_CDP, r#"{"method":"Runtime.evaluate"}"#),
        (FORWARD_CDP, r#"{"method":"Page.navigate"}"#),
        (FORWARD_CDP, r#"{"method":"Network.getCookies"}"#),
    ] {
        assert_eq!(
            check(&policy, method, params),
            Err(-32008),
            "{method} {params}"
        );
    }
    let all = policy.read_only(false);
    assert_eq!(check(&all, "createTab", "{}"), Ok(()));
}

#[test]
fn an_allow_list_denies_the_rest() {
    let allowed = ["getTabs".to_owned(), "create*".to_owned()];
    let policy = RelayPolicy::standard()
        .with(PolicyList::Methods, Some(&allowed), None)
        .unwrap();
    assert_eq!(check(&policy, "createTab", "{}"), Ok(()));
    assert_eq!(check(&policy, "closeTab", "{}"), Err(-32008));
}
