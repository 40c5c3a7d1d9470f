//! The real peers: which lock files pin them, where they are installed, and how the tests find them.
//! They live outside the repository, in a directory named after the lock files' content, so that a changed pin
//! is a new directory and an unchanged one is installed once per machine.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::agents;
use crate::process::{command, output, root, run};

/// The file that says that a directory is whole.
const STAMP: &str = ".installed";

/// Where the Node of the fixtures is, in their directory.
const NODE: &str = "node/node_modules/.bin";

/// An installed set of peers.
pub struct Fixtures {
    directory: PathBuf,
    /// The Python that has Magg, unless its tests are skipped.
    magg: Option<PathBuf>,
    agents: PathBuf,
}

/// The Pythons that Magg may be installed for, by preference. It needs 3.12.
const MAGG_PYTHONS: &[&str] = &["python3", "python3.14", "python3.13", "python3.12"];

/// Set by people who cannot install such a Python: the tests with Magg and FastMCP do nothing then.
const SKIP_MAGG: &str = "MCP_PROXY_SKIP_MAGG";

impl Fixtures {
    /// The directory that the tests know as `MCP_PROXY_FIXTURES`: `node/`, `npm/` and `venv/` are in it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of a Node that is newer than Debian's.
    pub fn node(&self) -> PathBuf {
        self.directory.join(NODE)
    }

    /// Tells a test run where the peers are.
    pub fn export(&self, command: &mut Command) {
        command.env("MCP_PROXY_FIXTURES", &self.directory);
        command.env("MCP_PROXY_AGENTS", &self.agents);
        if let Some(magg) = &self.magg {
            command.env("MCP_PROXY_MAGG_PYTHON", magg);
        }
    }
}

/// `$XDG_CACHE_HOME/mcp-proxy-fixtures`, by default under `~/.cache`.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(
            std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?,
        )
        .join(".cache"),
    };
    Ok(base.join("mcp-proxy-fixtures"))
}

/// Node 22, the npm packages and the Python client, as the tests need them.
pub fn install() -> Result<Fixtures> {
    let pins = [
        "fixtures/node/package-lock.json",
        "fixtures/npm/package-lock.json",
        "fixtures/python/requirements.txt",
    ];
    let directory = cache()?.join(digest(&pins)?);
    install_once(&directory.join("node"), "Node 22", |to| {
        npm_ci("fixtures/node", to, None)
    })?;
    let node = directory.join(NODE);
    install_once(&directory.join("npm"), "npm peers", |to| {
        npm_ci("fixtures/npm", to, Some(&node))
    })?;
    install_once(&directory.join("venv"), "Python peer", |to| {
        pip("python3", "fixtures/python/requirements.txt", to)
    })?;
    let magg = install_magg()?;
    let agents = agents::install(&node)?;
    Ok(Fixtures {
        directory,
        magg,
        agents,
    })
}

/// Magg has pins of its own, and a directory of its own, because it needs a newer Python than the other peers.
fn install_magg() -> Result<Option<PathBuf>> {
    const PINS: &str = "fixtures/magg/requirements.txt";
    let is_new_enough = |python: &str| {
        let probe = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))";
        output(command(python).args(["-c", probe])).is_some()
    };
    let venv = cache()?.join(digest(&[PINS])?).join("venv");
    if !venv.join(STAMP).exists() {
        let installed = MAGG_PYTHONS.iter().map(|python| (*python).to_owned());
        let mut pythons = installed.chain(pyenv_pythons());
        let Some(python) = pythons.find(|python| is_new_enough(python)) else {
            if std::env::var_os(SKIP_MAGG).is_some() {
                eprintln!("fixtures: the tests with Magg and FastMCP are skipped ({SKIP_MAGG})");
                return Ok(None);
            }
            bail!(no_python_for_magg());
        };
        install_once(&venv, "Magg", |to| pip(&python, PINS, to))?;
    }
    Ok(Some(venv.join("bin/python")))
}

fn no_python_for_magg() -> String {
    let looked_for = MAGG_PYTHONS.join(", ");
    format!(
        "Magg and FastMCP need Python 3.12 or newer with venv and ensurepip, and there is none: tried {looked_for}, and \
         pyenv's. Install one (`pyenv install 3.12`), or set {SKIP_MAGG}=1 to run the tests without them"
    )
}

/// The Pythons that pyenv has installed, whichever of them is chosen now.
fn pyenv_pythons() -> Vec<String> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv"));
    let root = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(home);
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let pythons = versions.into_iter().flatten().flatten();
    let pythons = pythons.map(|version| version.path().join("bin/python3"));
    pythons.map(|python| python.display().to_string()).collect()
}

/// The other proxies that the benchmark compares with.
pub fn install_rivals() -> Result<PathBuf> {
    let directory = cache()?.join(digest(&[
        "fixtures/rivals/package-lock.json",
        "fixtures/rivals/requirements.txt",
    ])?);
    install_once(&directory.join("npm"), "npm rival", |to| {
        npm_ci("fixtures/rivals", to, None)
    })?;
    install_once(&directory.join("venv"), "Python rival", |to| {
        pip("python3", "fixtures/rivals/requirements.txt", to)
    })?;
    Ok(directory)
}

/// Makes a directory's content unless that was done before. The stamp is written last, so an interrupted install
/// starts again instead of being taken for a whole one.
pub fn install_once(
    directory: &Path,
    what: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let stamp = directory.join(STAMP);
    if stamp.exists() {
        return Ok(());
    }
    if directory.exists() {
        std::fs::remove_dir_all(directory)
            .with_context(|| format!("removing the half-made {}", directory.display()))?;
    }
    std::fs::create_dir_all(directory)
        .with_context(|| format!("creating {}", directory.display()))?;
    make(directory).with_context(|| format!("installing {what} into {}", directory.display()))?;
    std::fs::write(&stamp, "").with_context(|| format!("writing {}", stamp.display()))
}

/// Installs what a lock file pins, and nothing else.
pub fn npm_ci(from: &str, to: &Path, node: Option<&Path>) -> Result<()> {
    npm(&["ci"], from, to, node)
}

/// Installs what a lock file pins although it lacks some builds for other systems, which `npm ci` refuses to do.
pub fn npm_install(from: &str, to: &Path, node: Option<&Path>) -> Result<()> {
    npm(&["install", "--no-save"], from, to, node)
}

fn npm(verb: &[&str], from: &str, to: &Path, node: Option<&Path>) -> Result<()> {
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        std::fs::copy(root().join(from).join(name), to.join(name))
            .with_context(|| format!("copying {from}/{name}"))?;
    }
    // No package of ours needs its install script, and one that wants to run unasked is not welcome.
    let mut npm = command("npm");
    npm.current_dir(to).args(verb).args([
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    if let Some(node) = node {
        npm.env("PATH", search_path(node)?);
    }
    run(&format!("npm {} ({from})", verb[0]), &mut npm)
}

pub fn pip(python: &str, requirements: &str, to: &Path) -> Result<()> {
    run(
        &format!("{python} -m venv"),
        command(python).args(["-m", "venv"]).arg(to),
    )?;
    let mut pip = command(to.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
    ]);
    run(
        &format!("pip install ({requirements})"),
        pip.arg(requirements),
    )
}

/// `PATH` with one more directory in front.
fn search_path(first: &Path) -> Result<std::ffi::OsString> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(first.to_path_buf()).chain(std::env::split_paths(&rest));
    std::env::join_paths(all).map_err(|error| anyhow!("PATH: {error}"))
}

pub fn digest(files: &[&str]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(&std::fs::read(root().join(file)).with_context(|| format!("reading {file}"))?);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_python_is_named_and_so_is_the_way_around_it() {
        let text = no_python_for_magg();
        for named in ["3.12", "python3.13", "pyenv", SKIP_MAGG] {
            assert!(text.contains(named), "{named}: {text}");
        }
    }
}
