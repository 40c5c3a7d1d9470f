//! The functions of jq that are not written in jq: those of the `jaq` crates, and ours in front of them.
//!
//! Ours are regular expressions, which here are those of the `regex` crate: linear in the text whatever the pattern, and compiled once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, run, v};
use jaq_core::{Cv, Error, Exn, Native, ValX};
use jaq_json::Val;
use mcp_proxy_wire::Message;
use regex::bytes::{Regex, RegexBuilder};

use super::{JqEngine, value};

/// Regular expressions by pattern and flags, as the program wrote them.
pub(super) type CompiledPatterns = HashMap<(String, String), Arc<Regex>>;

/// A program makes few patterns, unless it makes them of what it reads.
const MOST_PATTERNS: usize = 64;
/// Memory for a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;

/// Every function, ours first: the first of a name counts.
pub(super) fn all() -> impl Iterator<Item = Fun<JqEngine>> {
    // `defs.jq` has a `range` that stops when its caller has left, and makes it of this one.
    let range = jaq_core::funs().filter(|(name, ..)| *name == "range");
    let range = range.map(|(_, arguments, function)| ("range_of", arguments, function));
    ours()
        .into_iter()
        .chain(range)
        .chain(jaq_core::funs())
        .chain(jaq_std::funs().filter(|(name, ..)| *name != "env"))
        .chain(jaq_json::funs())
}

fn ours() -> Vec<Fun<JqEngine>> {
    vec![
        ("still_awaited", v(0), still_awaited()),
        run(("fromjson", v(0), |cv| box_once(from_json(&cv)))),
        run(("matches", v(2), |cv| {
            box_once(matches(cv, UnmatchedText::Omit))
        })),
        run(("split_matches", v(2), |cv| {
            box_once(matches(cv, UnmatchedText::Include))
        })),
        run(("split_", v(2), |cv| {
            box_once(matches(cv, UnmatchedText::Only))
        })),
    ]
}

/// Hands its input on while the caller of the program waits, and stops the program afterwards. May stand in paths.
fn still_awaited() -> Native<JqEngine> {
    fn check<'a>(cv: &Cv<'a, JqEngine>) -> Result<(), Exn<'a, Val>> {
        match cv.0.data().caller.has_left() {
            true => Err(Exn::halt(1)),
            false => Ok(()),
        }
    }
    Native::<JqEngine>::new(|cv| box_once(check(&cv).map(|()| cv.1)))
        .with_paths(|cv| {
            box_once(match cv.0.data().caller.has_left() {
                true => Err(Exn::halt(1)),
                false => Ok(cv.1),
            })
        })
        .with_update(|cv, change| match check(&cv) {
            Ok(()) => change(cv.1),
            Err(stop) => box_once(Err(stop)),
        })
}

/// One JSON text as a value; read as messages are, with their limit of nesting.
fn from_json<'a>(cv: &Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let message = Message::parse(text(&cv.1)?.clone());
    value::whole(&message).ok_or_else(|| failed("the text is not JSON, or nested too deep"))
}

/// What to do with the text between matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnmatchedText {
    Omit,
    Include,
    Only,
}

/// The matches of a pattern with its groups, and the texts between them, as the library of jq wants them.
fn matches<'a>(mut cv: Cv<'a, JqEngine>, gaps: UnmatchedText) -> ValX<'a, Val> {
    let flags = cv.0.pop_var();
    let pattern = cv.0.pop_var();
    let data = *cv.0.data();
    let subject = text(&cv.1)?;
    let flags = as_str(&flags)?;
    let pattern = compiled(data.patterns, as_str(&pattern)?, flags)?;
    let mut found = Vec::new();
    let mut end = 0;
    // The place in the text up to which letters are counted, and their number.
    let (mut counted, mut letters) = (0, 0);
    for groups in pattern.captures_iter(subject) {
        let Some(all) = groups.get(0).map(|all| all.range()) else {
            continue;
        };
        if data.caller.has_left() {
            return Err(Exn::halt(1));
        }
        if all.is_empty() && flags.contains('n') {
            continue;
        }
        if gaps != UnmatchedText::Omit {
            found.push(Val::utf8_str(subject.slice(end..all.start)));
        }
        end = all.end;
        if gaps != UnmatchedText::Only {
            letters += count_letters(&subject[counted..all.start]);
            counted = all.start;
            let groups = pattern.capture_names().zip(groups.iter());
            let values = groups.map(|(name, group)| {
                let range = group.map(|group| group.range());
                let start = range.as_ref().map_or(all.start, |range| range.start);
                let offset = letters + count_letters(&subject[all.start..start]);
                group_value(subject, name, range, offset)
            });
            found.push(values.collect());
        }
        if !flags.contains('g') {
            break;
        }
    }
    if gaps != UnmatchedText::Omit {
        found.push(Val::utf8_str(subject.slice(end..)));
    }
    Ok(found.into_iter().collect())
}

fn count_letters(text: &[u8]) -> usize {
    String::from_utf8_lossy(text).chars().count()
}

/// What is known about a group that matched at `offset`, counted in letters.
fn group_value(
    subject: &Bytes,
    name: Option<&str>,
    range: Option<Range<usize>>,
    offset: usize,
) -> Val {
    let mut members: Vec<(&str, Val)> = match range {
        Some(range) => vec![
            ("offset", Val::from(offset)),
            ("length", Val::from(count_letters(&subject[range.clone()]))),
            ("string", Val::utf8_str(subject.slice(range))),
        ],
        None => vec![
            ("offset", Val::from(-1isize)),
            ("length", Val::from(0isize)),
            ("string", Val::Null),
        ],
    };
    if let Some(name) = name {
        members.push(("name", Val::utf8_str(name.to_owned())));
    }
    let members = members.into_iter();
    Val::obj(
        members
            .map(|(key, value)| (Val::utf8_str(key), value))
            .collect(),
    )
}

fn compiled<'a>(
    patterns: &Mutex<CompiledPatterns>,
    pattern: &str,
    flags: &str,
) -> Result<Arc<Regex>, Exn<'a, Val>> {
    let mut patterns = patterns.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(regex) = patterns.get(&key) {
        return Ok(Arc::clone(regex));
    }
    if let Some(wrong) = flags.chars().find(|flag| !"ginxslp".contains(*flag)) {
        return Err(failed(format!(
            "{wrong:?} is not a flag of a regular expression"
        )));
    }
    let regex = RegexBuilder::new(pattern)
        .size_limit(LARGEST_PATTERN)
        .case_insensitive(flags.contains('i'))
        .ignore_whitespace(flags.contains('x'))
        .dot_matches_new_line(flags.contains(['s', 'p']))
        .swap_greed(flags.contains('l'))
        .build()
        .map_err(failed)?;
    if patterns.len() >= MOST_PATTERNS {
        patterns.clear();
    }
    let regex = Arc::new(regex);
    patterns.insert(key, Arc::clone(&regex));
    Ok(regex)
}

fn text<'a>(value: &Val) -> Result<&Bytes, Exn<'a, Val>> {
    match value {
        Val::TStr(text) => Ok(text),
        other => Err(Exn::from(Error::typ(other.clone(), "string"))),
    }
}

fn as_str<'a>(value: &Val) -> Result<&str, Exn<'a, Val>> {
    std::str::from_utf8(text(value)?).map_err(failed)
}

fn failed<'a>(why: impl ToString) -> Exn<'a, Val> {
    Exn::from(Error::str(why))
}
