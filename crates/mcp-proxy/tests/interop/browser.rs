//! A real browser with a page of another origin: `--allow-origin` lets it in, and without that it reads nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixtures::{self, PROXY};
use crate::process::RunningProgram;
use crate::texts;

/// Debian's Chromium without a window.
const BROWSER: &str = "chromium-headless-shell";

/// The page's own server: its origin, and what the page reports.
struct PageServer {
    origin: String,
    listener: TcpListener,
}

impl PageServer {
    fn new() -> PageServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let origin = format!("http://{address}");
        PageServer { origin, listener }
    }

    /// Hands the page out, which speaks to `url`.
    fn serve(self, url: &str) -> Receiver<Value> {
        let page = std::fs::read_to_string(fixtures::peer("page.html")).expect("the page is there");
        let page = page.replace("@URL@", url);
        let (reports, receiver) = channel();
        std::thread::spawn(move || {
            for stream in self.listener.incoming().flatten() {
                let (page, reports) = (page.clone(), reports.clone());
                std::thread::spawn(move || answer(stream, &page, &reports));
            }
        });
        receiver
    }
}

/// Answers one request; Chromium may open connections that it does not use.
fn answer(mut stream: TcpStream, page: &str, reports: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut lengths = head.lines().filter_map(|line| line.split_once(':'));
    let length = lengths.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Ok(0), |(_, value)| value.trim().parse());
    let mut body = vec![0; length.ok()?];
    reader.read_exact(&mut body).ok()?;
    let (status, text) = match head.split(' ').nth(1)? {
        "/" => ("200 OK", page),
        "/report" => {
            let report = serde_json::from_slice(&body).expect("the page reports JSON");
            let _ = reports.send(report);
            ("200 OK", "")
        }
        _ => ("404 Not Found", ""),
    };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(answer.as_bytes()).ok()
}

/// What a page reports that speaks to a proxy with these flags.
fn report(flags: impl FnOnce(&str) -> Vec<String>) -> Value {
    let server = PageServer::new();
    let origin = server.origin.clone();
    let mut arguments = ["proxy", "--headless", "--no-record", "--listen", "http"]
        .map(String::from)
        .to_vec();
    arguments.extend(["--listen-port".to_owned(), "0".to_owned()]);
    arguments.extend(flags(&origin));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = RunningProgram::start(&mut fixtures::command(PROXY, &arguments));
    let url = proxy.wait_for(texts::LISTENING_ON);
    let reports = server.serve(&url);
    let profile = tempfile::tempdir().expect("a temporary directory");
    let profile = format!("--user-data-dir={}", profile.path().display());
    let flags = [
        &profile,
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
    ];
    let page = format!("{origin}/");
    let _browser = RunningProgram::start(&mut fixtures::command(
        BROWSER,
        &[&flags[..], &[&page]].concat(),
    ));
    let report = reports.recv_timeout(Duration::from_secs(60));
    report.expect("the page reports")
}

fn demo() -> Vec<String> {
    ["--", PROXY, "demo-server", "stdio"]
        .map(String::from)
        .to_vec()
}

#[test]
fn a_page_of_a_named_origin_speaks_to_a_stdio_server() {
    let report = report(|origin| {
        let mut flags = vec!["--allow-origin".to_owned(), origin.to_owned()];
        flags.extend(demo());
        flags
    });
    assert_eq!(report["error"], Value::Null, "{report}");
    assert_eq!(report["session"], true);
    assert_eq!(report["statuses"], json!([200, 200, 404]));
    assert_eq!(report["refusal"], -31006);
}

#[test]
fn a_page_of_another_origin_reads_nothing() {
    let report = report(|_| demo());
    assert_eq!(report["ok"], false, "{report}");
    assert_eq!(report["session"], Value::Null);
}
