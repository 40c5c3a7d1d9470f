//! An SDK's client over HTTP, a stdio server, and the UI in the terminal of the proxy: messages are held, changed, dropped,
//! sent again and kept, and the client gets what was decided and nothing else.

use serde_json::{Value, json};

use crate::endpoint::{EndpointAddress, EndpointKind, everything};
use crate::fixtures;
use crate::fixtures::PROXY;
use crate::piped_program::PipedProgram;
use crate::texts;
use crate::tmux::TmuxTerminal;

/// The official TypeScript client, which calls tools when it is told to.
struct ToolClient {
    program: PipedProgram,
    asked: u64,
}

impl ToolClient {
    /// Starts a client and has it connect, which is not yet waited for.
    fn start(url: &str) -> ToolClient {
        let script = fixtures::peer("ts_asks.mjs");
        let words = [&script, "everything", "legacy", url];
        let mut command = fixtures::command(&fixtures::node(), &words);
        let mut client = ToolClient {
            program: PipedProgram::start(&mut command),
            asked: 0,
        };
        client.say("");
        client
    }

    fn say(&mut self, line: &str) {
        self.asked += 1;
        self.program.say(line);
    }

    /// Has the server's `echo` called.
    fn echo(&mut self, text: &str) {
        let call = json!({"name": "echo", "arguments": {"message": text}});
        self.say(&call.to_string());
    }

    /// What became of the request that was made last.
    fn hear(&mut self) -> Value {
        let line = self.program.stdout.next().expect("the client goes on");
        let report: Value = serde_json::from_str(&line).expect("the client reports in JSON");
        assert_eq!(report["asked"], self.asked, "{line}");
        report
    }

    /// The same, for an answer of `echo`.
    fn hear_echo(&mut self, text: &str) {
        let report = self.hear();
        let said = format!("Echo: {text}");
        assert_eq!(report["result"]["content"][0]["text"], said, "{report}");
    }
}

/// Where the proxy listens, as its title says.
fn url(terminal: &TmuxTerminal) -> String {
    let screen = terminal.until("address of the listener", |screen| {
        screen
            .lines()
            .next()
            .is_some_and(|title| title.contains("http://") && title.contains("/mcp"))
    });
    let title = screen.lines().next().unwrap_or_default();
    let mut words = title.split_whitespace().rev();
    let url = words.find(|word| word.starts_with("http://"));
    url.expect("it was there already").to_owned()
}

/// Waits until a message like this is held, and lets it go on.
fn forward(terminal: &TmuxTerminal, row: &str) {
    let number = terminal.selects(&["⏸", row]);
    terminal.press(&["F5"]);
    terminal.hides(&format!("⏸ #{number:03}"));
}

/// Goes to the line with `"before"` in the editor and has `"after"` instead.
fn edit(terminal: &TmuxTerminal) {
    // Its last line: from then on nothing of the panes behind it is on the screen.
    terminal.shows(texts::VALID);
    let (top, _) = terminal.shows_row(&[texts::EDITOR]);
    let (line, _) = terminal.shows_row(&[r#""message": "before""#]);
    let down = vec!["Down"; line - top - 1];
    terminal.press(&down);
    terminal.press(&["End"]);
    terminal.press(&["BSpace"; r#""before""#.len()]);
    // No JSON, and it says where.
    terminal.hides(texts::VALID);
    terminal.shows(": expected value");
    terminal.writes(r#""after""#);
    terminal.shows(texts::VALID);
}

const CALL: &str = "→ tools/call [echo]";
const ANSWER: &str = "← tools/call [echo] (response)";

#[test]
fn messages_are_held_edited_dropped_sent_again_and_kept() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let EndpointAddress::Command(server) = everything(EndpointKind::Stdio).address else {
        panic!("a stdio server is a command");
    };
    let mut words = vec![PROXY, "proxy", "--listen", "http", "--listen-port", "0"];
    words.extend(["--session-file", "session.jsonl", "--"]);
    words.extend(server.iter().map(String::as_str));
    let terminal = TmuxTerminal::run(home.path(), &[], &words);
    terminal.shows(texts::EMPTY_LIST);
    assert_eq!(terminal.flag("alternate_on"), "1");
    let url = url(&terminal);

    terminal.press(&["i"]);
    terminal.shows("[INTERCEPT]");
    let mut client = ToolClient::start(&url);
    for row in [
        "→ initialize",
        "← initialize (response)",
        "→ notifications/initialized",
        "← notifications/tools/list_changed",
    ] {
        forward(&terminal, row);
    }
    assert_eq!(client.hear()["ok"], true);

    edits(&terminal, &mut client);
    refuses(&terminal, &mut client);
    terminal.press(&["i"]);
    terminal.hides("[INTERCEPT]");
    replays(&terminal, &mut client);
    keeps(&terminal, home.path());
    terminal.press(&["q"]);
    terminal.shows(texts::CONFIRM_END);
    terminal.press(&["n"]);
    terminal.hides(texts::CONFIRM_END);
    terminal.press(&["q"]);
    terminal.shows(texts::CONFIRM_END);
    terminal.press(&["y"]);
    terminal.ended(0);
    assert_eq!(client.program.end(), Vec::<String>::new());
}

/// A call is edited here, and the client gets the answer to that.
fn edits(terminal: &TmuxTerminal, client: &mut ToolClient) {
    client.echo("before");
    let call = terminal.selects(&["⏸", CALL]);
    terminal.press(&["F6"]);
    edit(terminal);
    terminal.press(&["C-s"]);
    terminal.shows_row(&["►", CALL, texts::MODIFIED]);
    forward(terminal, ANSWER);
    client.hear_echo("after");
    terminal.selects(&["►", CALL, texts::MODIFIED]);
    terminal.press(&["D"]);
    terminal.shows(&format!("#{call} {}", texts::RECEIVED));
    terminal.shows(&format!("#{call} {}", texts::SENT_ON));
    terminal.shows_row(&[r#""before""#, r#""after""#]);
    terminal.press(&["Escape"]);
    terminal.hides(texts::SENT_ON);
}

/// One call goes nowhere and one is answered by the user: the client sees the one fail and hears of the other.
fn refuses(terminal: &TmuxTerminal, client: &mut ToolClient) {
    client.echo("dropped");
    let call = terminal.selects(&["⏸", CALL]);
    terminal.press(&["F6"]);
    terminal.shows(&format!("#{call}{}", texts::EDITOR));
    terminal.press(&["Escape"]);
    terminal.shows(texts::NOT_SENT);
    terminal.shows_row(&["⏸", CALL]);
    terminal.press(&["F8"]);
    terminal.shows_row(&["►", CALL, texts::DROPPED]);
    let report = client.hear();
    assert_eq!(report["ok"], false, "{report}");
    assert!(report["error"].is_string(), "{report}");

    client.echo("refused");
    terminal.selects(&["⏸", CALL]);
    terminal.press(&["x"]);
    terminal.shows(":error -32000");
    terminal.types("not today");
    let report = client.hear();
    assert!(report.to_string().contains("not today"), "{report}");
}

/// A call is sent again, and the client does not hear of it.
fn replays(terminal: &TmuxTerminal, client: &mut ToolClient) {
    client.echo("once");
    client.hear_echo("once");
    terminal.press(&["G"]);
    terminal.shows("Echo: once");
    // From the answer to its request.
    terminal.press(&["p"]);
    terminal.hides("Echo: once");
    terminal.shows(r#""message": "once""#);
    terminal.press(&["r"]);
    terminal.shows(texts::REPLAYED);
    terminal.shows(texts::COMPARE);
    terminal.press(&["D"]);
    terminal.shows(texts::FIRST);
    terminal.shows(texts::SENT_AGAIN);
    terminal.press(&["Escape"]);
    terminal.hides(texts::SENT_AGAIN);
    terminal.press(&["G"]);
    terminal.shows("Echo: once");
    client.echo("twice");
    client.hear_echo("twice");
}

/// Exports, saves and loads; relative names are seen from the folder of the UI.
fn keeps(terminal: &TmuxTerminal, home: &std::path::Path) {
    terminal.press(&["X"]);
    terminal.shows(":export");
    terminal.types("out.har");
    terminal.shows(texts::EXPORTED);
    let har = std::fs::read(home.join("out.har")).expect("the export is where the UI runs");
    let har: Value = serde_json::from_slice(&har).expect("HAR is JSON");
    assert!(
        har["log"]["entries"]
            .as_array()
            .is_some_and(|all| all.len() > 3)
    );
    terminal.press(&["S"]);
    terminal.shows(":save");
    terminal.types("copy.jsonl");
    terminal.shows(texts::SAVED);
    assert!(home.join("copy.jsonl").is_file());
    terminal.press(&["O"]);
    terminal.shows(":load");
    terminal.types("copy.jsonl");
    terminal.shows("2/2: copy.jsonl");
    // Two sessions are in it, that of the client and that of the replay.
    terminal.shows_row(&["→ c1 tools/call [echo]", texts::MODIFIED]);
    terminal.shows_row(&["→ c2 tools/call [echo]"]);
    terminal.press(&["["]);
    terminal.shows("1/2: live");
    terminal.press(&["]"]);
    terminal.shows(" 2/2: ");
    terminal.press(&["C-w"]);
    terminal.hides(" 2/2: ");
}
