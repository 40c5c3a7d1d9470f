//! A UI that fails, for the test that looks at what is left of the terminal: `panics draws` while it draws, `panics beside` on
//! another thread, which leaves the screen alone.

#![allow(clippy::panic, reason = "that is what it is for")]

use std::io;
use std::path::PathBuf;

use mcp_proxy_tui::ProxyPort;
use mcp_proxy_tui::{App, Tab, Theme, draw};
use mcp_proxy_tui::{MouseOwner, Screen};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

fn main() -> io::Result<()> {
    let beside = std::env::args().nth(1).is_some_and(|word| word == "beside");
    let (port, _far) = ProxyPort::pair();
    let tab = Tab::open(PathBuf::from("nowhere.jsonl"));
    let mut app = App::recorded(tab, port, Theme::Dark);
    let _screen = Screen::enter(MouseOwner::Ours)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    terminal.draw(|frame| draw(&mut app, frame))?;
    if beside {
        let failed = std::thread::spawn(|| panic!("a thread has failed")).join();
        app.say(format!("the thread failed: {}", failed.is_err()));
        terminal.draw(|frame| draw(&mut app, frame))?;
    }
    // Until a key is pressed, so that the screen can be looked at.
    crossterm::event::read()?;
    if !beside {
        terminal.draw(|_| panic!("the drawing has failed"))?;
    }
    Ok(())
}
