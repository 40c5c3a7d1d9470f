//! The length of a small container, found by looking at many bytes at once.

use crate::json::{BLOCK, brackets, places_of};

/// At least a line, and as many bytes as a number has bits.
pub(super) const WINDOW: usize = 128;

/// The length of the container that begins with the window, if it ends there. The JSON is compact and has been checked.
pub(super) fn container_length(window: &[u8; WINDOW]) -> Option<usize> {
    let (mut quotes, mut backslashes) = (0_u128, 0_u128);
    let (mut opening, mut closing) = (0_u128, 0_u128);
    for (number, block) in window.as_chunks::<BLOCK>().0.iter().enumerate() {
        let shift = number * BLOCK;
        let (open, close) = brackets(*block);
        opening |= u128::from(open) << shift;
        closing |= u128::from(close) << shift;
        quotes |= u128::from(places_of(*block, b'"')) << shift;
        backslashes |= u128::from(places_of(*block, b'\\')) << shift;
    }
    while backslashes != 0 {
        // The byte behind a backslash is escaped, and if it is a backslash, it does not escape anything.
        let escaped = (backslashes & backslashes.wrapping_neg()) << 1;
        quotes &= !escaped;
        backslashes &= backslashes - 1;
        backslashes &= !escaped;
    }
    let outside = !within_strings(quotes);
    opening &= outside;
    closing &= outside;
    let mut brackets = opening | closing;
    let mut depth = 0_usize;
    while brackets != 0 {
        let place = brackets.trailing_zeros();
        brackets &= brackets - 1;
        if opening >> place & 1 == 1 {
            depth += 1;
        } else if depth > 1 {
            depth -= 1;
        } else {
            return Some(place as usize + 1);
        }
    }
    None
}

/// A bit for each byte from an opening quote up to the closing one: whether an odd number of quotes stands up to there.
fn within_strings(quotes: u128) -> u128 {
    [1, 2, 4, 8, 16, 32, 64]
        .iter()
        .fold(quotes, |odd, shift| odd ^ odd << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(start: &str) -> Option<usize> {
        let padded = start.to_owned() + &" ".repeat(WINDOW);
        container_length(padded.as_bytes().first_chunk().unwrap())
    }

    #[test]
    fn the_end_of_a_container_is_found() {
        for container in [
            "[]",
            "{}",
            "[[],{}]",
            r#"{"a]":"[[","b\\":{"\"}":[1,2]}}"#,
            r#"["\\\"]","\\","\n]"]"#,
        ] {
            let followed = format!("{container},[]]");
            assert_eq!(length(&followed), Some(container.len()), "{container}");
        }
        let full = format!("[\"{}\"]", "x".repeat(WINDOW - 4));
        assert_eq!(length(&full), Some(WINDOW));
        assert_eq!(length(&format!(" {full}")[1..]), Some(WINDOW));
    }

    #[test]
    fn what_ends_later_is_not() {
        let longer = format!("[\"{}\"]", "x".repeat(WINDOW - 3));
        assert_eq!(length(&longer), None);
        assert_eq!(length(&"[".repeat(WINDOW)), None);
        assert_eq!(length(&format!("[\"{}", "]".repeat(WINDOW))), None);
        assert_eq!(length(&format!("[\"{}\\\"]", "x".repeat(WINDOW - 5))), None);
    }
}
