//! Agent programs that use the hub's tools, with a model that follows a script. What matters is what reaches the model: each
//! program makes something else of a result, and some leave out what others show.
//!
//! Claude Code, Codex and pydantic-ai run in every test run, the others with `cargo xtask test agents`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::endpoint::{EndpointAddress, EndpointKind, MountedServer, hub, probe};
use crate::fixtures;
use crate::process::{finish, said};

/// The names by which `fixtures/agents/programs.py` knows the programs.
type AgentName = &'static str;

/// What the model must be shown of each step in `scripts/everything.json`.
const EVERYTHING: &[(&str, &[&str])] = &[
    ("proxy call", &["heard ECHO-MARK-1"]),
    ("proxy resource", &["RESOURCE-MARK"]),
    ("dispatch search", &["log_lines"]),
    ("dispatch call", &["heard ECHO-MARK-2"]),
    ("dispatch write", &["kept 1: NOTE-MARK"]),
    ("dispatch file", &["spill:"]),
    (
        "dispatch readresult",
        &["004711 entry of the log, number 4711"],
    ),
    ("dispatch error", &["resultFile"]),
    ("read call", &["heard ECHO-MARK-3"]),
    ("read resource", &["RESOURCE-MARK"]),
    ("read prompt", &["PROMPT-MARK"]),
    ("read readresult", &["004712 entry of the log, number 4712"]),
    ("read refused", &["proxy"]),
];

/// The same for `scripts/unattended.json`.
const UNATTENDED: &[(&str, &[&str])] = &[
    ("proxy asks", &["requires approval"]),
    ("read call", &["heard ECHO-MARK-1"]),
    ("read resource", &["RESOURCE-MARK"]),
    ("read refused", &["proxy"]),
];

/// Whether a person has said that the tools that can do everything may be used.
#[derive(Clone, Copy)]
enum Approval {
    Given,
    Missing,
}

/// Runs a program through a script and returns the report of `fixtures/agents/run.py`.
fn report(agent: AgentName, listen: EndpointKind, script: &str, approval: Approval) -> Value {
    let servers = vec![MountedServer {
        name: "probe",
        endpoint: probe(),
        options: json!({}),
    }];
    let hub = hub(servers, "proxy,dispatch,read", listen);
    let address = match &hub.address {
        EndpointAddress::Url(url) => json!({ "url": url }),
        EndpointAddress::Command(words) => json!({ "command": words[0], "args": words[1..] }),
    };
    let runner = fixtures::agent("run.py");
    let script = fixtures::agent(&format!("scripts/{script}.json"));
    let arguments = ["-B", &runner, agent, &script, &address.to_string()];
    let mut command = fixtures::command(&fixtures::python(), &arguments);
    if let Approval::Missing = approval {
        command.arg("--ask");
    }
    let output = finish(&mut command, Duration::from_secs(200));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{agent}: {error}\n{}", said(&output)))
}

/// All that is wrong with a report, so that one run shows all of it.
fn faults(report: &Value, expected: &[(&str, &[&str])]) -> Vec<String> {
    let mut faults = Vec::new();
    if report["ended"] != 0 {
        faults.push(format!("it ended with {}", report["ended"]));
    }
    for (label, texts) in expected {
        let seen = report["seen"][label].as_str().unwrap_or("nothing");
        let missing = texts.iter().filter(|text| !seen.contains(*text));
        faults.extend(missing.map(|text| {
            let shown: String = seen.chars().take(600).collect();
            format!("{label}: the model was not shown `{text}` but: {shown}")
        }));
    }
    faults
}

fn check(agent: AgentName, listen: EndpointKind) -> Value {
    let report = report(agent, listen, "everything", Approval::Given);
    let faults = faults(&report, EVERYTHING);
    assert!(
        faults.is_empty(),
        "{agent} over {listen:?}:\n{}\n--- requests: {:#}\n--- it said: {}",
        faults.join("\n"),
        report["requests"],
        report["said"].as_str().unwrap_or_default()
    );
    report
}

fn check_both(agent: AgentName) {
    check(agent, EndpointKind::Stdio);
    check(agent, EndpointKind::Http);
}

/// Claude Code shows its model only the names of most tools; ours must be there with their definitions.
fn check_claude_code(listen: EndpointKind) {
    let report = check("claude-code", listen);
    let tools = report["firstTools"].as_array().expect("there are tools");
    for name in ["proxy", "proxy-dispatch", "proxy-read"] {
        let name = json!(format!("mcp__hub__{name}"));
        assert!(tools.contains(&name), "{name} is not in {tools:?}");
    }
    assert_eq!(report["searched"], json!([]), "a tool had to be loaded");
}

#[test]
fn claude_code_over_stdio() {
    check_claude_code(EndpointKind::Stdio);
}

#[test]
fn claude_code_over_http() {
    check_claude_code(EndpointKind::Http);
}

#[test]
fn codex_over_stdio() {
    check("codex", EndpointKind::Stdio);
}

#[test]
fn codex_over_http() {
    check("codex", EndpointKind::Http);
}

/// With the sandbox on and nobody to ask, Codex may use `proxy-read` and nothing else.
#[test]
fn codex_reads_without_asking() {
    let report = report("codex", EndpointKind::Http, "unattended", Approval::Missing);
    let faults = faults(&report, UNATTENDED);
    assert!(faults.is_empty(), "{}\n{report:#}", faults.join("\n"));
}

#[test]
fn pydantic_ai_over_stdio() {
    check("pydantic-ai", EndpointKind::Stdio);
}

#[test]
fn pydantic_ai_over_http() {
    check("pydantic-ai", EndpointKind::Http);
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn gemini_cli() {
    check_both("gemini");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn opencode() {
    check_both("opencode");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn goose() {
    check_both("goose");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn copilot_cli() {
    check_both("copilot");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn kimi_code() {
    check_both("kimi");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn cline() {
    check_both("cline");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn qwen_code() {
    check_both("qwen");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn droid() {
    check_both("droid");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn langchain() {
    check_both("langchain");
}

/// Over stdio it starts a hub for each call, so a handle of one call means nothing to the next.
#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn llama_index() {
    check("llama-index", EndpointKind::Http);
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn autogen() {
    check_both("autogen");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn mcp_use() {
    check_both("mcp-use");
}

#[test]
#[ignore = "installed by `cargo xtask test agents`"]
fn openai_agents() {
    check_both("openai-agents");
}
