//! TOON, the form of JSON that models read with fewer tokens, where nothing is lost by it.

use serde_json::Value;

use mcp_proxy_wire::json::string_end;
use mcp_proxy_wire::string_content;

/// Larger values are not tried: the encoder and the decoder need many times their size.
pub(crate) const LARGEST: usize = 8 << 20;

/// `json`, which is compact, as TOON. Nothing if that is larger or reads back as something else.
pub(crate) fn encode(json: &[u8]) -> Option<String> {
    if json.len() > LARGEST || !matches!(json.first(), Some(b'{' | b'[')) {
        return None;
    }
    let value: Value = serde_json::from_slice(json).ok()?;
    let toon = std::panic::catch_unwind(|| toon_format::encode_default(&value));
    let toon = toon.ok()?.ok()?;
    if toon.len() >= json.len() {
        return None;
    }
    is_same(json, &decode(&toon)?).then_some(toon)
}

/// The compact JSON that a TOON text stands for. Nothing if it is not TOON, or too large.
pub(crate) fn decode(toon: &str) -> Option<Vec<u8>> {
    if toon.len() > LARGEST {
        return None;
    }
    // The text may be anybody's, and a panic of the decoder must not be the end of more than this call.
    let decoded = std::panic::catch_unwind(|| toon_format::decode_strict::<Value>(toon));
    serde_json::to_vec(&decoded.ok()?.ok()?).ok()
}

/// Whether two compact JSON texts are the same value, to the last digit, with members in the same order.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (mut one, mut other) = (one, other);
    loop {
        let (Some((first, behind)), Some((second, behind_other))) = (token(one), token(other))
        else {
            return one.is_empty() && other.is_empty();
        };
        if first != second && !is_same_token(first, second) {
            return false;
        }
        (one, other) = (behind, behind_other);
    }
}

/// The first token, and what is behind it.
fn token(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match json.first()? {
        b'"' => string_end(json, 0),
        b'{' | b'}' | b'[' | b']' | b':' | b',' => 1,
        _ => json
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']'))
            .unwrap_or(json.len()),
    };
    Some(json.split_at(length))
}

fn is_same_token(one: &[u8], other: &[u8]) -> bool {
    match (one.first(), other.first()) {
        (Some(b'"'), Some(b'"')) => string_content(one) == string_content(other),
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => {
            decimal(one).is_some_and(|number| Some(number) == decimal(other))
        }
        _ => false,
    }
}

/// A number as its sign, its digits without zeros at either end, and the power of ten behind them: `1.50e3` and `1500` are
/// the same.
fn decimal(number: &[u8]) -> Option<(bool, String, i64)> {
    let number = std::str::from_utf8(number).ok()?;
    let (is_negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = (digits.len() - significant.len()) as i64;
    let power = exponent.checked_add(zeros - fraction.len() as i64)?;
    match significant.trim_start_matches('0') {
        "" => Some((is_negative, String::new(), 0)),
        significant => Some((is_negative, significant.to_owned(), power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> Option<String> {
        let toon = encode(json.as_bytes())?;
        Some(String::from_utf8(decode(&toon).unwrap()).unwrap())
    }

    #[test]
    fn rows_are_written_as_a_table() {
        let json = r#"{"users":[{"id":1,"name":"Alice"},{"id":2,"name":"Bob\u0021"}]}"#;
        assert_eq!(
            encode(json.as_bytes()).unwrap(),
            "users[2]{id,name}:\n  1,Alice\n  2,Bob!"
        );
        assert_eq!(round_trip(json).unwrap(), json.replace("\\u0021", "!"));
    }

    #[test]
    fn a_value_that_would_change_stays_json() {
        for lossy in [
            r#"{"number_with_many_digits":123456789012345678901234567890}"#,
            r#"{"number_beyond_floats":1e400}"#,
            r#"{"number_with_many_digits":0.12345678901234567890123}"#,
            r#"{"zero_with_a_sign":-0.0}"#,
            r#"{"the_same_key":1,"the_same_key":2}"#,
        ] {
            assert_eq!(encode(lossy.as_bytes()), None, "{lossy}");
        }
        assert_eq!(
            round_trip(r#"{"float":1.50,"other":2.0}"#).unwrap(),
            r#"{"float":1.5,"other":2}"#
        );
    }

    #[test]
    fn scalars_and_what_does_not_shrink_stay_json() {
        assert_eq!(encode(b"12"), None);
        assert_eq!(encode(b"[]"), None);
        assert_eq!(decode("a[2]: 1"), None);
    }

    #[test]
    fn hostile_texts_are_refused() {
        let nested: String = (0..2000)
            .map(|level| format!("{}a:\n", "  ".repeat(level)))
            .collect();
        let lists: String = (0..2000)
            .map(|level| format!("{}- [1]:\n", "  ".repeat(level)))
            .collect();
        for hostile in [
            nested.as_str(),
            &format!("[1]:\n{lists}"),
            &format!("a[1]{}b{}: 1", "{".repeat(5000), "}".repeat(5000)),
            "a[18446744073709551615]: 1,2",
            "a[99999999999999999999999]: 1",
            "a[4000000000]{b,c}:\n  1,2",
            "[4000000000]:\n  - 1",
            "a:\n   b: 1\n c: 2",
            "a:\n\tb: 1",
            "a[2]:\n - 1\n    - 2",
            "a[1]{}:\n  1",
            "a[-1]: 1",
            "\"a: 1",
            "a: \"\\x\"",
        ] {
            assert_eq!(decode(hostile), None, "{:.40}", hostile);
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (one, other) in [
            ("1.50e3", "1500"),
            ("100", "1E2"),
            ("0.0", "0"),
            ("0.05", "5e-2"),
        ] {
            assert_eq!(
                decimal(one.as_bytes()),
                decimal(other.as_bytes()),
                "{one} {other}"
            );
        }
        for (one, other) in [("1", "-1"), ("10", "1"), ("0.5", "0.05"), ("0", "-0")] {
            assert_ne!(
                decimal(one.as_bytes()),
                decimal(other.as_bytes()),
                "{one} {other}"
            );
        }
    }
}
