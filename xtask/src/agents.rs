//! The agent programs that tests drive with a scripted model. Three are part of every test run; the others are too large
//! to install for everybody, and `cargo xtask test agents` brings them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::fixtures::{cache, digest, install_once, npm_ci, npm_install, pip};
use crate::process::{cargo, output, run};
use crate::setup;

const BASE: &str = "fixtures/agents/base";
const MORE: &str = "fixtures/agents/more";

/// The Python libraries that only `cargo xtask test agents` installs. They cannot share an environment: some of them need
/// different versions of the Python SDK.
const MORE_PYTHON: &[&str] = &[
    "autogen",
    "langchain",
    "llama-index",
    "mcp-use",
    "openai-agents",
];

/// Claude Code, Codex and pydantic-ai: `npm/` and `venv/` in the directory that the tests know as `MCP_PROXY_AGENTS`.
pub fn install(node: &Path) -> Result<PathBuf> {
    let requirements = format!("{BASE}/requirements.txt");
    let pins = [&format!("{BASE}/package-lock.json"), &requirements];
    let directory = cache()?.join(digest(&pins.map(String::as_str))?);
    install_once(&directory.join("npm"), "agent programs", |to| {
        npm_ci(BASE, to, Some(node))
    })?;
    install_once(&directory.join("venv"), "pydantic-ai", |to| {
        pip("python3", &requirements, to)
    })?;
    Ok(directory)
}

/// All others: `npm/` and an environment for each Python library. One that cannot be installed fails the command.
fn install_more(node: &Path) -> Result<PathBuf> {
    let requirements = |name: &str| format!("{MORE}/{name}.txt");
    let mut pins = vec![format!("{MORE}/package-lock.json")];
    pins.extend(MORE_PYTHON.iter().map(|name| requirements(name)));
    let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
    let directory = cache()?.join(digest(&pins)?);
    install_once(&directory.join("npm"), "more agent programs", |to| {
        npm_install(MORE, to, Some(node))
    })?;
    for name in MORE_PYTHON {
        install_once(&directory.join(name), name, |to| {
            pip("python3", &requirements(name), to)
        })?;
    }
    Ok(directory)
}

/// `cargo xtask test agents`: every agent program that we know how to start, through the hub.
pub fn test() -> Result<()> {
    let fixtures = setup::run(&[])?;
    let more = install_more(&fixtures.node())?;
    let mut tests = if output(&mut cargo("nextest --version")).is_some() {
        cargo(
            "nextest run --no-fail-fast -p mcp-proxy --all-features --test interop --run-ignored all agents::",
        )
    } else {
        cargo("test -p mcp-proxy --all-features --test interop -- --include-ignored agents::")
    };
    fixtures.export(&mut tests);
    run("agents", tests.env("MCP_PROXY_MORE_AGENTS", more))
}
