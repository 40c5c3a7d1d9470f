//! Rules on `crates/*/Cargo.toml`: the workspace's lints hold, and every dependency says why it is there.

use super::{Finding, TextFile};

pub fn check(text: &TextFile) -> Vec<Finding> {
    let is_crate = text.path.starts_with("crates/") && text.path.ends_with("/Cargo.toml");
    if !is_crate {
        return Vec::new();
    }
    let mut findings = unexplained(text);
    if !text.content.contains("[lints]\nworkspace = true") {
        findings.push(Finding::error(
            &text.path,
            "without `[lints] workspace = true` unsafe code is not forbidden",
        ));
    }
    findings
}

/// A reason stands on the dependency's own line or on the one above. Our own crates need none: ARCHITECTURE.md
/// says who may know whom.
fn unexplained(text: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    let mut explained = false;
    for (number, line) in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            in_dependencies = line.trim_end_matches(']').ends_with("dependencies");
        } else if in_dependencies
            && let Some(name) = dependency(line)
            && !name.starts_with("mcp-proxy-")
            && !explained
            && !line.contains(" # ")
        {
            findings.push(Finding::error(
                text.at(number),
                format!("`{name}` has no reason: write one behind it"),
            ));
        }
        explained = line.starts_with('#');
    }
    findings
}

fn dependency(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let name = name.trim().trim_end_matches(".workspace");
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{TextFile, check};

    fn findings(manifest: &str) -> usize {
        let content = format!("{manifest}\n[lints]\nworkspace = true\n");
        check(&TextFile {
            path: "crates/x/Cargo.toml".into(),
            content,
        })
        .len()
    }

    #[test]
    fn a_dependency_needs_a_reason() {
        assert_eq!(
            findings("[dependencies]\nbytes = \"1\" # slices without copies\n"),
            0
        );
        assert_eq!(
            findings("[dependencies]\n# slices without copies\nbytes.workspace = true\n"),
            0
        );
        assert_eq!(findings("[dev-dependencies]\nbytes.workspace = true\n"), 1);
        assert_eq!(
            findings("[dependencies]\nmcp-proxy-wire.workspace = true\n[features]\ninterop = []\n"),
            0
        );
    }
}
