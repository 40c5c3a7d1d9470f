//! A hub that is started again knows the sessions of its HTTP clients.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::test_hub::{TestHub, time};
use crate::control::test_home::{TestHome, until};
use crate::programs::{PROXY, request};

const CALL: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"time_get_current_time","arguments":{"timezone":"UTC"}}}"#;

/// A hub at this address, in this home.
fn hub(home: TestHome, port: &str, token: &str) -> TestHub {
    let file = home.path("token");
    std::fs::write(&file, token).unwrap();
    let config = json!({
        "mcpServers": {"time": time()},
        "mcp-proxy": {"profiles": {"work": {}}},
    });
    let flags = [
        "--listen-port",
        port,
        "--auth-token-file",
        file.to_str().unwrap(),
    ];
    TestHub::start_in_without_session(home, &config, &flags)
}

/// What a client gets that goes on with its session: the status, and the code of an error.
fn call(hub: &TestHub, path: &str, token: &str, session: &str) -> (u16, Option<i64>) {
    let (token, mut headers) = (format!("Bearer {token}"), CONTENT.to_vec());
    headers.extend([
        ("authorization", token.as_str()),
        ("mcp-session-id", session),
    ]);
    let answer = request(
        &hub.program.address,
        "POST",
        path,
        &headers,
        CALL.as_bytes(),
    );
    let text = answer.text();
    let message = text.lines().find(|line| line.contains('{')).unwrap_or("{}");
    let message = message.strip_prefix("data: ").unwrap_or(message);
    let message: Value = serde_json::from_str(message).unwrap();
    (answer.status, message["error"]["code"].as_i64())
}

const CONTENT: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

fn session_at(hub: &TestHub, path: &str, token: &str) -> String {
    let (token, mut headers) = (format!("Bearer {token}"), CONTENT.to_vec());
    headers.push(("authorization", &token));
    let body = crate::programs::INITIALIZE.as_bytes();
    let answer = request(&hub.program.address, "POST", path, &headers, body);
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// The files that sessions are kept in.
fn kept(home: &TestHome) -> Vec<PathBuf> {
    let folder = home.path("state/mcp-proxy/hub-sessions");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn kept_sessions(home: &TestHome) -> usize {
    let texts = kept(home).into_iter().map(std::fs::read_to_string);
    let files = texts.filter_map(|text| serde_json::from_str::<Value>(&text.ok()?).ok());
    files
        .map(|file| file["sessions"].as_array().map_or(0, Vec::len))
        .sum()
}

/// Ends the hub and starts it again at the same address.
fn restart(hub: TestHub, signal: &str, token: &str) -> TestHub {
    let TestHub { home, program, .. } = hub;
    let port = program.address.rsplit_once(':').unwrap().1.to_owned();
    program.end(signal);
    self::hub(home, &port, token)
}

#[test]
fn g7_a_session_outlives_the_hub() {
    for signal in ["-TERM", "-KILL"] {
        let hub = hub(TestHome::new(), "0", "secret-token");
        let session = session_at(&hub, "/mcp", "secret-token");
        let at_work = session_at(&hub, "/mcp/p/work", "secret-token");
        let ended = session_at(&hub, "/mcp", "secret-token");
        let token = "Bearer secret-token";
        let headers = [("authorization", token), ("mcp-session-id", ended.as_str())];
        let deleted = request(&hub.program.address, "DELETE", "/mcp", &headers, b"");
        assert_eq!(deleted.status, 200);
        until("two sessions are kept", || kept_sessions(&hub.home) == 2);

        let hub = restart(hub, signal, "secret-token");
        assert_eq!(
            call(&hub, "/mcp", "secret-token", &session),
            (200, None),
            "{signal}"
        );
        assert_eq!(
            call(&hub, "/mcp", "secret-token", &session),
            (200, None),
            "{signal}"
        );
        assert_eq!(
            call(&hub, "/mcp/p/work", "secret-token", &at_work),
            (200, None)
        );
        let not_found = (404, Some(-31006));
        assert_eq!(
            call(&hub, "/mcp/p/work", "secret-token", &session),
            not_found
        );
        assert_eq!(call(&hub, "/mcp", "secret-token", &ended), not_found);
        assert_eq!(call(&hub, "/mcp", "secret-token", "unknown"), not_found);
        assert_eq!(call(&hub, "/mcp", "wrong", &session), (401, Some(-31009)));

        // Whoever may use the hub now has another token: the session was not theirs.
        let hub = restart(hub, signal, "new-token");
        assert_eq!(call(&hub, "/mcp", "new-token", &session), not_found);
        assert_eq!(
            call(&hub, "/mcp", "secret-token", &session),
            (401, Some(-31009))
        );
        let hub = restart(hub, signal, "secret-token");
        assert_eq!(call(&hub, "/mcp", "secret-token", &session), (200, None));
    }
}

#[test]
fn g7_what_is_kept_is_private_and_names_no_secret() {
    let hub = hub(TestHome::new(), "0", "secret-token");
    let session = session_at(&hub, "/mcp", "secret-token");
    until("the session is kept", || kept_sessions(&hub.home) == 1);
    let file = kept(&hub.home).pop().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let text = std::fs::read_to_string(&file).unwrap();
    for secret in [session.as_str(), "secret-token"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn g7_hubs_do_not_take_each_others_sessions() {
    let one = hub(TestHome::new(), "0", "secret-token");
    let session = session_at(&one, "/mcp", "secret-token");
    until("the session is kept", || kept_sessions(&one.home) == 1);
    let TestHub { home, program, .. } = one;
    program.end("-TERM");
    // Another address is another hub.
    let other = hub(home, "0", "secret-token");
    assert_eq!(
        call(&other, "/mcp", "secret-token", &session),
        (404, Some(-31006))
    );
    assert_eq!(
        kept_sessions(&other.home),
        1,
        "it is still there for the one that it belongs to"
    );
}

#[test]
fn many_sessions_at_once_are_not_as_many_files() {
    let hub = hub(TestHome::new(), "0", "secret-token");
    let (begin, mut files) = (Instant::now(), HashSet::new());
    let mut note = || {
        let written = |path: PathBuf| path.metadata().and_then(|about| about.modified()).ok();
        files.extend(kept(&hub.home).into_iter().filter_map(written));
    };
    for _ in 0..30 {
        session_at(&hub, "/mcp", "secret-token");
        note();
    }
    until("all are kept", || {
        note();
        kept_sessions(&hub.home) == 30
    });
    // The draft of a file is seen too.
    let most = 2 * (2 + begin.elapsed().as_secs());
    assert!(files.len() as u64 <= most, "{} of {most}", files.len());
}

#[test]
fn a_pipe_in_place_of_a_kept_file_stops_nobody() {
    let config = json!({"mcpServers": {
        "s": {"command": PROXY, "args": ["demo-server", "stdio"]},
    }});
    let hub = TestHub::start(&config, &["--expose", "all"]);
    let listing = hub.home.path("state/mcp-proxy/listings/s.json");
    hub.until("all is kept", |hub| {
        listing.exists() && kept_sessions(&hub.home) == 1
    });
    let TestHub { home, program, .. } = hub;
    let port = program.address.rsplit_once(':').unwrap().1.to_owned();
    program.end("-TERM");
    let sessions = kept(&home).pop().unwrap();
    for path in [&sessions, &listing] {
        std::fs::remove_file(path).unwrap();
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }
    let flags = ["--expose", "all", "--listen-port", &port];
    let hub = TestHub::start_in(home, &config, &flags);
    assert!(!hub.tool_names().is_empty());
    hub.until("all is kept again", |hub| {
        listing.is_file() && kept(&hub.home).iter().all(|path| path.is_file())
    });
}
