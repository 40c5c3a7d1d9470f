//! Passing over string content many bytes at a time.
//!
//! Sixteen bytes are looked at as one vector, which every processor has that we are built for, and in long runs four of
//! these together. No `unsafe` here.

use super::ScanEnd;
use wide::u8x16;

/// Bytes that are looked at together.
const BLOCK: usize = 16;
/// The bit of the last one.
const LAST: u32 = 1 << (BLOCK - 1);
const EIGHT_SPACES: u64 = u64::MAX / 255 * b' ' as u64;

/// Where the plain run that begins at `at` ends: the first quote, backslash or control byte, or the end of the text.
/// Also the high bits of the bytes passed, and maybe of a few behind them: not zero if one was set.
#[inline(always)]
pub(crate) fn run_end(text: &[u8], at: usize) -> (usize, u32) {
    // Most strings are short: one block is tried before the loop is entered.
    let Some(block) = chunk(text, at) else {
        return tail_end(text, at, 0);
    };
    let (stops, high) = marks(block);
    match stops {
        0 => long_run_end(text, at + BLOCK, high),
        stops => (at + stops.trailing_zeros() as usize, high),
    }
}

fn long_run_end(text: &[u8], mut at: usize, mut bits: u32) -> (usize, u32) {
    let mut blocks = 0;
    while let Some(block) = chunk(text, at) {
        let (stops, high) = marks(block);
        bits |= high;
        match stops {
            0 => at += BLOCK,
            stops => return (at + stops.trailing_zeros() as usize, bits),
        }
        blocks += 1;
        if blocks == 3 {
            (at, bits) = skip_blocks(text, at, bits);
        }
    }
    tail_end(text, at, bits)
}

/// Like [`run_end`], but passes the escapes that are most common, too. JSON within a string has one every few bytes.
pub(crate) fn escaped_run_end(text: &[u8], mut at: usize) -> (usize, u32) {
    let mut bits = 0;
    while let Some(block) = chunk(text, at) {
        let (stops, high) = marks(block);
        bits |= high;
        let block = u8x16::new(block);
        let places_of = |byte| block.simd_eq(u8x16::splat(byte)).to_bitmask();
        let (quotes, backslashes) = (places_of(b'"'), places_of(b'\\'));
        let starts = escape_starts(backslashes);
        let known = (quotes | backslashes | places_of(b'n')) >> 1;
        // Behind the last byte is what the next block begins with.
        let in_block = starts & (LAST - 1);
        let controls = stops & !quotes & !backslashes;
        let stops = quotes & !(starts << 1) | in_block & !known | controls;
        if stops != 0 {
            return (at + stops.trailing_zeros() as usize, bits);
        }
        at += BLOCK - usize::from(starts & LAST != 0);
    }
    let (end, high) = run_end(text, at);
    (end, bits | high)
}

/// The backslashes that are not escaped themselves. The first byte of the block is not.
#[inline(always)]
fn escape_starts(backslashes: u32) -> u32 {
    if backslashes & backslashes << 1 == 0 {
        return backslashes;
    }
    let (mut starts, mut rest) = (0, backslashes);
    while rest != 0 {
        let first = rest & rest.wrapping_neg();
        starts |= first;
        rest &= !(first | first << 1);
    }
    starts
}

/// Passes blocks without a stop byte, four at a time.
fn skip_blocks(text: &[u8], mut at: usize, mut bits: u32) -> (usize, u32) {
    while let Some(blocks) = chunk::<{ 4 * BLOCK }>(text, at) {
        let (blocks, _) = blocks.as_chunks::<BLOCK>();
        let mut stops = u8x16::ZERO;
        let mut seen = u8x16::ZERO;
        for block in blocks {
            let block = u8x16::new(*block);
            stops |= stop_bytes(block);
            seen |= block;
        }
        bits |= seen.to_bitmask();
        if stops.to_bitmask() != 0 {
            break;
        }
        at += 4 * BLOCK;
    }
    (at, bits)
}

fn tail_end(text: &[u8], mut at: usize, mut bits: u32) -> (usize, u32) {
    while let Some(&byte) = text.get(at) {
        if byte == b'"' || byte == b'\\' || byte < b' ' {
            break;
        }
        bits |= u32::from(byte & 0x80);
        at += 1;
    }
    (at, bits)
}

/// Where white space that begins at `at` ends, and whether CR or LF was in it.
pub(crate) fn blank_end(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut newline = false;
    loop {
        match text.get(at) {
            Some(b' ' | b'\t') => {}
            Some(b'\n' | b'\r') => newline = true,
            _ => return (at, newline),
        }
        at += 1;
        // Indentation is mostly spaces.
        while chunk(text, at).map(u64::from_le_bytes) == Some(EIGHT_SPACES) {
            at += 8;
        }
    }
}

#[inline(always)]
fn chunk<const N: usize>(text: &[u8], at: usize) -> Option<[u8; N]> {
    text.get(at..)?.first_chunk().copied()
}

/// A bit for each byte that ends a plain run, and one for each above 0x7F.
#[inline(always)]
fn marks(block: [u8; BLOCK]) -> (u32, u32) {
    let block = u8x16::new(block);
    (stop_bytes(block).to_bitmask(), block.to_bitmask())
}

/// All bits of each byte that ends a plain run.
#[inline(always)]
fn stop_bytes(block: u8x16) -> u8x16 {
    let quote = block.simd_eq(u8x16::splat(b'"'));
    let backslash = block.simd_eq(u8x16::splat(b'\\'));
    let control = block.min(u8x16::splat(0x1f)).simd_eq(block);
    quote | backslash | control
}

/// The index behind the escape whose backslash is at `at`. Lone surrogates are good JSON.
#[inline]
pub(super) fn escape_end(text: &[u8], at: usize) -> Result<usize, ScanEnd> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            for digit in at + 2..at + 6 {
                match text.get(digit) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Err(ScanEnd::Bad),
                    None => return Err(ScanEnd::Cut),
                }
            }
            Ok(at + 6)
        }
        Some(_) => Err(ScanEnd::Bad),
        None => Err(ScanEnd::Cut),
    }
}
