//! YAML, as Goose and Continue have it: one document, with anchors and aliases.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{Member, SyntaxError, Tree};

/// Deeper nesting than any config file has.
const MAX_DEPTH: usize = 100;

/// The most values. Aliases of aliases could ask for any number.
const MAX_VALUES: usize = 100_000;

pub(super) fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let mut builder = TreeBuilder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxError {
            line: error.marker().line(),
            why: error.info().to_owned(),
        })?;
        builder.take(event).map_err(|why| SyntaxError {
            line: span.start.line(),
            why: why.to_owned(),
        })?;
    }
    builder.root.ok_or(SyntaxError {
        line: 1,
        why: "the file is empty".to_owned(),
    })
}

/// A list or table whose end has not come, with the number of its anchor.
struct OpenValue {
    anchor: usize,
    items: OpenItems,
}

enum OpenItems {
    List(Vec<Tree>),
    /// With the key whose value has not come.
    Table(Vec<Member>, Option<String>),
}

#[derive(Default)]
struct TreeBuilder {
    open: Vec<OpenValue>,
    anchors: HashMap<usize, Tree>,
    values: usize,
    root: Option<Tree>,
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, ScalarStyle::Plain, anchor, _) => {
                self.add(plain_scalar(&text), anchor)
            }
            Event::Scalar(text, _, anchor, _) => self.add(Tree::Text(text.into_owned()), anchor),
            Event::SequenceStart(anchor, _) => self.open(anchor, OpenItems::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(anchor, OpenItems::Table(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                self.add(known.ok_or("an alias stands inside its own anchor")?, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("there is a second document after `---`")
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, anchor: usize, items: OpenItems) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH {
            return Err("values are nested too deeply");
        }
        self.open.push(OpenValue { anchor, items });
        Ok(())
    }

    fn close(&mut self) -> Result<(), &'static str> {
        let Some(closed) = self.open.pop() else {
            return Ok(());
        };
        let value = match closed.items {
            OpenItems::List(items) => Tree::List(items),
            OpenItems::Table(members, _) => Tree::Table(members),
        };
        self.add(value, closed.anchor)
    }

    /// Adds a value, or a key, to what is open.
    fn add(&mut self, value: Tree, anchor: usize) -> Result<(), &'static str> {
        self.values += count(&value);
        if self.values > MAX_VALUES {
            return Err("too many values");
        }
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(value),
            Some(OpenItems::List(items)) => items.push(value),
            Some(OpenItems::Table(members, key)) => match key.take() {
                Some(key) => members.push(Member::new(key, value)),
                None => *key = Some(key_text(value).ok_or("a key must be a word")?),
            },
        }
        Ok(())
    }
}

/// How many values are in a value that is added: the members of one that was built were counted before, those of an alias
/// were not, and it does no harm to count both again.
fn count(value: &Tree) -> usize {
    let inside: usize = match value {
        Tree::List(items) => items.iter().map(count).sum(),
        Tree::Table(members) => members.iter().map(|member| count(&member.value)).sum(),
        _ => 0,
    };
    1 + inside
}

fn key_text(key: Tree) -> Option<String> {
    match key {
        Tree::Text(text) | Tree::Number(text) => Some(text),
        Tree::Boolean(boolean) => Some(boolean.to_string()),
        Tree::Null => Some("null".to_owned()),
        Tree::List(_) | Tree::Table(_) => None,
    }
}

/// A word without quotes, by the core schema of YAML 1.2.
fn plain_scalar(text: &str) -> Tree {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        "true" | "True" | "TRUE" => Tree::Boolean(true),
        "false" | "False" | "FALSE" => Tree::Boolean(false),
        number if is_number(number) => Tree::Number(number.to_owned()),
        text => Tree::Text(text.to_owned()),
    }
}

/// Whether JSON would take it for a number. Other spellings stay the text that they are.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Tree {
        parse(text).unwrap_or_else(|error| panic!("{}", error.why))
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let root = parsed("a: 8080\nb: '8080'\nc: yes\nd: true\ne:\nf: 1.5\ng: é ü\nh: 0x10\n");
        let of = |key: &str| root.get(key).unwrap();
        assert!(matches!(of("a"), Tree::Number(number) if number == "8080"));
        assert!(matches!(of("b"), Tree::Text(text) if text == "8080"));
        assert!(matches!(of("c"), Tree::Text(text) if text == "yes"));
        assert!(matches!(of("d"), Tree::Boolean(true)));
        assert!(matches!(of("e"), Tree::Null));
        assert!(matches!(of("f"), Tree::Number(number) if number == "1.5"));
        assert!(matches!(of("h"), Tree::Text(text) if text == "0x10"));
    }

    #[test]
    fn aliases_are_filled_in_and_bounded() {
        let root = parsed("a: &x {k: v}\nb: *x\n");
        let k = root.get("b").and_then(|b| b.get("k"));
        assert_eq!(k.and_then(Tree::as_text), Some("v"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let items = vec![before; 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        for text in [
            &bomb,
            &"[".repeat(1000),
            "a: 1\n---\nb: 2\n",
            "",
            "a: [",
            "a: *b",
        ] {
            assert!(parse(text).is_err());
        }
    }
}
