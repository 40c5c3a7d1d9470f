//! The socket itself: who may come, what happens to bad lines, and viewers that stop reading.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::test_home::{PING, TestHome, TestProxy, ok, until};
use crate::programs::INITIALIZE;

/// A program that speaks to the socket itself.
pub struct RawControlClient(BufReader<UnixStream>);

impl RawControlClient {
    pub fn connect(house: &TestHome, run: &TestProxy) -> RawControlClient {
        let path = house.sockets().join(format!("{}.sock", run.id));
        let stream = UnixStream::connect(path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        RawControlClient(BufReader::new(stream))
    }

    pub fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        self.0.get_mut().write_all(b"\n").unwrap();
    }

    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn is_closed(&mut self) -> bool {
        self.0.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_for_their_owner_only() {
    let house = TestHome::new();
    // Made by somebody with a wider mode: closed.
    std::fs::create_dir(house.sockets()).unwrap();
    std::fs::set_permissions(house.sockets(), PermissionsExt::from_mode(0o755)).unwrap();
    let run = house.demo(&[]);
    assert_eq!(mode(&house.sockets()), 0o700);
    for ending in ["sock", "json"] {
        assert_eq!(
            mode(&house.sockets().join(format!("{}.{ending}", run.id))),
            0o600
        );
    }
    assert_eq!(house.files().len(), 2);
}

/// Where the program below finds the socket.
const STRANGER: &str = "MCP_PROXY_TEST_STRANGER";

/// No test by itself: what the next one runs as somebody else.
#[test]
fn what_a_stranger_does() {
    let Some(socket) = std::env::var_os(STRANGER) else {
        return;
    };
    let said = UnixStream::connect(socket).and_then(|stream| {
        let mut stream = BufReader::new(stream);
        let mut said = String::new();
        stream.read_line(&mut said)?;
        let shutdown = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}\n";
        let _ = stream.get_mut().write_all(shutdown);
        Ok(said)
    });
    println!("stranger: {said:?}");
}

#[test]
fn a_process_of_another_user_is_kept_out_three_times() {
    // Only root can be somebody else.
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    let socket = house.sockets().join(format!("{}.sock", run.id));
    let open = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    // The folder of the tests may be closed to others, and the program must not fail because of that.
    let program = house.path("stranger");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    open(&program, 0o755);
    open(&house.path(""), 0o711);
    let stranger = || {
        let output = Command::new(&program)
            .args(["--exact", "control::sockets::what_a_stranger_does"])
            .arg("--nocapture")
            .current_dir("/")
            .env(STRANGER, &socket)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = said.lines().find_map(|line| line.split_once("stranger: "));
        line.unwrap_or_else(|| panic!("{output:?}")).1.to_owned()
    };
    let said = stranger();
    assert!(said.contains("PermissionDenied"), "the folder: {said}");
    open(&house.sockets(), 0o711);
    let said = stranger();
    assert!(said.contains("PermissionDenied"), "the socket: {said}");
    open(&socket, 0o666);
    let said = stranger();
    assert!(said.contains("other_user"), "the proxy: {said}");
    // And nothing was done.
    open(&house.sockets(), 0o700);
    run.round(INITIALIZE);
    assert_eq!(house.ctl(&["stats"])["viewers"], 1);
}

#[test]
fn a_folder_that_cannot_be_trusted_is_not_used() {
    let house = TestHome::new();
    std::os::unix::fs::symlink(house.path("elsewhere"), house.sockets()).unwrap();
    std::fs::create_dir(house.path("elsewhere")).unwrap();
    let run = house.demo(&[]);
    assert_eq!(
        std::fs::read_dir(house.path("elsewhere")).unwrap().count(),
        0
    );
    // The other place is found by those who look.
    assert!(ok(house.run(&["ls"])).contains(&run.id));
}

#[test]
fn a_socket_that_cannot_be_made_is_a_warning() {
    let house = TestHome::new();
    let long = house.path(&"long".repeat(30));
    std::fs::create_dir(&long).unwrap();
    let server = ["--", super::test_home::PROXY, "demo-server", "stdio"];
    let words = [&["proxy", "--listen", "stdio"][..], &server].concat();
    let mut command = house.command(&words);
    command.env("XDG_RUNTIME_DIR", &long).env("TMPDIR", &long);
    let input = house.path("in");
    std::fs::write(&input, format!("{INITIALIZE}\n")).unwrap();
    command.stdin(std::fs::File::open(input).unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // The longest path of a socket.
    assert!(said.contains("103"), "{said}");
    assert_eq!(
        std::fs::read_dir(long.join("mcp-proxy")).map_or(0, Iterator::count),
        0
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("protocolVersion"),
        "{said}"
    );
}

#[test]
fn what_a_killed_proxy_leaves_is_removed() {
    let house = TestHome::new();
    for by in ["ls", "the next proxy"] {
        let mut run = house.demo(&[]);
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        assert_eq!(house.files().len(), 2);
        let next = match by {
            "ls" => {
                // A server that was just being started may have its files for a moment longer.
                let lists_none = || ok(house.run(&["ls", "--json"])).is_empty();
                until("no proxy is listed", lists_none);
                None
            }
            _ => Some(house.demo(&[])),
        };
        let expected = if next.is_some() { 2 } else { 0 };
        until("they are gone", || house.files().len() == expected);
        let old = house.sockets().join(format!("{}.sock", run.id));
        until("the socket is gone", || !old.exists());
    }
}

#[test]
fn a_message_over_several_lines_is_one_request() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let inner = r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#;
    let raw =
        format!("raw={{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\n{inner}\n}}");
    house.ctl(&["replay", "sequence=1", &raw]);
    assert!(house.ctl(&["stats"])["messages"].is_number(), "it goes on");
    run.round(PING);
}

#[test]
fn bad_lines_are_answered_and_the_connection_goes_on() {
    let house = TestHome::new();
    let run = house.demo(&[]);
    let mut raw = RawControlClient::connect(&house, &run);
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"id":1,"method":"x"}"#, -32601),
    ] {
        raw.send(line);
        assert_eq!(raw.hear()["error"]["code"], code, "{line}");
    }
    // Longer than a line may be.
    let piece = "x".repeat(1 << 20);
    for _ in 0..65 {
        raw.0.get_mut().write_all(piece.as_bytes()).unwrap();
    }
    raw.send("");
    let answer = raw.hear();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("67108864")
    );
    // Two at once, answered in order; then the end is seen.
    raw.send("{\"id\":1,\"method\":\"stats\"}\n{\"id\":2,\"method\":\"stats\"}");
    assert_eq!(raw.hear()["id"], 1);
    assert_eq!(raw.hear()["id"], 2);
    raw.0.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(raw.is_closed());
}

#[test]
fn too_many_viewers_are_refused_with_a_text() {
    let house = TestHome::new();
    let run = house.demo(&[]);
    let mut viewers: Vec<_> = (0..32)
        .map(|_| RawControlClient::connect(&house, &run))
        .collect();
    for viewer in &mut viewers {
        viewer.send(r#"{"id":1,"method":"subscribe"}"#);
        assert_eq!(viewer.hear()["id"], 1);
    }
    let mut late = RawControlClient::connect(&house, &run);
    let answer = late.hear();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "limit", "{answer}");
    assert!(late.is_closed());
    let output = house.run(&["ctl", "stats"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("32"));
    drop(viewers);
    until("there is room", || {
        house.run(&["ctl", "stats"]).status.success()
    });
}

#[test]
fn a_viewer_that_stops_reading_changes_nothing_and_is_told_the_present_later() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let mut stopped = RawControlClient::connect(&house, &run);
    stopped.send(r#"{"id":0,"method":"subscribe"}"#);
    let all: String = (1..=40)
        .map(|id| {
            format!(
                "{{\"id\":{id},\"method\":\"get\",\"params\":{{\"raw\":true,\"limit\":1000}}}}\n"
            )
        })
        .collect();
    let mut rounds = 0;
    // Long enough that its socket and its buffer are full: 40 answers of 300 rows.
    while rounds < 150 {
        run.round(PING);
        rounds += 1;
    }
    stopped.0.get_mut().write_all(all.as_bytes()).unwrap();
    for _ in 0..100 {
        run.round(PING);
    }
    // Others are served.
    assert_eq!(house.ctl(&["stats"])["messages"], 502);
    // Now it reads: all its answers, and then what the present is.
    let (mut answers, mut lagged, mut upto) = (0, false, 0);
    while answers < 41 || upto < 502 {
        let heard = stopped.hear();
        match heard["method"].as_str() {
            None => answers += 1,
            Some("rows") => upto = heard["params"]["upto"].as_u64().unwrap(),
            Some("lagged") => {
                lagged = true;
                assert_eq!(heard["params"], json!({}));
            }
            Some(_) => {}
        }
    }
    assert!(lagged, "it was told that it lagged");
    run.round(PING);
    assert_eq!(run.end(), Some(0));
}
