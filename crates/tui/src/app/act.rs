//! What commands do.

use mcp_proxy_control::{
    BreakpointsAddRequest, BreakpointsRemoveRequest, ContinueRequest, ReplaySession,
    RulesListRequest, ShutdownRequest,
};

use super::answers::Then;
use super::decide::Decision;
use super::typed::Writing;
use super::{App, Effect, Focus, Overlay, Owner, Typing};
use crate::command::{Command, Group};
use crate::input::Input;
use crate::proxy::Link;

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
        let then = Then::BreakpointsChanged(format!("breakpoint {id} is gone"));
        self.ask(&BreakpointsRemoveRequest { id }, then);
    }

    /// Does what a command says. `rest` is what was typed behind its name.
    pub fn run(&mut self, command: Command, rest: &str) {
        match command.entry().group {
            Group::Question => return self.answer_question(command),
            Group::Edit => return self.editor_command(command),
            Group::Line => return self.line_command(command),
            Group::Text => return self.text_command(command),
            _ => {}
        }
        match command {
            Command::ToggleIntercept => self.toggle_intercept(),
            Command::Forward => self.resolve(&Decision::Forward),
            Command::Drop => self.resolve(&Decision::Drop),
            Command::Modify => self.modify(),
            Command::EditOutside => self.edit_outside(),
            Command::AnswerError if rest.is_empty() => self.type_error(),
            Command::AnswerError => self.answer_error(rest),
            Command::Step => self.step(),
            Command::Continue => self.resume(),
            Command::NextHeld => self.next_held(),
            Command::Breakpoints => self.open(Overlay::Breakpoints { selected: 0 }),
            Command::BreakHere => self.break_here(rest),
            Command::Unbreak => self.unbreak(rest),
            Command::Rules => {
                self.open(Overlay::Rules { top: 0 });
                self.ask(&RulesListRequest::default(), Then::Rules);
            }
            Command::Filter if rest.is_empty() => self.type_filter(),
            Command::Filter => self.set_filter(rest),
            Command::ClearFilter => self.set_filter(""),
            Command::Search if rest.is_empty() => {
                self.overlay = Overlay::Typing(Typing::Search, Input::default());
            }
            Command::Search => self.search_for(rest),
            Command::SearchNext => self.search_on(1),
            Command::SearchPrevious => self.search_on(-1),
            Command::Fold => self.fold(),
            Command::FoldAll => self.with_detail(|detail| {
                detail.folds.fold_below(&detail.body, 1);
                detail.fold_changed();
            }),
            Command::UnfoldAll => self.with_detail(|detail| {
                detail.folds.unfold_all();
                detail.fold_changed();
            }),
            Command::Peer => self.go_to_peer(),
            Command::Parent => self.go_to_parent(),
            Command::Diff => self.diff(),
            Command::Original => self.original(),
            Command::Stderr => self.open(Overlay::Happenings { back: 0 }),
            Command::Wrap => self.wraps = !self.wraps,
            Command::Copy => self.copy(),
            Command::CopyCurl => self.copy_curl(),
            Command::Down => self.travel(1),
            Command::Up => self.travel(-1),
            Command::PageDown => self.travel(self.page()),
            Command::PageUp => self.travel(-self.page()),
            Command::First => self.travel(isize::MIN / 2),
            Command::Last => {
                self.travel(isize::MAX / 2);
                if let (Focus::List, Some(tab)) = (self.focus, self.current()) {
                    tab.follows = true;
                }
            }
            Command::Follow => {
                if let Some(tab) = self.current() {
                    tab.follows = !tab.follows;
                    if tab.follows {
                        tab.select_place(usize::MAX);
                    }
                }
            }
            Command::OtherPane => {
                self.focus = match self.focus {
                    Focus::List => Focus::Detail,
                    Focus::Detail => Focus::List,
                };
            }
            Command::Left => self.sideways(-8),
            Command::Right => self.sideways(8),
            Command::Goto if rest.is_empty() => self.type_command("goto "),
            Command::Goto => match rest.trim_start_matches('#').parse() {
                Ok(number) => self.go_to(number),
                Err(_) => self.complain(format!("`{rest}` is no message number")),
            },
            Command::Mark => self.mark(),
            Command::NextMark => self.next_mark(),
            Command::Replay => self.replay(ReplaySession::Fresh),
            Command::ReplayLive => self.replay(ReplaySession::Live),
            Command::ReplayEdited => self.replay_edited(),
            Command::Save if rest.is_empty() => self.type_command("save "),
            Command::Save => self.write_file(Writing::Copy, rest),
            Command::Load if rest.is_empty() => self.type_command("load "),
            Command::Load => self.load(rest),
            Command::Export if rest.is_empty() => self.type_command("export har "),
            Command::Export => self.write_file(Writing::Export, rest),
            Command::Note if rest.is_empty() => self.type_note(),
            Command::Note => self.note(rest),
            Command::NextTab => self.tab = (self.tab + 1) % self.tabs.len().max(1),
            Command::PreviousTab => {
                self.tab = (self.tab + self.tabs.len().saturating_sub(1)) % self.tabs.len().max(1);
            }
            Command::CloseTab => self.close_tab(),
            Command::Help => self.open(Overlay::Help { top: 0 }),
            Command::CommandLine => self.type_command(""),
            Command::NextTheme => match crate::theme::Theme::named(rest) {
                Some(theme) => self.theme = theme,
                None if rest.is_empty() => self.theme = self.theme.next(),
                None => self.complain(format!("`{rest}` is none of dark, light, mono")),
            },
            Command::Quit if !matches!(self.overlay, Overlay::None) => self.overlay = Overlay::None,
            Command::Quit => self.quit(),
            Command::Back => {
                if matches!(self.overlay, Overlay::None) {
                    self.focus = Focus::List;
                }
                self.overlay = Overlay::None;
            }
            Command::Leave => match self.overlay {
                Overlay::Editor(_) => self.say("Esc goes back without sending, and then q leaves"),
                _ => self.quit(),
            },
            // Those of other groups, see above.
            _ => {}
        }
    }

    fn quit(&mut self) {
        match self.owner {
            Owner::Here => self.open(Overlay::ConfirmQuit),
            // Somebody's client would wait, and nobody would decide.
            Owner::Other if self.proxy.holds() => self.open(Overlay::ConfirmLeave),
            Owner::Other | Owner::Demo => self.effects.push(Effect::Quit),
        }
    }

    pub(super) fn resume_and_leave(&mut self) {
        self.overlay = Overlay::None;
        self.ask(&ContinueRequest {}, Then::Resumed);
    }

    pub(super) fn end_proxy(&mut self) {
        self.overlay = Overlay::None;
        self.say("the proxy ends …");
        self.ask(&ShutdownRequest {}, Then::Ended);
    }

    fn close_tab(&mut self) {
        let first = usize::from(self.proxy.link != Link::None);
        if self.tab < first || self.tabs.len() < 2 {
            return self.complain("this session stays open; q leaves");
        }
        self.tabs.remove(self.tab);
        self.tab = self.tab.min(self.tabs.len() - 1);
    }

    fn page(&self) -> isize {
        let tab = self.tabs.get(self.tab);
        let rows = match self.focus {
            Focus::List => tab.map_or(1, |tab| tab.height),
            Focus::Detail => tab
                .and_then(|tab| tab.detail.as_ref())
                .map_or(1, |detail| detail.height),
        };
        isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Moves whatever has the keys.
    pub(super) fn travel(&mut self, by: isize) {
        let moved = |place: &mut usize, last: usize| {
            *place = place.saturating_add_signed(by).min(last);
        };
        match &mut self.overlay {
            Overlay::Help { top } => moved(top, 4 * crate::command::COMMANDS.len()),
            Overlay::Rules { top } => moved(top, self.proxy.rules.rules.len().saturating_sub(1)),
            Overlay::Breakpoints { selected } => {
                moved(selected, self.proxy.breakpoints.len().saturating_sub(1));
            }
            Overlay::Diff(sides) => {
                let last = sides.lines.len().saturating_sub(1);
                moved(&mut sides.top, last);
            }
            Overlay::Happenings { back } => *back = back.saturating_add_signed(-by).min(5_000),
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
                    let told = tab.view.told(tab.selected?).ok()?;
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
        let then =
            Then::BreakpointsChanged(format!("messages with `{filter}` are held from now on"));
        let request = BreakpointsAddRequest {
            filter,
            ..BreakpointsAddRequest::default()
        };
        self.ask(&request, then);
    }
}
