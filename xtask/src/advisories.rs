//! `cargo xtask advisories`: known vulnerabilities in the dependencies. Apart from `test`, because it fetches the
//! advisory database and its answer changes without a change of ours.

use anyhow::Result;

use crate::process;
use crate::tools;

pub fn run() -> Result<()> {
    process::run(
        "cargo deny check advisories",
        tools::DENY.command()?.args(["check", "advisories"]),
    )
}
