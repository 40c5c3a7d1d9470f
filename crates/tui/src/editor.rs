//! The inline editor: a held message, or one to be sent again, with a check while it is typed.

mod head_text;

use mcp_proxy_control::HeaderPatch;
use mcp_proxy_wire::json::compact;
use mcp_proxy_wire::terminal_text::sanitize_json;
use mcp_proxy_wire::{Kind, Message};
use ratatui::layout::Size;
use ratatui_textarea::TextArea;

use crate::command::UiCommand;
use crate::text_area::{edit, replace_text, text_area};

pub use head_text::HeadText;

/// What becomes of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditPurpose {
    /// It is sent on instead of the held message.
    Hold {
        /// The hold.
        hold: u64,
        /// The message's number.
        sequence: u64,
    },
    /// It is sent again.
    Replay {
        /// The number of the message that it was.
        sequence: u64,
    },
}

impl EditPurpose {
    /// The number of the message.
    pub fn sequence(self) -> u64 {
        match self {
            EditPurpose::Hold { sequence, .. } | EditPurpose::Replay { sequence } => sequence,
        }
    }
}

/// What is wrong with the text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonSyntaxError {
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// Why.
    pub why: String,
}

/// A text that is edited.
pub struct Editor {
    /// What it is for.
    pub purpose: EditPurpose,
    /// The text, and the cursor in it.
    pub area: TextArea<'static>,
    /// The size of the screen that it was last drawn on.
    pub drawn_size: Size,
    before: Vec<String>,
    /// The HTTP head above the body, if it can be edited.
    head: Option<HeadText>,
    /// What is wrong with the head now, or how it differs.
    patch: Result<HeaderPatch, JsonSyntaxError>,
    fault: Option<JsonSyntaxError>,
    remark: Option<&'static str>,
    /// The next time it is sent even though it is not JSON.
    pub sends_invalid: bool,
}

impl Editor {
    /// Edits `text`, which is laid out already. It begins with the head, if there is one.
    pub fn new(purpose: EditPurpose, head: Option<HeadText>, text: &str) -> Editor {
        let area = text_area(text);
        let before = area.lines().to_vec();
        let mut editor = Editor {
            purpose,
            area,
            drawn_size: Size::default(),
            before,
            head,
            patch: Ok(HeaderPatch::default()),
            fault: None,
            remark: None,
            sends_invalid: false,
        };
        editor.check();
        editor
    }

    /// Has another text, as an editor outside gave it back. What it was before stays what it is compared with.
    pub fn replace(&mut self, text: &str) {
        replace_text(&mut self.area, &harmless(text));
        self.changed();
    }

    /// The text is for something else from now on: a draft of a message that was held is replayed.
    pub fn change_purpose(&mut self, purpose: EditPurpose) {
        self.purpose = purpose;
        if !self.is_for_hold() && self.head.is_some() {
            // A replay has a head of its own.
            self.before = self.body_of(&self.before).to_vec();
            let body = self.body_of(self.area.lines()).join("\n");
            self.head = None;
            self.patch = Ok(HeaderPatch::default());
            replace_text(&mut self.area, &body);
        }
        self.changed();
    }

    /// The text as it was before it was edited. That can be undone.
    pub fn start_over(&mut self) {
        replace_text(&mut self.area, &self.before.join("\n"));
        self.changed();
    }

    /// Whether its text takes the place of a held message.
    pub fn is_for_hold(&self) -> bool {
        matches!(self.purpose, EditPurpose::Hold { .. })
    }

    /// Does what a key stands for.
    pub fn run(&mut self, command: UiCommand) {
        if edit(&mut self.area, command) {
            self.changed();
        }
    }

    /// Takes text that is typed or pasted.
    pub fn paste(&mut self, text: &str) {
        self.area.insert_str(harmless(text));
        self.changed();
    }

    /// What is wrong with it now.
    pub fn fault(&self) -> Option<&JsonSyntaxError> {
        self.patch.as_ref().err().or(self.fault.as_ref())
    }

    /// How the HTTP head was changed.
    ///
    /// # Errors
    /// What is wrong with it: it cannot be sent so.
    pub fn header_patch(&self) -> Result<&HeaderPatch, &JsonSyntaxError> {
        self.patch.as_ref()
    }

    /// Why the user should confirm before it is sent: it is not JSON, or not a message that its receiver can read.
    pub fn send_warning(&self) -> Option<String> {
        let fault = self.fault.as_ref();
        let fault = fault.map(|fault| format!("line {}: {}", fault.line, fault.why));
        fault.or_else(|| self.remark().map(|remark| format!("this is {remark}")))
    }

    /// What it is instead of a message, although it is JSON.
    pub fn remark(&self) -> Option<&'static str> {
        self.remark
    }

    /// Whether anything was changed.
    pub fn is_changed(&self) -> bool {
        self.area.lines() != self.before
    }

    /// Whether the body was changed, and not only the head.
    pub fn is_body_changed(&self) -> bool {
        self.body_of(self.area.lines()) != self.body_of(&self.before)
    }

    /// The message: without the layout if it is JSON, as it is if not.
    pub fn message(&self) -> String {
        let text = self.body_of(self.area.lines()).join("\n");
        match self.fault {
            None => String::from_utf8_lossy(&compact(text.as_bytes())).into_owned(),
            Some(_) => text,
        }
    }

    /// The text as it is laid out.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    fn changed(&mut self) {
        self.sends_invalid = false;
        self.check();
    }

    /// Where the body begins among lines that begin with the head.
    fn body_start(&self, lines: &[String]) -> usize {
        match self.head {
            Some(_) => head_text::body_start(lines),
            None => 0,
        }
    }

    fn body_of<'a>(&self, lines: &'a [String]) -> &'a [String] {
        &lines[self.body_start(lines)..]
    }

    fn check(&mut self) {
        let lines = self.area.lines();
        let start = self.body_start(lines);
        if let Some(head) = &self.head {
            let end = start.saturating_sub(1);
            self.patch = head.patch(&lines[..end]);
        }
        let text = lines[start..].join("\n");
        let checked = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        self.fault = checked.err().map(|error| JsonSyntaxError {
            line: start + error.line(),
            column: error.column(),
            why: reason(&error.to_string()),
        });
        self.remark = match self.fault {
            None if self.is_body_changed() => self.remark_on(&text),
            _ => None,
        };
    }

    fn remark_on(&self, text: &str) -> Option<&'static str> {
        let kind = Message::parse(text.to_owned()).kind();
        match (self.purpose, kind) {
            (EditPurpose::Replay { .. }, Kind::Request | Kind::Notification) => None,
            (EditPurpose::Replay { .. }, _) => Some("not a JSON-RPC request or notification"),
            (EditPurpose::Hold { .. }, Kind::Other | Kind::Malformed) => {
                Some("not a JSON-RPC message")
            }
            (EditPurpose::Hold { .. }, _) => None,
        }
    }
}

/// Characters that act on a terminal or hide on it, as JSON writes them.
fn harmless(text: &str) -> String {
    sanitize_json(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Without the place, which is told apart.
fn reason(text: &str) -> String {
    let end = text.rfind(" at line").unwrap_or(text.len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_outside_counts_as_changed() {
        let purpose = EditPurpose::Replay { sequence: 1 };
        let mut editor = Editor::new(purpose, None, "{\n  \"a\": 1\n}");
        editor.replace("{\n  \"a\": 1\n}\n");
        assert!(!editor.is_changed());
        editor.replace("{\n  \"a\": 2\n}\n");
        assert!(editor.is_changed());
        assert_eq!(editor.message(), r#"{"a":2}"#);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let purpose = EditPurpose::Replay { sequence: 1 };
        let editor = Editor::new(purpose, None, "{\n  \"a\": 1,\n}");
        let fault = editor.fault().unwrap();
        assert_eq!((fault.line, fault.column), (3, 1));
        assert_eq!(editor.message(), "{\n  \"a\": 1,\n}");
        assert!(Editor::new(purpose, None, "[1, 2]").fault().is_none());
    }

    #[test]
    fn a_head_is_edited_above_the_body() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let head = HeadText::of(&mcp_proxy_session::HttpHead {
            method: Some("POST".to_owned()),
            target: Some("/mcp".to_owned()),
            headers: vec![header("authorization", "[masked]"), header("x-a", "1")],
            ..mcp_proxy_session::HttpHead::default()
        });
        let purpose = EditPurpose::Hold {
            hold: 1,
            sequence: 1,
        };
        let text = head.above("{\n  \"id\": 1\n}");
        let mut editor = Editor::new(purpose, Some(head), &text);
        assert_eq!(editor.message(), r#"{"id":1}"#);
        assert!(editor.fault().is_none() && editor.header_patch().unwrap().is_empty());
        editor.replace(&text.replace("x-a: 1", "x-a: 2\nx-b: 3"));
        assert!(editor.is_changed() && !editor.is_body_changed());
        let patch = serde_json::to_value(editor.header_patch().unwrap()).unwrap();
        assert_eq!(patch, serde_json::json!({"x-a": "2", "x-b": "3"}));
        editor.replace(&text.replace("x-a: 1\n", ""));
        let patch = serde_json::to_value(editor.header_patch().unwrap()).unwrap();
        assert_eq!(patch, serde_json::json!({"x-a": null}));
        // An invalid head is reported with its line, as invalid JSON is.
        editor.replace(&text.replace("x-a: 1", "nonsense"));
        assert_eq!(editor.fault().map(|fault| fault.line), Some(3));
        assert!(editor.header_patch().is_err());
        editor.replace(&text.replace("/mcp", "/other"));
        assert_eq!(editor.fault().map(|fault| fault.line), Some(1));
        editor.replace(&text.replace("1\n}", "1,\n}"));
        assert_eq!(editor.fault().map(|fault| fault.line), Some(7));
    }
}
