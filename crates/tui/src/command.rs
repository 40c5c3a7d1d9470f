//! Everything that can be done, in one table: what it is called, which keys do it, and what it is good for.
//!
//! The help overlay, the status bar, the control bar, the `:` line and `docs/keys.md` are all made from it.

mod keys;

use crossterm::event::KeyEvent;

pub use keys::keys_page;
pub(crate) use keys::{key_name, shown_key};

macro_rules! commands {
    ($( $group:ident { $( $command:ident $name:literal [ $($key:literal),* ] $about:literal ; )* } )*) => {
        /// Something that can be done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UiCommand {
            $( $( #[doc = $about] $command, )* )*
        }

        /// The one list.
        pub const COMMANDS: &[CommandEntry] = &[
            $( $( CommandEntry {
                command: UiCommand::$command,
                name: $name,
                keys: &[$($key),*],
                about: $about,
                group: CommandGroup::$group,
            }, )* )*
        ];
    };
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct CommandEntry {
    /// What it is.
    pub command: UiCommand,
    /// Its name on the `:` line.
    pub name: &'static str,
    /// The keys that do it.
    pub keys: &'static [&'static str],
    /// What it does.
    pub about: &'static str,
    /// Where it belongs.
    pub group: CommandGroup,
}

/// What commands are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandGroup {
    /// Moving about.
    Move,
    /// Looking at messages.
    Look,
    /// Deciding about held messages.
    Decide,
    /// Sending again.
    Replay,
    /// Records.
    Records,
    /// The program.
    Program,
    /// The servers of a hub.
    Servers,
    /// The editor.
    Edit,
    /// A line that is typed.
    Line,
    /// Both of these.
    Text,
    /// The question before quitting.
    Question,
    /// A notice that has to be seen.
    Notice,
}

/// Which part of the screen gets key presses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyContext {
    /// The panes, and windows over them.
    Panes,
    /// The servers of a hub, where a letter is about the selected server.
    Servers,
    /// The editor, which takes all letters.
    Editor,
    /// A line that is typed, which does so too.
    Line,
    /// The question before quitting.
    Question,
    /// A notice that has to be seen.
    Notice,
}

impl CommandGroup {
    /// All, in the order of the help.
    pub const ALL: [CommandGroup; 12] = [
        CommandGroup::Decide,
        CommandGroup::Look,
        CommandGroup::Move,
        CommandGroup::Replay,
        CommandGroup::Records,
        CommandGroup::Program,
        CommandGroup::Servers,
        CommandGroup::Edit,
        CommandGroup::Line,
        CommandGroup::Text,
        CommandGroup::Question,
        CommandGroup::Notice,
    ];

    /// Whether its keys count there.
    pub fn is_for(self, context: KeyContext) -> bool {
        match self {
            CommandGroup::Edit => context == KeyContext::Editor,
            CommandGroup::Line => context == KeyContext::Line,
            CommandGroup::Text => matches!(context, KeyContext::Editor | KeyContext::Line),
            CommandGroup::Question => context == KeyContext::Question,
            CommandGroup::Notice => context == KeyContext::Notice,
            CommandGroup::Servers => context == KeyContext::Servers,
            CommandGroup::Program => matches!(context, KeyContext::Panes | KeyContext::Servers),
            _ => context == KeyContext::Panes,
        }
    }

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            CommandGroup::Move => "Moving",
            CommandGroup::Look => "Looking",
            CommandGroup::Decide => "Holding and deciding",
            CommandGroup::Replay => "Replaying",
            CommandGroup::Records => "Records",
            CommandGroup::Program => "Program",
            CommandGroup::Servers => "In the servers window",
            CommandGroup::Edit => "In the editor",
            CommandGroup::Line => "On an input line",
            CommandGroup::Text => "In the editor and on an input line",
            CommandGroup::Question => "When asked before quitting",
            CommandGroup::Notice => "In a notice",
        }
    }
}

commands! {
    Decide {
        ToggleIntercept "intercept" ["i"] "Intercept on or off: hold every message";
        Forward "forward" ["F5"] "Forward the held message";
        Modify "modify" ["F6", "e"] "Edit the held message here; Ctrl-S sends it, Esc closes it and keeps your draft";
        EditOutside "editor" ["E"] "Edit the held message in $VISUAL or $EDITOR";
        Drop "drop" ["F8"] "Drop the held message";
        AnswerError "error" ["x"] "Answer the held request with an error: `:error CODE TEXT`";
        Step "step" ["s"] "Forward the oldest held message and hold the next one";
        Extend "extend" ["+"] "Give the held message another minute, or `:extend SECONDS`";
        Continue "continue" ["c"] "Forward all held messages and turn intercept off";
        NextHeld "next-held" ["w"] "Go to the next held message";
        Breakpoints "breakpoints" ["b"] "List the breakpoints: each holds what matches its filter";
        BreakHere "break" ["B"] "Hold messages like this one, or `:break FILTER`";
        Unbreak "unbreak" ["d", "delete"] "Remove the selected breakpoint, or `:unbreak NUMBER`";
        Rules "rules" ["u"] "List the rules";
    }
    Look {
        Filter "filter" ["F2", "f"] "Show only what matches: words, /regex/ or jq";
        ClearFilter "clear-filter" ["ctrl-l"] "Show everything again";
        Errors "errors" ["!"] "Show only errors and failed tools, or everything again";
        Calls "calls" ["C"] "One row for each call (request and answer together), or for each message";
        Headers "headers" ["H"] "Show the HTTP headers of messages, or fold them";
        Search "search" ["/"] "Search in the message that is shown";
        SearchNext "search-next" ["n"] "Next match";
        SearchPrevious "search-previous" ["N"] "Previous match";
        Fold "fold" ["space"] "Fold or unfold this part of the message";
        FoldAll "fold-all" ["z"] "Fold all parts";
        UnfoldAll "unfold-all" ["Z"] "Unfold all parts";
        Peer "peer" ["p"] "Go to the answer, or to the request that this answers";
        Parent "parent" ["P"] "Go to the call that caused this message";
        Diff "diff" ["D"] "Compare: as received and as forwarded, or the answers to a request and its replay; `:diff A B` compares two messages";
        Original "original" ["o"] "Show the message as received, or as forwarded";
        Stderr "stderr" ["l"] "What the server wrote to stderr, and other events";
        Servers "servers" ["v"] "The servers of a hub: their state, restart, enable, disable";
        Wrap "wrap" ["W"] "Wrap long lines, or cut them";
        Copy "copy" ["y"] "Copy the message";
        CopyCurl "copy-curl" ["Y"] "Copy the message as a curl command";
    }
    Move {
        Down "down" ["j", "down"] "Down";
        Up "up" ["k", "up"] "Up";
        PageDown "page-down" ["ctrl-d", "pagedown"] "A page down";
        PageUp "page-up" ["ctrl-u", "pageup"] "A page up";
        First "first" ["g", "home"] "First";
        Last "last" ["G", "end"] "Last, and follow new messages";
        Follow "follow" ["F"] "Follow new messages, or stay here";
        OtherPane "other-pane" ["tab"] "Go to the other pane";
        Open "open" ["enter"] "Show the message on the whole width, or go back to the list";
        Left "left" ["h", "left"] "Scroll the text left, or go back to the list";
        Right "right" ["right"] "Go to the message, or scroll its text right";
        Goto "goto" ["#"] "Go to a message by its number: `:goto 120`";
        Mark "mark" ["m"] "Mark this message (kept in the record), or remove the mark";
        NextMark "next-mark" ["'"] "Go to the next marked message";
    }
    Replay {
        Replay "replay" ["r"] "Replay this message in a new session";
        ReplayEdited "replay-edited" ["R"] "Edit this message and replay it in a new session";
        ReplayLive "replay-live" ["ctrl-r"] "Replay this message in its own session";
    }
    Records {
        Save "save" ["S"] "Copy the record: `:save PATH`";
        Load "load" ["O"] "Open another record in a new tab: `:load PATH`";
        Export "export" ["X"] "Export the session as json, jsonl, har or md: `:export FORMAT PATH`, or `:export PATH` by its ending";
        Note "note" ["a"] "Write a note into the record: `:note TEXT`";
        NextTab "next-session" ["]"] "Next session";
        PreviousTab "previous-session" ["["] "Previous session";
        CloseTab "close-session" ["ctrl-w"] "Close this tab, unless it is the first";
    }
    Program {
        Help "help" ["F1", "?"] "These keys";
        CommandLine "command" [":"] "Type a command by its name";
        NextTheme "theme" ["t"] "Other colours: `:theme dark|light|mono`";
        Quit "quit" ["q", "Q"] "Quit. Asks first if that would end the proxy, or leave it holding messages";
        Leave "leave" ["ctrl-c"] "Quit from anywhere except the editor";
        Suspend "suspend" ["ctrl-z"] "Suspend the program (`fg` continues it); in the editor the key undoes";
        Back "back" ["esc"] "Close the open window, or go back to the list";
    }
    Servers {
        ServerMessages "server-messages" ["enter", "f"] "Show only the messages of the selected server";
        RestartServer "restart-server" ["r"] "Restart the selected server; calls that it has not answered fail";
        EnableServer "enable-server" ["e"] "Enable the selected server again";
        DisableServer "disable-server" ["d"] "Disable the selected server: stop it and hide what it offers";
        ReloadServers "reload-servers" ["R"] "Read the configuration again";
    }
    Edit {
        Send "send" ["ctrl-s"] "Send what is in the editor";
        CloseEditor "close-editor" ["esc"] "Close without sending; your draft is kept";
        EditExternally "edit-externally" ["ctrl-e"] "Continue editing in $VISUAL or $EDITOR";
        StartOver "start-over" ["ctrl-o"] "Discard your changes and start from the message again";
        Undo "undo" ["ctrl-z"] "Undo";
        CutLine "cut-line" ["ctrl-k"] "Delete to the end of the line, or join the next line";
        NewLine "new-line" ["enter"] "New line";
        Indent "indent" ["tab"] "Two spaces";
        LineUp "line-up" ["up"] "Line up";
        LineDown "line-down" ["down"] "Line down";
        LinesUp "lines-up" ["pageup"] "Page up";
        LinesDown "lines-down" ["pagedown"] "Page down";
    }
    Line {
        Accept "accept" ["enter"] "Done";
        GiveUp "give-up" ["esc"] "Cancel";
        Older "older" ["up"] "Previous line of the history";
        Newer "newer" ["down"] "Next line of the history";
        LineEnd "line-end" ["ctrl-e"] "End of the line";
        CutBefore "cut-before" ["ctrl-u"] "Delete everything before the cursor";
        CutWord "cut-word" ["ctrl-w"] "Delete the word before the cursor";
    }
    Text {
        TextLeft "text-left" ["left"] "Left";
        TextRight "text-right" ["right"] "Right";
        TextStart "text-start" ["home", "ctrl-a"] "Start of the line";
        TextEnd "text-end" ["end"] "End of the line";
        Backspace "backspace" ["backspace"] "Delete the character before the cursor";
        Delete "delete" ["delete"] "Delete the character under the cursor";
    }
    Question {
        EndProxy "end-proxy" ["y", "Y"] "End the proxy that runs here";
        ForwardAndQuit "forward-and-quit" ["c", "C"] "Remove the breakpoints, forward all held messages and quit";
        QuitHolding "quit-holding" ["l", "L"] "Quit, and leave the proxy holding messages";
        Stay "stay" ["n", "N", "q", "Q", "esc"] "Do not quit";
        Confirm "confirm" ["enter"] "The first choice";
    }
    Notice {
        Dismiss "dismiss" ["esc"] "Close the notice";
    }
}

impl CommandEntry {
    /// Whether its keys count there.
    pub fn is_for(&self, context: KeyContext) -> bool {
        let moves = context == KeyContext::Servers && self.command.moves_up_or_down();
        let everywhere = match self.command {
            UiCommand::Leave => true,
            // There the key undoes.
            UiCommand::Suspend => context != KeyContext::Editor,
            _ => false,
        };
        self.group.is_for(context) || everywhere || moves
    }

    /// Its name, with a colon if it can be typed.
    pub fn shown_name(&self) -> String {
        match self.is_for(KeyContext::Panes) {
            true => format!(":{}", self.name),
            false => self.name.to_owned(),
        }
    }
}

impl UiCommand {
    /// Its line of the table.
    pub fn entry(self) -> &'static CommandEntry {
        COMMANDS
            .iter()
            .find(|entry| entry.command == self)
            .unwrap_or(&COMMANDS[0])
    }

    /// Whether it does nothing without a text after its name.
    pub(crate) fn needs_text(self) -> bool {
        use UiCommand::{Export, Goto, Load, Note, Save};
        matches!(self, Export | Goto | Load | Note | Save)
    }

    /// Whether it moves about in a list.
    fn moves_up_or_down(self) -> bool {
        use UiCommand::{Down, First, Last, PageDown, PageUp, Up};
        matches!(self, Down | Up | PageDown | PageUp | First | Last)
    }

    /// The one that a key does there.
    pub fn of_key(context: KeyContext, key: KeyEvent) -> Option<UiCommand> {
        let name = key_name(key)?;
        let mut entries = COMMANDS.iter().filter(|entry| entry.is_for(context));
        entries
            .find(|entry| entry.keys.contains(&name.as_str()))
            .map(|entry| entry.command)
    }

    /// Its first key, as people read it.
    pub fn key(self) -> String {
        let key = self.entry().keys.first();
        key.map_or(String::new(), |key| shown_key(key))
    }

    /// The one of a name; the beginning of one is enough if there is no other. What only a window knows cannot be typed.
    pub fn named(name: &str) -> Option<UiCommand> {
        let typed = || {
            COMMANDS
                .iter()
                .filter(|entry| entry.is_for(KeyContext::Panes))
        };
        if let Some(entry) = typed().find(|entry| entry.name == name) {
            return Some(entry.command);
        }
        let mut found = typed().filter(|entry| entry.name.starts_with(name));
        match (found.next(), found.next()) {
            (Some(entry), None) if !name.is_empty() => Some(entry.command),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_and_no_name_is_there_twice() {
        let mut lists = vec![COMMANDS.iter().map(|entry| entry.name).collect()];
        let contexts = [
            KeyContext::Panes,
            KeyContext::Servers,
            KeyContext::Editor,
            KeyContext::Line,
            KeyContext::Question,
            KeyContext::Notice,
        ];
        for context in contexts {
            let here = COMMANDS.iter().filter(|entry| entry.is_for(context));
            let keys: Vec<&str> = here.flat_map(|entry| entry.keys).copied().collect();
            lists.push(keys);
        }
        for mut list in lists {
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
        assert_eq!(UiCommand::named("forward"), Some(UiCommand::Forward));
        assert_eq!(UiCommand::named("q"), Some(UiCommand::Quit));
        assert_eq!(UiCommand::named("end-proxy"), None);
        assert_eq!(UiCommand::named("s"), None);
        assert_eq!(UiCommand::named("break"), Some(UiCommand::BreakHere));
    }
}
