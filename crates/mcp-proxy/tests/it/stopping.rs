//! Signals end the program, whatever its stdin is: a terminal that nobody types on, a pipe that stays open, a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::programs::{INITIALIZE, PROXY};

const SIGNALS: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

fn kill(signal: &str, pid: &str) {
    let status = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(status.success());
}

/// Reads up to a line that contains `text`.
#[track_caller]
fn wait_for(lines: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no {text}");
    }
}

#[test]
fn a_signal_ends_a_proxy_that_reads_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let line = format!(
        "echo $$ >{}; exec {PROXY} --transport stdio --no-record --no-control -- {PROXY} demo-server stdio",
        pid.display()
    );
    for (signal, code) in SIGNALS {
        // `script` makes the terminal. Its own stdin stays open and silent.
        let mut script = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut screen = BufReader::new(script.stdout.take().unwrap());
        let _typing = script.stdin.take();
        wait_for(&mut screen, "--listen http");
        kill(signal, std::fs::read_to_string(&pid).unwrap().trim());
        assert_eq!(script.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn a_signal_ends_a_proxy_that_reads_a_pipe() {
    for (signal, code) in SIGNALS {
        let mut proxy = Command::new(PROXY)
            .args(["--transport", "stdio", "--no-record", "--no-control", "--"])
            .args([PROXY, "demo-server", "stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = proxy.stdin.take().unwrap();
        writeln!(stdin, "{INITIALIZE}").unwrap();
        let mut stdout = BufReader::new(proxy.stdout.take().unwrap());
        wait_for(&mut stdout, "serverInfo");
        kill(signal, &proxy.id().to_string());
        assert_eq!(proxy.wait().unwrap().code(), Some(code), "{signal}");
        drop(stdin);
    }
}

#[test]
fn the_end_of_a_file_is_the_end_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    std::fs::write(&path, format!("{INITIALIZE}\n")).unwrap();
    let ended = Command::new(PROXY)
        .args(["--transport", "stdio", "--no-record", "--no-control", "--"])
        .args([PROXY, "demo-server", "stdio"])
        .stdin(File::open(&path).unwrap())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("serverInfo"));
}
