//! What uses a sign-in besides the hub: the proxy in front of one server, and the shell commands.

use crate::control::test_home::{TestHome, ok};
use crate::programs::{ListeningProgram, request};
use crate::serve::protected_server::{ProtectedServer, damage_sign_ins, sign_in};

const TOLD: &str = "requests without credentials get the token of your sign-in to";

#[test]
fn the_proxy_adds_the_token_to_requests_that_have_none_and_says_so_once() {
    let (home, server) = (TestHome::new(), ProtectedServer::start());
    sign_in(&home, &server.url(), "good");
    let url = server.url();
    let words = ["proxy", "--listen", "http", "--listen-port", "0", &url];
    let proxy = ListeningProgram::start_with(&words, &home.env());
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let ask = |headers: &[(&str, &str)]| {
        let json = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let headers = [&json[..], headers].concat();
        request(&proxy.address, "POST", &proxy.path, &headers, body)
    };
    for _ in 0..3 {
        assert_eq!(ask(&[]).status, 200);
    }
    // The client's own goes through as it is, and so does what the server says about it.
    let refused = ask(&[("authorization", "Bearer own")]);
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.header("www-authenticate"),
        Some("Bearer error=\"invalid_token\"")
    );
    assert_eq!(refused.text(), "who are you?");
    let tokens = ["Bearer good", "Bearer own"].map(|token| Some(token.to_owned()));
    assert_eq!(server.tokens(), tokens);
    let (_, told) = proxy.end("-TERM");
    assert_eq!(told.matches(TOLD).count(), 1, "{told}");
    assert!(told.contains("as ada"), "{told}");
    let record = home.record();
    assert!(!record.contains("Bearer good"), "{record}");
}

#[test]
fn shell_commands_use_the_sign_in_and_say_what_to_run_without_it() {
    let (home, server) = (TestHome::new(), ProtectedServer::start());
    let url = server.url();
    let refused = home.run(&["tools", "--url", &url]);
    assert!(!refused.status.success());
    let told = String::from_utf8_lossy(&refused.stderr);
    let command = format!("`mcp-proxy login {url}`");
    assert!(told.contains(&command), "{told}");
    sign_in(&home, &url, "good");
    let listed = ok(home.run(&["tools", "--url", &url]));
    assert!(listed.contains("read"), "{listed}");
    let called = ok(home.run(&["call", "--url", &url, "read"]));
    assert!(called.contains("read"), "{called}");
}

#[test]
fn a_damaged_store_fails_only_servers_that_want_a_sign_in() {
    let (home, server) = (TestHome::new(), ProtectedServer::start());
    let open = ProtectedServer::start();
    *open.accepted.lock().unwrap() = "*";
    sign_in(&home, &server.url(), "good");
    damage_sign_ins(&home);
    let listed = ok(home.run(&["tools", "--url", &open.url()]));
    assert!(listed.contains("read"), "{listed}");
    let refused = home.run(&["tools", "--url", &server.url()]);
    assert!(!refused.status.success());
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("sign-ins.json"), "{told}");
    assert_eq!(server.tokens(), [None]);
}
