//! Numbers that would not be sent as they were typed: a 64-bit integer or double is all that the JSON library keeps.

use serde_json::{Number, Value};

use crate::failure::CommandFailure;

/// Refuses JSON with a number that would be sent as another one. `place` says where it was given.
pub(crate) fn refuse_changed_numbers(json: &str, place: &str) -> Result<(), CommandFailure> {
    match changed_number(json) {
        None => Ok(()),
        Some((typed, sent)) => Err(CommandFailure::Mistake(format!(
            "{place}: {typed} cannot be sent exactly, it would become {sent}; nothing was sent"
        ))),
    }
}

/// The first number of valid JSON that would become another one, and what it would become.
pub(crate) fn changed_number(json: &str) -> Option<(&str, Number)> {
    number_tokens(json).into_iter().find_map(|token| {
        let number = serde_json::from_str::<Number>(token).ok()?;
        (decimal(token) != decimal(&number.to_string())).then_some((token, number))
    })
}

/// The numbers in valid JSON, as they were typed.
fn number_tokens(json: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        let length = match rest.starts_with('"') {
            true => string_length(rest),
            false => {
                let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                tokens.push(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of the string at the beginning of `json`, with its quotes.
fn string_length(json: &str) -> usize {
    let mut strings = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let _ = strings.next();
    strings.byte_offset().max(1)
}

/// A number as its digits without zeros at the ends, its exponent and its sign: equal for equal values.
fn decimal(token: &str) -> (bool, String, i64) {
    let (is_negative, token) = match token.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.trim_start_matches('0').is_empty() {
        return (false, String::new(), 0);
    }
    let zeros = digits.len() - significant.len();
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX / 2);
    let exponent = exponent
        .saturating_sub(fraction.len() as i64)
        .saturating_add(zeros as i64);
    (
        is_negative,
        significant.trim_start_matches('0').to_owned(),
        exponent,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_change_are_found() {
        for same in [
            "1",
            "-1",
            "0",
            "-0",
            "0.0",
            "1.0",
            "100",
            "1e2",
            "1E+2",
            "0.1",
            "1.50",
            "2.5e-3",
            "18446744073709551615",
            "-9223372036854775808",
            "1e22",
            "10000000000000000000000",
            r#"{"a": ["12345678901234567890123", 3], "b\"9": 2}"#,
            "true",
            r#""\\""#,
        ] {
            assert_eq!(changed_number(same), None, "{same}");
        }
        for (json, typed) in [
            ("12345678901234567890123", "12345678901234567890123"),
            ("18446744073709551617", "18446744073709551617"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("0.12345678901234567890123", "0.12345678901234567890123"),
            ("1e-400", "1e-400"),
            (r#"{"a\\": [1, 9007199254740993.5]}"#, "9007199254740993.5"),
        ] {
            let found = changed_number(json).map(|(typed, _)| typed);
            assert_eq!(found, Some(typed), "{json}");
        }
    }
}
