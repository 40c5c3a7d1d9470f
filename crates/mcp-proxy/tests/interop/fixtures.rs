//! Where the peers are. `cargo xtask setup` installs them outside the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
pub const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");

/// An example of the workspace, which a test of the whole workspace has built too.
pub fn example(name: &str) -> String {
    let folder = Path::new(PROXY).parent().expect("it is in a folder");
    text(&folder.join("examples").join(name))
}

/// The server of `fixtures/server`, which a test of the whole workspace has built too.
pub fn conformance_server() -> String {
    let folder = Path::new(PROXY).parent().expect("it is in a folder");
    text(&folder.join("mcp-fixture-server"))
}

/// What `cargo xtask setup` installed: `node/`, `npm/` and `venv/`.
fn installed() -> PathBuf {
    let directory = std::env::var_os("MCP_PROXY_FIXTURES");
    PathBuf::from(directory.expect("MCP_PROXY_FIXTURES is not set: run `cargo xtask test`"))
}

/// The Node that the suite and the Inspector need, newer than Debian's.
pub fn node() -> String {
    text(&installed().join("node/node_modules/.bin/node"))
}

/// The Python that has the official client.
pub fn python() -> String {
    text(&installed().join("venv/bin/python"))
}

/// The Python that has Magg and FastMCP; none if their tests are to be skipped. Without either variable they fail: a test
/// that does nothing must not count as passed by accident.
pub fn magg_python() -> Option<String> {
    if let Ok(python) = std::env::var("MCP_PROXY_MAGG_PYTHON") {
        return Some(python);
    }
    let skips = std::env::var_os("MCP_PROXY_SKIP_MAGG").is_some();
    assert!(
        skips,
        "MCP_PROXY_MAGG_PYTHON is not set: run `cargo xtask test`"
    );
    eprintln!("skipped: MCP_PROXY_SKIP_MAGG is set");
    None
}

/// A program of an npm package.
pub fn npm_program(name: &str) -> String {
    text(&installed().join("npm/node_modules/.bin").join(name))
}

/// One of our own peer programs in `fixtures/peers`.
pub fn peer(name: &str) -> String {
    text(&own().join("peers").join(name))
}

/// One of our own files for the agent programs in `fixtures/agents`.
pub fn agent(name: &str) -> String {
    text(&own().join("agents").join(name))
}

/// The id that browsers make of the key in the manifest of `fixtures/extension`.
pub const EXTENSION_ID: &str = "acjlhcdbljaakcjcokhfdfkphlbdiemn";

/// A file of our own browser extension in `fixtures/extension`.
pub fn extension(name: &str) -> String {
    text(&own().join("extension").join(name))
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A peer's command with the environment that all of them need.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("MCP_PROXY_BIN", PROXY)
        .env("MCP_PROXY_NODE", node());
    command
}

fn text(path: &Path) -> String {
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask test`",
        path.display()
    );
    path.to_str()
        .expect("the cache directory's name is UTF-8")
        .to_owned()
}
