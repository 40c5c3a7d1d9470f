//! The process that removes the results in files of a hub that was killed.
//!
//! It waits for the lock that the hub holds on its folder. The kernel releases the lock however the hub ends. If the hub shut
//! down cleanly, nothing is left to remove.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use mcp_proxy_transport::process::GuardProgram;

/// The first argument of a sweeper. The second is the path of the lock.
pub(crate) const SWEEPER_WORD: &str = "__sweeper";

/// Runs as a sweeper.
pub(crate) fn sweeper_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let swept = args
        .next()
        .is_some_and(|lock| mcp_proxy_spill::sweep_after(Path::new(&lock)).is_ok());
    if swept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Starts a sweeper for the folder of this run. If that fails, the next start of the program removes the folder.
pub(crate) fn spawn(lock: &Path) {
    let Ok(program) = GuardProgram::current() else {
        return;
    };
    // In a group of its own, so that it outlives a Ctrl-C that ends the hub.
    let _ = Command::new(program.path())
        .arg(SWEEPER_WORD)
        .arg(lock)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
}
