//! HTTP/2 with an implementation that is not ours: Node's own, as the server behind the proxy and as the client
//! before it. Its client knows nothing else; its server would take HTTP/1.1 too, and says what it got.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixtures::{self, PROXY};
use crate::process::{RunningProgram, finish, finish_after, said};
use crate::texts;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h2","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

const LIMIT: Duration = Duration::from_secs(60);
/// Larger than a stream's window of 64 KiB, so that it has to be opened again and again, in both directions.
const LARGE: usize = 1 << 20;

/// A certificate for `localhost`, in a folder of its own.
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    pub fn new() -> Certificate {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let folder = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
        write("cert.pem", made.cert.pem()).expect("a file");
        write("key.pem", made.signing_key.serialize_pem()).expect("a file");
        Certificate { folder }
    }

    /// `cert.pem` or `key.pem`.
    pub fn path(&self, name: &str) -> String {
        text(&self.folder.path().join(name))
    }

    /// Node's server, and its URL.
    fn server(&self) -> (RunningProgram, String) {
        let (node, script) = (fixtures::node(), fixtures::peer("h2_server.mjs"));
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let running = RunningProgram::start(&mut fixtures::command(&node, &[&script, &cert, &key]));
        let url = running.wait_for("listening on ");
        (running, url)
    }

    /// The proxy with TLS on its listener, and its URL.
    fn proxy(&self, target: &[&str]) -> (RunningProgram, String) {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let mut arguments = vec!["proxy", "--listen", "http", "--listen-port", "0"];
        arguments.extend(["--no-record", "--tls-cert", &cert, "--tls-key", &key]);
        arguments.extend(target);
        let running = RunningProgram::start(&mut fixtures::command(PROXY, &arguments));
        // It names its address; the certificate is for the name.
        let url = running.wait_for(texts::LISTENING_ON);
        (running, url.replace("127.0.0.1", "localhost"))
    }

    /// A file with a message a line.
    fn messages(&self, messages: &[&str]) -> String {
        let file = self.path("messages.jsonl");
        std::fs::write(&file, messages.join("\n") + "\n").expect("a file");
        file
    }

    /// What Node's client is answered, one value for each message.
    fn ask(&self, url: &str, messages: &[&str]) -> Vec<Value> {
        let (node, script) = (fixtures::node(), fixtures::peer("h2_client.mjs"));
        let (cert, file) = (self.path("cert.pem"), self.messages(messages));
        let mut client = fixtures::command(&node, &[&script, url, &cert, &file]);
        let output = finish(&mut client, LIMIT);
        assert!(output.status.success(), "{}", said(&output));
        let answers = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        let answers: Vec<Value> = answers
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        assert_eq!(answers.len(), messages.len());
        answers
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a temporary name is UTF-8").to_owned()
}

fn echo() -> String {
    let text = "x".repeat(LARGE);
    format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    )
}

/// A whole conversation with Node's server, by Node's client: everything over h2 and nothing missing.
fn converse(certificate: &Certificate, url: &str) {
    let answers = certificate.ask(url, &[INITIALIZE, INITIALIZED, LIST, &echo()]);
    for (answer, status) in answers.iter().zip([200, 202, 200, 200]) {
        assert_eq!(answer["protocol"], "h2", "{answer}");
        assert_eq!(answer["status"], status, "{answer}");
    }
    let body = |at: usize| answers[at]["body"].as_str().unwrap_or_default();
    assert!(body(0).contains("h2-peer"), "{}", body(0));
    assert!(body(2).contains(r#""name":"echo""#), "{}", body(2));
    for at in [0, 2, 3] {
        assert!(body(at).contains(r#""httpVersion":"2.0""#), "answer {at}");
    }
    assert_eq!(answers[3]["type"], "text/event-stream");
    assert!(body(3).contains("echoing"));
    assert!(body(3).contains(&"x".repeat(LARGE)), "the text came back");
}

#[test]
fn direct() {
    let certificate = Certificate::new();
    let (_server, url) = certificate.server();
    converse(&certificate, &url);
}

#[test]
fn both_sides_through_the_proxy() {
    let certificate = Certificate::new();
    let (_server, url) = certificate.server();
    let ca = certificate.path("cert.pem");
    let (_proxy, url) = certificate.proxy(&["--ca-file", &ca, &url]);
    converse(&certificate, &url);
}

#[test]
fn a_stdio_client_is_carried_to_an_h2_server() {
    let certificate = Certificate::new();
    let (_server, url) = certificate.server();
    let file = certificate.messages(&[INITIALIZE, INITIALIZED, LIST, &echo()]);
    let file = std::fs::File::open(file).expect("it was just written");
    let arguments = ["proxy", "--listen", "stdio", "--no-record", "--ca-file"];
    let mut proxy = fixtures::command(PROXY, &arguments);
    proxy.args([&certificate.path("cert.pem"), &url]);
    let output = finish_after(&mut proxy, file, LIMIT);
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    assert_eq!(lines.lines().count(), 4, "three answers and a log line");
    let by_h2 = lines.matches(r#""httpVersion":"2.0""#).count();
    assert_eq!(by_h2, 3, "every request came by h2");
    assert!(lines.contains("echoing"));
    assert!(lines.contains(&"x".repeat(LARGE)), "the text came back");
}

#[test]
fn a_stdio_server_is_carried_to_an_h2_client() {
    let certificate = Certificate::new();
    let (_proxy, url) = certificate.proxy(&["--", PROXY, "demo-server", "stdio"]);
    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2}}}"#;
    let answers = certificate.ask(&url, &[INITIALIZE, INITIALIZED, LIST, call]);
    for (answer, status) in answers.iter().zip([200, 202, 200, 200]) {
        assert_eq!(answer["protocol"], "h2", "{answer}");
        assert_eq!(answer["status"], status, "{answer}");
    }
    assert!(
        answers[2]["body"]
            .as_str()
            .unwrap_or_default()
            .contains("count_down")
    );
    assert!(
        answers[3]["body"]
            .as_str()
            .unwrap_or_default()
            .contains("\"result\"")
    );
}
