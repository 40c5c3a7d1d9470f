//! A real browser with a page of another origin: `--allow-origin` lets it in, and without that it reads nothing.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::fixtures::{self, PROXY};
use crate::page_server::PageServer;
use crate::process::RunningProgram;
use crate::texts;

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
    let page = std::fs::read_to_string(fixtures::peer("page.html")).expect("the page is there");
    let page = page.replace("@URL@", &url);
    let (sender, reports) = channel();
    server.serve(move |path, body| match path {
        "/" => Some(page.clone()),
        "/report" => {
            let report: Value = serde_json::from_slice(body).expect("the page reports JSON");
            let _ = sender.send(report);
            Some(String::new())
        }
        _ => None,
    });
    let _browser = Chromium::start(&[&format!("{origin}/")]);
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
