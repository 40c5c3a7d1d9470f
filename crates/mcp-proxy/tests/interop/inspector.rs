//! The official Inspector in `--cli` mode, in its three eras: list, call, read, get. (It has no progress and no
//! elicitation: the SDK clients cover those.)

use std::time::Duration;

use serde_json::{Value, json};

use crate::endpoint::{EndpointAddress, EndpointKind, TestEndpoint, demo, everything};
use crate::fixtures;
use crate::process::{finish, said};

/// One request: the Inspector's arguments and a text that its answer must contain.
type InspectorRequest = (&'static [&'static str], &'static str);

const EVERYTHING: &[InspectorRequest] = &[
    (&["tools/list"], "trigger-long-running-operation"),
    (
        &[
            "tools/call",
            "--tool-name",
            "echo",
            "--tool-arg",
            "message=hi",
        ],
        "Echo: hi",
    ),
    (
        &["resources/read", "--uri", "demo://resource/dynamic/text/7"],
        "Resource 7",
    ),
    (
        &[
            "prompts/get",
            "--prompt-name",
            "args-prompt",
            "--prompt-args",
            "city=Oslo",
        ],
        "Oslo",
    ),
];

const DEMO: &[InspectorRequest] = &[
    (&["tools/list"], "test_simple_text"),
    (
        &["tools/call", "--tool-name", "test_simple_text"],
        "simple text",
    ),
    (
        &["resources/read", "--uri", "test://static-text"],
        "static text",
    ),
    (
        &[
            "prompts/get",
            "--prompt-name",
            "test_prompt_with_arguments",
            "--prompt-args",
            "arg1=left",
            "arg2=right",
        ],
        "left",
    ),
];

fn run(endpoint: &TestEndpoint, era: &str, requests: &[InspectorRequest]) {
    let home = tempfile::tempdir().expect("a temporary directory");
    // The target stands in a file: on the command line its own options would be taken for the Inspector's.
    let config = home.path().join("servers.json");
    let server = match (&endpoint.address, endpoint.kind) {
        (EndpointAddress::Command(command), _) => {
            json!({"type": "stdio", "command": command[0], "args": command[1..]})
        }
        (EndpointAddress::Url(url), EndpointKind::Sse) => json!({"type": "sse", "url": url}),
        (EndpointAddress::Url(url), _) => json!({"type": "streamable-http", "url": url}),
    };
    std::fs::write(
        &config,
        json!({"mcpServers": {"target": server}}).to_string(),
    )
    .expect("the config is written");
    let config = config.to_str().expect("a temporary name is UTF-8");

    let program = fixtures::npm_program("mcp-inspector");
    for (request, expected) in requests {
        let mut command =
            fixtures::command(&fixtures::node(), &[&program, "--cli", "--config", config]);
        command
            .args([
                "--server",
                "target",
                "--protocol-era",
                era,
                "--format",
                "json",
                "--method",
            ])
            .args(*request);
        let output = finish(command.env("HOME", home.path()), Duration::from_secs(60));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let succeeded = output.status.success() && answer["result"].to_string().contains(expected);
        assert!(
            succeeded,
            "{era} {request:?} at {:?}: {}",
            endpoint.address,
            said(&output)
        );
    }
}

/// Both eras that can talk to a legacy server, direct and through the proxy.
fn legacy(kind: EndpointKind) {
    let direct = everything(kind);
    run(&direct, "legacy", &EVERYTHING[..1]);
    let through = direct.behind_proxy(kind);
    run(&through, "legacy", EVERYTHING);
    run(&through, "auto", EVERYTHING);
}

fn modern(kind: EndpointKind) {
    let direct = demo(kind);
    run(&direct, "modern", &DEMO[..1]);
    let through = direct.behind_proxy(kind);
    run(&through, "modern", DEMO);
}

#[test]
fn legacy_and_auto_stdio() {
    legacy(EndpointKind::Stdio);
}

#[test]
fn legacy_and_auto_http() {
    legacy(EndpointKind::Http);
}

#[test]
fn legacy_and_auto_sse() {
    legacy(EndpointKind::Sse);
}

#[test]
fn modern_stdio() {
    modern(EndpointKind::Stdio);
}

#[test]
fn modern_http() {
    modern(EndpointKind::Http);
}
