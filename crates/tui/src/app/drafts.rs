//! Texts that were edited and not sent. They are kept until they are sent, so that no typing is lost: Esc keeps a draft, and so
//! does a message that somebody else decides while it is edited.

use std::collections::BTreeMap;

use super::holds::EditorState;
use super::{App, Overlay};
use crate::command::UiCommand;
use crate::editor::{EditPurpose, Editor};

/// Drafts that are kept; of more, the one of the oldest message goes.
const KEPT_DRAFTS: usize = 20;

/// What was edited.
#[derive(Default)]
pub(super) struct Drafts {
    /// What was not sent, by the number of the message.
    kept: BTreeMap<u64, Box<Editor>>,
    /// What was sent, until it is known to have arrived.
    pub(super) unsent: Option<Box<Editor>>,
}

/// What became of the text of an editor that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedText {
    /// It is a draft now.
    Kept,
    /// It was the message as it is.
    Unchanged,
}

impl Drafts {
    fn keep(&mut self, editor: Box<Editor>) -> ClosedText {
        if !editor.is_changed() {
            return ClosedText::Unchanged;
        }
        self.kept.insert(editor.purpose.sequence(), editor);
        while self.kept.len() > KEPT_DRAFTS {
            self.kept.pop_first();
        }
        ClosedText::Kept
    }

    /// The text was sent.
    pub(super) fn forget(&mut self, sequence: u64) {
        self.kept.remove(&sequence);
    }
}

impl App {
    /// Opens an editor on a text, or on the draft that there is of its message.
    pub(super) fn open_editor(&mut self, purpose: EditPurpose, text: &str) {
        let head = self.editable_head(purpose);
        let draft = self.drafts.kept.remove(&purpose.sequence());
        let is_draft = draft.is_some();
        // A head that cannot be changed any more is not part of the draft.
        let mut editor = draft.unwrap_or_else(|| Box::new(Editor::new(purpose, head, text)));
        editor.change_purpose(purpose);
        self.open(Overlay::Editor(editor));
        self.tell_editing(purpose, EditorState::Open);
        if is_draft {
            let key = UiCommand::StartOver.key();
            let sequence = purpose.sequence();
            self.say(format!(
                "your draft of #{sequence}; {key} starts again from the message"
            ));
        }
    }

    /// Closes the editor and keeps what was typed.
    pub(super) fn close_editor(&mut self) -> ClosedText {
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::Editor(editor) => {
                self.tell_editing(editor.purpose, EditorState::Closed);
                self.drafts.keep(editor)
            }
            other => {
                self.overlay = other;
                ClosedText::Unchanged
            }
        }
    }

    /// What was edited has been sent.
    pub(super) fn edit_arrived(&mut self) {
        if let Some(editor) = self.drafts.unsent.take() {
            self.drafts.forget(editor.purpose.sequence());
        }
    }

    /// What was edited was not sent. It comes back to the screen, or is a draft if its message was decided meanwhile.
    pub(super) fn edit_refused(&mut self) {
        let Some(editor) = self.drafts.unsent.take() else {
            return;
        };
        let is_open = match editor.purpose {
            EditPurpose::Hold { hold, .. } => self.proxy.is_held(hold),
            EditPurpose::Replay { .. } => true,
        };
        match &self.overlay {
            Overlay::None if is_open => self.overlay = Overlay::Editor(editor),
            // The user has opened the same message again.
            Overlay::Editor(other) if other.purpose == editor.purpose => {
                self.drafts.keep(editor);
            }
            _ => {
                self.tell_editing(editor.purpose, EditorState::Closed);
                self.drafts.keep(editor);
            }
        }
    }

    /// The proxy is gone, and nobody can tell whether it got what was edited. It comes back to the screen, or is a draft if
    /// something else is there.
    pub(super) fn edit_unanswered(&mut self) {
        let Some(editor) = self.drafts.unsent.take() else {
            return;
        };
        match self.overlay {
            Overlay::None => self.overlay = Overlay::Editor(editor),
            _ => drop(self.drafts.keep(editor)),
        }
    }

    /// Closes the editor of a message that was decided elsewhere. Gives what is said about the draft.
    pub(super) fn close_decided_editor(&mut self) -> String {
        if !matches!(&self.overlay, Overlay::Editor(editor) if editor.is_for_hold()) {
            return String::new();
        }
        let closed = self.close_editor();
        // What is typed next was meant for the editor.
        self.overlay = Overlay::Notice(String::new());
        match closed {
            ClosedText::Kept => {
                let key = UiCommand::ReplayEdited.key();
                format!("; your draft is kept, and {key} replays it")
            }
            ClosedText::Unchanged => "; the editor was closed".to_owned(),
        }
    }

    /// Says what became of a message, where a closed editor was if there was one.
    pub(super) fn tell_decided(&mut self, text: String) {
        if let Overlay::Notice(notice) = &mut self.overlay {
            notice.clone_from(&text);
        }
        self.complain(text);
    }

    /// The user closes the editor.
    pub(super) fn give_up_editing(&mut self) {
        let Overlay::Editor(editor) = &self.overlay else {
            return;
        };
        let (sequence, purpose) = (editor.purpose.sequence(), editor.purpose);
        let key = match purpose {
            EditPurpose::Hold { .. } => UiCommand::Modify.key(),
            EditPurpose::Replay { .. } => UiCommand::ReplayEdited.key(),
        };
        match self.close_editor() {
            ClosedText::Kept => self.say(format!(
                "nothing was sent; {key} opens your draft of #{sequence} again"
            )),
            ClosedText::Unchanged => self.say("nothing was sent"),
        }
    }
}
