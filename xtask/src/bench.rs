//! `cargo xtask bench NAME`: a release build of the proxy and one benchmark of `benches/`. The rivals are optional:
//! what cannot be installed is left out of the comparison.

use anyhow::Result;

use crate::process::{self, cargo, target_dir};
use crate::{fixtures, setup};

pub fn run(name: &str, rest: &[&str]) -> Result<()> {
    if let Err(error) = setup::debian(&[setup::NGINX]) {
        eprintln!("without nginx: {error:#}");
    }
    process::run(
        "release build",
        &mut cargo("build --release --package mcp-proxy --package mcp-proxy-benches"),
    )?;
    let mut bench = cargo("run --quiet --release --package mcp-proxy-benches --");
    bench
        .arg(name)
        .arg("--proxy")
        .arg(target_dir()?.join("release/mcp-proxy"));
    match fixtures::install_rivals() {
        Ok(directory) => {
            bench.env("MCP_PROXY_RIVALS", directory);
        }
        Err(error) => eprintln!("without the npm and PyPI rivals: {error:#}"),
    }
    process::run(&format!("bench {name}"), bench.args(rest))
}
