//! The app with a proxy that the test plays: what every viewer asks at first is answered as `docs/control.md` shows, the rest
//! is kept for the test.

use std::time::{Duration, Instant};

use bytes::Bytes;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use mcp_proxy_control::{Fault, Method, Notice};
use mcp_proxy_tui::UiCommand;
use mcp_proxy_tui::ViewState;
use mcp_proxy_tui::{App, ProxyOwner, StatusTone, Tab, Theme, draw};
use mcp_proxy_tui::{Effect, InputEvent, Overlay};
use mcp_proxy_tui::{ProxyEvent, ProxyPort, ProxyPortPeer, ProxyRequest};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use serde_json::{Value, json};

use mcp_proxy_session::testing::SampleRecord;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
/// What the app asks by itself.
const BY_ITSELF: [Method; 7] = [
    Method::Hello,
    Method::Subscribe,
    Method::HoldList,
    Method::BreakpointsList,
    Method::RulesList,
    Method::ServersList,
    Method::ConnectionsList,
];

pub struct TestUi {
    pub app: App,
    pub far: ProxyPortPeer,
    pub record: SampleRecord,
    /// What the proxy says when it is asked.
    pub hello: Value,
    pub mode: &'static str,
    pub holds: Vec<Value>,
    /// What was decided last, as the proxy tells it.
    pub decided: Vec<Value>,
    pub breakpoints: Value,
    pub rules: Value,
    pub servers: Value,
    pub connections: Value,
    /// Editors of holds that the app has opened and closed.
    pub edits: Vec<Value>,
    /// How often the app has asked about servers.
    pub server_polls: usize,
    /// The clock stands still.
    pub now: Instant,
    asked: Vec<ProxyRequest>,
}

impl TestUi {
    /// A proxy that writes this record.
    pub fn live(record: SampleRecord) -> TestUi {
        let hello = json!({"protocol": 1, "version": "0.1.0", "target": "python server.py", "client": "streamable_http",
            "server": "stdio", "record": record.path(), "pid": 4711});
        TestUi::with(record, hello)
    }

    /// One whose hello says this.
    pub fn with(record: SampleRecord, hello: Value) -> TestUi {
        let mut stage = TestUi::silent(record, hello);
        stage.until("the session is open", |app| {
            let ready = |tab: &Tab| tab.view.has_read_events();
            app.tabs.first().is_some_and(ready)
        });
        stage.settle();
        stage
    }

    /// Before anything was said.
    pub fn silent(record: SampleRecord, hello: Value) -> TestUi {
        let (port, far) = ProxyPort::pair();
        TestUi::of(
            App::live(port, ProxyOwner::Other, Theme::Dark),
            far,
            record,
            hello,
        )
    }

    /// A record that is looked at without a proxy.
    pub fn opened(record: SampleRecord) -> TestUi {
        let (port, far) = ProxyPort::pair();
        let tab = Tab::open(record.path().to_owned());
        let app = App::recorded(tab, port, Theme::Dark);
        let mut stage = TestUi::of(app, far, record, Value::Null);
        stage.until("the record is open", |app| {
            let view = &app.tabs[0].view;
            view.has_read_events() || matches!(view.state(), ViewState::Failed(_))
        });
        stage
    }

    fn of(app: App, far: ProxyPortPeer, record: SampleRecord, hello: Value) -> TestUi {
        TestUi {
            app,
            far,
            record,
            hello,
            mode: "passthrough",
            holds: Vec::new(),
            decided: Vec::new(),
            breakpoints: json!([]),
            rules: json!({"file": null, "fault": null, "rules": []}),
            servers: json!([]),
            connections: json!([]),
            edits: Vec::new(),
            server_polls: 0,
            now: Instant::now(),
            asked: Vec::new(),
        }
    }

    /// The app has a turn, and gets its answers, until it asks nothing more by itself.
    pub fn settle(&mut self) {
        loop {
            self.app.tick(self.now);
            let asks: Vec<ProxyRequest> = self.far.asks.try_iter().collect();
            if asks.is_empty() {
                return;
            }
            for ask in asks {
                self.server_polls += usize::from(ask.method == Method::ServersList);
                if ask.method == Method::HoldEdit {
                    let answer = self.edited(&ask.params);
                    self.reply(ask.id, Ok(&answer.to_string()));
                } else if BY_ITSELF.contains(&ask.method) {
                    let answer = self.answer_of(ask.method);
                    self.reply(ask.id, Ok(&answer.to_string()));
                } else {
                    self.asked.push(ask);
                }
            }
        }
    }

    /// An editor is opened or closed: the clock of its hold stops, or runs again.
    fn edited(&mut self, params: &str) -> Value {
        let params: Value = serde_json::from_str(params).unwrap();
        let clock = match params["open"].as_bool() {
            Some(true) => "stopped",
            _ => "running",
        };
        for hold in &mut self.holds {
            if hold["hold"] == params["hold"] {
                hold["clock"] = json!(clock);
            }
        }
        let answer = json!({"hold": params["hold"], "clock": clock, "left_ms": 54_000});
        self.edits.push(params);
        answer
    }

    fn answer_of(&self, method: Method) -> Value {
        let numbers: Vec<&Value> = self.holds.iter().map(|hold| &hold["hold"]).collect();
        match method {
            Method::Hello => self.hello.clone(),
            Method::Subscribe => json!({"mode": self.mode, "held": numbers, "upto": 1}),
            Method::HoldList => json!({"mode": self.mode, "holds": self.holds}),
            Method::ServersList => json!({"servers": self.servers}),
            Method::ConnectionsList => json!({"connections": self.connections}),
            Method::BreakpointsList => json!({"breakpoints": self.breakpoints}),
            _ => self.rules.clone(),
        }
    }

    /// Waits for the reading of records until it is so.
    pub fn until(&mut self, what: &str, so: impl Fn(&App) -> bool) {
        let deadline = Instant::now() + LONG;
        loop {
            self.settle();
            if so(&self.app) {
                // It may have come true after the app had its turn.
                return self.settle();
            }
            assert!(Instant::now() < deadline, "waiting until {what}");
            if let Some(tab) = self.app.tabs.get_mut(self.app.tab) {
                tab.view.wait(Duration::from_millis(100));
            }
        }
    }

    /// Waits until the session shown has all of the record, and its filter has been through it.
    pub fn all_read(&mut self, total: usize) {
        self.until("all is read", |app| {
            let view = &app.tabs[app.tab].view;
            view.total() >= total && view.searching().is_none() && view.has_read_events()
        });
    }

    /// The record has grown; the proxy says so.
    pub fn grown(&mut self, total: usize) {
        self.record.flush();
        self.notice("rows", json!({"upto": total}));
        self.all_read(total);
    }

    /// A message is held from now on.
    pub fn hold(&mut self, hold: u64, sequence: u64, by: &str) {
        self.record.flush();
        self.holds.push(json!({"hold": hold, "sequence": sequence, "conn": "c1", "direction": "client_to_server",
            "by": by, "held_ms": 211, "left_ms": 54_000, "method": "tools/call", "jsonrpc_id": 2, "len": 102}));
        self.holds_notice();
    }

    /// It is not any more.
    pub fn let_go(&mut self, hold: u64) {
        self.holds.retain(|one| one["hold"] != hold);
        self.holds_notice();
    }

    /// Somebody else, or the time limit, forwards it.
    pub fn forwarded_by(&mut self, hold: u64, by: &str, why: &str) {
        let held = self.holds.iter().find(|one| one["hold"] == hold).unwrap();
        let sequence = held["sequence"].clone();
        self.decided.push(
            json!({"hold": hold, "sequence": sequence, "action": "forward", "by": by, "why": why}),
        );
        self.let_go(hold);
    }

    fn holds_notice(&mut self) {
        let numbers: Vec<&Value> = self.holds.iter().map(|hold| &hold["hold"]).collect();
        let params = json!({"mode": self.mode, "held": numbers, "decided": self.decided});
        self.notice("holds", params);
    }

    pub fn notice(&mut self, method: &str, params: Value) {
        let notice = Notice::new(method, params).unwrap();
        self.far.news.send(ProxyEvent::Notice(notice)).unwrap();
        self.settle();
    }

    /// The connection to the proxy is lost.
    pub fn gone(&mut self, why: &str) {
        let why = why.to_owned();
        self.far.news.send(ProxyEvent::Gone { why }).unwrap();
        self.settle();
    }

    /// What was asked since the last time, as method and parameters. The test owes no answer.
    pub fn asked(&mut self) -> Vec<(&'static str, Value)> {
        self.settle();
        let asked = self.asked.drain(..);
        asked
            .map(|ask| {
                (
                    ask.method.info().name,
                    serde_json::from_str(&ask.params).unwrap(),
                )
            })
            .collect()
    }

    /// The one question that was asked since the last time is this; it is answered so.
    pub fn expect(&mut self, method: &str, params: Value, answer: Result<Value, &str>) {
        self.settle();
        let [ask] = &self.asked[..] else {
            panic!("one question was expected: {:?}", self.asked);
        };
        let asked: Value = serde_json::from_str(&ask.params).unwrap();
        assert_eq!((ask.method.info().name, &asked), (method, &params));
        self.answer(answer);
    }

    /// The one question that was asked since the last time is answered so.
    pub fn answer(&mut self, answer: Result<Value, &str>) {
        self.settle();
        let [ask] = &self.asked[..] else {
            panic!("one question was expected: {:?}", self.asked);
        };
        let id = ask.id;
        self.asked.clear();
        match answer {
            Ok(answer) => self.reply(id, Ok(&answer.to_string())),
            Err(why) => self.reply(id, Err(why)),
        }
        self.settle();
    }

    fn reply(&mut self, id: u64, result: Result<&str, &str>) {
        let result = result
            .map(|text| Bytes::copy_from_slice(text.as_bytes()))
            .map_err(|why| Fault::new(Fault::FAILED, why));
        self.send_answer(id, result);
    }

    /// The one question that was asked since the last time is refused so.
    pub fn refuse(&mut self, fault: Fault) {
        self.settle();
        let [ask] = &self.asked[..] else {
            panic!("one question was expected: {:?}", self.asked);
        };
        let id = ask.id;
        self.asked.clear();
        self.send_answer(id, Err(fault));
        self.settle();
    }

    fn send_answer(&mut self, id: u64, result: Result<Bytes, Fault>) {
        self.far
            .news
            .send(ProxyEvent::Answer { id, result })
            .unwrap();
    }

    /// Keys as the table of commands writes them, and `backspace`, `delete`.
    pub fn press(&mut self, keys: &[&str]) {
        for name in keys {
            self.app.handle_input(InputEvent::Key(key(name)));
        }
        self.settle();
    }

    /// Letters.
    pub fn letters(&mut self, text: &str) {
        for letter in text.chars() {
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
            self.app.handle_input(InputEvent::Key(key));
        }
        self.settle();
    }

    /// A command by its name, as a user types it.
    pub fn command(&mut self, line: &str) {
        self.press(&[":"]);
        self.letters(line);
        self.press(&["enter"]);
    }

    pub fn run(&mut self, command: UiCommand) {
        self.app.run(command, "");
        self.settle();
    }

    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) {
        self.app.handle_input(InputEvent::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        }));
        self.settle();
    }

    pub fn click(&mut self, column: u16, row: u16) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
    }

    pub fn selected(&self) -> Option<u64> {
        self.app.tabs.get(self.app.tab).and_then(|tab| tab.selected)
    }

    /// What was last said to the user.
    pub fn said(&self) -> &str {
        self.app
            .status
            .as_ref()
            .map_or("", |said| said.text.as_str())
    }

    /// The user was told how it went. The words are data, such as numbers and paths: `notices.rs` has the sentences. What was
    /// said is taken away, so that the next look finds only something new.
    #[track_caller]
    pub fn says(&mut self, words: &[&str]) {
        self.take_status(StatusTone::Plain, words);
    }

    /// The same, of something that went wrong.
    #[track_caller]
    pub fn complains(&mut self, words: &[&str]) {
        self.take_status(StatusTone::Bad, words);
    }

    #[track_caller]
    fn take_status(&mut self, tone: StatusTone, words: &[&str]) {
        let Some(said) = self.app.status.take() else {
            panic!("nothing was said");
        };
        assert_eq!(said.tone, tone, "{}", said.text);
        for word in words {
            assert!(said.text.contains(word), "{word}: {}", said.text);
        }
    }

    pub fn quits(&mut self) -> bool {
        self.app.effects().contains(&Effect::Quit)
    }

    pub fn is_plain(&self) -> bool {
        matches!(self.app.overlay, Overlay::None)
    }

    /// The cells of a screen of this size.
    pub fn cells(&mut self, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&mut self.app, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The same as text.
    pub fn screen(&mut self, width: u16, height: u16) -> String {
        text_of(&self.cells(width, height))
    }
}

/// A key by the name that the table of commands has for it.
pub fn key(name: &str) -> KeyEvent {
    if let Some(letter) = name.strip_prefix("ctrl-") {
        return KeyEvent::new(key(letter).code, KeyModifiers::CONTROL);
    }
    let code = match name {
        "space" => KeyCode::Char(' '),
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        _ => match (name.strip_prefix('F').map(str::parse), name.chars().next()) {
            (Some(Ok(number)), _) => KeyCode::F(number),
            (_, Some(letter)) => KeyCode::Char(letter),
            (_, None) => panic!("no key"),
        },
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Rows of cells, without spaces at their ends.
pub fn text_of(buffer: &Buffer) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let mut text = String::new();
    for row in 0..buffer.area.height {
        let mut line = String::new();
        let mut column = 0;
        while column < buffer.area.width {
            let symbol = buffer[(column, row)].symbol();
            line.push_str(symbol);
            column += (symbol.width() as u16).max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
