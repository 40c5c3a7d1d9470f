//! How long and how deep a program may be.
//!
//! Lexer, parser, compiler and interpreter all go down one call for each level of a program, so a program without a limit would
//! overflow the stack before it ran. A chain of operators is as deep as it is long.

use jaq_core::load::parse::Term;

use super::bound::children;

/// Bytes.
const LONGEST: usize = 16 << 10;
/// Brackets within brackets.
const NESTED: usize = 24;
/// Signs, words and numbers.
const WORDS: usize = 1_000;
/// Words and signs that what follows is a part of, for each of which the parser goes one call down.
const PREFIXES: usize = 100;
/// Terms within terms.
const DEEPEST: usize = 64;

/// Checks a text before anything reads it. The error has the piece where it is too much.
pub(super) fn of_text(text: &str) -> Result<(), (&str, String)> {
    if text.len() > LONGEST {
        return Err((text, format!("it is longer than {} KiB", LONGEST >> 10)));
    }
    let mut open = 0usize;
    let mut words = 0;
    let mut in_word = false;
    // Brackets in strings are counted too: there, they may be those of `\\(…)`.
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let goes_on = is_word && in_word;
        if !goes_on && !byte.is_ascii_whitespace() {
            words += 1;
        }
        in_word = is_word;
        if open > NESTED {
            return Err((
                text.get(at..).unwrap_or(text),
                format!("brackets are nested more than {NESTED} deep"),
            ));
        }
        if words > WORDS {
            return Err((
                text.get(at..).unwrap_or(text),
                format!("it has more than {WORDS} words and signs"),
            ));
        }
    }
    let minus = text.bytes().filter(|byte| *byte == b'-').count();
    let is_prefix = |word: &&str| {
        matches!(
            *word,
            "as" | "def" | "try" | "label" | "if" | "elif" | "reduce" | "foreach"
        )
    };
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    if minus + words.filter(is_prefix).count() > PREFIXES {
        return Err((
            text,
            format!("it has more than {PREFIXES} of -, as, def, try, label, if and reduce"),
        ));
    }
    Ok(())
}

/// Checks a program before it is compiled.
pub(super) fn of_program(program: &Term<&str>) -> Result<(), String> {
    if is_deeper(program, DEEPEST) {
        return Err(format!(
            "it is nested more than {DEEPEST} deep; `a or b or …` counts too, for which there is any(…)"
        ));
    }
    Ok(())
}

fn is_deeper(term: &Term<&str>, left: usize) -> bool {
    let mut deeper = left == 0;
    if !deeper {
        children(term, &mut |child| {
            deeper = deeper || is_deeper(child, left - 1)
        });
    }
    deeper
}
