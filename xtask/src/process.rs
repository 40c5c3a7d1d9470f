//! Running other programs: where they run, what they inherit, and what is said about them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The repository's root. The xtask package lies directly under it.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A program, run in the repository's root.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// A nested cargo, its arguments as one text of words. What `cargo run` told us about xtask's own package is taken out of its environment: some build
/// scripts watch those variables and would be run again on every change between `cargo build` and `cargo xtask`.
pub fn cargo(words: &str) -> Command {
    let mut command = command("cargo");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_ours = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if is_ours
            || [
                "CARGO_CRATE_NAME",
                "CARGO_BIN_NAME",
                "CARGO_PRIMARY_PACKAGE",
            ]
            .contains(&name.as_str())
        {
            command.env_remove(name);
        }
    }
    command.args(words.split_whitespace());
    command
}

/// Runs a command to its end with its output on ours; an error if it fails.
pub fn run(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("\n==> {what}");
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("{what}: could not start {command:?}"))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    eprintln!("    {what}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// What a command prints on stdout, or `None` if it is missing or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Where cargo puts what it builds, whether or not `CARGO_TARGET_DIR` or a config file moves it.
pub fn target_dir() -> Result<PathBuf> {
    let metadata = output(&mut cargo("metadata --format-version 1 --no-deps"))
        .context("`cargo metadata` failed: is the workspace well-formed?")?;
    let key = "\"target_directory\":\"";
    let start = metadata
        .find(key)
        .context("`cargo metadata` names no target directory")?
        + key.len();
    let end = metadata[start..]
        .find('"')
        .context("`cargo metadata` is cut off")?;
    Ok(PathBuf::from(&metadata[start..start + end]))
}
