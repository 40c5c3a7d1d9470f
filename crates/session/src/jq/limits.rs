//! How long and how deep a program may be.
//!
//! Lexer, parser, compiler and interpreter all go down one call for each level of a program, so a program without a limit would
//! overflow the stack before it ran. A chain of operators is as deep as it is long.

use jaq_core::load::parse::Term;

use super::metering::children;

/// Signs, words and numbers. No program has more levels.
const WORDS: usize = 1_000;
/// Enough to read a program that has as many levels as it may have words, without optimisation too.
pub(super) const STACK: usize = 64 << 20;
/// Terms within terms, of a program that is to run.
const DEEPEST: usize = 64;

/// Checks a text before anything reads it. The error has the piece where it is too much.
pub(super) fn check_text(text: &str) -> Result<(), (&str, String)> {
    let mut words = 0;
    let mut in_word = false;
    for (at, byte) in text.bytes().enumerate() {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let goes_on = is_word && in_word;
        if !goes_on && !byte.is_ascii_whitespace() {
            words += 1;
        }
        in_word = is_word;
        if words > WORDS {
            return Err((
                text.get(at..).unwrap_or(text),
                format!("it has more than {WORDS} tokens"),
            ));
        }
    }
    Ok(())
}

/// Checks a program before it is compiled.
pub(super) fn check_program(program: &Term<&str>) -> Result<(), String> {
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
            deeper = deeper || is_deeper(child, left - 1);
        });
    }
    deeper
}
