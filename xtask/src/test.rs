//! `cargo xtask test`: the one command that says whether the tree is good. Every step runs even if an earlier one
//! failed, so that one run shows everything there is to fix; the test runner comes last, so that its summary ends the output.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::fixtures::Fixtures;
use crate::process::{self, cargo, output};
use crate::{setup, tidy, tools};

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TestLength {
    /// What CI runs: under half an hour on a new machine with two cores.
    Normal,
    /// Fuzzing too, and many more cases of every property.
    Long,
}

/// How many cases each property gets in the long mode: ten times and more what it has of its own. proptest reads the
/// variable and lets it win over what a test asks for.
const LONG_CASES: (&str, &str) = ("PROPTEST_CASES", "20000");

/// The names of the steps that failed so far.
#[derive(Default)]
struct StepReport {
    failed: Vec<&'static str>,
}

impl StepReport {
    fn note(&mut self, step: &'static str, result: Result<()>) {
        if let Err(error) = result {
            eprintln!("FAILED: {step}: {error:#}");
            self.failed.push(step);
        }
    }
}

pub fn run(length: TestLength) -> Result<()> {
    let start = Instant::now();
    let fixtures = setup::run(match length {
        TestLength::Normal => &[],
        TestLength::Long => setup::FOR_FUZZING,
    })?;
    let mut report = StepReport::default();
    report.note("format", cargo_step("fmt --all --check"));
    report.note("tidy", tidy::run());
    report.note(
        "clippy",
        cargo_step("clippy --workspace --all-targets --all-features -- -D warnings"),
    );
    report.note("docs", docs());
    report.note("deny", deny());
    if length == TestLength::Long {
        report.note("fuzz", fuzz());
    }
    report.note("tests", tests(length, &fixtures));
    eprintln!("xtask test: {:.0} s", start.elapsed().as_secs_f64());
    if !report.failed.is_empty() {
        bail!("failed: {}", report.failed.join(", "));
    }
    Ok(())
}

fn cargo_step(words: &str) -> Result<()> {
    process::run(&format!("cargo {words}"), &mut cargo(words))
}

fn docs() -> Result<()> {
    let mut docs = cargo("doc --workspace --no-deps");
    process::run("cargo doc", docs.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Licences, bans and sources; advisories need the network and are a command of their own.
fn deny() -> Result<()> {
    let mut deny = tools::DENY.command()?;
    process::run(
        "cargo deny",
        deny.args([
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
    fuzz.args(["run", "--sanitizer", "none", "message"]);
    fuzz.arg(learned).arg("crates/wire/tests/corpus");
    process::run("cargo fuzz", fuzz.args(["--", "-max_total_time=60"]))
}

/// Unit, integration and peer tests in one run, so that one summary counts them all. `--all-features` is what
/// brings the peer tests in: they need the fixtures, which a plain `cargo test` does not have.
fn tests(length: TestLength, fixtures: &Fixtures) -> Result<()> {
    let mut tests = if output(&mut cargo("nextest --version")).is_some() {
        // nextest leaves the documentation's examples to cargo.
        cargo_step("test --quiet --workspace --doc")?;
        cargo("nextest run --no-fail-fast --workspace --all-features")
    } else {
        cargo("test --no-fail-fast --workspace --all-features")
    };
    fixtures.export(&mut tests);
    if length == TestLength::Long {
        tests.env(LONG_CASES.0, LONG_CASES.1);
    }
    process::run("tests", &mut tests)
}
