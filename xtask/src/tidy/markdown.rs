//! Rules on the documents: links that lead somewhere, and an architecture page that stays readable.

use std::path::Path;

use super::{Finding, TextFile};

const ARCHITECTURE_LINES: usize = 200;

pub fn check(root: &Path, text: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.content.lines().count();
    if text.path == "ARCHITECTURE.md" && lines > ARCHITECTURE_LINES {
        findings.push(Finding::error(
            &text.path,
            format!("{lines} lines: it is read whole up to {ARCHITECTURE_LINES}"),
        ));
    }
    let folder = root.join(&text.path);
    let folder = folder.parent().unwrap_or(root);
    let mut in_code = false;
    for (number, line) in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in links(line).filter(|link| is_relative(link)) {
            let path = link.split(['#', '?']).next().unwrap_or_default();
            if !path.is_empty() && !folder.join(path).exists() {
                findings.push(Finding::error(
                    text.at(number),
                    format!("the link to {link} leads nowhere"),
                ));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` in one line, code spans left out.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    prose.flat_map(|part| {
        part.match_indices("](")
            .filter_map(|(at, _)| part[at + 2..].split([')', ' ']).next())
    })
}

fn is_relative(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_are_found_outside_code_spans() {
        let line = "see [a](x.md), `[b](y.md)` and [c](z.md#part \"title\")";
        assert_eq!(links(line).collect::<Vec<_>>(), ["x.md", "z.md#part"]);
    }
}
