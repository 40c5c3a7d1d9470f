//! The JSON scanner: one pass, no recursion, no allocation.
//!
//! It checks the grammar of RFC 8259 to the letter and reports each member of the outermost object (or each element
//! of the outermost array) as spans. It builds no values: that is what makes it cheap enough to run on every message.
//! UTF-8 is not checked here; the scanner only tells whether there is anything to check.

pub(crate) mod string;

use crate::Span;

/// Deeper nesting ends the scan, so that the stack of container kinds has a fixed size.
pub(crate) const MAX_DEPTH: usize = 1000;

/// How a scan ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScanEnd {
    /// One JSON value and nothing but white space around it.
    Complete,
    /// The text stopped inside a value that was well formed so far.
    Cut,
    /// The grammar was broken.
    Bad,
    /// More than [`MAX_DEPTH`] containers are open.
    TooDeep,
}

/// What the outermost value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RootKind {
    Object,
    Array,
    Scalar,
    Nothing,
}

/// What a scan found besides the members it reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanResult<'a> {
    pub end: ScanEnd,
    pub root: RootKind,
    /// The deepest nesting seen.
    pub depth: usize,
    /// Whether CR or LF stood between tokens. (Inside a string they end the scan as `Bad`.)
    pub newline: bool,
    /// False if some byte may be above 0x7F, and then UTF-8 is still to be checked.
    pub ascii: bool,
    /// The outermost member whose value had begun and not ended, and where that value begins.
    pub open: Option<(MemberKey<'a>, usize)>,
}

/// The key of a member as written, without its quotes. Empty for the elements of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberKey<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
}

impl MemberKey<'_> {
    /// Whether this is `name` once escapes are resolved: `"m\u0065thod"` is `method`.
    #[inline]
    pub(crate) fn is(&self, name: &str) -> bool {
        if self.escaped {
            crate::text::unescape(self.raw) == name.as_bytes()
        } else {
            self.raw == name.as_bytes()
        }
    }
}

/// Scans `text` and reports the outermost members in order, each once the delimiter behind it was seen.
pub(crate) fn scan<'a>(
    text: &'a [u8],
    mut member: impl FnMut(MemberKey<'a>, Span),
) -> ScanResult<'a> {
    let mut scanner = Scanner::new(text);
    let end = match scanner.run(&mut member) {
        Ok(()) => ScanEnd::Complete,
        Err(end) => end,
    };
    ScanResult {
        end,
        root: scanner.root,
        depth: scanner.deepest,
        newline: scanner.newline,
        ascii: scanner.bits == 0,
        open: scanner.in_member.then_some((scanner.key, scanner.value)),
    }
}

/// The value of the last member called `name` in the object `text`, also when the object is cut off or broken behind it.
pub(crate) fn find(text: &[u8], name: &str) -> Option<Span> {
    let mut found = None;
    let scan = scan(text, |key, span| {
        if key.is(name) {
            found = Some(span);
        }
    });
    if scan.root == RootKind::Object {
        found
    } else {
        None
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// One bit for each open container, set for an object.
    kinds: [u64; MAX_DEPTH.div_ceil(64)],
    open: usize,
    deepest: usize,
    in_object: bool,
    newline: bool,
    /// Not zero if a byte of a string has its high bit set.
    bits: u32,
    root: RootKind,
    key: MemberKey<'a>,
    /// Where the current value of the outermost container begins.
    value: usize,
    in_member: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner {
            text,
            at: 0,
            kinds: [0; MAX_DEPTH.div_ceil(64)],
            open: 0,
            deepest: 0,
            in_object: false,
            newline: false,
            bits: 0,
            root: RootKind::Nothing,
            key: MemberKey {
                raw: &[],
                escaped: false,
            },
            value: 0,
            in_member: false,
        }
    }

    #[inline(always)]
    fn run(&mut self, member: &mut impl FnMut(MemberKey<'a>, Span)) -> Result<(), ScanEnd> {
        let first = self.token()?;
        self.root = match first {
            b'{' => RootKind::Object,
            b'[' => RootKind::Array,
            b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => RootKind::Scalar,
            _ => return Err(ScanEnd::Bad),
        };
        loop {
            if self.value()? {
                continue;
            }
            if !self.close(member)? {
                break;
            }
        }
        match self.token() {
            Err(ScanEnd::Cut) => Ok(()),
            _ => Err(ScanEnd::Bad),
        }
    }

    /// Reads a scalar or an empty container, or enters a container. True if another value has to follow at once.
    #[inline(always)]
    fn value(&mut self) -> Result<bool, ScanEnd> {
        let byte = self.token()?;
        if self.open == 1 {
            self.value = self.at;
            self.in_member = true;
        }
        match byte {
            b'"' => {
                self.string()?;
            }
            b'{' => {
                self.enter(true)?;
                if self.token()? == b'}' {
                    self.leave();
                } else {
                    self.member_key()?;
                    return Ok(true);
                }
            }
            b'[' => {
                self.enter(false)?;
                if self.token()? == b']' {
                    self.leave();
                } else {
                    return Ok(true);
                }
            }
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => return Err(ScanEnd::Bad),
        }
        Ok(false)
    }

    /// Continues after a value: leaves the containers that end here. True if another value follows.
    #[inline(always)]
    fn close(&mut self, member: &mut impl FnMut(MemberKey<'a>, Span)) -> Result<bool, ScanEnd> {
        while self.open > 0 {
            let end = self.at;
            let byte = self.token()?;
            let more = match byte {
                b',' => true,
                b'}' if self.in_object => false,
                b']' if !self.in_object => false,
                _ => return Err(ScanEnd::Bad),
            };
            if self.open == 1 {
                member(self.key, Span::new(self.value, end));
                self.in_member = false;
            }
            if !more {
                self.leave();
                continue;
            }
            self.at += 1;
            if self.in_object {
                self.token()?;
                self.member_key()?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads a key and its colon; `at` stands on what must be the opening quote.
    #[inline(always)]
    fn member_key(&mut self) -> Result<(), ScanEnd> {
        if self.text.get(self.at) != Some(&b'"') {
            return Err(ScanEnd::Bad);
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        if self.open == 1 {
            let raw = self.text.get(start..self.at - 1).unwrap_or_default();
            self.key = MemberKey { raw, escaped };
        }
        if self.token()? != b':' {
            return Err(ScanEnd::Bad);
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn enter(&mut self, object: bool) -> Result<(), ScanEnd> {
        if self.open == MAX_DEPTH {
            return Err(ScanEnd::TooDeep);
        }
        let (word, bit) = (self.open / 64, 1 << (self.open % 64));
        if object {
            self.kinds[word] |= bit;
        } else {
            self.kinds[word] &= !bit;
        }
        self.in_object = object;
        self.open += 1;
        self.deepest = self.deepest.max(self.open);
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn leave(&mut self) {
        self.open -= 1;
        if let Some(outer) = self.open.checked_sub(1) {
            self.in_object = self.kinds[outer / 64] & (1 << (outer % 64)) != 0;
        }
        self.at += 1;
    }

    /// The next byte that is not white space, without taking it.
    #[inline(always)]
    fn token(&mut self) -> Result<u8, ScanEnd> {
        match self.text.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            Some(_) => {
                let (at, newline) = string::blank_end(self.text, self.at);
                self.at = at;
                self.newline |= newline;
                self.text.get(at).copied().ok_or(ScanEnd::Cut)
            }
            None => Err(ScanEnd::Cut),
        }
    }

    /// Passes a string that begins at `at`. True if it holds escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, ScanEnd> {
        let mut escaped = false;
        self.at += 1;
        let (mut end, mut bits) = string::run_end(self.text, self.at);
        loop {
            self.at = end;
            self.bits |= bits;
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at = string::escape_end(self.text, self.at)?;
                    (end, bits) = string::escaped_run_end(self.text, self.at);
                }
                Some(_) => return Err(ScanEnd::Bad),
                None => return Err(ScanEnd::Cut),
            }
        }
    }

    #[inline(always)]
    fn number(&mut self) -> Result<(), ScanEnd> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return Err(ScanEnd::Bad),
            None => return Err(ScanEnd::Cut),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn some_digits(&mut self) -> Result<(), ScanEnd> {
        match self.text.get(self.at) {
            Some(b'0'..=b'9') => self.digits(),
            Some(_) => return Err(ScanEnd::Bad),
            None => return Err(ScanEnd::Cut),
        }
        Ok(())
    }

    #[inline(always)]
    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn literal(&mut self, word: &[u8]) -> Result<(), ScanEnd> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(ScanEnd::Cut)
        } else {
            Err(ScanEnd::Bad)
        }
    }
}

#[cfg(test)]
mod tests;
