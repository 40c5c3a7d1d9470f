//! Cargo plugins that the commands use, each pinned, built once per machine and kept next to the fixtures.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::fixtures::{cache, install_once};
use crate::process::{cargo, output, run};

/// A cargo plugin from crates.io at the version that the project is checked with.
pub struct CargoPlugin {
    name: &'static str,
    version: &'static str,
}

/// Licences, bans, sources and advisories.
pub const DENY: CargoPlugin = CargoPlugin {
    name: "cargo-deny",
    version: "0.20.2",
};
/// The fuzzer of the long mode.
pub const FUZZ: CargoPlugin = CargoPlugin {
    name: "cargo-fuzz",
    version: "0.13.2",
};

impl CargoPlugin {
    /// The plugin as a command, installed first if this machine does not have that version.
    pub fn command(&self) -> Result<Command> {
        let mut command = crate::process::command(self.install()?);
        // A plugin expects its own subcommand name first, as `cargo deny` would pass it.
        command.arg(self.name.trim_start_matches("cargo-"));
        Ok(command)
    }

    /// Where the plugin's program is. An unoptimised build is minutes faster and quick enough for what we ask of it.
    pub fn install(&self) -> Result<PathBuf> {
        let found = output(Command::new(self.name).arg("--version"));
        if found.is_some_and(|text| text.split_whitespace().any(|word| word == self.version)) {
            return Ok(PathBuf::from(self.name));
        }
        let directory = cache()?
            .join("tools")
            .join(format!("{}-{}", self.name, self.version));
        install_once(&directory, self.name, |to| {
            let mut install = cargo("install --locked --debug --quiet");
            install.args([self.name, "--version", self.version]);
            let build = to.join("build");
            install
                .arg("--root")
                .arg(to)
                .arg("--target-dir")
                .arg(&build);
            run(
                &format!("cargo install {} {}", self.name, self.version),
                &mut install,
            )?;
            std::fs::remove_dir_all(build).map_err(Into::into)
        })?;
        Ok(directory.join("bin").join(self.name))
    }
}
