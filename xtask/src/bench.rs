//! `cargo xtask bench NAME`: builds the proxy and one benchmark of `benches/` with the `dist` profile, and runs it. The
//! rivals are optional: what cannot be installed is left out of the comparison.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo, root, target_dir};
use crate::{fixtures, setup};

/// Names the version of the crate that `hub` is compared with.
const CRATE_PIN: &str = "fixtures/rivals/crate-version.txt";
/// Brings the public sets of the search into one form.
const COLLECT_SETS: &str = "fixtures/search/collect.py";

pub fn run(name: &str, rest: &[&str]) -> Result<()> {
    if name == "search" {
        // It starts no proxy and has no rivals.
        let mut bench = cargo("run --quiet --profile dist --package mcp-proxy-benches -- search");
        if !rest.iter().any(|argument| argument.starts_with("--sets")) {
            add_public_sets(&mut bench);
        }
        return process::run("bench search", bench.args(rest));
    }
    if name == "carry"
        && let Err(error) = setup::debian(&[setup::NGINX])
    {
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
    match name {
        "hub" => add_crate(&mut bench),
        "relay" => {}
        _ => add_packages(&mut bench),
    }
    process::run(&format!("bench {name}"), bench.args(rest))
}

/// The sets that others published. They are downloaded, because not all of them may be passed on.
fn add_public_sets(bench: &mut Command) {
    match collect_public_sets() {
        Ok(folder) => {
            bench.arg("--sets").arg(folder);
        }
        Err(error) => eprintln!("without the public sets: {error:#}"),
    }
}

fn collect_public_sets() -> Result<PathBuf> {
    let folder = fixtures::cache()?.join("search-sets");
    std::fs::create_dir_all(&folder)?;
    let mut collect = Command::new("python3");
    collect.arg(root().join(COLLECT_SETS)).arg(&folder);
    process::run("collect the public sets", &mut collect)?;
    Ok(folder)
}

/// The npm and PyPI packages of the same name, which stand in front of one server.
fn add_packages(bench: &mut Command) {
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
}

/// The crate of the same name, which stands in front of several servers.
fn add_crate(bench: &mut Command) {
    match install_crate() {
        Ok(program) => {
            bench.arg("--peer").arg(program);
        }
        Err(error) => eprintln!("without the crates.io rival: {error:#}"),
    }
}

fn install_crate() -> Result<PathBuf> {
    let version =
        std::fs::read_to_string(root().join(CRATE_PIN)).context("cannot read its version")?;
    let version = version.trim();
    let directory = fixtures::cache()?.join(format!("crate-mcp-proxy-{version}"));
    fixtures::install_once(&directory, "the crates.io rival", |to| {
        let mut install = cargo("install mcp-proxy --locked --version");
        process::run("cargo install", install.arg(version).arg("--root").arg(to))
    })?;
    Ok(directory.join("bin/mcp-proxy"))
}
