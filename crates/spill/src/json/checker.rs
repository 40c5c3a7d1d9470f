//! The grammar of JSON.

use std::ops::Range;

use super::block::{escaped_run_end, gap_end, run_end};
use super::unescape::code_unit;
use super::{CheckedJson, JsonRoot};

/// Containers within containers; what is nested deeper is not taken for JSON.
const MAX_DEPTH: usize = 10_000;
/// How many values of the outermost container are remembered.
const ROOT_ENDS: usize = 16;

/// Reads a text once, without recursion, in one piece or in several.
///
/// A piece may end anywhere. What has been read of it is [taken](Checker::take), and the rest, never more than a number or a
/// word, comes again in front of the next piece.
pub(crate) struct Checker {
    next: NextToken,
    /// A string is not over. This comes behind it.
    behind_string: Option<NextToken>,
    /// For each open container, whether it is an object.
    objects: Vec<bool>,
    root: JsonRoot,
    gap_bytes: usize,
    longest_string: Range<usize>,
    root_ends: Vec<usize>,
}

/// What the grammar asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextToken {
    Value,
    /// Or the end of the array.
    FirstElement,
    Key,
    /// Or the end of the object.
    FirstKey,
    Colon,
    /// A comma or the end of a container.
    BehindValue,
    Nothing,
}

/// Why a piece was not read further.
enum Stop {
    /// It is over.
    End,
    /// It is not JSON.
    Bad,
}

/// A piece that is being read.
struct Piece<'a> {
    checker: &'a mut Checker,
    text: &'a [u8],
    is_last: bool,
    at: usize,
    /// Up to here it is done with.
    taken: usize,
}

impl Checker {
    pub(crate) fn new() -> Checker {
        Checker {
            next: NextToken::Value,
            behind_string: None,
            objects: Vec::new(),
            root: JsonRoot::Scalar,
            gap_bytes: 0,
            longest_string: 0..0,
            root_ends: Vec::new(),
        }
    }

    /// Reads the next piece, and tells how much of it is done with: all of the last one. Nothing if it is not JSON.
    pub(crate) fn take(&mut self, text: &[u8], is_last: bool) -> Option<usize> {
        let mut piece = Piece {
            checker: self,
            text,
            is_last,
            at: 0,
            taken: 0,
        };
        match piece.run() {
            Err(Stop::End) if !is_last => Some(piece.taken),
            Err(Stop::End) if piece.checker.next == NextToken::Nothing => Some(text.len()),
            _ => None,
        }
    }

    /// What is known when the last piece was taken. Places mean something only if it was the only one.
    pub(crate) fn finish(self) -> CheckedJson {
        CheckedJson {
            root: self.root,
            gap_bytes: self.gap_bytes,
            longest_string: self.longest_string,
            root_ends: self.root_ends,
        }
    }
}

impl Piece<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        if let Some(next) = self.checker.behind_string {
            self.string_rest(0, next)?;
        }
        loop {
            match self.checker.next {
                NextToken::Value => self.value()?,
                NextToken::FirstElement => match self.skip_gap()? {
                    b']' => self.close(),
                    _ => self.value()?,
                },
                NextToken::FirstKey => match self.skip_gap()? {
                    b'}' => self.close(),
                    _ => self.key()?,
                },
                NextToken::Key => self.key()?,
                NextToken::Colon => self.colon()?,
                NextToken::BehindValue => self.behind_value()?,
                NextToken::Nothing => {
                    self.skip_gap()?;
                    return Err(Stop::Bad);
                }
            }
        }
    }

    /// What is behind is read next, and this is not read again.
    #[inline(always)]
    fn advance(&mut self, next: NextToken) {
        self.checker.next = next;
        self.taken = self.at;
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> Result<u8, Stop> {
        self.text.get(at).copied().ok_or(Stop::End)
    }

    /// The next byte that is not white space, which is not taken.
    #[inline(always)]
    fn skip_gap(&mut self) -> Result<u8, Stop> {
        let byte = self.byte(self.at)?;
        if byte > b' ' {
            return Ok(byte);
        }
        let end = gap_end(self.text, self.at);
        self.checker.gap_bytes += end - self.at;
        self.at = end;
        self.taken = end;
        self.byte(end)
    }

    #[inline(always)]
    fn value(&mut self) -> Result<(), Stop> {
        match self.skip_gap()? {
            b'"' => return self.string(NextToken::BehindValue),
            b'{' => return self.open(true),
            b'[' => return self.open(false),
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        self.advance(NextToken::BehindValue);
        Ok(())
    }

    #[inline(always)]
    fn open(&mut self, is_object: bool) -> Result<(), Stop> {
        let (root, first) = match is_object {
            true => (JsonRoot::Object, NextToken::FirstKey),
            false => (JsonRoot::Array, NextToken::FirstElement),
        };
        let objects = &mut self.checker.objects;
        match objects.len() {
            0 => self.checker.root = root,
            MAX_DEPTH => return Err(Stop::Bad),
            _ => {}
        }
        self.checker.objects.push(is_object);
        self.at += 1;
        self.advance(first);
        Ok(())
    }

    #[inline(always)]
    fn close(&mut self) {
        self.checker.objects.pop();
        self.at += 1;
        self.advance(NextToken::BehindValue);
    }

    #[inline(always)]
    fn behind_value(&mut self) -> Result<(), Stop> {
        let open = self.checker.objects.len();
        let Some(&is_object) = self.checker.objects.last() else {
            self.advance(NextToken::Nothing);
            return Ok(());
        };
        let byte = self.skip_gap()?;
        if open == 1 && self.checker.root_ends.len() < ROOT_ENDS {
            self.checker.root_ends.push(self.at);
        }
        match (byte, is_object) {
            (b',', _) => {
                self.at += 1;
                self.advance(match is_object {
                    true => NextToken::Key,
                    false => NextToken::Value,
                });
            }
            (b'}', true) | (b']', false) => self.close(),
            _ => return Err(Stop::Bad),
        }
        Ok(())
    }

    #[inline(always)]
    fn key(&mut self) -> Result<(), Stop> {
        match self.skip_gap()? {
            b'"' => self.string(NextToken::Colon),
            _ => Err(Stop::Bad),
        }
    }

    #[inline(always)]
    fn colon(&mut self) -> Result<(), Stop> {
        if self.skip_gap()? != b':' {
            return Err(Stop::Bad);
        }
        self.at += 1;
        self.advance(NextToken::Value);
        Ok(())
    }

    #[inline(always)]
    fn string(&mut self, next: NextToken) -> Result<(), Stop> {
        let start = self.at;
        self.at = run_end(self.text, self.at + 1);
        self.string_rest(start, next)
    }

    /// The rest of a string that began at `start`, or in an earlier piece.
    #[inline(always)]
    fn string_rest(&mut self, start: usize, next: NextToken) -> Result<(), Stop> {
        loop {
            match self.byte(self.at) {
                Ok(b'"') => break,
                Ok(b'\\') => match self.escape_end() {
                    Ok(end) => self.at = escaped_run_end(self.text, end),
                    Err(stop) => return Err(self.stop_in_string(stop, next)),
                },
                Ok(byte) if byte >= b' ' => self.at = run_end(self.text, self.at),
                Ok(_) => return Err(Stop::Bad),
                Err(stop) => return Err(self.stop_in_string(stop, next)),
            }
        }
        self.at += 1;
        let longest = &mut self.checker.longest_string;
        if self.at - start > longest.len() {
            *longest = start..self.at;
        }
        self.checker.behind_string = None;
        self.advance(next);
        Ok(())
    }

    /// The rest of the string is in the next piece.
    fn stop_in_string(&mut self, stop: Stop, next: NextToken) -> Stop {
        self.checker.behind_string = Some(next);
        self.taken = self.at;
        stop
    }

    fn escape_end(&self) -> Result<usize, Stop> {
        match self.byte(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(self.at + 2),
            b'u' => {
                let digits = self.text.get(self.at + 2..).unwrap_or_default();
                match code_unit(digits) {
                    Some(_) => Ok(self.at + 6),
                    None if digits.len() < 4 => Err(Stop::End),
                    None => Err(Stop::Bad),
                }
            }
            _ => Err(Stop::Bad),
        }
    }

    #[inline(always)]
    fn number(&mut self) -> Result<(), Stop> {
        if self.byte(self.at)? == b'-' {
            self.at += 1;
        }
        match self.byte(self.at)? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at == self.text.len() && !self.is_last {
            return Err(Stop::End);
        }
        Ok(())
    }

    #[inline(always)]
    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false if self.at == self.text.len() => Err(Stop::End),
            false => Err(Stop::Bad),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Stop> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(match word.starts_with(rest) {
            true => Stop::End,
            false => Stop::Bad,
        })
    }
}
