//! Everything that can be done, in one table: what it is called, which keys do it, and what it is good for.
//!
//! The help overlay, the status bar, the control bar, the `:` line and `docs/keys.md` are all made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

macro_rules! commands {
    ($( $group:ident { $( $command:ident $name:literal [ $($key:literal),* ] $about:literal ; )* } )*) => {
        /// Something that can be done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $( $( #[doc = $about] $command, )* )*
        }

        /// The one list.
        pub const COMMANDS: &[Entry] = &[
            $( $( Entry {
                command: Command::$command,
                name: $name,
                keys: &[$($key),*],
                about: $about,
                group: Group::$group,
            }, )* )*
        ];
    };
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is.
    pub command: Command,
    /// Its name on the `:` line.
    pub name: &'static str,
    /// The keys that do it.
    pub keys: &'static [&'static str],
    /// What it does.
    pub about: &'static str,
    /// Where it belongs.
    pub group: Group,
}

/// What commands are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Moving about.
    Move,
    /// Looking at messages.
    Look,
    /// Deciding about held messages.
    Decide,
    /// Sending again.
    Again,
    /// Records.
    Keep,
    /// The program.
    Program,
}

impl Group {
    /// All, in the order of the help.
    pub const ALL: [Group; 6] = [
        Group::Decide,
        Group::Look,
        Group::Move,
        Group::Again,
        Group::Keep,
        Group::Program,
    ];

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Move => "Moving",
            Group::Look => "Looking",
            Group::Decide => "Holding and deciding",
            Group::Again => "Sending again",
            Group::Keep => "Records",
            Group::Program => "Program",
        }
    }
}

commands! {
    Decide {
        ToggleIntercept "intercept" ["i"] "Hold every message, or let all pass again";
        Forward "forward" ["F5"] "Send the held message on";
        Modify "modify" ["F6", "e"] "Edit the held message here; Ctrl-S sends it, Esc goes back without sending";
        Send "send" ["ctrl-s"] "Send what is in the editor";
        EditOutside "editor" ["E", "ctrl-e"] "Edit the held message, or what is in the editor, in $VISUAL or $EDITOR";
        Drop "drop" ["F8"] "Let the held message go nowhere";
        AnswerError "error" ["x"] "Drop the held request and answer it with an error: `:error CODE TEXT`";
        Step "step" ["s"] "Send the oldest held message on; the next one is held again";
        Continue "continue" ["c"] "Send everything held on, and let all pass";
        NextHeld "next-held" ["w"] "Go to the next held message";
        Breakpoints "breakpoints" ["b"] "Breakpoints: hold what matches a filter";
        BreakHere "break" ["B"] "Hold messages like this one, or `:break FILTER`";
        Unbreak "unbreak" ["d", "delete"] "Remove the selected breakpoint, or `:unbreak NUMBER`";
        Rules "rules" ["u"] "The rules that messages go through";
    }
    Look {
        Filter "filter" ["F2", "f"] "Show only what matches: words, /regex/ or jq";
        ClearFilter "clear-filter" ["ctrl-l"] "Show everything again";
        Search "search" ["/"] "Search in the message that is shown";
        SearchNext "search-next" ["n"] "The next place that matches";
        SearchPrevious "search-previous" ["N"] "The place before";
        Fold "fold" ["space"] "Fold or unfold this part of the message";
        FoldAll "fold-all" ["z"] "Fold all parts";
        UnfoldAll "unfold-all" ["Z"] "Unfold all parts";
        Peer "peer" ["p"] "Go to the answer, or to the request that this answers";
        Diff "diff" ["D"] "Side by side: as received and as sent on, or first sent and replayed";
        Original "original" ["o"] "The message as it was received, or as it went on";
        Stderr "stderr" ["l"] "What the server wrote on stderr, and other events";
        Wrap "wrap" ["W"] "Wrap long lines, or cut them";
        Copy "copy" ["y"] "Copy the message";
        CopyCurl "copy-curl" ["Y"] "Copy the message as a curl command";
    }
    Move {
        Down "down" ["j", "down"] "Down";
        Up "up" ["k", "up"] "Up";
        PageDown "page-down" ["ctrl-d", "pagedown"] "A page down";
        PageUp "page-up" ["ctrl-u", "pageup"] "A page up";
        First "first" ["g", "home"] "The first";
        Last "last" ["G", "end"] "The last, and follow what comes";
        Follow "follow" ["F"] "Follow new messages, or stay here";
        OtherPane "other-pane" ["tab", "enter"] "Go to the other pane";
        Left "left" ["h", "left"] "To the left: shift the text, or back to the list";
        Right "right" ["right"] "To the right: into the message, or shift the text";
        Goto "goto" ["#"] "Go to a message by its number: `:goto 120`";
        Mark "mark" ["m"] "Mark this message, in the record too, or take the mark away";
        NextMark "next-mark" ["'"] "Go to the next marked message";
    }
    Again {
        Replay "replay" ["r"] "Send this message again on a fresh session";
        ReplayEdited "replay-edited" ["R"] "Edit this message and send it again on a fresh session";
        ReplayLive "replay-live" ["ctrl-r"] "Send this message again on its own session";
    }
    Keep {
        Save "save" ["S"] "Copy the record and its side files: `:save PATH`";
        Load "load" ["O"] "Open another record beside this one: `:load PATH`";
        Export "export" ["X"] "Write the session as json, jsonl, har or markdown: `:export FORMAT PATH`";
        Note "note" ["a"] "Write a note into the record: `:note TEXT`";
        NextTab "next-session" ["]"] "The next session";
        PreviousTab "previous-session" ["["] "The session before";
        CloseTab "close-session" ["ctrl-w"] "Close a session that was opened beside the first";
    }
    Program {
        Help "help" ["F1", "?"] "These keys";
        CommandLine "command" [":"] "Type a command by its name";
        NextTheme "theme" ["t"] "Other colours: `:theme dark|light|mono`";
        Quit "quit" ["q", "Q"] "Leave. It asks first where the proxy runs here and would end, or would go on holding messages";
        Back "back" ["esc"] "Close what is open, back to the list";
    }
}

impl Command {
    /// Its line of the table.
    pub fn entry(self) -> &'static Entry {
        COMMANDS
            .iter()
            .find(|entry| entry.command == self)
            .unwrap_or(&COMMANDS[0])
    }

    /// The one that a key does.
    pub fn of_key(key: KeyEvent) -> Option<Command> {
        let name = key_name(key)?;
        let mut entries = COMMANDS.iter();
        entries
            .find(|entry| entry.keys.contains(&name.as_str()))
            .map(|entry| entry.command)
    }

    /// The one of a name; the beginning of one is enough if there is no other.
    pub fn named(name: &str) -> Option<Command> {
        if let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name) {
            return Some(entry.command);
        }
        let mut found = COMMANDS.iter().filter(|entry| entry.name.starts_with(name));
        match (found.next(), found.next()) {
            (Some(entry), None) if !name.is_empty() => Some(entry.command),
            _ => None,
        }
    }
}

/// A key as the table writes it.
pub fn key_name(key: KeyEvent) -> Option<String> {
    // Esc and a letter in quick succession look like this.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let base = match key.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::F(number) => format!("F{number}"),
        KeyCode::Enter => "enter".to_owned(),
        KeyCode::Esc => "esc".to_owned(),
        KeyCode::Tab => "tab".to_owned(),
        KeyCode::Delete => "delete".to_owned(),
        KeyCode::Up => "up".to_owned(),
        KeyCode::Down => "down".to_owned(),
        KeyCode::Left => "left".to_owned(),
        KeyCode::Right => "right".to_owned(),
        KeyCode::Home => "home".to_owned(),
        KeyCode::End => "end".to_owned(),
        KeyCode::PageUp => "pageup".to_owned(),
        KeyCode::PageDown => "pagedown".to_owned(),
        _ => return None,
    };
    match key.modifiers.contains(KeyModifiers::CONTROL) {
        true => Some(format!("ctrl-{base}")),
        false => Some(base),
    }
}

/// A key for people: `Ctrl-S`, `Space`, `F5`, `j`.
pub fn shown_key(name: &str) -> String {
    if let Some(letter) = name.strip_prefix("ctrl-") {
        return format!("Ctrl-{}", letter.to_uppercase());
    }
    match name {
        "up" => "↑".to_owned(),
        "down" => "↓".to_owned(),
        "left" => "←".to_owned(),
        "right" => "→".to_owned(),
        "pageup" => "PgUp".to_owned(),
        "pagedown" => "PgDn".to_owned(),
        "space" | "enter" | "tab" | "esc" | "home" | "end" | "delete" => {
            let mut letters = name.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
        other => other.to_owned(),
    }
}

/// `docs/keys.md`.
pub fn keys_page() -> String {
    let mut page = String::from(
        "# Keys of the terminal UI\n\nMade by the program from its table of commands; a test compares, and\n`UPDATE_DOCS=1 cargo test -p mcp-proxy-tui` writes it anew. Every command can also be typed: `:name`. [tui.md](tui.md)\nexplains the screen.\n",
    );
    for group in Group::ALL {
        page.push_str(&format!(
            "\n## {}\n\n| key | command | does |\n|---|---|---|\n",
            group.heading()
        ));
        for entry in COMMANDS.iter().filter(|entry| entry.group == group) {
            let keys: Vec<String> = entry
                .keys
                .iter()
                .map(|key| format!("`{}`", shown_key(key)))
                .collect();
            let about = entry.about.replace('|', "\\|");
            page.push_str(&format!(
                "| {} | `:{}` | {about} |\n",
                keys.join(" "),
                entry.name
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_and_no_name_is_there_twice() {
        let mut keys: Vec<&str> = COMMANDS
            .iter()
            .flat_map(|entry| entry.keys)
            .copied()
            .collect();
        let mut names: Vec<&str> = COMMANDS.iter().map(|entry| entry.name).collect();
        for list in [&mut keys, &mut names] {
            let before = list.len();
            list.sort_unstable();
            list.dedup();
            assert_eq!(list.len(), before, "{list:?}");
        }
    }

    #[test]
    fn every_command_has_a_key_and_says_what_it_does() {
        for entry in COMMANDS {
            assert!(!entry.keys.is_empty(), "{}", entry.name);
            assert!(!entry.about.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn names_may_be_shortened_as_long_as_they_are_clear() {
        assert_eq!(Command::named("forward"), Some(Command::Forward));
        assert_eq!(Command::named("q"), Some(Command::Quit));
        assert_eq!(Command::named("s"), None);
        assert_eq!(Command::named("break"), Some(Command::BreakHere));
    }
}
