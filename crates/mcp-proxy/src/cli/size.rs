//! Sizes as people type them, for every flag that takes one.

/// `1048576`, `500M`, `1G` as bytes: powers of 1024, with or without `B` or `iB`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; use 1048576, 500M or 1G");
    let (number, unit) = text.split_at(
        text.find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let shift = match unit
        .trim()
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("64"), Ok(64));
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("500m"), Ok(500 << 20));
        assert_eq!(size("256MiB"), Ok(256 << 20));
        assert_eq!(size("5 MiB"), Ok(5 << 20));
        assert_eq!(size("1GB"), Ok(1 << 30));
        for wrong in ["", "G", "1X", "10i", "-1", "lots", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
