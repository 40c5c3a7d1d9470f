//! Printing to stderr without waiting for its reader.
//!
//! A client that starts the proxy may never read the pipe that it gave it as stderr. Once that is full, a write waits for
//! good, and messages must not wait with it.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that may wait. Further ones are counted and left out.
const WAITING: usize = 1_024;
/// How long the end of the program waits for its last lines to be read.
const LAST_LINES: Duration = Duration::from_secs(1);

static PRINTER: OnceLock<SyncSender<PrinterOrder>> = OnceLock::new();
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

enum PrinterOrder {
    Line(Vec<u8>),
    /// Everything before this has been printed.
    Reached(SyncSender<()>),
}

/// From now on lines are printed by a thread of their own.
pub fn start() {
    PRINTER.get_or_init(|| {
        let (sender, orders) = sync_channel(WAITING);
        let printer = thread::Builder::new().name("stderr".to_owned());
        // Without the thread the queue is closed, and lines are printed directly.
        let _ = printer.spawn(move || print(&orders));
        sender
    });
}

/// Hands a line to the thread. It comes back if there is none.
pub fn hand_over(line: Vec<u8>) -> Option<Vec<u8>> {
    let Some(printer) = PRINTER.get() else {
        return Some(line);
    };
    match printer.try_send(PrinterOrder::Line(line)) {
        Ok(()) => None,
        Err(TrySendError::Full(_)) => {
            LEFT_OUT.fetch_add(1, Ordering::Relaxed);
            None
        }
        Err(TrySendError::Disconnected(PrinterOrder::Line(line))) => Some(line),
        Err(TrySendError::Disconnected(PrinterOrder::Reached(_))) => None,
    }
}

/// Waits until the lines so far are printed, but not long.
pub fn flush() {
    if let Some(printer) = PRINTER.get() {
        let (reached, waits) = sync_channel(1);
        if printer.try_send(PrinterOrder::Reached(reached)).is_ok() {
            let _ = waits.recv_timeout(LAST_LINES);
        }
    }
}

fn print(orders: &Receiver<PrinterOrder>) {
    for order in orders {
        // A closed stderr is no reason to stop.
        let _ = match order {
            PrinterOrder::Line(line) => print_line(line),
            PrinterOrder::Reached(reached) => {
                let _ = reached.try_send(());
                Ok(())
            }
        };
        let left_out = LEFT_OUT.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            let text = format!("mcp-proxy: {left_out} lines are not here: stderr was not read");
            let _ = print_line(text.into_bytes());
        }
    }
}

fn print_line(mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    io::stderr().lock().write_all(&line)
}
