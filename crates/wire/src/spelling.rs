//! Names of members that some parser takes for one another.
//!
//! Go's `encoding/json` ignores case, by Unicode simple case folding; C parsers stop at a NUL; and of two members with one name
//! some parsers take the first and some the last. Where a message is judged, only one reading may be left.

use std::borrow::Cow;

use crate::{Kind, Message, Span, json, message::BOM, text};

/// An object with more members than these is not looked through: no message that is judged has so many.
const MAX_OTHERS: usize = 1000;

/// More than one member of an object could be what a parser takes for a name, or the only one is spelled otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmbiguousMember<'a> {
    /// The name in its proper spelling, if it is one of those that matter.
    pub name: Option<&'a str>,
}

impl Message {
    /// Whether the object at `object` has members that parsers may take for one another, or for one of `names`, which have to
    /// be spelled exactly so; they are in ASCII, and 64 at most. What is not an object has no members.
    pub fn ambiguous_member<'a>(
        &self,
        object: Span,
        names: &[&'a str],
    ) -> Option<AmbiguousMember<'a>> {
        if self.kind() == Kind::Malformed {
            return None;
        }
        // One bit for each of `names` that was there in its proper spelling, which nearly all members are.
        let mut proper = 0_u64;
        let mut others: Vec<Cow<'_, str>> = Vec::new();
        let mut ambiguous = None;
        json::members(self.slice(object), |key, _| {
            // It was found to be UTF-8 with the whole message.
            let written = text::text(key.raw);
            if let Some(at) = names.iter().position(|name| written == *name) {
                let bit = 1 << at;
                if proper & bit != 0 {
                    ambiguous = Some(AmbiguousMember {
                        name: Some(names[at]),
                    });
                }
                proper |= bit;
                return;
            }
            if others.len() > MAX_OTHERS {
                return;
            }
            let folded = fold(written);
            let mut known = names.iter().copied();
            if let Some(name) = known.find(|name| folded.eq_ignore_ascii_case(name)) {
                ambiguous = Some(AmbiguousMember { name: Some(name) });
            }
            others.push(folded);
        });
        others.sort_unstable();
        let has_twins =
            others.len() > MAX_OTHERS || others.windows(2).any(|pair| pair[0] == pair[1]);
        ambiguous.or_else(|| has_twins.then_some(AmbiguousMember { name: None }))
    }

    /// The same for the outermost object.
    pub fn ambiguous_outer_member<'a>(&self, names: &[&'a str]) -> Option<AmbiguousMember<'a>> {
        let start = if self.raw().starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        self.ambiguous_member(Span::new(start, self.len()), names)
    }
}

/// One form for all spellings of a name that parsers may take for the same: without case, and without what follows a NUL.
pub fn fold_name(name: &str) -> Cow<'_, str> {
    fold(Cow::Borrowed(name))
}

fn fold(name: Cow<'_, str>) -> Cow<'_, str> {
    let is_folded = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase() && byte != 0;
    if name.bytes().all(is_folded) {
        return name;
    }
    let letters = name.chars().take_while(|letter| *letter != '\0');
    Cow::Owned(letters.map(folded_letter).collect())
}

/// By way of the capital: `ſ` becomes `S` and then `s`. Letters whose other case is several letters stay.
fn folded_letter(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    let capital = only(letter.to_uppercase()).unwrap_or(letter);
    only(capital.to_lowercase()).unwrap_or(letter)
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    first.filter(|_| letters.next().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    const NAMES: [&str; 3] = ["name", "arguments", "params"];

    fn found(text: &str) -> Option<Option<&'static str>> {
        let message = Message::parse(text.to_owned());
        let found = message.ambiguous_outer_member(&NAMES);
        found.map(|found| found.name)
    }

    #[test]
    fn a1_only_one_reading_is_left() {
        for text in [
            "{}",
            "[]",
            r#"{"name":1,"arguments":{"name":1,"NAME":2},"other":3}"#,
            r#"{"n\u0061me":1}"#,
            r#"{"names":1,"argument":2,"param":3}"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        for (text, name) in [
            (r#"{"name":1,"Name":2}"#, "name"),
            (r#"{"NAME":1}"#, "name"),
            (r#"{"name":1,"x":1,"name":2}"#, "name"),
            (r#"{"n\u0061me":1,"name":2}"#, "name"),
            (r#"{"name\u0000x":1}"#, "name"),
            (r#"{"param\u017f":1}"#, "params"),
            (r#"{"paramſ":1}"#, "params"),
            (r#"{"argumentſ":1}"#, "arguments"),
            ("\u{feff}{\"Name\":1}", "name"),
        ] {
            assert_eq!(found(text), Some(Some(name)), "{text}");
        }
        assert_eq!(found(r#"{"Key":1,"key":2}"#), Some(None));
        let many: Vec<String> = (0..2000).map(|at| format!(r#""m{at}":1"#)).collect();
        assert_eq!(found(&format!("{{{}}}", many.join(","))), Some(None));
        assert_eq!(found(&format!("{{{}}}", many[..900].join(","))), None);
        assert_eq!(found("{\"\u{212a}ey\":1,\"key\":2}"), Some(None));
    }

    /// All letters that simple case folding takes for `letter`.
    fn alike(letter: char) -> Vec<char> {
        let mut class = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
        class.try_case_fold_simple().unwrap();
        let ranges = class.ranges().iter();
        ranges
            .flat_map(|range| range.start()..=range.end())
            .collect()
    }

    #[test]
    fn a1_letters_are_folded_as_unicode_says() {
        for letter in char::MIN..=char::MAX {
            let folded = folded_letter(letter);
            for other in alike(letter) {
                // The one pair whose capitals are two letters each.
                let is_ligature = matches!(letter, '\u{fb05}' | '\u{fb06}');
                let by_two_letters = only(letter.to_uppercase()).is_none();
                assert!(
                    folded_letter(other) == folded || is_ligature || by_two_letters,
                    "{letter} {other}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn a1_odd_spellings_are_found(
            name in prop::sample::select(&NAMES[..]),
            choices in prop::collection::vec(any::<(prop::sample::Index, bool)>(), 10),
        ) {
            let letters = name.chars().zip(&choices).map(|(letter, (index, escaped))| {
                let alike = alike(letter);
                let letter = alike[index.index(alike.len())];
                let escape = format!("\\u{:04x}", letter as u32);
                (letter, if *escaped { escape } else { letter.to_string() })
            });
            let (plain, written): (String, String) = letters.unzip();
            let alone = format!(r#"{{"{written}":1}}"#);
            prop_assert_eq!(found(&alone).is_some(), plain != name);
            let twice = format!(r#"{{"{name}":1,"{written}":2}}"#);
            prop_assert_eq!(found(&twice), Some(Some(name)));
        }
    }
}
