//! Keys and the mouse: which command they stand for, wherever the user is.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

use super::{App, Effect, Focus, Overlay, Target};
use crate::command::{Command, Context};

impl App {
    /// Who has the keys.
    fn context(&self) -> Context {
        match self.overlay {
            Overlay::Editor(_) => Context::Editor,
            Overlay::Typing(..) => Context::Line,
            Overlay::ConfirmQuit | Overlay::ConfirmLeave => Context::Question,
            _ => Context::Panes,
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if let Some(command) = Command::of_key(self.context(), key) {
            return self.run(command, "");
        }
        if let KeyCode::Char(letter) = key.code
            && !key.modifiers.contains(KeyModifiers::CONTROL)
        {
            self.letters(letter.encode_utf8(&mut [0; 4]));
        }
    }

    /// Takes text that is typed or pasted, where there is a place for it.
    pub(super) fn letters(&mut self, text: &str) {
        match &mut self.overlay {
            Overlay::Typing(_, input) => {
                input.paste(text);
                self.filter_as_typed();
            }
            Overlay::Editor(editor) => editor.paste(text),
            _ => {}
        }
    }

    /// Does what a key stands for in the editor.
    pub(super) fn editor_command(&mut self, command: Command) {
        match (command, &mut self.overlay) {
            (Command::Send, _) => self.send_edited(),
            (Command::CloseEditor, Overlay::Editor(_)) => {
                self.overlay = Overlay::None;
                self.say("nothing was sent");
            }
            (Command::GoOnOutside, Overlay::Editor(_)) => self.edit_outside(),
            (command, Overlay::Editor(editor)) => editor.run(command),
            _ => {}
        }
    }

    /// The same in the editor or on a line, whichever there is.
    pub(super) fn text_command(&mut self, command: Command) {
        match self.overlay {
            Overlay::Editor(_) => self.editor_command(command),
            _ => self.line_command(command),
        }
    }

    /// Takes the answer to the question before leaving.
    pub(super) fn answer_question(&mut self, command: Command) {
        match (&self.overlay, command) {
            (Overlay::ConfirmQuit, Command::EndProxy | Command::Confirm) => self.end_proxy(),
            (Overlay::ConfirmLeave, Command::LetGo | Command::Confirm) => self.resume_and_leave(),
            (Overlay::ConfirmLeave, Command::LeaveHolding) => self.effects.push(Effect::Quit),
            (Overlay::ConfirmQuit | Overlay::ConfirmLeave, Command::Stay) => {
                self.overlay = Overlay::None;
            }
            _ => {}
        }
    }

    pub(super) fn mouse(&mut self, mouse: MouseEvent) {
        // Nothing that is being typed is lost by a slip of the hand.
        if let Overlay::Editor(_)
        | Overlay::Typing(..)
        | Overlay::ConfirmQuit
        | Overlay::ConfirmLeave = self.overlay
        {
            return;
        }
        let position = Position::new(mouse.column, mouse.row);
        let hit = self
            .hits
            .iter()
            .rev()
            .find(|hit| hit.area.contains(position));
        let hit = hit.copied();
        match (mouse.kind, hit.map(|hit| hit.target)) {
            (MouseEventKind::ScrollDown, target) => self.wheel(target, 3),
            (MouseEventKind::ScrollUp, target) => self.wheel(target, -3),
            (MouseEventKind::Down(MouseButton::Left), Some(Target::Button(command))) => {
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
                if target == Target::List {
                    self.focus = Focus::List;
                    let place = tab.top + line;
                    if place < tab.view.len() {
                        tab.select_place(place);
                        tab.follows = false;
                    }
                } else if let Some(detail) = &mut tab.detail {
                    self.focus = Focus::Detail;
                    detail.cursor = (detail.top + line).min(detail.lines.len().saturating_sub(1));
                }
            }
            _ => {}
        }
    }

    fn wheel(&mut self, target: Option<Target>, by: isize) {
        if !matches!(self.overlay, Overlay::None) {
            return self.travel(by);
        }
        match target {
            Some(Target::Detail) => self.detail_by(by),
            _ => {
                if let Some(tab) = self.current() {
                    tab.move_by(by);
                }
            }
        }
    }
}
