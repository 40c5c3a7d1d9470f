//! What commands do.

use mcp_proxy_control::{
    BreakpointsAddRequest, BreakpointsRemoveRequest, ContinueRequest, ReplaySession,
    RulesListRequest, ShutdownRequest,
};

use super::answers::RequestPurpose;
use super::decisions::Decision;
use super::prompt::FileOutput;
use super::{App, Effect, Focus, Overlay, PromptKind, ProxyOwner};
use crate::command::{CommandGroup, UiCommand};
use crate::input::InputLine;
use crate::proxy::ProxyStatus;

impl App {
    /// Removes a breakpoint: the one of this number, or the one that is selected.
    fn unbreak(&mut self, rest: &str) {
        let selected = match self.overlay {
            Overlay::Breakpoints { selected } => self.proxy.breakpoints.get(selected),
            _ => None,
        };
        let id = match rest.is_empty() {
            true => selected.map(|breakpoint| breakpoint.id),
            false => rest.parse().ok(),
        };
        let Some(id) = id else {
            return self.complain("which breakpoint? b shows them, `:unbreak NUMBER` removes one");
        };
        let then = RequestPurpose::BreakpointsChanged(format!("breakpoint {id} is gone"));
        self.ask(&BreakpointsRemoveRequest { id }, then);
    }

    /// Does what a command says. `rest` is what was typed behind its name.
    pub fn run(&mut self, command: UiCommand, rest: &str) {
        match command.entry().group {
            CommandGroup::Question => return self.answer_question(command),
            CommandGroup::Edit => return self.editor_command(command),
            CommandGroup::Line => return self.line_command(command),
            CommandGroup::Text => return self.text_command(command),
            CommandGroup::Servers => return self.server_command(command),
            _ => {}
        }
        match command {
            UiCommand::ToggleIntercept => self.toggle_intercept(),
            UiCommand::Forward => self.resolve(&Decision::Forward),
            UiCommand::Drop => self.resolve(&Decision::Drop),
            UiCommand::Modify => self.modify(),
            UiCommand::EditOutside => self.edit_outside(),
            UiCommand::AnswerError if rest.is_empty() => self.type_error(),
            UiCommand::AnswerError => self.answer_error(rest),
            UiCommand::Step => self.step(),
            UiCommand::Continue => self.resume(),
            UiCommand::NextHeld => self.next_held(),
            UiCommand::Breakpoints => self.open(Overlay::Breakpoints { selected: 0 }),
            UiCommand::BreakHere => self.break_here(rest),
            UiCommand::Unbreak => self.unbreak(rest),
            UiCommand::Rules => {
                self.open(Overlay::Rules { top: 0 });
                self.ask(&RulesListRequest::default(), RequestPurpose::Rules);
            }
            UiCommand::Filter if rest.is_empty() => self.type_filter(),
            UiCommand::Filter => self.set_filter(rest),
            UiCommand::ClearFilter => self.set_filter(""),
            UiCommand::Search if rest.is_empty() => {
                self.overlay = Overlay::Prompt(PromptKind::Search, InputLine::default());
            }
            UiCommand::Search => self.search_for(rest),
            UiCommand::SearchNext => self.search_on(1),
            UiCommand::SearchPrevious => self.search_on(-1),
            UiCommand::Fold => self.fold(),
            UiCommand::FoldAll => self.with_detail(|detail| {
                detail.folds.fold_below(&detail.body, 1);
                detail.fold_changed();
            }),
            UiCommand::UnfoldAll => self.with_detail(|detail| {
                detail.folds.unfold_all();
                detail.fold_changed();
            }),
            UiCommand::Peer => self.go_to_peer(),
            UiCommand::Parent => self.go_to_parent(),
            UiCommand::Diff => self.diff(),
            UiCommand::Original => self.original(),
            UiCommand::Stderr => self.open(Overlay::Events { back: 0 }),
            UiCommand::Servers => self.open_servers(),
            UiCommand::Wrap => self.wraps = !self.wraps,
            UiCommand::Copy => self.copy(),
            UiCommand::CopyCurl => self.copy_curl(),
            UiCommand::Down => self.move_focused_pane(1),
            UiCommand::Up => self.move_focused_pane(-1),
            UiCommand::PageDown => self.move_focused_pane(self.page()),
            UiCommand::PageUp => self.move_focused_pane(-self.page()),
            UiCommand::First => self.move_focused_pane(isize::MIN / 2),
            UiCommand::Last => {
                self.move_focused_pane(isize::MAX / 2);
                // The last server is not the last message.
                if matches!(self.overlay, Overlay::Servers(_)) {
                    return;
                }
                if let (Focus::List, Some(tab)) = (self.focus, self.current()) {
                    tab.follows = true;
                }
            }
            UiCommand::Follow => {
                if let Some(tab) = self.current() {
                    tab.follows = !tab.follows;
                    if tab.follows {
                        tab.select_place(usize::MAX);
                    }
                }
            }
            UiCommand::OtherPane => {
                self.focus = match self.focus {
                    Focus::List => Focus::Detail,
                    Focus::Detail => Focus::List,
                };
            }
            UiCommand::Left => self.sideways(-8),
            UiCommand::Right => self.sideways(8),
            UiCommand::Goto if rest.is_empty() => self.type_command("goto "),
            UiCommand::Goto => match rest.trim_start_matches('#').parse() {
                Ok(number) => self.go_to(number),
                Err(_) => self.complain(format!("`{rest}` is not a message number")),
            },
            UiCommand::Mark => self.mark(),
            UiCommand::NextMark => self.next_mark(),
            UiCommand::Replay => self.replay(ReplaySession::Fresh),
            UiCommand::ReplayLive => self.replay(ReplaySession::Live),
            UiCommand::ReplayEdited => self.replay_edited(),
            UiCommand::Save if rest.is_empty() => self.type_command("save "),
            UiCommand::Save => self.write_file(FileOutput::Copy, rest),
            UiCommand::Load if rest.is_empty() => self.type_command("load "),
            UiCommand::Load => self.load(rest),
            UiCommand::Export if rest.is_empty() => self.type_command("export har "),
            UiCommand::Export => self.write_file(FileOutput::Export, rest),
            UiCommand::Note if rest.is_empty() => self.type_note(),
            UiCommand::Note => self.note(rest),
            UiCommand::NextTab => self.tab = (self.tab + 1) % self.tabs.len().max(1),
            UiCommand::PreviousTab => {
                self.tab = (self.tab + self.tabs.len().saturating_sub(1)) % self.tabs.len().max(1);
            }
            UiCommand::CloseTab => self.close_tab(),
            UiCommand::Help => self.open(Overlay::Help { top: 0 }),
            UiCommand::CommandLine => self.type_command(""),
            UiCommand::NextTheme => match crate::theme::Theme::named(rest) {
                Some(theme) => self.theme = theme,
                None if rest.is_empty() => self.theme = self.theme.next(),
                None => self.complain(format!("`{rest}` is not a theme: use dark, light or mono")),
            },
            UiCommand::Quit if !matches!(self.overlay, Overlay::None) => {
                self.overlay = Overlay::None
            }
            UiCommand::Quit => self.quit(),
            UiCommand::Back => {
                if matches!(self.overlay, Overlay::None) {
                    self.focus = Focus::List;
                }
                self.overlay = Overlay::None;
            }
            UiCommand::Leave => match self.overlay {
                Overlay::Editor(_) => self.say("Esc goes back without sending, and then q leaves"),
                _ => self.quit(),
            },
            // Those of other groups, see above.
            _ => {}
        }
    }

    fn quit(&mut self) {
        match self.owner {
            ProxyOwner::Here => self.open(Overlay::ConfirmQuit),
            // Somebody's client would wait, and nobody would decide.
            ProxyOwner::Other if self.proxy.holds() => self.open(Overlay::ConfirmLeave),
            ProxyOwner::Other | ProxyOwner::Demo => self.effects.push(Effect::Quit),
        }
    }

    pub(super) fn resume_and_leave(&mut self) {
        self.overlay = Overlay::None;
        self.ask(&ContinueRequest {}, RequestPurpose::Resumed);
    }

    pub(super) fn end_proxy(&mut self) {
        self.overlay = Overlay::None;
        self.say("the proxy ends …");
        self.ask(&ShutdownRequest {}, RequestPurpose::Ended);
    }

    fn close_tab(&mut self) {
        let first = usize::from(self.proxy.link != ProxyStatus::None);
        if self.tab < first || self.tabs.len() < 2 {
            return self.complain("this session stays open; q leaves");
        }
        self.tabs.remove(self.tab);
        self.tab = self.tab.min(self.tabs.len() - 1);
    }

    fn page(&self) -> isize {
        let tab = self.tabs.get(self.tab);
        let rows = match (&self.overlay, self.focus) {
            (Overlay::Servers(window), _) => window.height,
            (_, Focus::List) => tab.map_or(1, |tab| tab.height),
            (_, Focus::Detail) => tab
                .and_then(|tab| tab.detail.as_ref())
                .map_or(1, |detail| detail.height),
        };
        isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Moves the window or pane that gets key presses.
    pub(super) fn move_focused_pane(&mut self, by: isize) {
        let moved = |place: &mut usize, last: usize| {
            *place = place.saturating_add_signed(by).min(last);
        };
        match &mut self.overlay {
            Overlay::Help { top } => moved(top, 4 * crate::command::COMMANDS.len()),
            Overlay::Rules { top } => moved(top, self.proxy.rules.rules.len().saturating_sub(1)),
            Overlay::Breakpoints { selected } => {
                moved(selected, self.proxy.breakpoints.len().saturating_sub(1));
            }
            Overlay::Servers(window) => {
                moved(
                    &mut window.selected,
                    self.proxy.servers.len().saturating_sub(1),
                );
            }
            Overlay::Diff(sides) => {
                let last = sides.lines.len().saturating_sub(1);
                moved(&mut sides.top, last);
            }
            Overlay::Events { back } => *back = back.saturating_add_signed(-by).min(5_000),
            _ => match self.focus {
                Focus::List => {
                    if let Some(tab) = self.current() {
                        tab.move_by(by);
                    }
                }
                Focus::Detail => self.detail_by(by),
            },
        }
    }

    pub(super) fn detail_by(&mut self, by: isize) {
        self.with_detail(|detail| detail.move_by(by));
    }

    fn sideways(&mut self, by: isize) {
        if self.focus == Focus::List {
            if by > 0 {
                self.focus = Focus::Detail;
            }
            return;
        }
        let mut stays = true;
        self.with_detail(|detail| {
            stays = by > 0 || detail.shift > 0;
            detail.shift = detail.shift.saturating_add_signed(by);
        });
        if !stays {
            self.focus = Focus::List;
        }
    }

    fn break_here(&mut self, rest: &str) {
        let filter = match rest.is_empty() {
            false => rest.to_owned(),
            true => {
                if let Some(why) = self.cannot_decide() {
                    return self.complain(why);
                }
                let method = self.current().and_then(|tab| {
                    let told = tab.view.message_with_context(tab.selected?).ok()?;
                    let name = told.message.name;
                    let method = told.message.method?;
                    Some(match name {
                        Some(name) => format!("{method} {name}"),
                        None => method,
                    })
                });
                return self.type_command(&format!("break {}", method.unwrap_or_default()));
            }
        };
        let then = RequestPurpose::BreakpointsChanged(format!(
            "messages with `{filter}` are held from now on"
        ));
        let request = BreakpointsAddRequest {
            filter,
            ..BreakpointsAddRequest::default()
        };
        self.ask(&request, then);
    }
}
