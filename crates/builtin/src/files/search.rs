//! `search_files` and `search_text`.

use std::io::Read;

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde_json::{Value, json};

use super::FILE_LIMIT;
use super::read::is_binary;
use super::result_list::{ListFull, ResultList};
use super::root::{Location, RootSet, RootedPath};
use super::walk::{FoundEntry, SearchBudget, SearchEnd, walk};
use crate::arguments::Arguments;
use crate::tool::{ToolFailure, ToolOutput, ToolResult, clip};

/// Paths in one answer.
const MOST_PATHS: usize = 1_000;
/// Lines in one answer.
const MOST_LINES: usize = 500;
/// As much of a line as an answer shows.
const SHOWN_LINE: usize = 500;
/// As much of a line as is searched. Together with the next limit it bounds the time between two looks at the clock.
const SEARCHED_LINE: usize = 64 << 10;
/// The size of a compiled regular expression.
const REGEX_SIZE: usize = 256 << 10;
/// The longest pattern of any kind.
const PATTERN_LIMIT: usize = 1_000;
/// The start of a file that tells text from binary.
const SAMPLE: usize = 8 << 10;

pub(super) fn search_files(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let pattern = glob("pattern", arguments.text("pattern")?)?;
    let mut found = ResultList::new(MOST_PATHS);
    let end = search(roots, arguments, &mut |entry, _| {
        if !pattern.is_match(entry.relative) {
            return Ok(());
        }
        let slash = match entry.kind {
            FileType::Directory => "/",
            _ => "",
        };
        found.push(json!(format!("{}{slash}", entry.path.shown())))?;
        Ok(())
    })?;
    Ok(matches_output(found, end))
}

pub(super) fn search_text(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let regex = text_pattern(arguments)?;
    let files = arguments.optional_text("glob")?;
    let files = files.map(|pattern| glob("glob", pattern)).transpose()?;
    let mut found = ResultList::new(MOST_LINES);
    let end = search(roots, arguments, &mut |entry, budget| {
        let is_wanted = files
            .as_ref()
            .is_none_or(|files| files.is_match(entry.relative));
        if entry.kind != FileType::RegularFile || !is_wanted {
            return Ok(());
        }
        match read_text(&entry.path) {
            Some(text) => search_lines(&entry.path, &text, &regex, budget, &mut found),
            None => Ok(()),
        }
    })?;
    Ok(matches_output(found, end))
}

impl From<ListFull> for SearchEnd {
    fn from(_: ListFull) -> SearchEnd {
        SearchEnd::Results
    }
}

/// Visits everything below the argument `path`, or below all roots.
fn search(
    roots: &RootSet,
    arguments: &Arguments<'_>,
    visit: &mut dyn FnMut(&FoundEntry<'_>, &mut SearchBudget) -> Result<(), SearchEnd>,
) -> Result<Result<(), SearchEnd>, ToolFailure> {
    let path = arguments.optional_text("path")?.unwrap_or(".");
    let starts = match roots.locate(path)? {
        Location::AllRoots => roots.tops(),
        Location::Below(start) => vec![start],
    };
    let mut budget = SearchBudget::new();
    for start in starts {
        if let Err(end) = walk(&start, &mut budget, visit)? {
            return Ok(Err(end));
        }
    }
    Ok(Ok(()))
}

fn matches_output(found: ResultList, end: Result<(), SearchEnd>) -> ToolOutput {
    let mut result = json!({ "matches": found.into_json(), "truncated": end.is_err() });
    if let Err(end) = end {
        result["note"] = json!(end.note());
    }
    ToolOutput::structured(result)
}

/// A glob without a slash matches names in all directories.
fn glob(parameter: &str, pattern: &str) -> Result<GlobMatcher, ToolFailure> {
    check_length(parameter, pattern)?;
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let everywhere = match pattern.contains('/') {
        true => pattern.to_owned(),
        false => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&everywhere)
        .literal_separator(true)
        .build();
    let glob = glob.map_err(|error| {
        ToolFailure::new(format!("`{parameter}` is not a glob: {}", error.kind()))
    })?;
    Ok(glob.compile_matcher())
}

/// The regular expression of `query` or `regex`.
fn text_pattern(arguments: &Arguments<'_>) -> Result<Regex, ToolFailure> {
    let query = arguments.optional_text("query")?;
    let regex = arguments.optional_text("regex")?;
    let (parameter, given, pattern) = match (query, regex) {
        (Some(query), None) => ("query", query, regex::escape(query)),
        (None, Some(regex)) => ("regex", regex, regex.to_owned()),
        _ => return Err(ToolFailure::new("give either `query` or `regex`")),
    };
    if given.is_empty() {
        return Err(ToolFailure::new(format!("`{parameter}` must not be empty")));
    }
    check_length(parameter, given)?;
    let built = RegexBuilder::new(&pattern).size_limit(REGEX_SIZE).build();
    built.map_err(|error| {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            // The last line says what is wrong, the ones above draw where.
            other => other
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned(),
        };
        ToolFailure::new(format!("`{parameter}` cannot be used: {reason}"))
    })
}

fn check_length(parameter: &str, pattern: &str) -> Result<(), ToolFailure> {
    match pattern.len() > PATTERN_LIMIT {
        true => Err(ToolFailure::new(format!(
            "`{parameter}` is longer than {PATTERN_LIMIT} bytes"
        ))),
        false => Ok(()),
    }
}

/// The content of a file if it is text of reasonable size. A search skips what it cannot read.
fn read_text(path: &RootedPath<'_>) -> Option<Vec<u8>> {
    let (file, facts) = path.directory().open_file(path.relative()).ok()?;
    if facts.size > FILE_LIMIT {
        return None;
    }
    let mut file = file.take(FILE_LIMIT);
    let mut text = Vec::new();
    file.by_ref()
        .take(SAMPLE as u64)
        .read_to_end(&mut text)
        .ok()?;
    if is_binary(&text) {
        return None;
    }
    file.read_to_end(&mut text).ok()?;
    Some(text)
}

fn search_lines(
    path: &RootedPath<'_>,
    text: &[u8],
    regex: &Regex,
    budget: &mut SearchBudget,
    found: &mut ResultList,
) -> Result<(), SearchEnd> {
    budget.spend_bytes(text.len() as u64)?;
    let mut since_look = 0;
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = &line[..line.len().min(SEARCHED_LINE)];
        since_look += line.len() + 1;
        if since_look > SEARCHED_LINE {
            since_look = 0;
            budget.check_time()?;
        }
        if let Some(place) = regex.find(line) {
            found.push(line_match(path, index + 1, line, place.start()))?;
        }
    }
    Ok(())
}

/// A long line is shown from shortly before the match.
fn line_match(path: &RootedPath<'_>, number: usize, line: &[u8], at: usize) -> Value {
    let from = match line.len() > SHOWN_LINE {
        true => at.saturating_sub(SHOWN_LINE / 4),
        false => 0,
    };
    let text = String::from_utf8_lossy(line.get(from..).unwrap_or_default());
    json!({
        "path": path.shown(),
        "line": number,
        "text": clip(&text, SHOWN_LINE),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn globs_match_as_people_expect() {
        let table = [
            ("*.rs", "src/deep/lib.rs", true),
            ("*.rs", "lib.rs", true),
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/deep/lib.rs", false),
            ("src/**/*.rs", "src/deep/lib.rs", true),
            ("src/**/*.rs", "src/lib.rs", true),
            ("./src/*", "src/lib.rs", true),
            ("*.{png,jpg}", "a/b.jpg", true),
            ("test_?", "test_10", false),
            ("[ab]", "a", true),
            ("lib", "lib/deep", false),
        ];
        for (pattern, path, expected) in table {
            let matcher = glob("pattern", pattern).unwrap();
            assert_eq!(
                matcher.is_match(Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
        for pattern in ["[", "{a", "a\\"] {
            let failure = glob("pattern", pattern).unwrap_err().to_string();
            assert!(failure.starts_with("`pattern` is not a glob"), "{failure}");
        }
    }
}
