//! Passing over string content many bytes at a time.
//!
//! Eight bytes are looked at as one word, and thirty-two as an array that the compiler turns into vector
//! instructions. No `unsafe`, no dependency on the processor.

use super::End;

const ONES: u64 = u64::MAX / 255;
/// The high bit of each byte.
pub(super) const HIGH: u64 = ONES * 0x80;

/// Where the plain run that begins at `at` ends: the first quote, backslash or control byte, or the end of the text.
/// Also the bytes passed, and maybe a few behind them, or-ed together.
#[inline(always)]
pub(super) fn run_end(text: &[u8], at: usize) -> (usize, u64) {
    // Most strings are short: one word is tried before the wide loop is entered.
    let Some(word) = word(text, at) else {
        return tail_end(text, at, 0);
    };
    match stops(word) {
        0 => long_run_end(text, at + 8, word),
        stops => (at + stops.trailing_zeros() as usize / 8, word),
    }
}

fn long_run_end(text: &[u8], mut at: usize, mut bits: u64) -> (usize, u64) {
    let mut words = 0;
    while let Some(word) = word(text, at) {
        bits |= word;
        match stops(word) {
            0 => at += 8,
            stops => return (at + stops.trailing_zeros() as usize / 8, bits),
        }
        words += 1;
        if words == 3 {
            (at, bits) = skip_blocks(text, at, bits);
        }
    }
    tail_end(text, at, bits)
}

/// Passes whole blocks without a stop byte.
fn skip_blocks(text: &[u8], mut at: usize, mut bits: u64) -> (usize, u64) {
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<32>) {
        let mut stop = 0;
        let mut high = 0;
        for &byte in block {
            stop |= u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < b' ');
            high |= byte;
        }
        bits |= u64::from(high);
        if stop != 0 {
            break;
        }
        at += 32;
    }
    (at, bits)
}

fn tail_end(text: &[u8], mut at: usize, mut bits: u64) -> (usize, u64) {
    while let Some(&byte) = text.get(at) {
        if byte == b'"' || byte == b'\\' || byte < b' ' {
            break;
        }
        bits |= u64::from(byte);
        at += 1;
    }
    (at, bits)
}

/// Where white space that begins at `at` ends, and whether CR or LF was in it.
pub(super) fn blank_end(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut newline = false;
    loop {
        match text.get(at) {
            Some(b' ' | b'\t') => {}
            Some(b'\n' | b'\r') => newline = true,
            _ => return (at, newline),
        }
        at += 1;
        // Indentation is mostly spaces.
        while word(text, at) == Some(ONES * b' ' as u64) {
            at += 8;
        }
    }
}

#[inline(always)]
fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes))
}

/// Marks the bytes of a word that end a plain run. The lowest mark is exact; higher ones may be false, because a
/// subtraction borrows upwards from a true mark.
#[inline]
fn stops(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zero(quote) | zero(backslash) | control) & HIGH
}

/// The index behind the escape whose backslash is at `at`. Lone surrogates are good JSON.
#[inline]
pub(super) fn escape_end(text: &[u8], at: usize) -> Result<usize, End> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            for digit in at + 2..at + 6 {
                match text.get(digit) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Err(End::Bad),
                    None => return Err(End::Cut),
                }
            }
            Ok(at + 6)
        }
        Some(_) => Err(End::Bad),
        None => Err(End::Cut),
    }
}
