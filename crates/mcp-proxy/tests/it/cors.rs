//! Pages of other origins: what a browser asks before, and what it has to find in every answer.

use crate::bridging::{EVENTS, http, odd};
use crate::programs::{HttpAnswer, INITIALIZE, ListeningProgram, PROXY, request};

const PAGE: &str = "https://app.example";
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const DEMO: [&str; 4] = ["--", PROXY, "demo-server", "stdio"];

fn preflight(proxy: &ListeningProgram, origin: &str, headers: &str) -> HttpAnswer {
    let asked = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", headers),
    ];
    request(&proxy.address, "OPTIONS", &proxy.path, &asked, b"")
}

/// Whether a browser lets a page of this origin read an answer and its session.
fn may_read(answer: &HttpAnswer, origin: &str) -> bool {
    let allowed = answer.header("access-control-allow-origin") == Some(origin);
    let all = |name: &str| {
        let values = answer.headers.iter().filter(|(key, _)| key == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        values.join(", ").to_lowercase()
    };
    allowed
        && all("access-control-allow-origin") == origin
        && all("access-control-expose-headers").contains("mcp-session-id")
        && all("vary").contains("origin")
}

fn check(proxy: &ListeningProgram) {
    let wanted = "authorization,content-type,mcp-protocol-version,mcp-param-city";
    let answer = preflight(proxy, PAGE, wanted);
    assert_eq!(answer.status, 204);
    assert!(may_read(&answer, PAGE), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-headers"), Some(wanted));
    let methods = answer.header("access-control-allow-methods").unwrap();
    for method in ["GET", "POST", "DELETE"] {
        assert!(methods.contains(method), "{methods}");
    }
    let page = [("origin", PAGE)];
    let answer = proxy.post(&page, INITIALIZE);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(may_read(&answer, PAGE), "{answer:?}");
    assert!(answer.header("mcp-session-id").is_some());
    // A page has to read failures too.
    let unknown = [("origin", PAGE), ("mcp-session-id", "none")];
    let answer = proxy.post(&unknown, LIST);
    assert_eq!(answer.status, 404);
    assert!(may_read(&answer, PAGE), "{answer:?}");
    let other = "https://evil.example";
    for answer in [
        preflight(proxy, other, wanted),
        proxy.post(&[("origin", other)], INITIALIZE),
    ] {
        assert_eq!(answer.status, 403);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn pages_of_a_named_origin_may_speak_to_a_bridge() {
    let args = [&["--allow-origin", PAGE], &DEMO[..]].concat();
    check(&ListeningProgram::proxy("http", &args));
}

#[test]
fn pages_of_a_named_origin_may_speak_to_a_server_behind_the_proxy() {
    let demo = ListeningProgram::demo();
    let url = demo.url();
    for kind in [&["--transport", "streamable-http"][..], &[]] {
        // The server checks the Origin itself.
        let origin = ["--header", "Origin: http://localhost"];
        let args = [
            &["--allow-origin", PAGE],
            kind,
            &origin,
            &["--target-url", &url],
        ]
        .concat();
        check(&ListeningProgram::proxy("http", &args));
    }
}

#[test]
fn a_preflight_needs_no_token_and_a_refusal_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret-token").unwrap();
    let own = [
        "--allow-origin",
        PAGE,
        "--auth-token-file",
        token.to_str().unwrap(),
    ];
    let proxy = ListeningProgram::proxy("http", &[&own, &DEMO[..]].concat());
    assert_eq!(preflight(&proxy, PAGE, "authorization").status, 204);
    let answer = proxy.post(&[("origin", PAGE)], INITIALIZE);
    assert_eq!(answer.status, 401);
    assert!(may_read(&answer, PAGE), "{answer:?}");
}

#[test]
fn without_a_named_origin_nothing_is_said_about_origins() {
    let proxy = ListeningProgram::proxy("http", &DEMO);
    let local = "http://localhost:5173";
    assert_eq!(preflight(&proxy, local, "content-type").status, 405);
    let answer = proxy.post(&[("origin", local)], INITIALIZE);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

/// A browser refuses credentials where the server says `*`, so naming an origin instead must not bring them back.
#[test]
fn credentials_are_allowed_only_to_an_origin_that_the_server_names() {
    fn answer(request: &str) -> String {
        let origin = match request.contains("/mcp?named") {
            true => PAGE,
            false => "*",
        };
        let status = format!(
            "200 OK\r\naccess-control-allow-origin: {origin}\r\naccess-control-allow-credentials: true"
        );
        http(&status, "application/json", "{}")
    }
    let url = format!("http://{}/mcp", odd(answer, EVENTS));
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy("http", &[&["--allow-origin", PAGE], &target[..]].concat());
    for (path, credentials) in [("/mcp", None), ("/mcp?named", Some("true"))] {
        let headers = [("origin", PAGE), ("content-type", "application/json")];
        let answer = request(&proxy.address, "POST", path, &headers, LIST.as_bytes());
        assert!(may_read(&answer, PAGE), "{answer:?}");
        let allowed = answer.header("access-control-allow-credentials");
        assert_eq!(allowed, credentials, "{path}");
    }
}
