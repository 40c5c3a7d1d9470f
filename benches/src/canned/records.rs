//! A large result that is worth keeping in a file: a JSON array of short records, as the escaped text of an answer.

use super::write_id;

/// A pattern that is in one record of `SCARCE_EVERY`.
pub const SCARCE_PATTERN: &str = "scarce";
/// A pattern that is in no record.
pub const ABSENT_PATTERN: &str = "unheard-of";

const RECORD: &str = r#"{\"id\":\"r0000000\",\"tag\":\"common\",\"name\":\"a value\",\"note\":\"two words, \\\"one\\\" quoted\"},"#;
const COMMON: &str = "common";
const SCARCE_EVERY: usize = 100_000;
/// The last record, around the letters that make the text as long as it should be.
const LAST: (&str, &str) = (r#"{\"id\":\"last\",\"note\":\""#, r#"\"}]"#);

/// An array of `bytes` bytes. The records have seven digits of their own each.
pub(super) fn array(bytes: usize) -> String {
    let room = bytes - "[".len() - LAST.0.len() - LAST.1.len();
    let mut records = RECORD.repeat(room / RECORD.len()).into_bytes();
    let digits_at = RECORD.find("0000000").unwrap_or_default();
    let tag_at = RECORD.find(COMMON).unwrap_or_default();
    for (index, record) in (0..).zip(records.chunks_exact_mut(RECORD.len())) {
        write_id(record, digits_at, index);
        if index as usize % SCARCE_EVERY == SCARCE_EVERY / 2 {
            record[tag_at..tag_at + COMMON.len()].copy_from_slice(SCARCE_PATTERN.as_bytes());
        }
    }
    let mut text = String::with_capacity(bytes);
    text.push('[');
    text.push_str(&String::from_utf8_lossy(&records));
    text.push_str(LAST.0);
    text.extend(std::iter::repeat_n('x', room % RECORD.len()));
    text.push_str(LAST.1);
    text
}

/// How many records an array of `bytes` bytes has, without the last. In a file each has a line.
pub fn record_count(bytes: usize) -> usize {
    (bytes - "[".len() - LAST.0.len() - LAST.1.len()) / RECORD.len()
}

/// How many of them have `SCARCE_PATTERN`.
pub fn scarce_count(bytes: usize) -> usize {
    (record_count(bytes) + SCARCE_EVERY / 2 - 1) / SCARCE_EVERY
}

/// What tells the record at `index` from all others.
pub fn record_id(index: usize) -> String {
    format!("r{index:07}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Just long enough for one of the scarce records.
    #[test]
    fn records_are_compact_json_of_exactly_this_length() {
        let text = array(6_000_000);
        assert_eq!(text.len(), 6_000_000);
        let inner: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        let records: Vec<serde_json::Value> = serde_json::from_str(&inner).unwrap();
        assert_eq!(records.len(), record_count(text.len()) + 1);
        assert_eq!(records[17]["id"], record_id(17));
        let scarce = inner.matches(SCARCE_PATTERN).count();
        assert_eq!(scarce, scarce_count(text.len()));
        assert!(scarce > 0);
        assert!(!inner.contains(ABSENT_PATTERN));
        assert!(!inner.contains("\": ") && !inner.contains(", {"));
        assert!(records[17].to_string().len() < 120);
    }
}
