//! The outer members of one record line, read without reading the body.
//!
//! A line's body is its last member, so a reader that only wants the envelope stops there. Values are skipped by shape, not
//! checked: the recorder wrote them, and a caller that needs a value parses that value properly.

use crate::lines::ScannedLine;

/// A walk over the members of one line.
pub(crate) struct LineMembers<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> LineMembers<'a> {
    /// `line` is one JSON object without its newline.
    pub(crate) fn new(line: &'a [u8]) -> LineMembers<'a> {
        LineMembers { line, at: 0 }
    }

    /// The next key, without quotes; the position is then at its value.
    pub(crate) fn next_key(&mut self) -> Option<&'a [u8]> {
        // `{` before the first key, `,` before the others.
        self.space();
        if !matches!(self.line.get(self.at), Some(b'{' | b',')) {
            return None;
        }
        self.at += 1;
        self.space();
        if self.line.get(self.at) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        self.at = string_end(self.line, self.at)?;
        let key = &self.line[start..self.at - 1];
        self.space();
        if self.line.get(self.at) != Some(&b':') {
            return None;
        }
        self.at += 1;
        Some(key)
    }

    /// The value after the key just read.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        self.space();
        let start = self.at;
        self.at = value_end(self.line, self.at)?;
        Some(&self.line[start..self.at])
    }

    /// Everything from here to the brace that closes the line: the exact bytes of the last member's value.
    pub(crate) fn last_value(&self) -> Option<&'a [u8]> {
        let end = self.line.len().checked_sub(1)?;
        (self.line[end] == b'}' && self.at <= end).then(|| &self.line[self.at..end])
    }

    fn space(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }
}

/// The `t` of a line, if it starts and ends like a record line.
pub(crate) fn record_type(line: &[u8]) -> Option<&[u8]> {
    first_type(line).filter(|_| line.last() == Some(&b'}'))
}

/// The same of a line of which only the beginning may be here.
pub(crate) fn scanned_type<'a>(line: &ScannedLine<'a>) -> Option<&'a [u8]> {
    match line.is_whole() {
        true => record_type(line.bytes),
        false => first_type(line.bytes),
    }
}

fn first_type(line: &[u8]) -> Option<&[u8]> {
    let mut members = LineMembers::new(line);
    match members.next_key()? {
        b"t" => string(members.value()?),
        _ => None,
    }
}

/// The inside of a JSON string value; escapes stay.
pub(crate) fn string(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// A whole number.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return std::str::from_utf8(value).ok()?.parse().ok();
    }
    value.iter().try_fold(0, |sum: u64, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

/// `3` of `"c3"`.
pub(crate) fn connection(value: &[u8]) -> Option<u32> {
    number(string(value)?.strip_prefix(b"c")?).and_then(|number| u32::try_from(number).ok())
}

/// A string value with its escapes resolved; anything else is nothing.
pub(crate) fn text(value: &[u8]) -> Option<String> {
    let inside = string(value)?;
    if memchr::memchr(b'\\', inside).is_none() {
        return std::str::from_utf8(inside).ok().map(str::to_owned);
    }
    serde_json::from_slice(value).ok()
}

fn value_end(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => string_end(line, at),
        b'{' | b'[' => container_end(line, at),
        _ => {
            let len = line[at..]
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' '))?;
            Some(at + len)
        }
    }
}

/// Index after the closing quote of the string that opens at `at`.
fn string_end(line: &[u8], at: usize) -> Option<usize> {
    let mut from = at + 1;
    // Envelope strings are short: a plain loop beats a vector search here.
    loop {
        match line.get(from)? {
            b'"' => return Some(from + 1),
            b'\\' => from += 2,
            _ => from += 1,
        }
    }
}

fn container_end(line: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut from = at;
    loop {
        match line.get(from)? {
            b'"' => {
                from = string_end(line, from)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(from + 1);
                }
            }
            _ => {}
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_in_order_and_the_exact_last_value() {
        let line = br#"{"t":"msg","n":12,"s":"a\"}b","o":{"x":["]}"]},"raw": {"a":1} }"#;
        let mut members = LineMembers::new(line);
        let mut seen = Vec::new();
        while let Some(key) = members.next_key() {
            if key == b"raw" {
                assert_eq!(members.last_value(), Some(&b" {\"a\":1} "[..]));
                break;
            }
            seen.push((key.to_vec(), members.value().unwrap().to_vec()));
        }
        let shown: Vec<String> = seen
            .iter()
            .map(|(key, value)| {
                format!("{}={}", key.escape_ascii(), String::from_utf8_lossy(value))
            })
            .collect();
        assert_eq!(
            shown,
            ["t=\"msg\"", "n=12", "s=\"a\\\"}b\"", "o={\"x\":[\"]}\"]}"]
        );
    }

    #[test]
    fn broken_lines_end_the_walk_without_a_panic() {
        for line in [
            &b""[..],
            b"{",
            b"[]",
            b"{\"t",
            b"{\"t\"",
            b"{\"t\":",
            b"{\"t\":\"m\\",
            b"{\"t\":{\"a\"",
            b"{\"t\":1",
            b"\xff",
        ] {
            let mut members = LineMembers::new(line);
            while members.next_key().is_some() && members.value().is_some() {}
            assert_eq!(record_type(line), None);
        }
    }
}
