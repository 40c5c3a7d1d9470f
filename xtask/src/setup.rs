//! `cargo xtask setup`: what the tests need and a new machine lacks. As root, Debian packages are installed;
//! without root, the command stops and prints the line that somebody with root has to type.

use anyhow::{Context, Result, bail};

use crate::fixtures::{self, Fixtures};
use crate::process::{self, command, output};
use crate::tools;

/// A program from Debian: how to see that it is there, and the packages that bring it.
#[derive(Clone, Copy)]
pub struct DebianProgram {
    probe: &'static [&'static str],
    packages: &'static [&'static str],
}

const FOR_TESTS: &[DebianProgram] = &[
    DebianProgram {
        probe: &["node", "--version"],
        packages: &["nodejs"],
    },
    DebianProgram {
        probe: &["npm", "--version"],
        packages: &["npm"],
    },
    DebianProgram {
        probe: &["python3", "-c", "import ensurepip, venv"],
        packages: &["python3", "python3-venv"],
    },
    DebianProgram {
        probe: &["tmux", "-V"],
        packages: &["tmux"],
    },
    DebianProgram {
        probe: &["chromium", "--version"],
        packages: &["chromium"],
    },
    // 81 MB to download: its JSON reader ignores the case of names, which no other peer does.
    DebianProgram {
        probe: &["go", "version"],
        packages: &["golang-go"],
    },
];

/// What the fuzzer of the long mode is built with, beside Rust.
pub const FOR_FUZZING: &[DebianProgram] = &[DebianProgram {
    probe: &["c++", "--version"],
    packages: &["g++"],
}];

/// What the benchmark compares with, where it can be had.
pub const NGINX: DebianProgram = DebianProgram {
    probe: &["nginx", "-v"],
    packages: &["nginx-light"],
};

/// Installs everything, and what this run needs beyond it; the tests get the fixtures' place from the answer.
pub fn run(beyond: &[DebianProgram]) -> Result<Fixtures> {
    debian(&[FOR_TESTS, beyond].concat())?;
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
pub fn debian(needed: &[DebianProgram]) -> Result<()> {
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
        bail!(what_to_type(&missing));
    }
    run_apt(&["update", "-q"])?;
    run_apt(&install(&missing))
}

/// The arguments of the one `apt-get` that brings packages, whoever types it. What Debian only recommends beside them
/// (for npm a whole compiler) is used by no test.
fn install<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    [
        &["install", "-y", "-q", "--no-install-recommends"],
        packages,
    ]
    .concat()
}

fn what_to_type(missing: &[&str]) -> String {
    format!(
        "these Debian packages are missing, and only root can install them; please run:\n\n    sudo apt-get {}\n",
        install(missing).join(" ")
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

impl DebianProgram {
    fn is_there(&self) -> bool {
        output(command(self.probe[0]).args(&self.probe[1..])).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_the_line_to_type_is_printed() {
        let text = what_to_type(&["nodejs", "npm"]);
        let line = "\n    sudo apt-get install -y -q --no-install-recommends nodejs npm\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_program_is_missing_if_it_cannot_be_run_or_fails() {
        let probed = |probe| {
            DebianProgram {
                probe,
                packages: &[],
            }
            .is_there()
        };
        assert!(probed(&["cargo", "--version"]));
        assert!(!probed(&["cargo", "--no-such-flag"]));
        assert!(!probed(&["a-program-that-nobody-has"]));
    }
}
