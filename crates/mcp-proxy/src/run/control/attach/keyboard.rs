//! Lines from stdin, one at a time and only when asked for, so that an editor can have the terminal in between.

use std::io::{BufRead as _, IsTerminal as _};

use mcp_proxy_transport::stdio::stdin_is_a_channel;
use tokio::sync::mpsc;

/// Who answers, if somebody does.
pub struct Keyboard {
    lines: mpsc::Receiver<String>,
    ask: std::sync::mpsc::SyncSender<()>,
}

impl Keyboard {
    /// `None`: stdin is neither a terminal nor a pipe, so nobody answers.
    pub fn open() -> Option<Keyboard> {
        if !(std::io::stdin().is_terminal() || stdin_is_a_channel()) {
            return None;
        }
        let (tell, lines) = mpsc::channel(1);
        let (ask, asked) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                let mut line = String::new();
                match std::io::stdin().lock().read_line(&mut line) {
                    Ok(1..) if tell.blocking_send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let keyboard = Keyboard { lines, ask };
        keyboard.read_on();
        Some(keyboard)
    }

    /// The next line may be read.
    pub fn read_on(&self) {
        // Already told, or at its end: both are known when the next line does not come.
        let _ = self.ask.try_send(());
    }

    /// The line, when it comes. `None`: there will be no more. Safe to cancel.
    pub async fn line(keyboard: &mut Option<Keyboard>) -> Option<String> {
        match keyboard {
            Some(keyboard) => keyboard.lines.recv().await,
            None => std::future::pending().await,
        }
    }
}
