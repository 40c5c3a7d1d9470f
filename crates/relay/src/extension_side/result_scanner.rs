//! Reads the `result` of a long answer as it comes, and finds the tabs that it names as current.
//!
//! Only strings and brackets are told apart: that is enough to know where the result ends, and which of its own members is
//! `currentTab`. Whether the rest is good JSON is not checked.

use bytes::Bytes;

/// The member of a result that says which tab is current.
pub(super) const CURRENT_TAB: &str = "currentTab";
/// The longest spelling of that name, each letter as `\u0000`, has 60 bytes.
const KEY_MAX: usize = 64;
/// What an extension says about a tab is shorter. Of anything longer only the end is looked for.
const TAB_MAX: usize = 16 * 1024;

/// A part of a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResultPart {
    /// Bytes as they came.
    Plain(Bytes),
    /// A value of `currentTab`. `None` if it is too long to be kept.
    Tab(Option<Bytes>),
}

/// Where in a result we are.
#[derive(Debug, Default)]
pub(super) struct ResultScanner {
    /// Open objects and arrays.
    depth: usize,
    text: Text,
    /// The result is an object, so it has members.
    is_object: bool,
    /// At its own level a string would be a name.
    is_name_next: bool,
    /// The name that is being read, or was read last.
    name: Vec<u8>,
    /// The value of `currentTab` so far, white space around it included.
    tab: Option<TabValue>,
    has_begun: bool,
    is_complete: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    /// A string; whether the next byte is escaped.
    String { is_escaped: bool },
    /// The name of a member of the result.
    Name { is_escaped: bool },
    /// A number or a word in place of an object.
    Bare,
}

#[derive(Debug, Default)]
struct TabValue {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl ResultScanner {
    /// Whether the result has ended. What follows does not belong to it.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes the next bytes and appends what they are.
    pub(super) fn push(&mut self, piece: &Bytes, parts: &mut Vec<ResultPart>) {
        let (mut from, mut at) = (0, 0);
        while at < piece.len() && !self.is_complete {
            let byte = piece[at];
            match self.text {
                Text::String { .. } | Text::Name { .. } => {
                    at = self.pass_string(piece, at);
                    continue;
                }
                Text::Bare => {
                    if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                        self.is_complete = true;
                        break;
                    }
                }
                Text::Outside => {
                    if self.ends_tab(byte) {
                        self.hand_on(piece.slice(from..at), parts);
                        from = at;
                        let tab = self.tab.take().filter(|tab| !tab.is_too_long);
                        parts.push(ResultPart::Tab(tab.map(|tab| tab.bytes.into())));
                    }
                    if self.begins_tab(byte) {
                        self.hand_on(piece.slice(from..=at), parts);
                        from = at + 1;
                        self.tab = Some(TabValue::default());
                    }
                    self.pass_outside(byte);
                }
            }
            at += 1;
        }
        self.hand_on(piece.slice(from..at), parts);
    }

    /// Passes a byte that is not part of a string.
    fn pass_outside(&mut self, byte: u8) {
        let is_own_level = self.is_object && self.depth == 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return,
            b'"' if is_own_level && self.is_name_next => {
                self.is_name_next = false;
                self.name.clear();
                self.text = Text::Name { is_escaped: false };
            }
            b'"' => self.text = Text::String { is_escaped: false },
            b'{' | b'[' => {
                if !self.has_begun {
                    self.is_object = byte == b'{';
                    self.is_name_next = self.is_object;
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_complete = self.depth == 0;
            }
            b',' if is_own_level => self.is_name_next = true,
            _ if self.depth == 0 => self.text = Text::Bare,
            _ => {}
        }
        self.has_begun = true;
    }

    /// Passes a string as far as it goes. Returns the place behind it.
    fn pass_string(&mut self, piece: &[u8], at: usize) -> usize {
        let (is_name, is_escaped) = match self.text {
            Text::Name { is_escaped } => (true, is_escaped),
            Text::String { is_escaped } => (false, is_escaped),
            Text::Outside | Text::Bare => return at,
        };
        let inside = |is_escaped| match is_name {
            true => Text::Name { is_escaped },
            false => Text::String { is_escaped },
        };
        let rest = &piece[at..];
        let stop = match is_escaped {
            true => None,
            false => memchr::memchr2(b'"', b'\\', rest),
        };
        let (length, text) = match stop {
            // The byte behind a backslash, whatever it is.
            _ if is_escaped => (1, inside(false)),
            None => (rest.len(), inside(false)),
            Some(stop) if rest[stop] == b'\\' => (stop + 1, inside(true)),
            Some(stop) => (stop + 1, Text::Outside),
        };
        if is_name {
            let room = KEY_MAX.saturating_sub(self.name.len());
            self.name.extend_from_slice(&rest[..length.min(room)]);
        }
        self.text = text;
        if text == Text::Outside && self.depth == 0 {
            self.is_complete = true;
        }
        at + length
    }

    fn begins_tab(&self, byte: u8) -> bool {
        byte == b':' && self.is_object && self.depth == 1 && is_current_tab(&self.name)
    }

    fn ends_tab(&self, byte: u8) -> bool {
        self.tab.is_some() && self.depth == 1 && matches!(byte, b',' | b'}')
    }

    fn hand_on(&mut self, bytes: Bytes, parts: &mut Vec<ResultPart>) {
        match &mut self.tab {
            _ if bytes.is_empty() => {}
            Some(tab) => tab.add(&bytes),
            None => parts.push(ResultPart::Plain(bytes)),
        }
    }
}

impl TabValue {
    fn add(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.bytes.len() + bytes.len() > TAB_MAX;
        match self.is_too_long {
            true => self.bytes = Vec::new(),
            false => self.bytes.extend_from_slice(bytes),
        }
    }
}

/// Whether a name, as it stands in the text with its closing quote, is the one that is looked for.
fn is_current_tab(name: &[u8]) -> bool {
    let Some(plain) = name.strip_suffix(b"\"") else {
        return false;
    };
    if memchr::memchr(b'\\', plain).is_none() {
        return plain == CURRENT_TAB.as_bytes();
    }
    let quoted = [b"\"", name].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|name| name == CURRENT_TAB)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A result in pieces of `size` bytes: what comes out, with tabs in angle brackets, and whether it has ended.
    fn scanned(result: &str, size: usize) -> (String, bool) {
        let mut scanner = ResultScanner::default();
        let mut parts = Vec::new();
        for piece in result.as_bytes().chunks(size) {
            scanner.push(&Bytes::copy_from_slice(piece), &mut parts);
        }
        let mut shown = Vec::new();
        for part in parts {
            match part {
                ResultPart::Plain(bytes) => shown.extend_from_slice(&bytes),
                ResultPart::Tab(Some(tab)) => shown.extend([b"<", &tab[..], b">"].concat()),
                ResultPart::Tab(None) => shown.extend_from_slice(b"<long>"),
            }
        }
        (String::from_utf8(shown).unwrap(), scanner.is_complete())
    }

    #[test]
    fn current_tabs_are_found_wherever_a_result_is_cut() {
        for (result, shown) in [
            (
                r#"{"data":"x\"}","currentTab":{"id":7,"t":"}"}}"#,
                r#"{"data":"x\"}","currentTab":<{"id":7,"t":"}"}>}"#,
            ),
            (
                r#"{"currentTab" : null , "a":[{"currentTab":1}],"b":{"currentTab":{}}} , "#,
                r#"{"currentTab" :< null >, "a":[{"currentTab":1}],"b":{"currentTab":{}}}"#,
            ),
            (
                r#"{"current\u0054ab":1,"currentTab":2,"\\currentTab":3}"#,
                r#"{"current\u0054ab":<1>,"currentTab":<2>,"\\currentTab":3}"#,
            ),
            (
                r#"["currentTab",{"currentTab":1}]}"#,
                r#"["currentTab",{"currentTab":1}]"#,
            ),
            (r#""currentTab\\":1"#, r#""currentTab\\""#),
            ("17}", "17"),
            ("null , ", "null"),
            (r#"{}}"#, "{}"),
            (
                r#" {"x":"currentTab","y":1}"#,
                r#" {"x":"currentTab","y":1}"#,
            ),
        ] {
            for size in 1..=result.len() {
                let expected = (shown.to_owned(), true);
                assert_eq!(scanned(result, size), expected, "pieces of {size}");
            }
        }
    }

    #[test]
    fn a_result_that_is_cut_off_is_not_complete() {
        let result = r#"{"a":["x\"y",{}],"currentTab":{"id":1}}"#;
        for end in 1..result.len() {
            assert!(!scanned(&result[..end], 3).1, "{}", &result[..end]);
        }
    }

    #[test]
    fn a_tab_that_is_too_long_is_not_kept() {
        let long = "x".repeat(TAB_MAX);
        let result = format!(r#"{{"a":1,"currentTab":{{"id":"{long}"}},"b":2}}"#);
        for size in [1, 1000, result.len()] {
            let expected = r#"{"a":1,"currentTab":<long>,"b":2}"#.to_owned();
            assert_eq!(scanned(&result, size), (expected, true));
        }
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i32>().prop_map(serde_json::Value::from),
            ".{0,12}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![Just("currentTab".to_owned()), ".{0,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_result_ends_where_its_json_ends(value in value(), size in 1usize..40, behind in "[,} ]{1,4}") {
            let text = value.to_string();
            let (shown, is_complete) = scanned(&format!("{text}{behind}"), size);
            prop_assert!(is_complete);
            let own = value.get("currentTab").map(ToString::to_string);
            let expected = match own {
                Some(tab) => {
                    let name = r#""currentTab":"#;
                    let mut members: Vec<String> = Vec::new();
                    for (key, value) in value.as_object().unwrap() {
                        let name_and_value = match key.as_str() {
                            "currentTab" => format!("{name}<{tab}>"),
                            _ => format!("{}:{value}", serde_json::Value::from(key.as_str())),
                        };
                        members.push(name_and_value);
                    }
                    format!("{{{}}}", members.join(","))
                }
                None => text,
            };
            prop_assert_eq!(shown, expected);
        }
    }
}
