//! Keys and the mouse: which command they stand for, wherever the user is.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

use super::{App, ClickTarget, Effect, Focus, Overlay};
use crate::command::{KeyContext, UiCommand};
use crate::text_area::type_on_line;

impl App {
    /// The part of the screen that gets key presses.
    fn context(&self) -> KeyContext {
        match self.overlay {
            Overlay::Editor(_) => KeyContext::Editor,
            Overlay::Prompt(..) => KeyContext::Line,
            Overlay::ConfirmQuit | Overlay::ConfirmLeave => KeyContext::Question,
            Overlay::Notice(_) => KeyContext::Notice,
            Overlay::Servers(_) => KeyContext::Servers,
            _ => KeyContext::Panes,
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if let Some(command) = UiCommand::of_key(self.context(), key) {
            return self.run(command, "");
        }
        if let KeyCode::Char(letter) = key.code
            && !key.modifiers.contains(KeyModifiers::CONTROL)
        {
            self.type_text(letter.encode_utf8(&mut [0; 4]));
        }
    }

    /// Takes text that is typed or pasted, where there is a place for it.
    pub(super) fn type_text(&mut self, text: &str) {
        match &mut self.overlay {
            Overlay::Prompt(_, input) => {
                type_on_line(input, text);
                self.filter_as_typed();
            }
            Overlay::Editor(editor) => editor.paste(text),
            _ => {}
        }
    }

    /// Does what a key stands for in the editor.
    pub(super) fn editor_command(&mut self, command: UiCommand) {
        match (command, &mut self.overlay) {
            (UiCommand::Send, _) => self.send_edited(),
            (UiCommand::CloseEditor, _) => self.give_up_editing(),
            (UiCommand::EditExternally, Overlay::Editor(_)) => self.edit_outside(),
            (UiCommand::StartOver, Overlay::Editor(editor)) => editor.start_over(),
            (command, Overlay::Editor(editor)) => editor.run(command),
            _ => {}
        }
    }

    /// The same in the editor or on a line, whichever there is.
    pub(super) fn text_command(&mut self, command: UiCommand) {
        match self.overlay {
            Overlay::Editor(_) => self.editor_command(command),
            _ => self.line_command(command),
        }
    }

    /// Takes the answer to the question before leaving.
    pub(super) fn answer_question(&mut self, command: UiCommand) {
        match (&self.overlay, command) {
            (Overlay::ConfirmQuit, UiCommand::EndProxy | UiCommand::Confirm) => self.end_proxy(),
            (Overlay::ConfirmLeave, UiCommand::ForwardAndQuit | UiCommand::Confirm) => {
                self.resume_and_leave()
            }
            (Overlay::ConfirmLeave, UiCommand::QuitHolding) => self.effects.push(Effect::Quit),
            (Overlay::ConfirmQuit | Overlay::ConfirmLeave, UiCommand::Stay) => {
                self.overlay = Overlay::None;
            }
            _ => {}
        }
    }

    pub(super) fn mouse(&mut self, mouse: MouseEvent) {
        // Nothing that is being typed is lost by a slip of the hand.
        if let Overlay::Editor(_)
        | Overlay::Prompt(..)
        | Overlay::ConfirmQuit
        | Overlay::ConfirmLeave
        | Overlay::Notice(_) = self.overlay
        {
            return;
        }
        let position = Position::new(mouse.column, mouse.row);
        let hit = self
            .click_areas
            .iter()
            .rev()
            .find(|hit| hit.area.contains(position));
        let hit = hit.copied();
        match (mouse.kind, hit.map(|hit| hit.target)) {
            (MouseEventKind::ScrollDown, target) => self.wheel(target, 3),
            (MouseEventKind::ScrollUp, target) => self.wheel(target, -3),
            (MouseEventKind::Down(MouseButton::Left), Some(ClickTarget::Button(command))) => {
                self.run(command, "");
            }
            (MouseEventKind::Down(MouseButton::Left), Some(target))
                if matches!(self.overlay, Overlay::None) =>
            {
                let Some(hit) = hit else {
                    return;
                };
                let line = usize::from(mouse.row - hit.area.y);
                let Some(tab) = self.tabs.get_mut(self.tab) else {
                    return;
                };
                if target == ClickTarget::List {
                    self.focus = Focus::List;
                    if let Some(Some(place)) = tab.drawn_places.get(line).copied() {
                        tab.select_place(place);
                        tab.follows = false;
                    }
                } else if let Some(detail) = &mut tab.detail {
                    self.focus = Focus::Detail;
                    detail.cursor = (detail.top + line).min(detail.rows.len().saturating_sub(1));
                }
            }
            _ => {}
        }
    }

    fn wheel(&mut self, target: Option<ClickTarget>, by: isize) {
        if !matches!(self.overlay, Overlay::None) {
            return self.move_focused_pane(by);
        }
        match target {
            Some(ClickTarget::Detail) => self.detail_by(by),
            _ => {
                if let Some(tab) = self.current() {
                    tab.move_by(by);
                }
            }
        }
    }
}
