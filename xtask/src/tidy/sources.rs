//! Rules on the text of files: length, opening words, names, leftovers, white space, paths of one machine.

use super::{Finding, TextFile};

const LOOK_TWICE: usize = 400;
const TOO_LONG: usize = 600;
/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "types", "misc",
];
/// Written in two parts, so that this file does not break its own rules.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];
/// Written by people, as opposed to test data and snapshots.
const PROSE_AND_CODE: &[&str] = &[
    "rs", "md", "toml", "mjs", "js", "ts", "py", "sh", "yml", "yaml", "html", "css",
];

pub fn check(text: &TextFile) -> Vec<Finding> {
    let mut findings = machine_paths(text);
    if PROSE_AND_CODE.contains(&text.extension()) {
        findings.extend(white_space(text));
    }
    if text.extension() == "rs" {
        findings.extend(length(text));
        findings.extend(names(text));
        findings.extend(leftovers(text));
        findings.extend(opening(text));
    }
    findings
}

fn length(text: &TextFile) -> Option<Finding> {
    match text.content.lines().count() {
        lines if lines > TOO_LONG => Some(Finding::error(
            &text.path,
            format!("{lines} lines: split it before {TOO_LONG}"),
        )),
        lines if lines > LOOK_TWICE => Some(Finding::warning(
            &text.path,
            format!("{lines} lines: look twice"),
        )),
        _ => None,
    }
}

fn names(text: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in text.path.split('/') {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            findings.push(Finding::error(
                &text.path,
                format!("`{stem}` says nothing about what is inside"),
            ));
        }
    }
    if text.path.ends_with("/mod.rs") {
        findings.push(Finding::error(
            &text.path,
            "no mod.rs: `foo.rs` next to `foo/`",
        ));
    }
    findings
}

fn leftovers(text: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines() {
        for leftover in LEFTOVERS
            .iter()
            .filter(|leftover| line.contains(**leftover))
        {
            findings.push(Finding::error(
                text.at(number),
                format!("`{leftover}` is left over"),
            ));
        }
    }
    findings
}

/// Every module of the product says in a few lines what it is.
fn opening(text: &TextFile) -> Option<Finding> {
    let wanted = text.path.starts_with("crates/") || text.path.starts_with("xtask/");
    let first = text
        .content
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    let opens = first.is_some_and(|line| line.starts_with("//!"));
    (wanted && !opens).then(|| {
        Finding::error(
            &text.path,
            "opens without `//!`: say what it is, why, and what it is not",
        )
    })
}

fn white_space(text: &TextFile) -> Vec<Finding> {
    let trailing = text.lines().filter(|(_, line)| line.ends_with([' ', '\t']));
    trailing
        .map(|(number, _)| Finding::error(text.at(number), "white space at the end of the line"))
        .collect()
}

/// A path of one person's machine works on no other. `user` is the name in examples.
fn machine_paths(text: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines() {
        for home in [concat!("/ro", "ot/"), concat!("/ho", "me/")] {
            let named = line.split(home).skip(1).any(|rest| {
                let first = rest.chars().next();
                first.is_some_and(|first| first.is_alphanumeric() || first == '.')
                    && !rest.starts_with("user")
            });
            if named {
                findings.push(Finding::error(text.at(number), "a path of one machine"));
            }
        }
    }
    findings
}
