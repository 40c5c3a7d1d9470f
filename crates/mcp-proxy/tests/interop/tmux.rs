//! A real terminal, that of tmux, with one program in it: its screen is read and waited for, and keys are pressed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine. A client of the SDKs gives up about then.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a program in the folder that is named first, says how it ended and how it left the terminal, and then repeats what
/// is typed. Ctrl-C is for the program.
const SCRIPT: &str = r#"trap : INT
cd "$1" || exit
shift
sh -c 'echo $$ >program.pid; exec "$@"' sh "$@"
code=$?
stty -a
echo "ended with $code"
while read -r line; do echo "heard $line"; done
"#;

/// A terminal; gone when dropped.
pub struct TmuxTerminal {
    socket: PathBuf,
    home: PathBuf,
}

impl TmuxTerminal {
    /// Starts `command`, a shell's line, in a terminal.
    pub fn start(home: &Path, command: &str) -> TmuxTerminal {
        // A name for each: a folder may see several, one after the other.
        let socket = (0..)
            .map(|number| home.join(format!("tmux{number}")))
            .find(|path| !path.exists())
            .expect("one of all numbers is free");
        let terminal = TmuxTerminal {
            socket,
            home: home.to_owned(),
        };
        let new = ["new-session", "-d", "-x", "160", "-y", "50", command];
        terminal.tmux(&[&["-f", "/dev/null"], new.as_slice()].concat());
        terminal
    }

    /// Starts a program, by its words, in `home`, which is also where it keeps its things.
    pub fn run(home: &Path, environment: &[&str], words: &[&str]) -> TmuxTerminal {
        std::fs::write(home.join("script"), SCRIPT).expect("a file");
        let folder = home.to_str().expect("a temporary name is UTF-8");
        let runtime = format!("XDG_RUNTIME_DIR={folder}");
        let state = format!("XDG_STATE_HOME={folder}/state");
        let around = ["env", "-u", "VISUAL", "-u", "NO_COLOR", &runtime, &state];
        let script = format!("{folder}/script");
        let line: Vec<String> = [&around, environment, &["sh", &script, folder], words]
            .concat()
            .into_iter()
            .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
            .collect();
        TmuxTerminal::start(home, &line.join(" "))
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-u")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .expect("tmux is installed");
        assert!(output.status.success(), "tmux {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with its escapes for colours.
    pub fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen is as `is_so` wants it, and returns it.
    pub fn until(&self, wanted: &str, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(start.elapsed() < LIMIT, "no {wanted} on\n{screen}");
            // A screen can only be looked at: it tells nobody that it has changed.
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen shows `text`.
    pub fn shows(&self, text: &str) -> String {
        self.until(&format!("`{text}`"), |screen| screen.contains(text))
    }

    /// Waits until the screen does not show `text`.
    pub fn hides(&self, text: &str) -> String {
        self.until(&format!("end of `{text}`"), |screen| !screen.contains(text))
    }

    /// Waits until one row shows all of `texts`. Returns its place, and what is on it.
    pub fn shows_row(&self, texts: &[&str]) -> (usize, String) {
        let find = |screen: &str| {
            let mut rows = screen.lines().enumerate();
            let found = rows.find(|(_, row)| texts.iter().all(|text| row.contains(text)));
            found.map(|(place, row)| (place, row.to_owned()))
        };
        let screen = self.until(&format!("row with {texts:?}"), |screen| {
            find(screen).is_some()
        });
        find(&screen).expect("it was there already")
    }

    /// Waits until the list has a message with all of `texts`, goes to it, and returns its number.
    pub fn selects(&self, texts: &[&str]) -> u64 {
        let (_, row) = self.shows_row(&[texts, &["#"]].concat());
        let number = row.split_once('#').map(|(_, rest)| &rest[..3]);
        let number = number.and_then(|digits| digits.parse().ok());
        let number = number.unwrap_or_else(|| panic!("no number on `{row}`"));
        self.types(&format!(":{number}"));
        self.shows(&format!("┌ #{number} "));
        number
    }

    /// Presses keys, by the names that tmux has for them.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types letters.
    pub fn writes(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a line.
    pub fn types(&self, line: &str) {
        self.writes(line);
        self.press(&["Enter"]);
    }

    /// Pastes, as a terminal does that brackets what is pasted.
    pub fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    /// Makes it smaller or larger.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// What tmux knows of the terminal, such as `alternate_on`.
    pub fn flag(&self, name: &str) -> String {
        let format = format!("#{{{name}}}");
        let text = self.tmux(&["display-message", "-p", &format]);
        text.trim().to_owned()
    }

    /// Lets the program put something into the clipboard, as most terminals do by themselves.
    pub fn takes_copies(&self) {
        self.tmux(&["set-option", "-s", "set-clipboard", "on"]);
    }

    /// What the program has put there.
    pub fn clipboard(&self) -> String {
        self.tmux(&["show-buffer"])
    }

    /// Sends a signal to the program that [`Terminal::run`] has started.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let sent = kill.args(["-s", name, &self.program()]).status();
        assert!(sent.expect("the kill program is there").success());
    }

    /// Whether that program is stopped, and could be continued.
    pub fn is_stopped(&self) -> bool {
        let status = Path::new("/proc").join(self.program()).join("status");
        let status = std::fs::read_to_string(status).expect("the program runs");
        status.lines().any(|line| line.starts_with("State:\tT"))
    }

    /// Closes the terminal, as a window is closed, and waits until the program has ended with it.
    pub fn close(self) {
        let program = Path::new("/proc").join(self.program());
        self.tmux(&["kill-server"]);
        let start = Instant::now();
        while program.exists() {
            assert!(start.elapsed() < LIMIT, "it goes on without its terminal");
            // It is no child of ours that could be waited for.
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn program(&self) -> String {
        let pid = std::fs::read_to_string(self.home.join("program.pid"));
        pid.expect("it has started").trim().to_owned()
    }

    /// Waits until that program has ended so, and checks that it has left the terminal as it was.
    pub fn ended(&self, code: u8) -> String {
        let screen = self.shows(&format!("ended with {code}\n"));
        for (flag, value) in [
            ("alternate_on", "0"),
            ("cursor_flag", "1"),
            ("mouse_any_flag", "0"),
            ("mouse_sgr_flag", "0"),
        ] {
            assert_eq!(self.flag(flag), value, "{flag}");
        }
        let words: Vec<&str> = screen.split_whitespace().collect();
        for setting in ["echo", "icanon", "isig", "opost"] {
            assert!(words.contains(&setting), "no {setting} in\n{screen}");
        }
        self.types("is anybody there");
        self.shows("heard is anybody there");
        screen
    }
}

impl Drop for TmuxTerminal {
    fn drop(&mut self) {
        // It has ended by itself if its program has.
        let mut kill = Command::new("tmux");
        let _ = kill.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
