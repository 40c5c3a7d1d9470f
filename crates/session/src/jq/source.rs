//! What the text of a program says before it is compiled: how long it is, whether it calls itself, and what it looks at.

use jaq_core::load::lex::{StrPart, Tok, Token};

/// Signs, words and numbers of a program. None has more levels, so this bounds the stack that it needs.
const MOST_TOKENS: usize = 1_000;

/// Words that do not look into their input, or only as a program could not tell apart from a smaller one when the input is the whole
/// view: it is an object, and true.
const INDIFFERENT: &[&str] = &[
    "select",
    "not",
    "empty",
    "true",
    "false",
    "null",
    "type",
    "error",
    "test",
    "match",
    "capture",
    "scan",
    "sub",
    "gsub",
    "startswith",
    "endswith",
    "ltrimstr",
    "rtrimstr",
    "ascii_downcase",
    "ascii_upcase",
    "contains",
    "inside",
    "index",
    "split",
    "join",
    "tonumber",
    "fromjson",
    "floor",
    "isstring",
    "isnumber",
    "isarray",
    "isobject",
    "isboolean",
    "fromdate",
    "now",
    "trim",
    "end",
];

/// Words that a new term follows.
const BEFORE_TERM: &[&str] = &["and", "or", "if", "then", "elif", "else", "try", "catch"];

/// Counts the tokens of a text before anything reads it. The error has the piece where it is too much.
pub(super) fn check_length(text: &str) -> Result<(), (&str, String)> {
    let mut tokens = 0;
    let mut in_word = false;
    for (at, byte) in text.bytes().enumerate() {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let continues = is_word && in_word;
        if !continues && !byte.is_ascii_whitespace() {
            tokens += 1;
        }
        in_word = is_word;
        if tokens > MOST_TOKENS {
            let rest = text.get(at..).unwrap_or(text);
            return Err((rest, format!("it has more than {MOST_TOKENS} tokens")));
        }
    }
    Ok(())
}

/// The first definition that names itself in its body.
pub(super) fn self_calling<'s>(tokens: &[Token<&'s str>]) -> Option<&'s str> {
    named_within(tokens, &[])
}

/// `open` are the definitions around these tokens.
fn named_within<'s>(tokens: &[Token<&'s str>], open: &[&'s str]) -> Option<&'s str> {
    let mut open = open.to_vec();
    let outer = open.len();
    let mut tokens = tokens.iter();
    while let Some(Token(text, token)) = tokens.next() {
        match token {
            Tok::Word if *text == "def" => open.extend(tokens.next().map(|name| name.0)),
            Tok::Word if open.contains(text) => {
                return open.iter().find(|name| *name == text).copied();
            }
            Tok::Sym if *text == ";" && open.len() > outer => drop(open.pop()),
            _ => {}
        }
        for inner in children(token) {
            if let Some(name) = named_within(inner, &open) {
                return Some(name);
            }
        }
    }
    None
}

/// The tokens in a block, or in each `\(…)` of a string.
fn children<'t, 's>(token: &'t Tok<&'s str>) -> Vec<&'t [Token<&'s str>]> {
    match token {
        Tok::Block(inner) => vec![inner],
        Tok::Str(parts) => parts
            .iter()
            .filter_map(|part| match part {
                StrPart::Term(Token(_, Tok::Block(inner))) => Some(inner.as_slice()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Which fields of its input a program looks at, by their place in the list of known ones; the others need not be made. A program
/// that might see the whole input needs all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeededFields(u64);

impl NeededFields {
    /// The fields of `known` that a program looks at. A field that is asked of the input itself and is not known is an error:
    /// the piece of the program and why.
    pub(super) fn of<'s>(
        tokens: &[Token<&'s str>],
        known: &[&'static str],
    ) -> Result<NeededFields, (&'s str, String)> {
        let mut found = FieldCollector {
            known,
            needs: 0,
            unknown: None,
        };
        found.look(tokens, BlockInput::Whole);
        match found.unknown {
            Some(name) if !known.is_empty() => Err((
                name,
                format!("a message has no field .{name}; `mcp-proxy help filters` lists them"),
            )),
            _ => Ok(NeededFields(found.needs)),
        }
    }

    /// Whether the field at this place in the list is looked at.
    pub(crate) fn has(self, place: usize) -> bool {
        place >= 64 || self.0 & (1 << place) != 0
    }
}

/// What a block of tokens is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockInput {
    /// Surely the program's own input.
    Whole,
    /// Perhaps something else.
    Unsure,
}

struct FieldCollector<'k, 's> {
    known: &'k [&'static str],
    needs: u64,
    unknown: Option<&'s str>,
}

impl<'s> FieldCollector<'_, 's> {
    fn look(&mut self, tokens: &[Token<&'s str>], mut input: BlockInput) {
        if tokens.iter().any(|token| token.0 == "def") {
            input = BlockInput::Unsure;
        }
        let mut before: Option<&Token<&'s str>> = None;
        let mut segment_start = 0;
        for (place, token) in tokens.iter().enumerate() {
            match (&token.1, token.0) {
                (Tok::Sym, "|") => {
                    // What `select` hands on is its input.
                    let left = &tokens[segment_start..place];
                    if !matches!(left, [Token("select", _), Token(_, Tok::Block(_))]) {
                        input = BlockInput::Unsure;
                    }
                    segment_start = place + 1;
                }
                (Tok::Sym, "..") => self.needs = u64::MAX,
                (Tok::Sym, path) if path.starts_with('.') && !before.is_some_and(ends_term) => {
                    self.field(&path[1..], input);
                }
                (Tok::Word, word)
                    if !INDIFFERENT.contains(&word) && !BEFORE_TERM.contains(&word) =>
                {
                    self.needs = u64::MAX;
                }
                (Tok::Fmt, _) => self.needs = u64::MAX,
                (Tok::Str(_), _) if !children(&token.1).is_empty() => self.needs = u64::MAX,
                (Tok::Block(inner), _) => {
                    let is_argument = match before {
                        Some(Token(word, Tok::Word)) => {
                            *word != "select" && !BEFORE_TERM.contains(word)
                        }
                        Some(Token(_, Tok::Var)) => true,
                        _ => false,
                    };
                    self.look(
                        inner,
                        if is_argument {
                            BlockInput::Unsure
                        } else {
                            input
                        },
                    );
                }
                _ => {}
            }
            before = Some(token);
        }
    }

    /// `.name`, or a dot alone.
    fn field(&mut self, name: &'s str, input: BlockInput) {
        match self.known.iter().position(|known| *known == name) {
            Some(place) => self.needs |= 1 << place,
            None if name.is_empty() => self.needs = u64::MAX,
            None if input == BlockInput::Whole => self.unknown = self.unknown.or(Some(name)),
            None => {}
        }
    }
}

/// Whether a `.name` behind this token is a step of a longer path.
fn ends_term(token: &Token<&str>) -> bool {
    match token.1 {
        Tok::Sym => token.0 == "?" || token.0.starts_with('.'),
        Tok::Word => !BEFORE_TERM.contains(&token.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::jq::JqProgram;

    #[test]
    fn a_program_needs_what_it_names() {
        let known = ["method", "params", "raw"];
        let needs = |text: &str| {
            let needs = JqProgram::compile(text, &known).unwrap().needs();
            let named: Vec<_> = (0..3)
                .filter(|place| needs.has(*place))
                .map(|place| known[place])
                .collect();
            named.join(" ")
        };
        assert_eq!(needs(".method == \"x\""), "method");
        assert_eq!(needs("select(.method | test(\"x\"))"), "method");
        assert_eq!(needs(".params.raw.method"), "params");
        assert_eq!(needs(".params | .method"), "method params");
        assert_eq!(needs("if .method then .raw else 1 end"), "method raw");
        assert_eq!(needs("(.method) and .params[0].x"), "method params");
        assert_eq!(needs("1"), "");
        for all in [
            ".",
            "..",
            ".[]",
            "keys",
            "tojson",
            ".[.method]",
            ". as $x | $x.raw",
            "{method}",
            "to_entries",
            ".params[0] | .",
            "\"\\(.)\"",
            "@json",
            "def f: .x; f",
            "reduce 1 as $x (.; .x)",
        ] {
            assert_eq!(needs(all), "method params raw", "{all}");
        }
    }

    #[test]
    fn a_definition_that_calls_itself_is_refused() {
        let compile = |text: &str| JqProgram::compile(text, &[]);
        for fine in [
            "def f: 1; f",
            "def f: def g: 1; g; f",
            "def f(g): [g]; f(2)",
            "def f: 1; [f, \"\\(f)\"]",
        ] {
            assert!(compile(fine).is_ok(), "{fine}");
        }
        for endless in [
            "def f: f; f",
            "def f: [f]; 1",
            "def f: def g: f; g; 1",
            "def f: \"\\(f)\"; 1",
            "1, (def f: 1 + f; 2)",
        ] {
            let error = compile(endless).unwrap_err().to_string();
            assert!(error.contains("`f` calls itself"), "{endless}: {error}");
        }
    }
}
