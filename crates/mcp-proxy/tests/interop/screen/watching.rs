//! An SDK's client that starts the proxy itself, and the UI in another terminal: it comes, decides and goes, and the client
//! goes on.

use serde_json::Value;
use tempfile::TempDir;

use crate::endpoint::{EndpointAddress, EndpointKind, everything};
use crate::fixtures::{self, PROXY};
use crate::piped_program::PipedProgram;
use crate::terminal::draft;
use crate::texts;
use crate::tmux::TmuxTerminal;

/// Words would hold the answers too.
const BREAK: &str = r#":break .method == "prompts/get" and .kind == "request""#;

/// The official Python client with its proxy.
struct WatchedSession {
    client: PipedProgram,
    asked: u64,
    /// How viewers name the proxy.
    id: String,
    home: TempDir,
}

impl WatchedSession {
    /// Starts them, and connects.
    fn start() -> WatchedSession {
        let home = tempfile::tempdir().expect("a temporary directory");
        let record = home.path().join("session.jsonl");
        let record = record.to_str().expect("a temporary name is UTF-8");
        let EndpointAddress::Command(server) = everything(EndpointKind::Stdio).address else {
            panic!("a stdio server is a command");
        };
        let script = fixtures::peer("py_asks.py");
        let mut words = vec![&script, "everything", "legacy", PROXY, "proxy"];
        words.extend(["--session-file", record, "--"]);
        words.extend(server.iter().map(String::as_str));
        let mut command = fixtures::command(&fixtures::python(), &words);
        command.env("XDG_RUNTIME_DIR", home.path());
        let mut client = PipedProgram::start(&mut command);
        client.say("");
        let id = client.stderr.wait_for(texts::ATTACH_WITH);
        let mut session = WatchedSession {
            client,
            asked: 1,
            id,
            home,
        };
        session.hear();
        session
    }

    /// Has the next request sent.
    fn ask(&mut self) {
        self.asked += 1;
        self.client.say("");
    }

    fn hear(&mut self) {
        let line = self.client.stdout.next().expect("the client goes on");
        let report: Value = serde_json::from_str(&line).expect("the client reports in JSON");
        assert_eq!(report["asked"], self.asked, "{line}");
        assert_eq!(report["ok"], true, "{line}");
    }

    fn attach(&self, environment: &[&str], flags: &[&str]) -> TmuxTerminal {
        let words = [&[PROXY, "attach", &self.id], flags].concat();
        TmuxTerminal::run(self.home.path(), environment, &words)
    }
}

#[test]
fn a_viewer_decides_and_goes_and_the_client_goes_on() {
    let mut session = WatchedSession::start();
    let viewer = session.attach(&[], &[]);
    viewer.shows_row(&["← initialize (response)"]);
    viewer.press(&["i"]);
    viewer.shows("[INTERCEPT]");
    session.ask();
    viewer.shows_row(&["⏸", "→ prompts/get [args-prompt]"]);
    viewer.shows(&format!("1{}", texts::HELD));
    viewer.press(&["F5"]);
    viewer.shows_row(&["⏸", "← prompts/get [args-prompt] (response)"]);
    viewer.press(&["F5"]);
    session.hear();
    // The proxy is the client's, who would wait: what is held is asked about.
    viewer.press(&["q"]);
    viewer.shows(texts::CONFIRM_RELEASE);
    viewer.press(&["Escape"]);
    viewer.hides(texts::CONFIRM_RELEASE);
    session.ask();
    viewer.shows(&format!("1{}", texts::HELD));
    viewer.press(&["q"]);
    viewer.shows(texts::CONFIRM_RELEASE);
    viewer.press(&["c"]);
    viewer.ended(0);
    session.hear();

    let killed = session.attach(&[], &[]);
    killed.shows_row(&["tools/call [echo] (response)"]);
    killed.signal("KILL");
    killed.shows("ended with 137");
    session.ask();
    session.hear();

    // What went on meanwhile is there, and stays when the proxy ends.
    let last = session.attach(&[], &[]);
    last.shows_row(&["resources/read"]);
    assert_eq!(session.client.end(), Vec::<String>::new());
    last.shows("[ENDED]");
    last.shows_row(&["resources/read"]);
    last.shows_row(&["← initialize (response)"]);
    last.press(&["q"]);
    last.ended(0);
}

#[test]
fn a_message_is_edited_in_the_users_editor() {
    let mut session = WatchedSession::start();
    let editor = session.home.path().join("editor");
    // It needs the terminal, and says so.
    let script = r#"[ -t 0 ] && [ -t 1 ] || exit 9
printf 'which city: '
read -r city
sed -i "s/Oslo/$city/" "$1"
"#;
    std::fs::write(&editor, script).expect("a file");
    let viewer = session.attach(&[&format!("EDITOR=sh {}", editor.display())], &[]);
    viewer.shows_row(&["← initialize (response)"]);
    viewer.types(BREAK);
    viewer.shows(texts::BREAKPOINT_ADDED);
    session.ask();
    viewer.shows_row(&["⏸", "→ prompts/get [args-prompt]"]);
    viewer.press(&["E"]);
    viewer.shows("which city:");
    assert_eq!(viewer.flag("alternate_on"), "0");
    assert_eq!(viewer.flag("mouse_any_flag"), "0");
    viewer.types("Oslo and Bergen");
    viewer.shows(texts::EDITOR);
    viewer.shows("Oslo and Bergen");
    assert_eq!(viewer.flag("alternate_on"), "1");
    viewer.press(&["C-s"]);
    viewer.shows_row(&["►", "→ prompts/get [args-prompt]", texts::MODIFIED]);
    session.hear();
    viewer.press(&["G"]);
    viewer.shows("What's weather in Oslo and Bergen?");
    viewer.hides("⏸");
    // The breakpoint would hold the next message.
    viewer.press(&["q"]);
    viewer.shows(texts::CONFIRM_BREAKPOINT);
    viewer.press(&["l"]);
    viewer.ended(0);
}

/// An editor that has written already when it asks.
const WRITES_AND_ASKS: &str = r#"sed -i 's/Oslo/Bergen/' "$1"
printf 'and now: '
read -r answer
echo "got $answer"
"#;

#[test]
fn a_signal_waits_for_the_editor_and_keeps_the_draft() {
    let mut session = WatchedSession::start();
    let editor = session.home.path().join("editor");
    std::fs::write(&editor, WRITES_AND_ASKS).expect("a file");
    let environment = format!("EDITOR=sh {}", editor.display());
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let viewer = session.attach(&[&environment], &[]);
        viewer.shows_row(&["← initialize (response)"]);
        if signal == "TERM" {
            viewer.types(BREAK);
            viewer.shows(texts::BREAKPOINT_ADDED);
            session.ask();
        }
        viewer.shows_row(&["⏸", "→ prompts/get [args-prompt]"]);
        viewer.press(&["E"]);
        viewer.shows("and now:");
        // Ctrl-C is the editor's, and a terminal sends it to both.
        viewer.signal("INT");
        viewer.signal(signal);
        // Nobody else reads what is typed there, nor has the other screen.
        let text = viewer.ended(code);
        assert!(text.contains(&format!("SIG{signal}")), "{text}");
        let draft = draft(session.home.path(), &text);
        assert!(draft.contains("Bergen"), "{draft}");
    }
    // Nothing was sent: the message is still held.
    let viewer = session.attach(&[&environment], &[]);
    viewer.shows_row(&["⏸", "→ prompts/get [args-prompt]"]);
    viewer.press(&["E"]);
    viewer.shows("and now:");
    viewer.signal("INT");
    viewer.types("nothing");
    viewer.shows(texts::EDITOR);
    viewer.shows("Bergen");
    viewer.press(&["Escape"]);
    viewer.shows(texts::NOT_SENT);
    viewer.press(&["c"]);
    session.hear();
    viewer.hides("⏸");
    viewer.press(&["q"]);
    viewer.shows(texts::CONFIRM_BREAKPOINT);
    viewer.press(&["l"]);
    viewer.ended(0);
}

#[test]
fn the_end_of_the_proxy_is_told_whatever_way_it_ends() {
    let session = WatchedSession::start();
    let viewer = session.attach(&[], &[]);
    viewer.shows_row(&["← initialize (response)"]);
    let folder = session.home.path().join("mcp-proxy");
    let descriptor = folder.join(format!("{}.json", session.id));
    let descriptor = std::fs::read(descriptor).expect("the proxy describes itself");
    let descriptor: Value = serde_json::from_slice(&descriptor).expect("JSON");
    let pid = descriptor["pid"].to_string();
    let kill = std::process::Command::new("kill")
        .args(["-s", "KILL", &pid])
        .status();
    assert!(kill.expect("the kill program is there").success());
    viewer.shows("[ENDED]");
    viewer.shows(texts::RECORD_STAYS);
    viewer.shows_row(&["← initialize (response)"]);
    // What needs the proxy says that there is none.
    viewer.press(&["i"]);
    viewer.shows(texts::PROXY_GONE);
    viewer.press(&["q"]);
    viewer.ended(0);
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_is_told_what_prints_lines() {
    let session = WatchedSession::start();
    let viewer = session.attach(&["TERM=dumb"], &[]);
    let text = viewer.ended(1);
    assert!(text.contains("TERM=dumb"), "{text}");
    assert!(text.contains("inspect ID --follow"), "{text}");
}
