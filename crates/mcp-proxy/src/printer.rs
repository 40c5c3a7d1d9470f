//! All output to people goes through here: results to stdout, everything else to stderr.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the one place that prints"
)]

pub mod background;
pub mod progress;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_proxy_wire::terminal_text::{sanitize_bytes, sanitize_lines};

/// While the terminal UI has the screen: where it takes what is said, and what is printed when it ends.
static HELD_BACK: Mutex<Option<DeferredOutput>> = Mutex::new(None);

/// Lines that are kept for the end.
const KEPT_LINES: usize = 1_000;
/// Lines of the server's stderr that are printed at the end. The record, if there is one, has all of them.
const KEPT_STDERR: usize = 5;

struct DeferredOutput {
    shows: SyncSender<String>,
    lines: VecDeque<Vec<u8>>,
    /// The last lines of the server's stderr, and how many there were.
    stderr: VecDeque<Vec<u8>>,
    stderr_lines: u64,
}

impl DeferredOutput {
    fn defer_line(&mut self, line: Vec<u8>) {
        if self.lines.len() == KEPT_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn defer_stderr(&mut self, line: Vec<u8>) {
        if self.stderr.len() == KEPT_STDERR {
            self.stderr.pop_front();
        }
        self.stderr.push_back(line);
        self.stderr_lines += 1;
    }

    /// What is printed at the end, the last lines of stderr first.
    fn into_lines(self) -> impl Iterator<Item = Vec<u8>> {
        let left_out = self.stderr_lines - self.stderr.len() as u64;
        let heading = (left_out > 0).then(|| {
            let text = format!(
                "mcp-proxy: the server wrote {} lines to stderr; the last {}:",
                self.stderr_lines,
                self.stderr.len()
            );
            text.into_bytes()
        });
        let stderr = heading.into_iter().chain(self.stderr);
        stderr.chain(self.lines)
    }
}

/// From now on nothing is printed: lines come out of this, and are printed by `print_deferred`.
pub fn defer_output() -> Receiver<String> {
    let (shows, shown) = sync_channel(KEPT_LINES);
    *deferred_output() = Some(DeferredOutput {
        shows,
        lines: VecDeque::new(),
        stderr: VecDeque::new(),
        stderr_lines: 0,
    });
    // Lines that are still on their way to stderr would be drawn over by the UI, and lost when it ends.
    background::flush();
    shown
}

/// Prints what was held back, and prints again from now on.
pub fn print_deferred() {
    let held = deferred_output().take();
    let mut stderr = io::stderr().lock();
    for line in held.into_iter().flat_map(DeferredOutput::into_lines) {
        let _ = stderr
            .write_all(&line)
            .and_then(|()| stderr.write_all(b"\n"));
    }
}

fn deferred_output() -> MutexGuard<'static, Option<DeferredOutput>> {
    HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a line for the UI, if it must not be printed now, and for the end if it still matters then.
fn keep(line: &[u8], relevance: Relevance) -> bool {
    let mut held = deferred_output();
    let Some(held) = &mut *held else {
        return false;
    };
    if relevance == Relevance::Lasting {
        held.defer_line(line.to_vec());
    }
    // A UI that is busy shows what it can.
    let _ = held
        .shows
        .try_send(String::from_utf8_lossy(line).into_owned());
    true
}

/// Whether something matters after the UI has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relevance {
    Lasting,
    /// Only while the program runs, as how to reach it.
    WhileRunning,
}

/// Says something to the person at the terminal, on stderr.
pub fn say(text: &str) {
    say_with(text, Relevance::Lasting);
}

/// Says something that is of no use once the program has ended. A UI shows it, and it is not printed afterwards.
pub fn say_while_running(text: &str) {
    say_with(text, Relevance::WhileRunning);
}

/// Parts of a text may come from a server, which must not control the terminal.
fn say_with(text: &str, relevance: Relevance) {
    let text = sanitize_lines(text);
    if !keep(text.as_bytes(), relevance) {
        print_line(text.as_bytes());
    }
}

fn print_line(line: &[u8]) {
    if let Some(line) = background::hand_over(line.to_vec()) {
        let mut stderr = io::stderr().lock();
        // A closed stderr is no reason to stop.
        let _ = stderr
            .write_all(&line)
            .and_then(|()| stderr.write_all(b"\n"));
    }
}

/// Asks something on stderr; the answer is typed on the same line.
pub fn ask(question: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
}

/// Passes a line of a server's stderr on.
pub fn pass_stderr(line: &[u8]) {
    // The UI shows it from the record; the last lines are printed when that ends.
    if let Some(held) = &mut *deferred_output() {
        let line = sanitize_bytes(line);
        return held.defer_stderr(line.into_bytes());
    }
    print_line(line);
}

/// Passes on a line of the stderr of a server that nobody is debugging. On a terminal, letters that act on it are escaped.
pub fn pass_escaped_stderr(line: &[u8]) {
    match io::stderr().is_terminal() {
        true => pass_stderr(escaped(line).as_bytes()),
        false => pass_stderr(line),
    }
}

/// Tabs stay: they indent.
fn escaped(line: &[u8]) -> String {
    let words = line.split(|byte| *byte == b'\t').map(sanitize_bytes);
    words.collect::<Vec<String>>().join("\t")
}

/// How far a long work is, on stderr, over what was drawn before.
pub fn bar(what: &str, done: u64, total: u64) {
    const WIDTH: u64 = 30;
    let share = |of: u64| done.min(total) * of / total.max(1);
    let filled = usize::try_from(share(WIDTH)).unwrap_or_default();
    let rest = usize::try_from(WIDTH).unwrap_or_default() - filled;
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(rest));
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r{what} {bar} {:>3}%", share(100)).and_then(|()| stderr.flush());
}

/// Takes the bar away.
pub fn clear_bar() {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K").and_then(|()| stderr.flush());
}

/// An error with its causes, on stderr. It may quote a file or a peer, so it is made harmless first.
pub fn fail(error: &anyhow::Error) {
    say(&format!("mcp-proxy: {error:#}"));
}

/// A mistake on the command line, as clap puts it, in the voice of all other errors.
pub fn usage_error(text: &str) {
    let text = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    say(&format!("mcp-proxy: {text}"));
}

/// The result of a command, on stdout.
pub fn stdout_writer() -> io::BufWriter<io::Stdout> {
    io::BufWriter::new(io::stdout())
}

/// Whether results on stdout may be coloured: on a terminal, and <https://no-color.org> is not asked for.
pub fn colours() -> bool {
    stdout_is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether a person reads stdout.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a14_stderr_of_a_server_does_not_act_on_the_terminal() {
        let line = "\tred \u{1b}[31m \u{9b}2J \u{202e}drow".as_bytes();
        let shown = escaped(&[line, b"\xff"].concat());
        assert_eq!(shown, "\tred \\u{1b}[31m \\u{9b}2J \\u{202e}drow\\xff");
    }

    #[test]
    fn after_the_ui_only_the_end_of_stderr_is_printed_and_then_what_was_said() {
        let (shows, _shown) = sync_channel(1);
        let mut held = DeferredOutput {
            shows,
            lines: VecDeque::new(),
            stderr: VecDeque::new(),
            stderr_lines: 0,
        };
        held.defer_line(b"said".to_vec());
        for number in 0..70 {
            held.defer_stderr(format!("line {number}").into_bytes());
        }
        let lines: Vec<Vec<u8>> = held.into_lines().collect();
        assert_eq!(lines.len(), KEPT_STDERR + 2);
        assert_eq!(lines[1], b"line 65");
        assert_eq!(lines.last().map(Vec::as_slice), Some(&b"said"[..]));
    }
}
