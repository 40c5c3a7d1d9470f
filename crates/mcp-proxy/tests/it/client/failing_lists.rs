//! Lists that fail are errors, and one bad definition costs only itself.

use super::{complaint, odd_server, printed};
use crate::control::test_home::TestHome;

/// The words that start a server which answers `tools/list` with this, and those that put it behind a hub.
fn server(home: &TestHome, answer: &str) -> [Vec<String>; 2] {
    let words = odd_server::install(home);
    std::fs::write(home.path("tools"), answer).unwrap();
    let behind = vec!["--server".to_owned(), format!("d={}", words[1..].join(" "))];
    [words, behind]
}

fn run(home: &TestHome, words: &[&str], server: &[String]) -> std::process::Output {
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    home.run(&[words, &server].concat())
}

#[test]
fn a6_d36_a_list_that_fails_is_an_error_with_its_reason() {
    let home = TestHome::new();
    let error = r#""error":{"code":-32603,"message":"database is down"}"#;
    for server in server(&home, error) {
        for words in [
            &["tools", "list"][..],
            &["tools", "list", "--json"],
            &["call", "x"],
        ] {
            let output = run(&home, words, &server);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{words:?} {server:?}: {output:?}"
            );
            assert!(
                complaint(&output).contains("database is down"),
                "{output:?}"
            );
            assert_eq!(printed(&output), "");
        }
    }
}

#[test]
fn a7_a_definition_that_is_nested_too_deeply_is_left_out_with_a_warning() {
    let home = TestHome::new();
    let schema = "{\"a\":".repeat(140) + "1" + &"}".repeat(140);
    let tools = format!(
        r#""result":{{"tools":[{{"name":"deep","inputSchema":{schema}}},{{"name":"flat","inputSchema":{{}}}}]}}"#
    );
    for server in server(&home, &tools) {
        let output = run(&home, &["tools", "list"], &server);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(printed(&output).ends_with("flat\n"), "{output:?}");
        assert!(complaint(&output).contains("levels"), "{output:?}");
    }
}
