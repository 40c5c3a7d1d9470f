//! The text that a string stands for.

use super::block::{BLOCK, places_of};

/// Room that is never used up, because whole blocks are copied where a few bytes of them are needed.
pub(crate) const SLACK: usize = 2 * BLOCK;

/// The content of a string token, quotes included, that is JSON. Nothing if it has half a surrogate pair, which no text can
/// contain.
pub(crate) fn unescape(token: &[u8]) -> Option<Vec<u8>> {
    let mut unescaping = Unescaping::of(token)?;
    // No escape is shorter than what it stands for.
    let mut text = vec![0; token.len() + SLACK];
    let length = unescaping.fill(&mut text)?;
    text.truncate(length);
    Some(text)
}

/// The content of a string token, piece by piece.
#[derive(Clone, Debug)]
pub(crate) struct Unescaping<'a> {
    raw: &'a [u8],
    read: usize,
}

impl<'a> Unescaping<'a> {
    /// Of a token as [`unescape`] takes it.
    pub(crate) fn of(token: &'a [u8]) -> Option<Unescaping<'a>> {
        let raw = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(Unescaping { raw, read: 0 })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.read == self.raw.len()
    }

    /// Puts the next piece into `text` and tells how long it is. Less than [`SLACK`] is left free, or the end is reached.
    pub(crate) fn fill(&mut self, text: &mut [u8]) -> Option<usize> {
        let raw = self.raw;
        let mut written = 0;
        while text.len() - written >= SLACK {
            (self.read, written) = unescape_blocks(raw, self.read, text, written);
            match raw.get(self.read) {
                None => break,
                // There are blocks left, but no room for another.
                Some(_) if text.len() - written < SLACK => break,
                Some(b'\\') => {}
                Some(&byte) => {
                    text[written] = byte;
                    self.read += 1;
                    written += 1;
                    continue;
                }
            }
            let kind = *raw.get(self.read + 1)?;
            self.read += 2;
            if kind == b'u' {
                let escape = &raw[self.read..];
                let (character, behind) = unicode_escape(escape)?;
                self.read += escape.len() - behind.len();
                written += character.encode_utf8(&mut text[written..]).len();
            } else {
                text[written] = SHORT_ESCAPES[usize::from(kind)];
                written += 1;
            }
        }
        Some(written)
    }
}

/// Goes on as long as there are whole blocks and room for them, and no escapes but short ones. Escapes can be a few bytes
/// apart, and then it costs less to copy a whole block behind each of them than to find out how much of it is needed.
fn unescape_blocks(
    raw: &[u8],
    mut read: usize,
    text: &mut [u8],
    mut written: usize,
) -> (usize, usize) {
    // With a block behind the last escape in the first one. Of arrays the compiler knows that no index is out of bounds.
    while let Some(source) = raw[read..].first_chunk::<{ 2 * BLOCK + 2 }>()
        && let Some(target) = text[written..].first_chunk_mut::<SLACK>()
        && let Some(block) = source.first_chunk()
    {
        target[..BLOCK].copy_from_slice(block);
        let mut backslashes = places_of(*block, b'\\');
        // Behind the last escape, in both.
        let (mut from, mut to) = (0, 0);
        while backslashes != 0 {
            let place = backslashes.trailing_zeros() as usize % BLOCK;
            let kind = source[place + 1];
            let character = SHORT_ESCAPES[usize::from(kind)];
            let end = (to + place - from) % BLOCK;
            if character == 0 {
                return (read + place, written + end);
            }
            target[end] = character;
            target[end + 1..][..BLOCK].copy_from_slice(&source[place + 2..][..BLOCK]);
            (from, to) = (place + 2, end + 1);
            // An escaped backslash is not the beginning of an escape.
            backslashes &= backslashes - 1;
            if kind == b'\\' {
                backslashes &= backslashes.wrapping_sub(1);
            }
        }
        // The last escape may end behind the block.
        let rest = BLOCK.saturating_sub(from);
        read += from + rest;
        written += to + rest;
    }
    (read, written)
}

/// What the letter behind a backslash stands for; 0 if that depends on more.
const SHORT_ESCAPES: [u8; 256] = {
    let mut characters = [0; 256];
    characters[b'"' as usize] = b'"';
    characters[b'\\' as usize] = b'\\';
    characters[b'/' as usize] = b'/';
    characters[b'n' as usize] = b'\n';
    characters[b't' as usize] = b'\t';
    characters[b'r' as usize] = b'\r';
    characters[b'b' as usize] = 8;
    characters[b'f' as usize] = 12;
    characters
};

/// Reads what follows `\u`.
fn unicode_escape(text: &[u8]) -> Option<(char, &[u8])> {
    let (first, behind) = code_unit(text)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, behind));
    }
    let (second, behind) = code_unit(behind.strip_prefix(b"\\u")?)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    let character = char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?;
    Some((character, behind))
}

/// Four hexadecimal digits, and what is behind them.
pub(super) fn code_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, behind) = text.split_at_checked(4)?;
    let unit = digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })?;
    Some((unit, behind))
}
