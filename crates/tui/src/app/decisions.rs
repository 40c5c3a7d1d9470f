//! Deciding about held messages.

use mcp_proxy_control::{
    ContinueRequest, HoldAction, HoldResolveRequest, InterceptMode, InterceptSetRequest,
    ModeChange, Replacement, StepRequest,
};
use mcp_proxy_wire::Kind;
use mcp_proxy_wire::terminal_text::sanitize_json;

use super::answers::RequestPurpose;
use super::holds::{EditorState, NOTHING_HELD};
use super::{App, Effect, Overlay};
use crate::editor::{EditPurpose, Editor, HeadText};
use crate::proxy::{Held, ProxyStatus};
use crate::tab::Detail;
use crate::text::{BodyFormat, BodyLayout, BodyLine, plain};

/// What `$EDITOR` is given at most.
const OUTSIDE: u64 = 32 << 20;

/// Whether an edited message has to be JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EditCheck {
    Json,
    AsIs,
}

impl App {
    /// Sends the decision about the selected held message.
    pub(super) fn resolve(&mut self, action: HoldAction, done: &str) {
        if let Some(held) = self.selected_hold() {
            let request = HoldResolveRequest::new(held.row.hold, action);
            self.send_decision(&request, held.row.sequence, done);
        }
    }

    /// `done` is what is said of the message when the proxy has done it.
    fn send_decision(&mut self, request: &HoldResolveRequest, sequence: u64, done: &str) {
        let said = format!("#{sequence} {done}");
        self.ask(request, RequestPurpose::Resolved(sequence, said));
    }

    /// Has the error typed that a held request is answered with.
    pub(super) fn type_error(&mut self) {
        if let Some(held) = self.selected_hold()
            && self.takes_error(&held)
        {
            self.type_command("error -32000 ");
        }
    }

    /// Whether an error can be sent because of this message: to who asked, or in the place of an answer.
    fn takes_error(&mut self, held: &Held) -> bool {
        let kind = self.kind_of(held);
        let takes = !matches!(kind, Some(Kind::Notification));
        if !takes {
            let sequence = held.row.sequence;
            let why = "is a notification, which has no answer (F8 drops it)";
            self.complain(format!("#{sequence} {why}"));
        }
        takes
    }

    fn kind_of(&self, held: &Held) -> Option<Kind> {
        let told = self
            .tabs
            .first()?
            .view
            .message_with_context(held.row.sequence)
            .ok()?;
        Some(told.message.kind)
    }

    /// Drops a held request and answers it with an error.
    pub(super) fn answer_error(&mut self, text: &str) {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (code, message) = match first.parse::<i64>() {
            Ok(code) => (Some(code), rest.trim()),
            Err(_) => (None, text.trim()),
        };
        let message = Some(message).filter(|message| !message.is_empty());
        if let Some(held) = self.selected_hold()
            && self.takes_error(&held)
        {
            let done = match self.kind_of(&held) {
                Some(Kind::Response | Kind::Error) => "was replaced by an error",
                _ => "was answered with an error",
            };
            let message = message.map(str::to_owned);
            self.resolve(HoldAction::Error { code, message }, done);
        }
    }

    pub(super) fn toggle_intercept(&mut self) {
        if self.tab != 0 {
            return self.complain("this is a loaded record; the live session is the first tab");
        }
        let (mode, then) = match self.proxy.mode {
            InterceptMode::Passthrough => {
                let said = "intercept on: every message is held";
                (ModeChange::Intercept, RequestPurpose::Say(said.to_owned()))
            }
            InterceptMode::Intercept => {
                let then = RequestPurpose::Released(self.all_held(), self.intercept_off());
                (ModeChange::Passthrough, then)
            }
        };
        self.ask(&InterceptSetRequest::run(mode), then);
    }

    /// Sends the oldest held message on.
    pub(super) fn step(&mut self) {
        let held = self.all_held();
        // No key reaches a message that the user does not see.
        if let (Some(oldest), Some(tab)) = (held.first(), self.tabs.first())
            && !tab.view.filter().is_empty()
            && tab.view.place_of(*oldest).is_none()
        {
            return self.select_oldest(*oldest);
        }
        let said = match held[..] {
            [] if self.proxy.link == ProxyStatus::Live => {
                return self.complain(NOTHING_HELD);
            }
            [] => String::new(),
            [oldest] => format!("#{oldest} was forwarded; nothing else is held"),
            [oldest, next, ..] => format!("#{oldest} was forwarded; #{next} is next"),
        };
        let oldest = held.into_iter().take(1).collect();
        let then = RequestPurpose::Released(oldest, said);
        self.ask(&StepRequest {}, then);
    }

    /// Sends everything on.
    pub(super) fn resume(&mut self) {
        let then = RequestPurpose::Released(self.all_held(), self.intercept_off());
        self.ask(&ContinueRequest {}, then);
    }

    /// What is said when all is forwarded.
    fn intercept_off(&self) -> String {
        match self.proxy.held.len() {
            0 => "intercept off".to_owned(),
            1 => "intercept off; the held message was forwarded".to_owned(),
            held => format!("intercept off; {held} held messages were forwarded"),
        }
    }

    fn all_held(&self) -> Vec<u64> {
        self.proxy.held_numbers()
    }

    /// Opens the editor on the held message.
    pub(super) fn modify(&mut self) {
        if let Some((purpose, text)) = self.held_text(EditLocation::Here) {
            self.open_editor(purpose, &text);
        }
    }

    /// The same outside.
    pub(super) fn edit_outside(&mut self) {
        if let Overlay::Editor(editor) = &self.overlay {
            self.effects
                .push(Effect::Edit(editor.purpose, editor.text()));
            return;
        }
        if let Some((purpose, text)) = self.held_text(EditLocation::Outside) {
            self.tell_editing(purpose, EditorState::Open);
            self.effects.push(Effect::Edit(purpose, text));
        }
    }

    /// The HTTP head of a held message, if it can be edited.
    pub(super) fn editable_head(&self, purpose: EditPurpose) -> Option<HeadText> {
        let EditPurpose::Hold { sequence, .. } = purpose else {
            return None;
        };
        let held = self.proxy.hold_of(sequence)?;
        if held.row.head_made {
            return Some(HeadText::of_made_request());
        }
        if !held.row.head_editable {
            return None;
        }
        let view = &self.tabs.first()?.view;
        let told = view.message_with_context(sequence).ok()?;
        told.message.http.as_ref().map(HeadText::of)
    }

    fn held_text(&mut self, room: EditLocation) -> Option<(EditPurpose, String)> {
        let held = self.selected_hold()?;
        self.tab = 0;
        let (hold, sequence) = (held.row.hold, held.row.sequence);
        let tab = self.tabs.first_mut()?;
        tab.select(sequence);
        tab.show();
        let text = editable(tab.detail.as_ref()?, room);
        let text = text.map_err(|why| self.complain(why)).ok()?;
        let purpose = EditPurpose::Hold { hold, sequence };
        let text = match self.editable_head(purpose) {
            Some(head) => head.above(&text),
            None => text,
        };
        Some((purpose, text))
    }

    /// A text comes back from the editor outside, which was given `before`.
    pub fn finish_external_edit(
        &mut self,
        purpose: EditPurpose,
        before: &str,
        text: Result<String, String>,
    ) {
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                if !matches!(self.overlay, Overlay::Editor(_)) {
                    self.tell_editing(purpose, EditorState::Closed);
                }
                return self.complain(why);
            }
        };
        if !matches!(self.overlay, Overlay::Editor(_)) {
            let head = self.editable_head(purpose);
            self.overlay = Overlay::Editor(Box::new(Editor::new(purpose, head, before)));
        }
        if let Overlay::Editor(editor) = &mut self.overlay {
            editor.replace(&text);
            match editor.fault() {
                None => self.say("Ctrl-S sends it, Esc closes it and keeps your draft"),
                Some(_) => self.complain("this is not JSON"),
            }
        }
    }

    /// Sends what is in the editor.
    pub(super) fn send_edited(&mut self) {
        if !matches!(self.overlay, Overlay::Editor(_)) {
            return self.complain("nothing is edited (F6 edits the held message)");
        }
        if let Some(why) = self.cannot_decide() {
            return self.complain(why + "; Esc closes the editor and keeps your draft");
        }
        // The list of holds may be newer than the decision that closes the editor.
        if let Some(sequence) = self.edits_decided() {
            let decided = self.describe_decision(sequence);
            let decided = decided.unwrap_or_else(|| format!("#{sequence} was decided already"));
            let draft = self.close_decided_editor();
            return self.tell_decided(decided + &draft);
        }
        let Overlay::Editor(editor) = &mut self.overlay else {
            return;
        };
        let headers = match editor.header_patch() {
            Ok(headers) => headers.clone(),
            Err(fault) => {
                let text = format!("line {}: {}", fault.line, fault.why);
                return self.complain(text);
            }
        };
        if let Some(doubt) = editor.send_warning()
            && !editor.sends_invalid
        {
            editor.sends_invalid = true;
            return self.complain(format!("{doubt}. Ctrl-S again sends it anyway"));
        }
        let purpose = editor.purpose;
        let check = match editor.sends_invalid {
            true => EditCheck::AsIs,
            false => EditCheck::Json,
        };
        let (is_changed, message) = (editor.is_body_changed(), editor.message());
        // It comes back if it cannot be sent.
        if let Overlay::Editor(editor) = std::mem::replace(&mut self.overlay, Overlay::None) {
            self.drafts.unsent = Some(editor);
        }
        match purpose {
            EditPurpose::Hold { hold, sequence } => {
                let as_is = check == EditCheck::AsIs;
                let is_unchanged = !is_changed && headers.is_empty();
                let (action, done) = match (is_changed, is_unchanged) {
                    (true, _) => {
                        let message = Replacement::Text(message);
                        let action = HoldAction::Modify { message, as_is };
                        (action, "was forwarded with your changes")
                    }
                    (false, true) => (HoldAction::Forward, "was forwarded unchanged"),
                    (false, false) => (HoldAction::Forward, "was forwarded with your changes"),
                };
                if !is_unchanged {
                    // The user wants to see what became of it, and not the newest message.
                    self.holds.followed = false;
                }
                let mut request = HoldResolveRequest::new(hold, action);
                request.headers = headers;
                self.send_decision(&request, sequence, done);
            }
            EditPurpose::Replay { sequence } => {
                let raw = is_changed.then_some((message, check));
                self.send_again(sequence, raw, None);
            }
        }
    }

    /// The message in the editor, if it was held and is not any more.
    fn edits_decided(&self) -> Option<u64> {
        let Overlay::Editor(editor) = &self.overlay else {
            return None;
        };
        let EditPurpose::Hold { hold, sequence } = editor.purpose else {
            return None;
        };
        let is_held = self.proxy.is_held(hold);
        (!is_held).then_some(sequence)
    }
}

/// Where a message is edited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EditLocation {
    Here,
    /// In `$EDITOR`, which takes more.
    Outside,
}

/// A message as it is laid out for the editor. What is cut or changed for the screen cannot be edited there.
pub(super) fn editable(detail: &Detail, room: EditLocation) -> Result<String, &'static str> {
    match detail.body.form() {
        BodyFormat::Json if detail.body.is_whole() && fits_editor(&detail.body) => {
            Ok(plain(&detail.body))
        }
        BodyFormat::Json if room == EditLocation::Outside => as_received(detail)
            .ok_or("this message is too large to edit; `mcp-proxy ctl` can replace it"),
        BodyFormat::Json => Err("this message is too large to edit here; E edits it in $EDITOR"),
        BodyFormat::Text => Err(
            "this message is not JSON and cannot be edited here; `mcp-proxy ctl` can replace it",
        ),
    }
}

/// The editor counts lines and columns with 16 bits.
fn fits_editor(body: &BodyLayout) -> bool {
    let most = usize::from(u16::MAX);
    let is_short = |line: &BodyLine| line.len() < most;
    body.lines().len() < most && body.lines().iter().all(is_short)
}

/// A large message, not laid out.
fn as_received(detail: &Detail) -> Option<String> {
    let message = &detail.told.as_ref().ok()?.message;
    let bytes = message.raw.bytes().filter(|_| message.len <= OUTSIDE)?;
    let text = std::str::from_utf8(bytes).ok()?;
    Some(sanitize_json(text))
}
