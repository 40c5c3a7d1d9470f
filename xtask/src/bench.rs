//! `cargo xtask bench [JOB]`: builds the proxy and the benchmarks of `benches/` with the `dist` profile, and runs one job or
//! all. The rivals are optional: what cannot be installed is left out of the comparison.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo, root, target_dir};
use crate::{fixtures, setup};

/// What `mcp-proxy` does, each with a table of its own.
const JOBS: [&str; 3] = ["carry", "hub", "relay"];
/// Names the version of the crate that `hub` is compared with.
const CRATE_PIN: &str = "fixtures/rivals/crate-version.txt";
/// Brings the public sets of the search into one form.
const COLLECT_SETS: &str = "fixtures/search/collect.py";

/// Runs the job that the first argument names, or all; the other arguments are those of the benchmark.
pub fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["search", rest @ ..] => search(rest),
        [job, rest @ ..] if JOBS.contains(job) => measure(&[*job], rest),
        _ => measure(&JOBS, arguments),
    }
}

fn measure(jobs: &[&str], rest: &[&str]) -> Result<()> {
    process::run(
        "dist build",
        &mut cargo("build --profile dist --package mcp-proxy --package mcp-proxy-benches"),
    )?;
    let built = target_dir()?.join("dist");
    for job in jobs {
        let mut bench = Command::new(built.join("mcp-proxy-benches"));
        bench.arg(job).arg("--proxy").arg(built.join("mcp-proxy"));
        match *job {
            "carry" => {
                add_nginx(&mut bench);
                add_packages(&mut bench);
            }
            "hub" => add_crate(&mut bench),
            _ => {}
        }
        process::run(&format!("bench {job}"), bench.args(rest))?;
    }
    Ok(())
}

/// It starts no proxy and has no rivals.
fn search(rest: &[&str]) -> Result<()> {
    let mut bench = cargo("run --quiet --profile dist --package mcp-proxy-benches -- search");
    if !rest.iter().any(|argument| argument.starts_with("--sets")) {
        add_public_sets(&mut bench);
    }
    process::run("bench search", bench.args(rest))
}

/// nginx as Debian installs it, which is not on everybody's path.
fn add_nginx(bench: &mut Command) {
    match setup::debian(&[setup::NGINX]) {
        Ok(()) => {
            bench.args(["--nginx", "/usr/sbin/nginx"]);
        }
        Err(error) => eprintln!("without nginx: {error:#}"),
    }
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
                .arg("--npm")
                .arg(directory.join("npm/node_modules/.bin/mcp-proxy"))
                .arg("--pypi")
                .arg(directory.join("venv/bin/mcp-proxy"));
        }
        Err(error) => eprintln!("without the npm and PyPI rivals: {error:#}"),
    }
}

/// The crate of the same name, which stands in front of several servers.
fn add_crate(bench: &mut Command) {
    match install_crate() {
        Ok(program) => {
            bench.arg("--crate").arg(program);
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
