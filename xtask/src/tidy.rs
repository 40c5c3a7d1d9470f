//! `cargo xtask tidy`: the house rules that rustc and clippy do not know. Most rules are a function from a file to what
//! is wrong with it; this file walks the tree and prints.

mod manifests;
mod markdown;
mod sources;
mod type_names;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::root;

/// One finding, with the place it is about.
pub struct Finding {
    weight: Severity,
    place: String,
    what: String,
}

/// Whether a finding fails the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

impl Finding {
    pub fn error(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            weight: Severity::Error,
            place: place.into(),
            what: what.into(),
        }
    }

    pub fn warning(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            weight: Severity::Warning,
            place: place.into(),
            what: what.into(),
        }
    }
}

/// A text file of the repository.
pub struct TextFile {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub content: String,
}

impl TextFile {
    pub fn extension(&self) -> &str {
        Path::new(&self.path)
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default()
    }

    /// Numbered from one, as editors do.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.content
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }
}

pub fn run() -> Result<()> {
    let root = root();
    let mut texts = Vec::new();
    collect(&root, &root, &mut texts)?;
    texts.sort_by(|a, b| a.path.cmp(&b.path));

    let mut findings = documents(&root);
    findings.extend(type_names::check(&texts));
    for text in &texts {
        findings.extend(sources::check(text));
        match text.extension() {
            "md" => findings.extend(markdown::check(&root, text)),
            "toml" => findings.extend(manifests::check(text)),
            _ => {}
        }
    }
    for finding in &findings {
        let label = if finding.weight == Severity::Error {
            "error"
        } else {
            "warning"
        };
        eprintln!("{label}: {}: {}", finding.place, finding.what);
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.weight == Severity::Error)
        .count();
    if errors > 0 {
        bail!("{errors} against the house rules (CONTRIBUTING.md)");
    }
    eprintln!("tidy: {} files", texts.len());
    Ok(())
}

/// The documents that a newcomer is promised.
fn documents(root: &Path) -> Vec<Finding> {
    let names = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ];
    let missing = names.iter().filter(|name| !root.join(name).is_file());
    missing
        .map(|name| Finding::error(*name, "this document is missing"))
        .collect()
}

/// Every text file that people wrote. What is not UTF-8 is a test's data.
fn collect(root: &Path, directory: &Path, texts: &mut Vec<TextFile>) -> Result<()> {
    const SKIPPED: &[&str] = &[
        "target",
        "node_modules",
        ".git",
        "corpus",
        "artifacts",
        "coverage",
    ];
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut paths = Vec::<PathBuf>::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kind = std::fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() && !SKIPPED.contains(&name.as_ref()) {
            collect(root, &path, texts)?;
        } else if kind.is_file()
            && let Ok(content) = std::fs::read_to_string(&path)
        {
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            texts.push(TextFile { path, content });
        }
    }
    Ok(())
}
