//! YAML, as Goose and Continue have it: one document, with anchors and aliases.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::{DocumentContent, DocumentMember, DocumentValue, SyntaxError};

/// Deeper nesting than any config file has.
const MAX_DEPTH: usize = 100;

/// The most values. Aliases of aliases could ask for any number.
const MAX_VALUES: usize = 100_000;

pub(super) fn parse(text: &str) -> Result<DocumentValue, SyntaxError> {
    let mut builder = TreeBuilder {
        places: char_places(text),
        open: Vec::new(),
        anchors: HashMap::new(),
        values: 0,
        root: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxError {
            at: builder.place(error.marker()),
            why: error.info().to_owned(),
        })?;
        let at = builder.place(&span.start);
        let error = |why: &str| SyntaxError {
            at,
            why: why.to_owned(),
        };
        if builder.root.is_some() && matches!(event, Event::DocumentStart(_)) {
            return Err(error("there is a second document after `---`"));
        }
        builder.take(event, at).map_err(error)?;
    }
    builder.root.ok_or(SyntaxError {
        at: text.len(),
        why: "the file is empty".to_owned(),
    })
}

/// The byte that each character starts at. `None`: all characters are one byte.
fn char_places(text: &str) -> Option<Vec<usize>> {
    (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect())
}

/// A list or table whose end has not come.
struct OpenValue {
    start: usize,
    anchor: usize,
    items: OpenItems,
}

enum OpenItems {
    List(Vec<DocumentValue>),
    Table {
        members: Vec<DocumentMember>,
        key: Option<(String, usize)>,
    },
}

struct TreeBuilder {
    places: Option<Vec<usize>>,
    open: Vec<OpenValue>,
    anchors: HashMap<usize, DocumentValue>,
    values: usize,
    root: Option<DocumentValue>,
}

impl TreeBuilder {
    fn place(&self, marker: &Marker) -> usize {
        match &self.places {
            None => marker.index(),
            Some(places) => places.get(marker.index()).copied().unwrap_or_default(),
        }
    }

    fn take(&mut self, event: Event<'_>, start: usize) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let content = match style {
                    ScalarStyle::Plain => plain_scalar(&text),
                    _ => DocumentContent::Text(text.into_owned()),
                };
                self.add(DocumentValue { start, content }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.open(start, anchor, OpenItems::List(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                let (members, key) = (Vec::new(), None);
                self.open(start, anchor, OpenItems::Table { members, key })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let value = known.ok_or("an alias stands inside its own anchor")?;
                self.add(value, 0)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, start: usize, anchor: usize, items: OpenItems) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH {
            return Err("values are nested too deeply");
        }
        self.open.push(OpenValue {
            start,
            anchor,
            items,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), &'static str> {
        let Some(closed) = self.open.pop() else {
            return Ok(());
        };
        let content = match closed.items {
            OpenItems::List(items) => DocumentContent::List(items),
            OpenItems::Table { members, .. } => DocumentContent::Table(members),
        };
        let start = closed.start;
        self.add(DocumentValue { start, content }, closed.anchor)
    }

    /// Adds a value, or a key, to what is open.
    fn add(&mut self, value: DocumentValue, anchor: usize) -> Result<(), &'static str> {
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
            Some(OpenItems::Table { members, key }) => match key.take() {
                Some((name, key_start)) => members.push(DocumentMember {
                    written: name.clone(),
                    key: name,
                    key_start,
                    value,
                }),
                None => *key = Some((key_text(&value).ok_or("a key must be a word")?, value.start)),
            },
        }
        Ok(())
    }
}

/// How many values are in a value that is added: the members of one that was built were counted before, those of an alias
/// were not, and it does no harm to count both again.
fn count(value: &DocumentValue) -> usize {
    match &value.content {
        DocumentContent::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        DocumentContent::Table(members) => {
            1 + members
                .iter()
                .map(|member| count(&member.value))
                .sum::<usize>()
        }
        _ => 1,
    }
}

fn key_text(key: &DocumentValue) -> Option<String> {
    match &key.content {
        DocumentContent::Text(text) | DocumentContent::Number(text) => Some(text.clone()),
        DocumentContent::Boolean(boolean) => Some(boolean.to_string()),
        DocumentContent::Null => Some("null".to_owned()),
        DocumentContent::List(_) | DocumentContent::Table(_) | DocumentContent::Variable { .. } => {
            None
        }
    }
}

/// A word without quotes, by the core schema of YAML 1.2.
fn plain_scalar(text: &str) -> DocumentContent {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => DocumentContent::Null,
        "true" | "True" | "TRUE" => DocumentContent::Boolean(true),
        "false" | "False" | "FALSE" => DocumentContent::Boolean(false),
        number if is_number(number) => DocumentContent::Number(number.to_owned()),
        text => DocumentContent::Text(text.to_owned()),
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

    fn parsed(text: &str) -> DocumentValue {
        parse(text).unwrap_or_else(|error| panic!("{}", error.why))
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let root = parsed("a: 8080\nb: '8080'\nc: yes\nd: true\ne:\nf: 1.5\ng: é ü\nh: 0x10\n");
        let of = |key: &str| root.get(key).unwrap().content.clone();
        assert!(matches!(of("a"), DocumentContent::Number(number) if number == "8080"));
        assert!(matches!(of("b"), DocumentContent::Text(text) if text == "8080"));
        assert!(matches!(of("c"), DocumentContent::Text(text) if text == "yes"));
        assert!(matches!(of("d"), DocumentContent::Boolean(true)));
        assert!(matches!(of("e"), DocumentContent::Null));
        assert!(matches!(of("f"), DocumentContent::Number(number) if number == "1.5"));
        assert!(matches!(of("h"), DocumentContent::Text(text) if text == "0x10"));
    }

    #[test]
    fn aliases_are_filled_in_and_bounded() {
        let root = parsed("a: &x {k: v}\nb: *x\n");
        let k = root.get("b").and_then(|b| b.get("k"));
        assert_eq!(k.and_then(DocumentValue::as_text), Some("v"));
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

    #[test]
    fn places_are_bytes() {
        let text = "é: ü\nb: c\n";
        let root = parsed(text);
        let members = root.members().unwrap();
        assert_eq!(members[1].key_start, text.find('b').unwrap());
    }
}
