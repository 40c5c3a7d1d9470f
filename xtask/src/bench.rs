//! `cargo xtask bench NAME`: builds the proxy and one benchmark of `benches/` with the `dist` profile, and runs it. The
//! rivals are optional: what cannot be installed is left out of the comparison.

use anyhow::Result;

use crate::process::{self, cargo, target_dir};
use crate::{fixtures, setup};

pub fn run(name: &str, rest: &[&str]) -> Result<()> {
    if let Err(error) = setup::debian(&[setup::NGINX]) {
        eprintln!("without nginx: {error:#}");
    }
    process::run(
        "dist build",
        &mut cargo("build --profile dist --package mcp-proxy --package mcp-proxy-benches"),
    )?;
    let mut bench = cargo("run --quiet --profile dist --package mcp-proxy-benches --");
    bench
        .arg(name)
        .arg("--proxy")
        .arg(target_dir()?.join("dist/mcp-proxy"));
    match fixtures::install_rivals() {
        Ok(directory) => {
            bench
                .arg("--npm-mcp-proxy")
                .arg(directory.join("npm/node_modules/.bin/mcp-proxy"))
                .arg("--pypi-mcp-proxy")
                .arg(directory.join("venv/bin/mcp-proxy"));
        }
        Err(error) => eprintln!("without the npm and PyPI rivals: {error:#}"),
    }
    process::run(&format!("bench {name}"), bench.args(rest))
}
