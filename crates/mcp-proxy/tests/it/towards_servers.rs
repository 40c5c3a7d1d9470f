//! The requests that the proxy makes itself: who it says it is, cookies, headers from elsewhere, proxies on the way.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::bridging::{EVENTS, http, odd};
use crate::passing::read_request;
use crate::programs::{
    INITIALIZE, INITIALIZED, ListeningProgram, PROXY, StdioProgram, error_answer,
};
use crate::tls::certificate;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;

/// A server that answers every request with the same text, and tells what it was sent.
fn listening_server(text: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = read_request(&connection);
            let _ = connection.write_all(text.as_bytes());
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn answer(headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn next(requests: &mpsc::Receiver<String>) -> String {
    requests.recv_timeout(Duration::from_secs(30)).unwrap()
}

fn client(url: &str, more: &[&str], env: &[(&str, PathBuf)]) -> StdioProgram {
    let words = ["proxy", "--listen", "stdio", "--no-record"];
    let kind = ["--transport", "streamable-http", "--target-url", url];
    StdioProgram::start_with(&[&words[..], &kind[..], more].concat(), env)
}

#[test]
fn bridges_say_who_they_are_and_keep_cookies() {
    let (address, requests) = listening_server(answer("set-cookie: LB=a7; Path=/\r\n", RESULT));
    let mut client = client(&format!("http://{address}/mcp"), &[], &[]);
    client.say(INITIALIZE);
    client.hear();
    client.say(INITIALIZED);
    let agent = format!("user-agent: mcp-proxy/{}", env!("CARGO_PKG_VERSION"));
    let first = next(&requests);
    assert!(
        first.contains(&agent) && !first.contains("cookie"),
        "{first}"
    );
    let second = next(&requests);
    assert!(second.contains(&agent), "{second}");
    assert!(second.contains("cookie: LB=a7\r\n"), "{second}");
}

#[test]
fn a_clients_own_name_passes_as_it_is() {
    let (address, requests) = listening_server(answer("", RESULT));
    let url = format!("http://{address}/mcp");
    let more = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy("http", &more);
    proxy.post(&[("user-agent", "theirs/1")], INITIALIZE);
    assert!(next(&requests).contains("user-agent: theirs/1\r\n"));
    proxy.post(&[], INITIALIZE);
    assert!(!next(&requests).contains("user-agent"));
}

#[test]
fn headers_take_values_from_the_environment_and_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let (token, lines) = (folder.path().join("token"), folder.path().join("lines"));
    std::fs::write(&token, "from-a-file\n").unwrap();
    std::fs::write(&lines, "X-One: 1\n# not this\nX-Two: ${MCP_TEST_TOKEN}\n").unwrap();
    let (address, requests) = listening_server(answer("", RESULT));
    let more = [
        "--header",
        "Authorization: Bearer ${MCP_TEST_TOKEN}",
        "--header",
        &format!("X-Key: @{}", token.display()),
        "--header",
        &format!("@{}", lines.display()),
    ];
    let env = [("MCP_TEST_TOKEN", PathBuf::from("from-the-environment"))];
    let mut client = client(&format!("http://{address}/mcp"), &more, &env);
    client.say(INITIALIZE);
    let request = next(&requests);
    for header in [
        "authorization: Bearer from-the-environment\r\n",
        "x-key: from-a-file\r\n",
        "x-one: 1\r\n",
        "x-two: from-the-environment\r\n",
    ] {
        assert!(request.contains(header), "{request}");
    }
}

#[test]
fn a_header_with_a_variable_that_is_not_set_is_refused() {
    let words = ["--header", "A: ${MCP_TEST_UNSET}", "http://127.0.0.1:1/mcp"];
    let ended = Command::new(PROXY).args(words).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("MCP_TEST_UNSET"), "{said}");
}

#[test]
fn values_from_elsewhere_are_masked_in_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    // The server repeats what it was given.
    let (address, _requests) =
        listening_server(http("500 Oops", "text/plain", "bad: s3cr3t-value"));
    let words = ["proxy", "--listen", "stdio", "--session-file"];
    let url = format!("http://{address}/mcp");
    let header = ["--header", "X-Key: ${MCP_TEST_TOKEN}", &url];
    let words = [&words[..], &[record.to_str().unwrap()], &header[..]].concat();
    let env = [("MCP_TEST_TOKEN", PathBuf::from("s3cr3t-value"))];
    let mut client = StdioProgram::start_with(&words, &env);
    client.say(INITIALIZE);
    assert_eq!(error_answer(&client.hear()), (json!(1), -31003));
    client.end();
    let text = std::fs::read_to_string(&record).unwrap();
    let header = text.lines().next().unwrap();
    assert!(!header.contains("s3cr3t-value"), "{header}");
}

#[test]
fn a_refusal_for_lack_of_credentials_names_the_flag_for_them() {
    let refusal = http("401 Unauthorized", "text/plain", "no");
    for transport in ["streamable-http", "sse"] {
        let (address, _requests) = listening_server(refusal.clone());
        let url = format!("http://{address}/mcp");
        let words = ["proxy", "--listen", "stdio", "--no-record"];
        let kind = ["--transport", transport, "--target-url", &url];
        let mut client = StdioProgram::start(&[&words[..], &kind[..]].concat());
        client.say(INITIALIZE);
        let heard = client.hear();
        // It does not say what it wants.
        assert_eq!(error_answer(&heard), (json!(1), -31016), "{transport}");
        assert!(
            heard.contains("mcp-proxy login") && heard.contains("--header"),
            "{heard}"
        );
    }
}

#[test]
fn a_redirect_is_followed_whatever_was_answered_before() {
    fn moved(request: &str) -> String {
        let json = "application/json";
        match request {
            _ if request.contains(r#""initialize""#) => http("200 OK", json, RESULT),
            _ if request.starts_with("POST /other ") => {
                http("200 OK", json, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
            }
            _ => http("307 Temporary Redirect\r\nlocation: /other", json, ""),
        }
    }
    let address = odd(moved, EVENTS);
    let mut client = client(&format!("http://{address}/mcp"), &[], &[]);
    client.say(INITIALIZE);
    assert!(client.hear().contains("serverInfo"));
    client.say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    assert!(client.hear().contains("result"));
}

#[test]
fn plain_requests_go_through_the_proxy_of_the_environment() {
    let (address, requests) = listening_server(answer("", RESULT));
    let env = [(
        "http_proxy",
        PathBuf::from(format!("http://me:pw@{address}")),
    )];
    let mut client = client("http://mcp.example:8080/mcp?a=1", &[], &env);
    client.say(INITIALIZE);
    assert!(client.hear().contains("serverInfo"));
    let request = next(&requests);
    let line = "POST http://mcp.example:8080/mcp?a=1 HTTP/1.1\r\nhost: mcp.example:8080\r\n";
    assert!(request.starts_with(line), "{request}");
    assert!(request.contains("proxy-authorization: Basic bWU6cHc=\r\n"));
}

#[test]
fn https_requests_go_through_a_tunnel() {
    let refusal = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (address, requests) = listening_server(refusal.to_owned());
    let env = [(
        "HTTPS_PROXY",
        PathBuf::from(format!("http://me:pw@{address}")),
    )];
    let mut client = client("https://mcp.example/mcp", &[], &env);
    client.say(INITIALIZE);
    assert_eq!(error_answer(&client.hear()), (json!(1), -31001));
    let request = next(&requests);
    assert!(
        request.starts_with("CONNECT mcp.example:443 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request
            .to_lowercase()
            .contains("proxy-authorization: basic ")
    );
}

/// A proxy that connects whatever it is asked for to this address.
fn tunnel_to(address: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, address) = (listener.local_addr().unwrap(), address.to_owned());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            assert!(read_request(&client).starts_with("CONNECT mcp.example:443 "));
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let server = TcpStream::connect(&address).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server, client),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    format!("http://{own}")
}

#[test]
fn a_session_is_held_through_a_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "mcp.example");
    let server = ["--", PROXY, "demo-server", "stdio"];
    let flags = ["--tls-cert", &cert, "--tls-key", &key];
    let more = [&flags[..], &["--allow-host", "mcp.example"], &server].concat();
    let inner = ListeningProgram::proxy("http", &more);
    let env = [("HTTPS_PROXY", PathBuf::from(tunnel_to(&inner.address)))];
    let more = ["--ca-file", &cert];
    let mut client = client("https://mcp.example/mcp", &more, &env);
    client.say(INITIALIZE);
    assert!(client.hear().contains("serverInfo"));
    client.say(INITIALIZED);
    client.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(client.hear().contains("count_down"));
}

#[test]
fn this_machine_and_exempt_hosts_are_reached_directly() {
    let (address, requests) = listening_server(answer("", RESULT));
    let env = [("http_proxy", PathBuf::from("http://127.0.0.1:1"))];
    let mut direct = client(&format!("http://{address}/mcp"), &[], &env);
    direct.say(INITIALIZE);
    assert!(direct.hear().contains("serverInfo"));
    assert!(next(&requests).starts_with("POST /mcp HTTP/1.1\r\n"));
    let env = [("ALL_PROXY", PathBuf::from("socks5://127.0.0.1:1"))];
    let ended = Command::new(PROXY)
        .args(["--listen", "stdio", "http://mcp.example/mcp"])
        .envs(env)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("ALL_PROXY"), "{said}");
}

#[test]
fn a_cancelled_call_does_not_delay_the_end() {
    // A request that is never answered.
    let by_method = |request: &str| match request {
        request if request.contains(r#""initialize""#) => {
            http("200 OK", "application/json", RESULT)
        }
        request if request.contains(r#""slow""#) => String::new(),
        _ => http("202 Accepted", "application/json", ""),
    };
    let (sender, seen) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = read_request(&connection);
            let _ = connection.write_all(by_method(&request).as_bytes());
            if request.contains(r#""slow""#) {
                kept.push(connection);
            }
            let _ = sender.send(request);
        }
    });
    let mut client = client(&format!("http://{address}/mcp"), &[], &[]);
    client.say(INITIALIZE);
    client.hear();
    client.say(INITIALIZED);
    client.say(r#"{"jsonrpc":"2.0","id":2,"method":"slow"}"#);
    while !next(&seen).contains(r#""slow""#) {}
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    while !next(&seen).contains("notifications/cancelled") {}
    // A proxy that waited for the answer would give up at last, and end with 1.
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_proxy_that_is_not_there_is_named_and_not_the_server() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    // Nobody listens there any more.
    let address = address.unwrap().to_string();
    for (variable, url) in [
        ("HTTP_PROXY", "http://mcp.example:8080/mcp"),
        ("HTTPS_PROXY", "https://mcp.example/mcp"),
    ] {
        let env = [(
            variable,
            PathBuf::from(format!("http://me:s3cret@{address}")),
        )];
        let mut client = client(url, &[], &env);
        client.say(INITIALIZE);
        let heard = client.hear();
        assert_eq!(error_answer(&heard), (json!(1), -31001));
        assert!(heard.contains(&address), "{heard}");
        assert!(heard.contains(variable), "{heard}");
        assert!(!heard.contains("s3cret"), "{heard}");
    }
}
