//! What commands do.

use mcp_proxy_control::{HoldAction, ReplaySession, RulesListRequest, ShutdownRequest};

use super::answers::RequestPurpose;
use super::prompt::FileOutput;
use super::{App, DetailWidth, Effect, Focus, Overlay, PromptKind, ProxyOwner};
use crate::command::{CommandGroup, UiCommand};
use crate::proxy::ProxyStatus;
use crate::tab::Detail;

impl App {
    /// Does what a command says. `rest` is what was typed behind its name.
    pub fn run(&mut self, command: UiCommand, rest: &str) {
        match command.entry().group {
            CommandGroup::Question => return self.answer_question(command),
            CommandGroup::Edit => return self.editor_command(command),
            CommandGroup::Line => return self.line_command(command),
            CommandGroup::Text => return self.text_command(command),
            CommandGroup::Servers => return self.server_command(command),
            CommandGroup::Notice => {
                self.overlay = Overlay::None;
                return;
            }
            _ => {}
        }
        match command {
            UiCommand::ToggleIntercept => self.toggle_intercept(),
            UiCommand::Forward => self.resolve(HoldAction::Forward, "was forwarded"),
            UiCommand::Drop => self.resolve(HoldAction::Drop, "was dropped"),
            UiCommand::Modify => self.modify(),
            UiCommand::EditOutside => self.edit_outside(),
            UiCommand::AnswerError if rest.is_empty() => self.type_error(),
            UiCommand::AnswerError => self.answer_error(rest),
            UiCommand::Step => self.step(),
            UiCommand::Extend => self.extend(rest),
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
            UiCommand::Errors => self.toggle_errors(),
            UiCommand::Calls => self.toggle_calls(),
            UiCommand::Headers => {
                if let Some(tab) = self.current() {
                    tab.show();
                    tab.toggle_heads();
                }
            }
            UiCommand::Search if rest.is_empty() => {
                self.type_line(PromptKind::Search, "");
            }
            UiCommand::Search => self.search_for(rest),
            UiCommand::SearchNext => self.search_on(1),
            UiCommand::SearchPrevious => self.search_on(-1),
            UiCommand::Fold => self.fold(),
            UiCommand::FoldAll => self.with_detail(Detail::fold_all),
            UiCommand::UnfoldAll => self.with_detail(|detail| {
                detail.folds.unfold_all();
                detail.fold_changed();
            }),
            UiCommand::Peer => self.go_to_peer(),
            UiCommand::Parent => self.go_to_parent(),
            UiCommand::Diff => self.diff(rest),
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
                let other = match self.focus {
                    Focus::List => Focus::Detail,
                    Focus::Detail => Focus::List,
                };
                self.focus_on(other, DetailWidth::Pane);
            }
            UiCommand::Open => match self.focus {
                Focus::List => self.focus_on(Focus::Detail, DetailWidth::Whole),
                Focus::Detail => self.focus_on(Focus::List, DetailWidth::Pane),
            },
            UiCommand::Left => self.sideways(-8),
            UiCommand::Right => self.sideways(8),
            UiCommand::Goto if rest.is_empty() => self.type_command("goto "),
            UiCommand::Goto => match rest.trim_start_matches('#').parse() {
                Ok(number) => self.go_to(number),
                Err(_) => self.complain(format!("`{rest}` is not a message number")),
            },
            UiCommand::Mark => self.mark(),
            UiCommand::NextMark => self.next_mark(),
            UiCommand::Replay => self.replay(None),
            UiCommand::ReplayLive => self.replay(Some(ReplaySession::Live)),
            UiCommand::ReplayEdited => self.replay_edited(),
            UiCommand::Save if rest.is_empty() => self.type_command("save "),
            UiCommand::Save => self.write_file(FileOutput::Copy, rest),
            UiCommand::Load if rest.is_empty() => self.type_command("load "),
            UiCommand::Load => self.load(rest),
            UiCommand::Export if rest.is_empty() => self.type_command("export "),
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
                    self.focus_on(Focus::List, DetailWidth::Pane);
                }
                self.overlay = Overlay::None;
            }
            UiCommand::Leave => match self.overlay {
                Overlay::Editor(_) => {
                    self.say("Esc closes the editor and keeps your draft; then q quits")
                }
                _ => self.quit(),
            },
            UiCommand::Suspend => self.effects.push(Effect::Suspend),
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

    pub(super) fn end_proxy(&mut self) {
        self.overlay = Overlay::None;
        self.say("ending the proxy …");
        self.ask(&ShutdownRequest {}, RequestPurpose::Ended);
    }

    fn close_tab(&mut self) {
        let first = usize::from(self.proxy.link != ProxyStatus::None);
        if self.tab < first || self.tabs.len() < 2 {
            return self.complain("the first session stays open; q quits");
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
                let last = sides.rows.len().saturating_sub(1);
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
        let mut stays = by > 0;
        // Wrapped lines have nothing to the right of the pane.
        if !self.wraps {
            self.with_detail(|detail| {
                stays |= detail.shift > 0;
                detail.shift = detail.shift.saturating_add_signed(by);
            });
        }
        if !stays {
            self.focus_on(Focus::List, DetailWidth::Pane);
        }
    }
}
