//! The scripted client against the server, with nothing between them.

use std::time::Duration;

use mcp_proxy_demo::{ScriptEra, ScriptStep, run_script, serve};
use tokio::io::{duplex, split};

/// Plays the script and returns what each step said.
async fn play(era: ScriptEra) -> Vec<ScriptStep> {
    let (ours, theirs) = duplex(64 << 10);
    let (server_reader, server_writer) = split(theirs);
    let server = tokio::spawn(serve(server_reader, server_writer));
    let (reader, writer) = split(ours);
    let mut steps = Vec::new();
    let on_step = |step: &ScriptStep| steps.push(step.clone());
    run_script(reader, writer, era, Duration::ZERO, on_step)
        .await
        .unwrap();
    server.await.unwrap().unwrap();
    steps
}

fn written(steps: &[ScriptStep]) -> String {
    let lines = steps
        .iter()
        .map(|step| format!("{}: {}\n", step.title, step.outcome));
    lines.collect()
}

#[tokio::test]
async fn the_script_plays_in_a_legacy_session() {
    let steps = written(&play(ScriptEra::Legacy).await);
    for word in ["2025-11-25", "Hello, Ada!", "-32602"] {
        assert!(steps.contains(word), "{word}: {steps}");
    }
    insta::assert_snapshot!("script-legacy", steps);
}

#[tokio::test]
async fn the_script_plays_without_a_session_in_the_modern_era() {
    let steps = written(&play(ScriptEra::Modern).await);
    for word in ["2026-07-28", "Hello, Ada!"] {
        assert!(steps.contains(word), "{word}: {steps}");
    }
    insta::assert_snapshot!("script-modern", steps);
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
    let server = tokio::spawn(serve(server_reader, server_writer));
    let (reader, writer) = split(ours);
    let script = run_script(reader, writer, ScriptEra::Legacy, Duration::ZERO, |_| {});
    tokio::spawn(script).await.unwrap().unwrap();
    server.await.unwrap().unwrap();
}
