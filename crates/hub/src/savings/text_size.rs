//! Sizes of texts, in bytes and in estimated tokens.

/// Characters that are taken for one token.
pub const CHARS_PER_TOKEN: u64 = 4;

/// The size of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Bytes of UTF-8.
    pub bytes: u64,
    /// Characters.
    pub chars: u64,
}

impl TextSize {
    /// The size of `text`.
    pub fn of(text: &[u8]) -> TextSize {
        TextSize {
            bytes: text.len() as u64,
            chars: String::from_utf8_lossy(text).chars().count() as u64,
        }
    }

    /// About how many tokens it is.
    pub fn tokens(self) -> u64 {
        self.chars.div_ceil(CHARS_PER_TOKEN)
    }
}

impl std::ops::AddAssign for TextSize {
    fn add_assign(&mut self, other: TextSize) {
        self.bytes += other.bytes;
        self.chars += other.chars;
    }
}
