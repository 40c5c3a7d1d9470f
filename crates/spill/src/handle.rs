//! Names of spilled results that nobody can guess.

use std::io;

use crate::SpillFormat;

const SCHEME: &str = "spill:";
const RANDOM_BYTES: usize = 16;
/// Crockford's base 32: no letter looks like a digit, so a model copies it without mistakes.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS_LENGTH: usize = 26;

/// A new handle, such as `spill:3sg7y0m4c8q1x5zj2kd9trvw6h.json`. It is a URI, and ends like a file.
pub(crate) fn new_handle(format: SpillFormat) -> io::Result<String> {
    Ok(format!(
        "{SCHEME}{}.{}",
        random_name()?,
        format.file_extension()
    ))
}

/// 128 random bits as 26 digits.
pub(crate) fn random_name() -> io::Result<String> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut rest = u128::from_be_bytes(random);
    let mut digits = [0; DIGITS_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest & 31) as usize];
        rest >>= 5;
    }
    Ok(digits.iter().copied().map(char::from).collect())
}

/// Whether this is meant as a handle, and not as a path or another URI.
pub fn is_handle(file: &str) -> bool {
    file.starts_with(SCHEME)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn handles_are_uris_of_one_length_and_differ() {
        let handles: HashSet<_> = (0..1000)
            .map(|_| new_handle(SpillFormat::Json).unwrap())
            .collect();
        assert_eq!(handles.len(), 1000);
        for handle in handles {
            let name = handle.strip_prefix("spill:").unwrap();
            let digits = name.strip_suffix(".json").unwrap();
            assert_eq!(digits.len(), DIGITS_LENGTH);
            assert!(digits.bytes().all(|digit| DIGITS.contains(&digit)));
        }
    }
}
