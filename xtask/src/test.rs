//! `cargo xtask test`: the one command that says whether the tree is good. Every step runs even if an earlier one
//! failed, so that one run shows all there is to mend; the test runner comes last, so that its summary ends the output.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::fixtures::Fixtures;
use crate::process::{self, cargo, command, output, root};
use crate::{setup, tidy, tools};

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// What CI runs: under half an hour on a new machine with two cores.
    Normal,
    /// Fuzzing and the long supervisor runs too.
    Long,
}

/// A named step and what it does.
type Step<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

pub fn run(length: Length) -> Result<()> {
    let start = Instant::now();
    let fixtures = setup::run()?;
    let mut failed = Vec::new();
    for (name, step) in steps(length, &fixtures) {
        if let Err(error) = step() {
            eprintln!("FAILED  {name}: {error:#}");
            failed.push(name);
        }
    }
    eprintln!("xtask test: {:.0} s", start.elapsed().as_secs_f64());
    if !failed.is_empty() {
        bail!("{} failed: {}", failed.len(), failed.join(", "));
    }
    Ok(())
}

fn steps(length: Length, fixtures: &Fixtures) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = vec![
        (
            "format",
            Box::new(|| run_step("cargo fmt --check", cargo(&["fmt", "--all", "--check"]))),
        ),
        ("tidy", Box::new(tidy::run)),
        ("clippy", Box::new(clippy)),
        ("docs", Box::new(docs)),
        ("deny", Box::new(deny)),
    ];
    if length == Length::Long {
        steps.push(("fuzz", Box::new(fuzz)));
    }
    if has_nextest() {
        steps.push((
            "doc tests",
            Box::new(|| {
                run_step(
                    "doc tests",
                    cargo(&["test", "--quiet", "--workspace", "--doc"]),
                )
            }),
        ));
        steps.push((
            "tests",
            Box::new(move || tests(&["nextest", "run", "--no-fail-fast"], length, fixtures)),
        ));
    } else {
        steps.push((
            "tests",
            Box::new(move || tests(&["test", "--no-fail-fast"], length, fixtures)),
        ));
    }
    steps
}

fn run_step(what: &str, mut command: Command) -> Result<()> {
    process::run(what, &mut command)
}

fn clippy() -> Result<()> {
    process::run(
        "cargo clippy",
        &mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]),
    )
}

fn docs() -> Result<()> {
    process::run(
        "cargo doc",
        cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn deny() -> Result<()> {
    process::run(
        "cargo deny",
        tools::DENY.command()?.args([
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ]),
    )
}

/// Sixty seconds of the wire fuzzer. No sanitizer: one needs a nightly compiler, and without `unsafe` it has little
/// to find. What the fuzzer learns goes below the target directory, not into the repository.
fn fuzz() -> Result<()> {
    let learned = process::target_dir()?.join("fuzz-corpus");
    std::fs::create_dir_all(&learned)?;
    let mut fuzz = tools::FUZZ.command()?;
    fuzz.args(["run", "--sanitizer", "none", "message"])
        .arg(learned);
    process::run("cargo fuzz", fuzz.args(["--", "-max_total_time=60"]))
}

/// Unit, integration and peer tests in one run, so that one summary counts them all. `--all-features` is what
/// brings the peer tests in: they need the fixtures, which a plain `cargo test` does not have.
fn tests(runner: &[&str], length: Length, fixtures: &Fixtures) -> Result<()> {
    let mut tests = cargo(runner);
    tests.args(["--workspace", "--all-features"]);
    fixtures.export(&mut tests);
    if length == Length::Long {
        tests.env("MCP_PROXY_LONG", "1");
    }
    process::run("tests", &mut tests)
}

fn has_nextest() -> bool {
    output(
        command("cargo")
            .args(["nextest", "--version"])
            .current_dir(root()),
    )
    .is_some()
}
