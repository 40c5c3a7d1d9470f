//! The scripted client against the server, with nothing between them.

use std::time::Duration;

use mcp_proxy_demo::{DemoContent, ScriptEra, ScriptStep, run_script, serve};
use tokio::io::{duplex, split};

/// Plays the script and returns what each step said.
async fn play(content: DemoContent, era: ScriptEra) -> Vec<ScriptStep> {
    let (ours, theirs) = duplex(64 << 10);
    let (server_reader, server_writer) = split(theirs);
    let server = tokio::spawn(serve(content, server_reader, server_writer));
    let (reader, writer) = split(ours);
    let mut steps = Vec::new();
    let on_step = |step: &ScriptStep| steps.push(step.clone());
    run_script(reader, writer, era, Duration::ZERO, on_step)
        .await
        .unwrap();
    server.await.unwrap().unwrap();
    steps
}

fn outcome<'a>(steps: &'a [ScriptStep], title: &str) -> &'a str {
    let step = steps.iter().find(|step| step.title == title);
    step.map(|step| step.outcome.as_str())
        .unwrap_or_else(|| panic!("no step {title:?}: {steps:?}"))
}

#[tokio::test]
async fn the_script_plays_in_a_legacy_session() {
    let steps = play(DemoContent::Demo, ScriptEra::Legacy).await;
    assert_eq!(
        outcome(&steps, "open a session"),
        "mcp-proxy-demo speaks 2025-11-25"
    );
    assert_eq!(outcome(&steps, "list the tools"), "5 tools");
    assert_eq!(
        outcome(&steps, "call count_down"),
        "3 progress reports, 2 log lines"
    );
    assert_eq!(
        outcome(&steps, "call ask_name and answer its question"),
        "Hello, Ada!"
    );
    assert_eq!(
        outcome(&steps, "call a tool that does not exist"),
        "error -32602: no tool is named \"make_tea\""
    );
    assert_eq!(steps.last().unwrap().title, "close the session");
}

#[tokio::test]
async fn the_script_plays_without_a_session_in_the_modern_era() {
    let steps = play(DemoContent::Demo, ScriptEra::Modern).await;
    assert_eq!(
        outcome(&steps, "open a session"),
        "mcp-proxy-demo speaks 2026-07-28"
    );
    assert_eq!(
        outcome(&steps, "call count_down"),
        "3 progress reports, 2 log lines"
    );
    assert_eq!(
        outcome(&steps, "call ask_name and answer its question"),
        "Hello, Ada!"
    );
}

#[tokio::test]
async fn the_fixtures_do_not_get_in_the_way() {
    let steps = play(DemoContent::WithFixtures, ScriptEra::Legacy).await;
    assert_ne!(outcome(&steps, "list the tools"), "5 tools");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_and_not_a_hang() {
    let (ours, theirs) = duplex(1024);
    drop(theirs);
    let (reader, writer) = split(ours);
    let played = run_script(reader, writer, ScriptEra::Legacy, Duration::ZERO, |_| {}).await;
    assert!(played.is_err());
}

/// Callers run the script beside a viewer, so its future has to be able to move between threads.
#[tokio::test]
async fn the_script_can_be_spawned() {
    let (ours, theirs) = duplex(64 << 10);
    let (server_reader, server_writer) = split(theirs);
    let server = tokio::spawn(serve(DemoContent::Demo, server_reader, server_writer));
    let (reader, writer) = split(ours);
    let script = run_script(reader, writer, ScriptEra::Legacy, Duration::ZERO, |_| {});
    tokio::spawn(script).await.unwrap().unwrap();
    server.await.unwrap().unwrap();
}
