//! The functions of jq that are not written in jq: those of the `jaq` crates, and ours in front of them.
//!
//! Ours are the tolls of `bound.rs`, the functions that could cost more than their input is long (`range`, `tojson`,
//! `fromjson`; `contains` and `indices` as much as its square), and regular expressions, which here are those of the `regex` crate: linear in the text whatever the pattern.
//! Left out is what a filter should not have: the environment, files, the log, and the mathematical library.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, run, v};
use jaq_core::{Bind, Cv, Error, Exn, Native, ValX};
use jaq_json::{Num, Val};
use mcp_proxy_wire::Message;

use super::account::digits;
use super::search::{contains, indices};
use super::{JqEngine, dates, formats, metering, value};
use crate::search_pattern::{PatternOptions, SearchPattern, WantedMatches};
use crate::timestamp;

/// Regular expressions by pattern and flags, as the program wrote them.
pub(super) type CompiledPatterns = HashMap<(String, String), SearchPattern>;

/// A program makes few patterns, unless it makes them of what it reads.
const MOST_PATTERNS: usize = 64;
/// What each group of a match costs: it becomes an object of some hundred bytes.
const GROUP_STEPS: usize = 4;
/// No text and no number is made that is longer.
const LONGEST: usize = 16 << 20;

/// Every function, ours first: the first of a name counts.
pub(super) fn all() -> impl Iterator<Item = Fun<JqEngine>> {
    ours()
        .into_iter()
        .chain(formats::functions())
        .chain(dates::functions())
        .chain(jaq_core::funs())
        .chain(jaq_std::base_funs())
        .chain(jaq_json::funs())
}

fn ours() -> Vec<Fun<JqEngine>> {
    let toll = Native::<JqEngine>::new(|cv| {
        let paid = cv.0.data().account.pay(1);
        box_once(paid.map(|()| cv.1))
    })
    .with_paths(|cv| {
        let paid = cv.0.data().account.pay(1);
        box_once(paid.map(|()| cv.1))
    })
    .with_update(|cv, change| match cv.0.data().account.pay(1) {
        Ok(()) => change(cv.1),
        Err(stop) => box_once(Err(stop)),
    });
    let two = || -> Box<[Bind]> { v(2) };
    vec![
        (metering::CHARGE, v(0), toll),
        run((metering::CHARGE_SIZE, v(0), |cv| {
            let paid = cv.0.data().account.pay_value(&cv.1);
            box_once(paid.map(|()| cv.1))
        })),
        run((metering::ADD, two(), |cv| box_once(add(cv)))),
        run((metering::MULTIPLY, two(), |cv| box_once(multiply(cv)))),
        run(("range", v(3), |mut cv| {
            let by = cv.0.pop_var();
            let to = cv.0.pop_var();
            let from = cv.0.pop_var();
            let data = *cv.0.data();
            let numbers = range(from, to, by);
            Box::new(numbers.map(move |number| data.account.pay(1).and(number)))
        })),
        run(("tojson", v(0), |cv| {
            let paid = cv.0.data().account.pay_value(&cv.1);
            box_once(paid.map(|()| Val::utf8_str(cv.1.to_string())))
        })),
        run(("fromjson", v(0), |cv| box_once(from_json(&cv)))),
        run(("contains", v(1), |mut cv| {
            let part = cv.0.pop_var();
            let found = contains(cv.0.data().account, &cv.1, &part);
            box_once(found.map(Val::from))
        })),
        run(("indices", v(1), |mut cv| {
            let part = cv.0.pop_var();
            box_once(indices(cv.0.data().account, &cv.1, &part))
        })),
        run(("matches", two(), |cv| {
            box_once(matches(cv, UnmatchedText::Omit))
        })),
        run(("split_matches", two(), |cv| {
            box_once(matches(cv, UnmatchedText::Include))
        })),
        run(("split_", two(), |cv| {
            box_once(matches(cv, UnmatchedText::Only))
        })),
        run(("encode_base64", v(0), |cv| {
            box_once(text(&cv.1).map(|text| Val::utf8_str(STANDARD.encode(text))))
        })),
        run(("decode_base64", v(0), |cv| {
            let decoded = text(&cv.1).and_then(|text| STANDARD.decode(text).map_err(failed));
            box_once(decoded.map(Val::utf8_str))
        })),
        run(("now", v(0), |_| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            box_once(Ok(Val::from(since.unwrap_or_default().as_secs_f64())))
        })),
        run(("fromdateiso8601", v(0), |cv| box_once(from_date(&cv.1)))),
    ]
}

/// `left + right`: `right` is paid, since that is what is added; a sum with itself pays for all of it each time.
fn add<'a>(mut cv: Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let right = cv.0.pop_var();
    let left = cv.0.pop_var();
    cv.0.data().account.pay_value(&right)?;
    if let (Val::Num(left), Val::Num(right)) = (&left, &right) {
        cv.0.data()
            .account
            .pay_text(digits(left).max(digits(right)))?;
    }
    Ok((left + right)?)
}

/// `left * right`: a text is repeated, so its length is known before.
fn multiply<'a>(mut cv: Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let right = cv.0.pop_var();
    let left = cv.0.pop_var();
    let length = match (&left, &right) {
        (Val::Num(left), Val::Num(right)) => digits(left).saturating_add(digits(right)),
        (Val::TStr(text) | Val::BStr(text), Val::Num(times))
        | (Val::Num(times), Val::TStr(text) | Val::BStr(text)) => match times {
            Num::Int(times) => text
                .len()
                .saturating_mul(usize::try_from(*times).unwrap_or(0)),
            _ => usize::MAX,
        },
        _ => {
            cv.0.data().account.pay_value(&right)?;
            0
        }
    };
    if length > LONGEST {
        cv.0.data().account.pay(usize::MAX)?;
    }
    cv.0.data().account.pay_text(length)?;
    Ok((left * right)?)
}

fn range<'a>(from: Val, to: Val, by: Val) -> impl Iterator<Item = ValX<'a, Val>> {
    let way = by.cmp(&Val::from(0isize));
    let mut next = Some(Ok(from));
    std::iter::from_fn(move || match next.take()? {
        Ok(now) => {
            let within = match way {
                Ordering::Greater => now < to,
                Ordering::Less => now > to,
                Ordering::Equal => now != to,
            };
            within.then(|| {
                next = Some((now.clone() + by.clone()).map_err(Exn::from));
                Ok(now)
            })
        }
        stop => Some(stop),
    })
}

/// One JSON text as a value; read as messages are, with their limit of nesting.
fn from_json<'a>(cv: &Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let text = text(&cv.1)?;
    cv.0.data().account.pay_text(text.len())?;
    let message = Message::parse(text.clone());
    match value::whole(&message, cv.0.data().account) {
        Some(value) => Ok(value),
        None if cv.0.data().account.is_spent() => Err(cv.0.data().account.stop()),
        None => Err(failed("the text is not JSON, or nested too deep")),
    }
}

fn from_date<'a>(input: &Val) -> ValX<'a, Val> {
    let time = std::str::from_utf8(text(input)?)
        .ok()
        .and_then(timestamp::parse);
    let time = time.ok_or_else(|| failed("the text is not a time like 2026-11-15T18:00:00Z"))?;
    let micros = timestamp::micros_since_epoch(time);
    Ok(match micros % 1_000_000 {
        0 => Val::from((micros / 1_000_000) as isize),
        _ => Val::from(micros as f64 / 1e6),
    })
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
    let cost = GROUP_STEPS * pattern.regex().captures_len();
    let mut found = Vec::new();
    let mut end = 0;
    // The place in the text up to which letters are counted, and their number.
    let (mut counted, mut letters) = (0, 0);
    data.account.pay_text(subject.len())?;
    // One more than can be paid for, so that a program which cannot is stopped.
    let most = usize::try_from(data.account.steps_left()).unwrap_or(usize::MAX) / cost + 1;
    let wanted = match flags.contains('g') {
        true => WantedMatches::All(most),
        // An empty match may not count.
        false if flags.contains('n') => WantedMatches::All(most),
        false => WantedMatches::First,
    };
    let Some(matches) = pattern.matches(subject, wanted, data.account.time_left()) else {
        return Err(data.account.stop());
    };
    data.account.charge_time(matches.elsewhere);
    for groups in matches.what {
        data.account.pay(cost)?;
        let Some(all) = groups.first().cloned().flatten() else {
            continue;
        };
        if all.is_empty() && flags.contains('n') {
            continue;
        }
        if gaps != UnmatchedText::Omit {
            found.push(Val::utf8_str(subject.slice(end..all.start)));
        }
        end = all.end;
        if gaps != UnmatchedText::Only {
            let names = pattern.regex().capture_names();
            let groups = names.zip(groups);
            letters += count_letters(&subject[counted..all.start]);
            counted = all.start;
            found.push(
                groups
                    .map(|(name, group)| {
                        let offset = group
                            .as_ref()
                            .map(|group| letters + count_letters(&subject[all.start..group.start]));
                        group_value(subject, name, group, offset)
                    })
                    .collect(),
            );
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
    range: Option<std::ops::Range<usize>>,
    offset: Option<usize>,
) -> Val {
    let mut members: Vec<(&str, Val)> = match range {
        Some(range) => vec![
            ("offset", Val::from(offset.unwrap_or(0))),
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
) -> Result<SearchPattern, Exn<'a, Val>> {
    let mut patterns = patterns
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(regex) = patterns.get(&key) {
        return Ok(regex.clone());
    }
    if let Some(wrong) = flags.chars().find(|flag| !"ginxslp".contains(*flag)) {
        return Err(failed(format!(
            "{wrong:?} is not a flag of a regular expression"
        )));
    }
    let options = PatternOptions {
        pattern,
        largest: 1 << 20,
        configure: &|builder| {
            builder
                .case_insensitive(flags.contains('i'))
                .ignore_whitespace(flags.contains('x'))
                .dot_matches_new_line(flags.contains(['s', 'p']))
                .swap_greed(flags.contains('l'));
        },
    };
    let regex = SearchPattern::new(&options).map_err(failed)?;
    if patterns.len() >= MOST_PATTERNS {
        patterns.clear();
    }
    patterns.insert(key, regex.clone());
    Ok(regex)
}

pub(super) fn text<'a>(value: &Val) -> Result<&Bytes, Exn<'a, Val>> {
    match value {
        Val::TStr(text) => Ok(text),
        other => Err(Exn::from(Error::typ(other.clone(), "string"))),
    }
}

pub(super) fn as_str<'a>(value: &Val) -> Result<&str, Exn<'a, Val>> {
    std::str::from_utf8(text(value)?).map_err(failed)
}

pub(super) fn failed<'a>(why: impl ToString) -> Exn<'a, Val> {
    Exn::from(Error::str(why))
}
