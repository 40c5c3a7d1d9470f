//! The project's own commands: `cargo xtask <command>`. One file per command, plain std, so that it builds in
//! seconds on a new machine. Nothing here is part of the product.

mod advisories;
mod agents;
mod bench;
mod fixtures;
mod man;
mod process;
mod setup;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  test [--long]      everything CI runs: formatting, lints, docs, tidy, licences, tests, real peers
                     --long adds 60 s of fuzzing and gives every property 20,000 cases
  test agents        the hub with every agent program that we know how to start (installs 3 GB)
  setup              install what the tests need, into the user's cache directory
  tidy               the house rules that rustc and clippy do not know
  bench [JOB] [ARG…] build with the dist profile and measure `carry`, `hub` and `relay`, or `search`
  man                write the man pages to target/man
  advisories         look the dependencies up in the advisory database (needs the network)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["test"] => test::run(test::TestLength::Normal),
        ["test", "--long"] => test::run(test::TestLength::Long),
        ["test", "agents"] => agents::test(),
        ["setup"] => setup::run(&[]).map(drop),
        ["tidy"] => tidy::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["man"] => man::run(),
        ["advisories"] => advisories::run(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => anyhow::bail!("unknown command `{}`\n\n{HELP}", other.join(" ")),
    }
}
