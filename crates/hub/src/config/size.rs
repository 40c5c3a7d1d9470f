//! Sizes as people write them: `65536`, `500M`, `1G`.

/// A number of bytes in powers of 1024, with or without `B` or `iB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64"), Some(64));
        assert_eq!(parse_size("64K"), Some(65_536));
        assert_eq!(parse_size("500m"), Some(500 << 20));
        assert_eq!(parse_size("256MiB"), Some(256 << 20));
        assert_eq!(parse_size("5 MiB"), Some(5 << 20));
        assert_eq!(parse_size("1GB"), Some(1 << 30));
        for wrong in ["", "G", "1X", "10i", "-1", "lots", "99999999999T"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
