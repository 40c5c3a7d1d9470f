//! `cargo xtask setup`: what the tests need and a new machine lacks. As root, Debian packages are installed;
//! without root, the command stops and prints the line that somebody with root has to type.

use anyhow::{Context, Result, bail};

use crate::fixtures::{self, Fixtures};
use crate::process::{self, command, output};
use crate::tools;

/// A program from Debian: how to see that it is there, and the packages that bring it.
pub struct Needed {
    probe: &'static [&'static str],
    packages: &'static [&'static str],
}

const FOR_TESTS: &[Needed] = &[
    Needed {
        probe: &["node", "--version"],
        packages: &["nodejs"],
    },
    Needed {
        probe: &["npm", "--version"],
        packages: &["npm"],
    },
    Needed {
        probe: &["python3", "-c", "import ensurepip, venv"],
        packages: &["python3", "python3-venv"],
    },
];

/// What the benchmark compares with, where it can be had.
pub const NGINX: Needed = Needed {
    probe: &["nginx", "-v"],
    packages: &["nginx-light"],
};

/// Installs everything; the tests get the fixtures' place from the answer.
pub fn run() -> Result<Fixtures> {
    debian(FOR_TESTS)?;
    // Two commands at once would install into the same directory: the second waits for the first.
    let cache = fixtures::cache()?;
    std::fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    let lock =
        std::fs::File::create(cache.join("lock")).context("opening the cache's lock file")?;
    lock.lock()
        .context("waiting for another `cargo xtask` that is installing")?;
    let fixtures = fixtures::install()?;
    tools::DENY.install()?;
    eprintln!("fixtures: {}", fixtures.directory().display());
    Ok(fixtures)
}

/// Sees to it that programs are there, or says what to type.
pub fn debian(needed: &[Needed]) -> Result<()> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|needed| !needed.is_there())
        .flat_map(|needed| needed.packages)
        .copied()
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() {
        bail!(
            "these Debian packages are missing; please run:\n\n    sudo apt-get install -y {}\n",
            missing.join(" ")
        );
    }
    run_apt(&["update", "-q"])?;
    run_apt(
        &[
            &["install", "-y", "-q", "--no-install-recommends"],
            missing.as_slice(),
        ]
        .concat(),
    )
}

fn run_apt(arguments: &[&str]) -> Result<()> {
    let mut apt = command("apt-get");
    apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(&format!("apt-get {}", arguments.join(" ")), &mut apt)
}

fn is_root() -> bool {
    output(command("id").arg("-u")).as_deref() == Some("0")
}

impl Needed {
    fn is_there(&self) -> bool {
        output(command(self.probe[0]).args(&self.probe[1..])).is_some()
    }
}
