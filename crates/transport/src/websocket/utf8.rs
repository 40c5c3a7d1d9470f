//! Checks that a text is UTF-8 while it arrives in pieces, which may end in the middle of a character.

use std::str::from_utf8;

/// A text so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8Check {
    /// The first bytes of a character that is not complete.
    begun: [u8; 4],
    begun_length: usize,
}

/// A text is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotUtf8;

impl Utf8Check {
    /// Takes the next bytes of the text.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), NotUtf8> {
        while self.begun_length > 0 {
            let Some((first, rest)) = bytes.split_first() else {
                return Ok(());
            };
            self.begun[self.begun_length] = *first;
            self.begun_length += 1;
            bytes = rest;
            match from_utf8(&self.begun[..self.begun_length]) {
                Ok(_) => self.begun_length = 0,
                // Not complete yet. A character has at most four bytes, so `begun` never overflows.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(NotUtf8),
            }
        }
        let Err(error) = from_utf8(bytes) else {
            return Ok(());
        };
        if error.error_len().is_some() {
            return Err(NotUtf8);
        }
        let begun = &bytes[error.valid_up_to()..];
        self.begun[..begun.len()].copy_from_slice(begun);
        self.begun_length = begun.len();
        Ok(())
    }

    /// The text ends here.
    pub(super) fn finish(self) -> Result<(), NotUtf8> {
        match self.begun_length {
            0 => Ok(()),
            _ => Err(NotUtf8),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(), NotUtf8> {
        let mut check = Utf8Check::default();
        for piece in pieces {
            check.push(piece)?;
        }
        check.finish()
    }

    #[test]
    fn a_character_may_be_cut_anywhere() {
        let text = "aä€😀z".as_bytes();
        assert_eq!(in_pieces([text]), Ok(()));
        assert_eq!(in_pieces(text.chunks(1)), Ok(()));
        assert_eq!(in_pieces(text.chunks(2)), Ok(()));
    }

    #[test]
    fn a_text_that_ends_inside_a_character_is_refused() {
        let text = "😀".as_bytes();
        for end in 1..text.len() {
            assert_eq!(in_pieces([&text[..end]]), Err(NotUtf8), "{end}");
        }
    }

    #[test]
    fn a_wrong_byte_is_found_where_it_comes() {
        // A surrogate, an overlong slash, a byte that never occurs, and a lone continuation.
        for wrong in [&b"\xed\xa0\x80"[..], b"\xc0\xaf", b"\xff", b"\x80"] {
            assert_eq!(in_pieces([wrong]), Err(NotUtf8));
            assert_eq!(in_pieces(wrong.chunks(1)), Err(NotUtf8));
        }
        let mut check = Utf8Check::default();
        check.push(b"\xf4").unwrap();
        assert_eq!(check.push(b"\x90"), Err(NotUtf8));
    }

    proptest! {
        #[test]
        fn pieces_are_judged_as_the_whole(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                any::<String>().prop_map(String::into_bytes),
                prop::collection::vec(prop::sample::select(b"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80".to_vec()), 0..12),
            ],
            size in 1_usize..5,
        ) {
            let expected = from_utf8(&bytes).map(drop).map_err(|_| NotUtf8);
            prop_assert_eq!(in_pieces(bytes.chunks(size)), expected);
        }
    }
}
