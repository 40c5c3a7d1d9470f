//! Which fields of its input a program looks at, so that the others need not be made.
//!
//! Found out by reading the program, and on the safe side: a program that might see the whole input needs all of it.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::Part;

use super::metering::children;

/// A set of fields, by their place in the list of known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeededFields(u64);

/// Functions that do not look into their input, or only as a program could not tell apart from a smaller one when the
/// input is the whole view: it is an object, and true.
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
];

impl NeededFields {
    /// The fields of `known` that `program` looks at. A field that is asked of the input itself and is not known is an error:
    /// the piece of the program and why.
    pub(super) fn of<'s>(
        program: &Term<&'s str>,
        known: &[&'static str],
    ) -> Result<NeededFields, (&'s str, String)> {
        let mut found = FieldCollector {
            known,
            needs: 0,
            unknown: None,
        };
        found.look(program, TermInput::Whole);
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

/// What a term is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TermInput {
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
    fn look(&mut self, term: &Term<&'s str>, input: TermInput) {
        match term {
            Term::Path(inner, path) if matches!(**inner, Term::Id) => {
                match path.0.first() {
                    Some((Part::Index(index), _)) => self.field(index, input),
                    _ => self.needs = u64::MAX,
                }
                // Indices are applied to the same input.
                path.0.iter().for_each(|(part, _)| match part {
                    Part::Index(index) => self.look(index, input),
                    Part::Range(from, to) => {
                        from.iter()
                            .chain(to)
                            .for_each(|term| self.look(term, input));
                    }
                });
            }
            Term::BinOp(left, BinaryOp::Pipe(pattern), right) => {
                if pattern.is_some() {
                    // What is bound may be the input, and destructured.
                    self.needs = u64::MAX;
                }
                self.look(left, input);
                let same = pattern.is_some() || passes_on(left);
                self.look(right, if same { input } else { TermInput::Unsure });
            }
            Term::BinOp(left, _, right) => {
                self.look(left, input);
                self.look(right, input);
            }
            Term::Call(name, args) => {
                if !INDIFFERENT.contains(name) {
                    self.needs = u64::MAX;
                }
                let input = if *name == "select" {
                    input
                } else {
                    TermInput::Unsure
                };
                args.iter().for_each(|term| self.look(term, input));
            }
            Term::IfThenElse(..) | Term::Neg(_) => {
                children(term, &mut |child| self.look_dyn(child, input));
            }
            Term::Num(_) => {}
            Term::Str(None, parts)
                if parts.iter().all(|part| !matches!(part, StrPart::Term(_))) => {}
            _ => {
                self.needs = u64::MAX;
                children(term, &mut |child| self.look_dyn(child, TermInput::Unsure));
            }
        }
    }

    fn look_dyn(&mut self, term: &Term<&'s str>, input: TermInput) {
        self.look(term, input);
    }

    /// `.name`, or `.[index]`.
    fn field(&mut self, index: &Term<&'s str>, input: TermInput) {
        let Term::Str(None, parts) = index else {
            self.needs = u64::MAX;
            return;
        };
        let [StrPart::Str(name)] = parts.as_slice() else {
            self.needs = u64::MAX;
            return;
        };
        match self.known.iter().position(|known| known == name) {
            Some(place) => self.needs |= 1 << place,
            None if input == TermInput::Whole => self.unknown = self.unknown.or(Some(name)),
            None => {}
        }
    }
}

/// Whether the outputs of a term are its input.
fn passes_on(term: &Term<&str>) -> bool {
    match term {
        Term::Id => true,
        Term::Call(name, _) => *name == "select",
        Term::BinOp(left, BinaryOp::Pipe(None), right) => passes_on(left) && passes_on(right),
        _ => false,
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
        ] {
            assert_eq!(needs(all), "method params raw", "{all}");
        }
    }
}
