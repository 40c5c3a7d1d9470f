//! Sixteen bytes at a time, as one vector, which every processor has that we are built for.

use wide::u8x16;

/// Bytes that are looked at together.
pub(crate) const BLOCK: usize = 16;
/// The bit of the last one.
const LAST: u32 = 1 << (BLOCK - 1);

/// The block that begins at `at`, if there is a whole one.
#[inline(always)]
pub(crate) fn block_at(text: &[u8], at: usize) -> Option<[u8; BLOCK]> {
    text.get(at..)?.first_chunk().copied()
}

/// A bit for each `byte`.
#[inline(always)]
pub(crate) fn places_of(block: [u8; BLOCK], byte: u8) -> u32 {
    u8x16::new(block).simd_eq(u8x16::splat(byte)).to_bitmask()
}

/// A bit for each bracket or brace: the opening ones and the closing ones.
#[inline(always)]
pub(crate) fn brackets(block: [u8; BLOCK]) -> (u32, u32) {
    // A bracket and a brace differ in this bit, and no other byte of JSON becomes one of them by it outside of strings.
    let folded = u8x16::new(block) | u8x16::splat(0x20);
    (
        folded.simd_eq(u8x16::splat(b'{')).to_bitmask(),
        folded.simd_eq(u8x16::splat(b'}')).to_bitmask(),
    )
}

/// Where the plain run of a string that begins at `at` ends: the first quote, backslash or control byte, or the end of the
/// text.
#[inline(always)]
pub(crate) fn run_end(text: &[u8], mut at: usize) -> usize {
    while let Some(block) = block_at(text, at) {
        match places_of(block, b'"') | places_of(block, b'\\') | controls(block) {
            0 => at += BLOCK,
            stops => return at + stops.trailing_zeros() as usize,
        }
    }
    while let Some(&byte) = text.get(at)
        && byte != b'"'
        && byte != b'\\'
        && byte >= b' '
    {
        at += 1;
    }
    at
}

/// Like [`run_end`], but passes the escapes that are most common, too. JSON within a string has one every few bytes.
pub(crate) fn escaped_run_end(text: &[u8], mut at: usize) -> usize {
    while let Some(block) = block_at(text, at) {
        let quotes = places_of(block, b'"');
        let backslashes = places_of(block, b'\\');
        let starts = escape_starts(backslashes);
        let known = (quotes | backslashes | places_of(block, b'n')) >> 1;
        // Behind the last byte is what the next block begins with.
        let in_block = starts & (LAST - 1);
        let stops = quotes & !(starts << 1) | in_block & !known | controls(block);
        if stops != 0 {
            return at + stops.trailing_zeros() as usize;
        }
        at += BLOCK - usize::from(starts & LAST != 0);
    }
    run_end(text, at)
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

/// A bit for each control byte.
#[inline(always)]
fn controls(block: [u8; BLOCK]) -> u32 {
    let block = u8x16::new(block);
    block.min(u8x16::splat(0x1f)).simd_eq(block).to_bitmask()
}

/// Where the white space that begins at `at` ends.
#[inline(always)]
pub(crate) fn gap_end(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = text.get(at) {
        at += 1;
        // Indentation is mostly spaces.
        while text.get(at..).and_then(<[u8]>::first_chunk) == Some(b"    ") {
            at += 4;
        }
    }
    at
}
