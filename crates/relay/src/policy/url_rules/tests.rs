//! Spellings of URLs, and the rules that must not miss them.

use super::*;

fn texts(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|text| (*text).to_owned()).collect()
}

fn allowing(patterns: &[&str]) -> UrlRules {
    let mut rules = UrlRules::default();
    rules.allow(&texts(patterns)).unwrap();
    rules
}

fn denying(patterns: &[&str]) -> UrlRules {
    let mut rules = UrlRules::default();
    rules.deny(&texts(patterns)).unwrap();
    rules
}

/// Spellings that browsers read as `https://my.bank.test/`.
const SAME: [&str; 20] = [
    "https://my.bank.test/",
    "https://my.bank.test",
    "https:my.bank.test/",
    "https:/my.bank.test/",
    "https:///my.bank.test/",
    "https:\\\\my.bank.test\\",
    "https:/\\my.bank.test/",
    "https://my.bank.test:443/",
    "https://my.bank.test:/",
    "https://my.bank.test:0443/",
    "https://my.bank.test./",
    "https://my.b%61nk.test/",
    "HTTPS://My.BANK.test/",
    "https://good.test@my.bank.test/",
    "https://good.test:1@evil.test@my.bank.test/",
    " \u{1}ht\ttps://my.ba\nnk.te\rst/ ",
    "view-source:https://my.bank.test/",
    "View-Source:https:my.bank.test",
    "view-source:view-source:https://my.bank.test/",
    "https://my.bank.test/#fragment",
];

#[test]
fn every_spelling_of_a_host_is_the_same_host() {
    let denied = denying(&["*://*.bank.test/*"]);
    let allowed = allowing(&["https://*.bank.test/*"]);
    let others = allowing(&["https://*.good.test/*"]);
    for url in SAME {
        assert!(!denied.admit(url), "{url:?}");
        assert!(allowed.admit(url), "{url:?}");
        assert!(!others.admit(url), "{url:?}");
    }
}

#[test]
fn urls_inside_of_urls_are_judged_too() {
    let denied = denying(&["*://*.bank.test/*"]);
    let others = allowing(&["https://good.test/*"]);
    for url in [
        "blob:https://my.bank.test/9115d58c",
        "blob:https:my.bank.test/9115d58c",
        "filesystem:https://my.bank.test/temporary/x",
        "view-source:blob:https://my.bank.test/9115d58c",
        // What these lead to cannot be seen.
        "javascript:location='https://my.bank.test'",
        "javascript://my.good.test/%0alocation='//my.bank.test'",
        "data:text/html,<iframe src=//my.bank.test>",
        "data:text/html;base64,PGlmcmFtZT4",
        "view-source:data:text/html,x",
        "blob:null/9115d58c",
    ] {
        assert!(!denied.admit(url), "{url}");
        assert!(!others.admit(url), "{url}");
    }
    assert!(denied.admit("blob:https://good.test/9115d58c"));
    assert!(others.admit("blob:https://good.test/9115d58c"));
    // Somebody allows them by name, or no site is denied.
    let mut named = denying(&["*://*.bank.test/*"]);
    named.allow(&texts(&["data:image/*", "*://*"])).unwrap();
    assert!(named.admit("data:image/png,x"));
    assert!(!named.admit("data:text/html,x"));
    assert!(denying(&["file:*"]).admit("data:text/html,x"));
    assert!(!denying(&["data:*"]).admit("data:text/html,x"));
    assert!(!denying(&["view-source:*"]).admit("view-source:https://good.test/"));
    let deep = format!("{}https://good.test/", "view-source:".repeat(100_000));
    assert!(!others.admit(&deep));
}

#[test]
fn pages_of_the_browser_itself_are_the_same_under_every_name() {
    let denied = denying(&["chrome://settings/*"]);
    for url in [
        "chrome://settings/",
        "chrome:settings",
        "about:settings",
        "About:Settings/passwords",
        "about://settings",
        "edge://settings/passwords",
        "brave:settings",
        "view-source:about:settings",
    ] {
        assert!(!denied.admit(url), "{url}");
    }
    for url in [
        "about:blank",
        "about:blank#x",
        "about:srcdoc",
        "about:version",
    ] {
        assert!(denied.admit(url), "{url}");
    }
    let blank = allowing(&["about:blank"]);
    assert!(blank.admit("about:blank"));
    assert!(!blank.admit("about:settings"));
    assert!(!denying(&["about:settings"]).admit("about:settings"));
    assert!(!denying(&["about:*"]).admit("about://settings"));
}

#[test]
fn a_wildcard_in_the_host_stays_in_the_host() {
    let allowed = allowing(&["https://*.good.test/*"]);
    let denied = denying(&["*://*.good.test/*"]);
    for url in [
        "https://evil.test/?.good.test/",
        "https://evil.test/.good.test/",
        "https://evil.test\\.good.test/",
        "https://evil.test#.good.test/",
        "https://evil.test?.good.test/",
        "https://x.good.test@evil.test/",
        "https://x.good.test:443@evil.test/",
        "https://x.good.test.evil.test/",
    ] {
        assert!(!allowed.admit(url), "{url}");
        assert!(denied.admit(url), "{url}");
    }
    assert!(allowed.admit("https://a.b.good.test/x?y"));
    assert!(!allowed.admit("http://a.good.test/"));
}

#[test]
fn what_browsers_may_read_in_another_way_is_denied_by_any_rule() {
    let allowed = allowing(&["https://*"]);
    let denied = denying(&["*://*.bank.test/*"]);
    for url in [
        "https://my.bank.test%2f.good.test/",
        "https://my.bank.test%00/",
        "https://my.bank%/",
        "https://my.bank.test:99999/",
        "https://my.bank.test:x/",
        "https://my.bank.test../",
        "https://xn--bank-/",
        "https://my.xn--bank-.test/",
        "\u{7f}https://my.bank.test/",
        "https://my.bank.test:+80/",
        "blob:x",
        "view-source:my.bank.test",
        "https://1.2.3.4.5/",
        "https://[::g]/",
        "https://",
        "//my.bank.test/",
        "my.bank.test",
        "",
    ] {
        assert!(!allowed.admit(url), "{url}");
        assert!(!denied.admit(url), "{url}");
        assert!(UrlRules::default().admit(url), "{url}");
    }
    assert!(allowed.admit("https://xn--bnk-qla.test/"));
    assert!(denied.admit("https://xn--bnk-qla.test/"));
}

#[test]
fn international_names_are_compared_in_their_ascii_form() {
    let bank = denying(&["*://*.bank.test/*"]);
    for url in [
        "https://my.bank。test/",
        "https://my.ba\u{ad}nk.test/",
        "https://ⓜy.bank.test/",
    ] {
        assert!(!bank.admit(url), "{url}");
    }
    let international = denying(&["*://*.xn--bnk-qla.test/*"]);
    for url in [
        "https://my.bänk.test/",
        "https://my.BÄNK.test/",
        "https://my.b%C3%A4nk.test/",
        "https://my.xn--bnk-qla.test/",
    ] {
        assert!(!international.admit(url), "{url}");
        assert!(bank.admit(url), "{url}");
    }
}

#[test]
fn addresses_are_compared_as_numbers() {
    let denied = denying(&["*://127.0.0.1/*", "*://[::1]/*"]);
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.01/",
        "http://127.0.0.1.:8080/",
        "http://[0:0:0:0:0:0:0:1]:80/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://0X7F.1/",
        "http://017700000001/",
        "http://%31%32%37.0.0.1/",
        "http://user@127.1:8080/",
    ] {
        assert!(!denied.admit(url), "{url}");
    }
    assert!(denied.admit("http://127.0.0.2/"));
    assert!(denied.admit("http://1.test/"));
}

#[test]
fn without_a_port_every_port_is_denied_and_the_default_allowed() {
    assert!(!denying(&["*://bank.test/*"]).admit("https://bank.test:8443/"));
    let allowed = allowing(&["https://good.test/*", "http://localhost:*/*"]);
    assert!(!allowed.admit("https://good.test:8443/"));
    assert!(allowed.admit("http://localhost:3000/x"));
    assert!(allowed.admit("http://localhost/x"));
    let named = allowing(&["https://good.test:443/*", "https://good.test:8443/*"]);
    assert!(named.admit("https://good.test/"));
    assert!(named.admit("https://good.test:08443/"));
    assert!(!named.admit("https://good.test:80/"));
}

#[test]
fn paths_are_resolved_before_they_are_compared() {
    let allowed = allowing(&["https://good.test/docs/*"]);
    let denied = denying(&["*://good.test/admin*"]);
    for url in [
        "https://good.test/docs/../admin",
        "https://good.test/docs/%2e%2E/admin",
        "https://good.test/docs\\..\\admin",
        "https://good.test/./%61dmin",
        "https://good.test/../admin",
    ] {
        assert!(!allowed.admit(url), "{url}");
        assert!(!denied.admit(url), "{url}");
    }
    assert!(allowed.admit("https://good.test/docs/?next=/../admin"));
    assert!(allowed.admit("https://good.test/x/../docs/a"));
    let page = denying(&["*://good.test/admin"]);
    assert!(!page.admit("https://good.test/admin#x"));
    assert!(page.admit("https://good.test/admin2"));
    assert!(!denying(&["*://good.test/#/admin"]).admit("https://good.test/#/admin"));
    assert!(denying(&["*://good.test/#/admin"]).admit("https://good.test/"));
    assert!(allowing(&["https://good.test/ü"]).admit("https://good.test/%c3%bc"));
    assert!(allowing(&["https://good.test"]).admit("https://good.test/any"));
}

#[test]
fn urls_without_a_host_have_patterns_of_their_own() {
    assert!(!denying(&["file:*"]).admit("file:///etc/passwd"));
    assert!(!denying(&["javascript:*"]).admit("javascript://x/%0aalert(1)"));
    assert!(!denying(&["vscode:*"]).admit("vscode://file/x"));
    let denied = denying(&["javascript:*", "file://*", "chrome://*"]);
    for url in [
        "JavaScript:alert(1)",
        "java\nscript:x",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "file:etc/passwd",
        "chrome://settings",
        "chrome:settings",
    ] {
        assert!(!denied.admit(url), "{url}");
    }
    assert!(denied.admit("about:blank"));
    let allowed = allowing(&["about:blank", "file:///srv/*"]);
    assert!(allowed.admit("about:blank"));
    assert!(allowed.admit("file://localhost/srv/a"));
    assert!(!allowed.admit("file:////etc/passwd"));
    assert!(!denying(&["file:///etc/*"]).admit("file:///x/..//etc/passwd"));
    assert!(!denying(&["file:///etc/*"]).admit("file:////etc/passwd"));
    assert!(!allowed.admit("file:///srv/../etc/passwd"));
    assert!(allowing(&["*"]).admit("data:text/plain,x"));
}

#[test]
fn what_a_browser_completes_to_a_url_is_not_admitted() {
    let denied = denying(&["*://bank.test/*", "*://localhost/*"]);
    for url in [
        "bank.test:443/",
        "bank.test:/",
        "localhost:8899/",
        "localhost:8899",
        "view-source:bank.test:443/",
        "https://.bank.test/",
        "https://..bank.test/",
        "https://bank..test/",
        "C:/x",
    ] {
        assert!(!denied.admit(url), "{url}");
    }
    assert!(denied.admit("mailto:a@bank.test"));
}

#[test]
fn patterns_that_could_mean_something_else_are_refused() {
    let mut rules = UrlRules::default();
    for pattern in [
        "*.bank.test/*",
        "bank.test",
        "localhost:3000/*",
        "https:*",
        "*://bänk.test/*",
        "*://*.bänk.test/*",
        "*://a@bank.test/*",
        "*://bank.test:x/*",
        "//bank.test/*",
        "view-source:https://bank.test/*",
        "blob:https://bank.test/*",
    ] {
        assert!(rules.deny(&texts(&[pattern])).is_err(), "{pattern}");
    }
}
