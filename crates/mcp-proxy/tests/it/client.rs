//! The commands that use a server: what they print, and how they end.

mod cancelling;
mod failing_lists;
mod hubs;
mod odd_names_and_values;
mod odd_server;
mod script;

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::control::test_home::{PROXY, TestHome};
use crate::serve::test_hub::processes_with;

const DEMO: [&str; 4] = ["--", PROXY, "demo-server", "stdio"];

/// What a command prints, with this program called by its name.
fn printed(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.replace(PROXY, "mcp-proxy")
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command on the demo server.
fn demo(words: &[&str]) -> Output {
    TestHome::new().run(&[words, &DEMO].concat())
}

#[track_caller]
fn good(words: &[&str]) -> String {
    let output = demo(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    printed(&output)
}

#[track_caller]
fn refused(words: &[&str], code: i32) -> String {
    let output = demo(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
    complaint(&output)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_a_server_offers_is_listed() {
    insta::assert_snapshot!("tools-list", good(&["tools", "list"]));
    insta::assert_snapshot!("resources-list", good(&["resources", "list"]));
    insta::assert_snapshot!("prompts-list", good(&["prompts", "list"]));
    insta::assert_snapshot!(
        "tools-search",
        good(&["tools", "search", "random", "number"])
    );
    assert_eq!(good(&["tools"]), good(&["tools", "list"]));
    let listed = json_of(&good(&["tools", "list", "dice", "--json"]));
    assert_eq!(listed[0]["name"], "roll_dice");
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn one_definition_is_shown_with_an_example() {
    insta::assert_snapshot!("tools-info", good(&["tools", "info", "add"]));
    insta::assert_snapshot!(
        "resources-info",
        good(&["resources", "info", "demo://greeting/{name}"])
    );
    insta::assert_snapshot!("prompts-info", good(&["prompts", "info", "haiku"]));
    let definition = json_of(&good(&["tools", "info", "add", "--json"]));
    assert_eq!(
        definition["inputSchema"]["properties"]["a"]["type"],
        "number"
    );
}

#[test]
fn a_tool_is_called_with_words_json_a_file_and_stdin() {
    assert_eq!(good(&["call", "echo", "message=3"]), "3\n");
    let sum = json!({"sum": 3.5, "unit": "apples"});
    let words = ["call", "add", "a=1", "b=2.5", "unit=apples"];
    assert_eq!(json_of(&good(&words)), sum);
    let result = json_of(&good(&[&words[..], &["--json"]].concat()));
    assert_eq!(result["structuredContent"], sum);
    let arguments = r#"{"a":1,"b":2.5,"unit":"apples"}"#;
    assert_eq!(json_of(&good(&["call", "add", "--args", arguments])), sum);
    let home = TestHome::new();
    std::fs::write(home.path("arguments"), arguments).unwrap();
    let file = home.path("arguments");
    let file = file.to_str().unwrap();
    assert_eq!(json_of(&good(&["call", "add", "--args-file", file])), sum);
    let mut command = home.command(&[&["call", "add", "-"], &DEMO[..]].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(arguments.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(json_of(&printed(&output)), sum);
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    insta::assert_snapshot!(
        "call-wrong-type",
        refused(&["call", "add", "a=one", "b=2"], 2)
    );
    insta::assert_snapshot!("call-missing", refused(&["call", "add", "a=1"], 2));
    insta::assert_snapshot!(
        "call-unknown-argument",
        refused(&["call", "echo", "mesage=hi"], 2)
    );
    insta::assert_snapshot!(
        "call-unknown-tool",
        refused(&["call", "ecko", "message=hi"], 2)
    );
    insta::assert_snapshot!("prompt-missing", refused(&["prompt", "haiku"], 2));
    refused(&["call", "add", "--args", "[]"], 2);
    refused(&["tools", "info", "nothing"], 2);
    refused(&["call", "echo", "message=@/does/not/exist"], 2);
    refused(
        &[
            "call",
            "echo",
            "message=x",
            "--url",
            "http://127.0.0.1:1/mcp",
        ],
        2,
    );
}

#[test]
fn a_tool_that_fails_is_exit_code_1() {
    insta::assert_snapshot!(
        "call-failed",
        refused(&["call", "roll_dice", "count=100"], 1)
    );
    let output = demo(&["call", "roll_dice", "count=100", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json_of(&printed(&output))["isError"], true);
    assert!(output.stderr.is_empty());
    refused(&["read", "demo://nothing"], 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_exit_code_3() {
    let home = TestHome::new();
    for words in [
        &["tools", "list", "--url", "http://127.0.0.1:1/mcp"][..],
        &["tools", "list", "--", "/does/not/exist"],
        &["tools", "list", "--", "true"],
        &["tools", "list", "--timeout", "500ms", "--", "sleep", "100"],
        &["tools"],
        &["shell", "--url", "http://127.0.0.1:1/mcp"],
    ] {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(3), "{words:?}: {output:?}");
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{words:?}"
        );
    }
    insta::assert_snapshot!("no-hub", complaint(&home.run(&["tools"])));
}

/// A port that answers every request with this status and a page for people.
fn start_web_site(status: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 8192];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let page = "<html><body>Hello</body></html>";
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    url
}

#[test]
fn a_web_site_that_is_not_a_server_is_exit_code_3() {
    for status in [
        "401 Unauthorized",
        "404 Not Found",
        "200 OK",
        "500 Internal Server Error",
    ] {
        let url = start_web_site(status);
        let output = TestHome::new().run(&["tools", "--url", &url]);
        assert_eq!(output.status.code(), Some(3), "{status}: {output:?}");
        let text = complaint(&output);
        // The command to sign in names it too.
        let names = 1 + text.matches("mcp-proxy login").count();
        assert_eq!(text.matches(&url).count(), names, "{text}");
        assert_eq!(text.matches("cannot connect").count(), 1, "{text}");
    }
}

#[test]
fn resources_are_read_and_blobs_written() {
    assert_eq!(good(&["read", "demo://greeting/Ada"]), "Hello, Ada!\n");
    insta::assert_snapshot!("read-blob", good(&["read", "demo://logo"]));
    let home = TestHome::new();
    let file = home.path("logo.png");
    let words = ["read", "demo://logo", "--output", file.to_str().unwrap()];
    assert_eq!(good(&words), "");
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG"));
    let result = json_of(&good(&["read", "demo://greeting/Ada", "--json"]));
    assert_eq!(result["contents"][0]["text"], "Hello, Ada!");
}

#[test]
fn prompts_take_texts() {
    insta::assert_snapshot!("prompt", good(&["prompt", "haiku", "topic=rain"]));
    let result = json_of(&good(&["prompt", "haiku", "topic=rain", "--json"]));
    assert_eq!(result["messages"][0]["role"], "user");
}

#[test]
fn a_question_without_a_terminal_is_declined() {
    insta::assert_snapshot!("declined", good(&["call", "ask_name"]));
}

#[test]
fn log_messages_are_shown_when_asked_for() {
    let words = ["call", "count_down", "from=2"];
    let shown = |words: &[&str]| complaint(&demo(words)).contains("lift-off");
    assert!(!shown(&words));
    assert!(shown(&[&words[..], &["-v"]].concat()));
}

#[test]
fn no_process_of_the_server_is_left() {
    let home = TestHome::new();
    let mark = format!("MCP_PROXY_TEST_CALL={}", std::process::id());
    let words = ["call", "echo", "message=hi", "--env", &mark];
    let output = home.run(&[&words[..], &DEMO].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(processes_with(&mark), 0);
}
