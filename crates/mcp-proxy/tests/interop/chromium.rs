//! Debian's Chromium, without a window.

use std::process::Command;

use tempfile::TempDir;

use crate::process::RunningProgram;

const FLAGS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
];

/// A browser with a new profile. It is killed when this is dropped.
pub struct Chromium {
    program: RunningProgram,
    _profile: TempDir,
}

impl Chromium {
    pub fn start(more: &[&str]) -> Chromium {
        let profile = tempfile::tempdir().expect("a temporary directory");
        // The kernel kills it if the test is killed before it can do so.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "chromium"])
            .args(FLAGS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        Chromium {
            program: RunningProgram::start(command.args(more)),
            _profile: profile,
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.program.kill();
    }
}
