//! The bytes of an id. Nearly all ids are short numbers, and are copied several times on the way of each message, so short
//! ones need no memory of their own.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// So many bytes fit in the space that a longer id takes with its tag.
const INLINE: usize = 22;

/// Bytes that are compared, ordered and hashed as a slice.
#[derive(Clone)]
pub struct ShortBytes(Storage);

#[derive(Clone)]
enum Storage {
    Inline { length: u8, bytes: [u8; INLINE] },
    Long(Box<[u8]>),
}

impl From<&[u8]> for ShortBytes {
    fn from(text: &[u8]) -> ShortBytes {
        let mut bytes = [0; INLINE];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(text);
                ShortBytes(Storage::Inline { length, bytes })
            }
            _ => ShortBytes(Storage::Long(text.into())),
        }
    }
}

impl Deref for ShortBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Storage::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for ShortBytes {
    fn eq(&self, other: &ShortBytes) -> bool {
        **self == **other
    }
}

impl Eq for ShortBytes {}

impl Hash for ShortBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialOrd for ShortBytes {
    fn partial_cmp(&self, other: &ShortBytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShortBytes {
    fn cmp(&self, other: &ShortBytes) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for ShortBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_bytes_stay_what_they_are() {
        let text = [b'7'; 2 * INLINE];
        for length in 0..text.len() {
            let bytes = ShortBytes::from(&text[..length]);
            assert_eq!(&*bytes, &text[..length]);
            assert_eq!(bytes, bytes.clone());
            assert!(bytes < ShortBytes::from(&text[..=length]));
        }
        assert_eq!(size_of::<ShortBytes>(), 24);
    }
}
