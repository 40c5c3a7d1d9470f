//! Lines that are typed: filters, searches, commands.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use mcp_proxy_control::{ExportRequest, NoteRequest, SaveRequest};
use mcp_proxy_session::Filter;
use mcp_proxy_session::export::{SessionExporter, exporter, exporter_for_file, file_endings};
use mcp_proxy_session::store::check_record;

use super::answers::RequestPurpose;
use super::{App, Focus, Overlay, PromptKind};
use crate::command::UiCommand;
use crate::port::RecordRequest;
use crate::proxy::ProxyStatus;
use crate::tab::Tab;
use crate::text_area::{edit, input_line};

/// The filter that shows what went wrong.
const ERRORS: &str = r#".status == "error""#;

/// Filters that can come back.
#[derive(Default)]
pub(super) struct EarlierFilters {
    /// The one before another was typed.
    before_typing: String,
    /// The one before only errors were shown.
    before_errors: String,
}

impl App {
    pub(super) fn type_filter(&mut self) {
        let filter = self.current().map(|tab| tab.view.filter().to_owned());
        self.filters.before_typing = filter.unwrap_or_default();
        let before = self.filters.before_typing.clone();
        self.type_line(PromptKind::Filter, &before);
    }

    /// Has a line typed that begins with this text.
    pub(super) fn type_line(&mut self, kind: PromptKind, text: &str) {
        self.overlay = Overlay::Prompt(kind, Box::new(input_line(text)));
    }

    pub(super) fn type_command(&mut self, text: &str) {
        self.type_line(PromptKind::UiCommand, text);
    }

    pub(super) fn type_note(&mut self) {
        if let Some(why) = self.cannot_note() {
            return self.complain(why);
        }
        let selected = self.current().and_then(|tab| tab.selected);
        let number = selected.map(|selected| format!("#{selected}: "));
        self.type_command(&format!("note {}", number.unwrap_or_default()));
    }

    /// Writes a note into the record of the live session.
    pub(super) fn note(&mut self, text: &str) {
        if let Some(why) = self.cannot_note() {
            return self.complain(why);
        }
        let (sequence, text) = message_and_text(text);
        let request = NoteRequest {
            sequence,
            text: text.to_owned(),
            ..NoteRequest::default()
        };
        let said = match sequence {
            Some(sequence) => format!("your note on #{sequence} is in the record"),
            None => "your note is in the record".to_owned(),
        };
        self.ask(&request, RequestPurpose::Say(said));
    }

    fn cannot_note(&self) -> Option<String> {
        let is_loaded = self.tab != 0;
        let loaded = "this is a loaded record; notes go into the record of the live session only";
        self.cannot_decide()
            .or_else(|| is_loaded.then(|| loaded.to_owned()))
    }

    /// Does what a key stands for on the line that is typed.
    pub(super) fn line_command(&mut self, command: UiCommand) {
        let Overlay::Prompt(typing, input) = &mut self.overlay else {
            return;
        };
        let typing = *typing;
        let history = &mut self.history[typing as usize];
        match command {
            UiCommand::Accept => {
                let text = input.lines().concat();
                // A filter that is wrong stays to be put right; the list shows what it showed.
                if typing == PromptKind::Filter
                    && let Err(error) = Filter::parse(&text)
                {
                    return self.complain(format!("not a filter: {error}"));
                }
                history.keep(&text);
                self.overlay = Overlay::None;
                self.submit_prompt(typing, &text);
            }
            UiCommand::GiveUp => {
                self.overlay = Overlay::None;
                if typing == PromptKind::Filter {
                    let before = std::mem::take(&mut self.filters.before_typing);
                    self.set_filter(&before);
                }
            }
            UiCommand::Older => {
                if let Some(older) = history.older() {
                    **input = input_line(older);
                }
            }
            UiCommand::Newer => {
                if let Some(newer) = history.newer() {
                    **input = input_line(newer);
                }
            }
            command => {
                edit(input, command);
            }
        }
        self.filter_as_typed();
    }

    /// The list shows what the filter lets through while it is typed; half a filter that is wrong changes nothing yet.
    pub(super) fn filter_as_typed(&mut self) {
        if let Overlay::Prompt(PromptKind::Filter, input) = &self.overlay
            && let [filter] = input.lines()
            && let Some(tab) = self.tabs.get_mut(self.tab)
            && tab.view.filter() != filter
        {
            match tab.set_filter(filter) {
                Ok(()) => self.status = None,
                Err(why) => self.complain(format!("not a filter yet: {why}")),
            }
        }
    }

    fn submit_prompt(&mut self, typing: PromptKind, text: &str) {
        match typing {
            PromptKind::Filter => self.set_filter(text),
            PromptKind::Search => self.search_for(text),
            PromptKind::UiCommand => self.command_line(text.trim()),
        }
    }

    fn command_line(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if let Ok(number) = line.trim_start_matches('#').parse() {
            return self.go_to(number);
        }
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match UiCommand::named(name) {
            Some(command) if rest.trim().is_empty() && command.needs_text() => {
                let entry = command.entry();
                self.complain(format!("`:{}` needs more: {}", entry.name, entry.about));
            }
            Some(command) => self.run(command, rest.trim()),
            None => self.complain(format!(
                "unknown or ambiguous command `{name}`; F1 lists them"
            )),
        }
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        let Some(tab) = self.current() else {
            return;
        };
        if let Err(error) = tab.set_filter(text) {
            self.complain(format!("not a filter: {error}"));
        }
    }

    /// Shows only what went wrong, or again what was shown before.
    pub(super) fn toggle_errors(&mut self) {
        let Some(tab) = self.tabs.get(self.tab) else {
            return;
        };
        let filter = tab.view.filter().to_owned();
        let wanted = match filter == ERRORS {
            true => std::mem::take(&mut self.filters.before_errors),
            false => {
                self.filters.before_errors = filter;
                ERRORS.to_owned()
            }
        };
        self.set_filter(&wanted);
    }

    pub(super) fn search_for(&mut self, text: &str) {
        self.search = text.to_owned();
        self.focus = Focus::Detail;
        self.search_on(0);
    }

    /// Goes to the next place that matches, the one before, or with 0 the first from here.
    pub(super) fn search_on(&mut self, by: isize) {
        if self.search.is_empty() {
            return self.complain("nothing was searched for yet (/ searches)");
        }
        let needle = self.search.clone();
        let Some(tab) = self.tabs.get_mut(self.tab) else {
            return;
        };
        tab.show();
        let Some(detail) = &mut tab.detail else {
            return;
        };
        let here = detail.line().unwrap_or(0);
        let found = match by {
            0 => detail.body.find(&needle, here),
            1.. => detail.body.find(&needle, here + 1),
            _ => detail.body.find_back(&needle, here.saturating_sub(1)),
        };
        match found {
            Some(line) => {
                let from = detail.body.place_in_line(&needle, line);
                detail.go_to_text(line, from);
            }
            None => self.complain(format!("`{needle}` was not found in this message")),
        }
    }

    pub(super) fn load(&mut self, path: &str) {
        let path = absolute(path);
        if !path.is_file() {
            return self.complain(format!("{} is not a file", path.display()));
        }
        // The first line shows whether it is a record; a worker thread reads the rest, and finds out about exports.
        if let Err(error) = check_record(&path)
            && !may_be_export(&path)
        {
            return self.complain(error.chain());
        }
        self.tabs.push(Tab::open(path));
        self.tab = self.tabs.len() - 1;
    }

    /// Has a copy or an export written. A record that was loaded is written by nobody: the commands of the shell do that.
    pub(super) fn write_file(&mut self, what: FileOutput, rest: &str) {
        let first = self.tab == 0;
        if !first && self.proxy.link != ProxyStatus::None {
            return self.complain(format!(
                "only the live session can be saved and exported here; for this one use `{}`",
                what.in_the_shell()
            ));
        }
        // Without a proxy, the program that answers has to be told which record is meant.
        let record = match self.proxy.link {
            ProxyStatus::None => self.current().and_then(|tab| tab.view.path()),
            _ => None,
        };
        let record = record.map(|path| PathBuf::from(path.to_string_lossy().into_owned()));
        let output = |path: &str| absolute(path).to_string_lossy().into_owned();
        let then = RequestPurpose::Written(what);
        match what {
            FileOutput::Copy => {
                let output = output(rest);
                let request = SaveRequest { output };
                self.ask(&RecordRequest { request, record }, then);
            }
            FileOutput::Export => {
                let (format, path) = match format_and_path(rest) {
                    Ok(found) => found,
                    Err(why) => return self.complain(why),
                };
                let request = ExportRequest {
                    format: format.name().to_owned(),
                    output: output(path),
                    force: false,
                };
                self.ask(&RecordRequest { request, record }, then);
            }
        }
    }
}

/// `FORMAT PATH`, or a path whose ending names the format.
fn format_and_path(rest: &str) -> Result<(&'static SessionExporter, &str), String> {
    let (first, path) = rest.split_once(' ').unwrap_or((rest, ""));
    if let Some(format) = exporter(first) {
        return match path.trim() {
            "" => Err("a path is needed: `:export session.har`".to_owned()),
            path => Ok((format, path)),
        };
    }
    match exporter_for_file(Path::new(rest)) {
        Some(format) => Ok((format, rest)),
        None => Err(format!(
            "no format has this ending; use one of {}, or name the format first: `:export json {rest}`",
            file_endings()
        )),
    }
}

/// What is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOutput {
    /// The record.
    Copy,
    /// The session in another format.
    Export,
}

impl FileOutput {
    /// What does the same without a UI.
    fn in_the_shell(self) -> &'static str {
        match self {
            FileOutput::Copy => "cp",
            FileOutput::Export => "mcp-proxy export",
        }
    }

    /// What was done when it is done.
    pub(super) fn done(self) -> &'static str {
        match self {
            FileOutput::Copy => "saved",
            FileOutput::Export => "exported",
        }
    }
}

/// Whether a file can be a JSON export: it begins as one.
fn may_be_export(path: &Path) -> bool {
    let mut start = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    let start = start[..read.unwrap_or(0)].trim_ascii_start();
    start.first() == Some(&b'{')
}

/// The proxy has another folder, and no shell is there to know `~/`.
fn absolute(path: &str) -> PathBuf {
    let path = path.trim();
    let home = std::env::var_os("HOME");
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    };
    std::path::absolute(&path).unwrap_or(path)
}

/// `#12: TEXT` is a note on message 12.
fn message_and_text(note: &str) -> (Option<u64>, &str) {
    let parts = note.strip_prefix('#').and_then(|rest| rest.split_once(':'));
    let parts = parts.and_then(|(number, text)| Some((number.parse().ok()?, text.trim_start())));
    match parts {
        Some((number, text)) => (Some(number), text),
        None => (None, note),
    }
}
