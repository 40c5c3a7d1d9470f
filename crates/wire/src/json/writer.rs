//! Writes JSON into a byte buffer, without building values first.

use crate::json::cursor::{blank_end, string_end};
use crate::scan::string::run_end;

/// `text` as a JSON string, quotes included.
pub fn json_string(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    push_string(&mut quoted, text);
    String::from_utf8(quoted).unwrap_or_default()
}

/// Appends `text` as a JSON string, quotes included.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Appends `text` as a JSON string, quotes included. What is not UTF-8 becomes U+FFFD.
pub fn push_bytes(out: &mut Vec<u8>, text: &[u8]) {
    push_string(out, &String::from_utf8_lossy(text));
}

/// Appends the inside of a JSON string. `text` is UTF-8.
pub fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut at = 0;
    loop {
        let end = run_end(text, at).0;
        out.extend_from_slice(&text[at..end]);
        match text.get(end) {
            None => return,
            Some(b'\n') => out.extend_from_slice(b"\\n"),
            Some(b'\r') => out.extend_from_slice(b"\\r"),
            Some(b'\t') => out.extend_from_slice(b"\\t"),
            Some(&byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', byte]),
            Some(control) => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
        at = end + 1;
    }
}

/// `json` without white space between its tokens.
pub fn compact(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    push_compact(&mut out, json);
    out
}

/// Appends `json` without white space between its tokens.
pub fn push_compact(out: &mut Vec<u8>, json: &[u8]) {
    let mut at = blank_end(json, 0);
    while at < json.len() {
        let start = at;
        while let Some(&byte) = json.get(at)
            && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
        {
            at = match byte {
                b'"' => string_end(json, at),
                _ => at + 1,
            };
        }
        out.extend_from_slice(&json[start..at]);
        at = blank_end(json, at);
    }
}

/// A JSON object in the making. Names are ours and need no escapes.
#[derive(Clone, Debug)]
pub struct ObjectWriter(Vec<u8>);

impl Default for ObjectWriter {
    fn default() -> ObjectWriter {
        ObjectWriter::new()
    }
}

impl ObjectWriter {
    /// An empty object.
    pub fn new() -> ObjectWriter {
        ObjectWriter(vec![b'{'])
    }

    /// Adds a string.
    pub fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_string(&mut self.0, text);
    }

    /// Adds several strings.
    pub fn texts<'a>(&mut self, name: &str, texts: impl Iterator<Item = &'a str>) {
        self.array(name, texts.map(|text| json_string(text).into_bytes()));
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, number: u64) {
        self.raw(name, number.to_string().as_bytes());
    }

    /// Adds JSON as it is written.
    pub fn raw(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        self.0.extend_from_slice(json);
    }

    /// Adds JSON of a peer, without white space.
    pub fn compact(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        push_compact(&mut self.0, json);
    }

    /// Adds an object.
    pub fn object(&mut self, name: &str, object: ObjectWriter) {
        self.raw(name, &object.finish());
    }

    /// Adds an array of elements that are JSON.
    pub fn array(&mut self, name: &str, elements: impl Iterator<Item = Vec<u8>>) {
        self.name(name);
        self.0.push(b'[');
        for (place, element) in elements.enumerate() {
            if place > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(&element);
        }
        self.0.push(b']');
    }

    /// Whether nothing has been added.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    /// The whole object.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_space_between_tokens_is_dropped() {
        assert_eq!(
            compact(
                b" { \"a \\\" \\\\\" : [ 1.50 ,\n12345678901234567890123 ] , \"\\u00e9\":\" \" } "
            ),
            br#"{"a \" \\":[1.50,12345678901234567890123],"\u00e9":" "}"#
        );
    }

    #[test]
    fn an_object_is_written_member_by_member() {
        let mut inner = ObjectWriter::new();
        assert!(inner.is_empty());
        inner.number("n", 3);
        let mut object = ObjectWriter::new();
        object.text("t", "a\"\u{1}");
        object.object("o", inner);
        object.texts("s", ["x", "y"].into_iter());
        object.compact("c", b"[ 1 , 2 ]");
        assert_eq!(
            String::from_utf8(object.finish()).unwrap(),
            r#"{"t":"a\"\u0001","o":{"n":3},"s":["x","y"],"c":[1,2]}"#
        );
    }

    proptest! {
        #[test]
        fn any_string_reads_back_as_itself(text in any::<String>()) {
            let json = json_string(&text);
            prop_assert!(!json.contains('\n'));
            let content = crate::string_content(json.as_bytes()).unwrap();
            prop_assert_eq!(content.as_ref(), text.as_bytes());
        }
    }
}
