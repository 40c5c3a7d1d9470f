//! A viewer of the proxy that is measured: subscribed over the control socket, and then reading all notices or nothing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::processes::BenchProcess;

/// How long the proxy may take to listen for viewers, and to answer one.
const PATIENCE: Duration = Duration::from_secs(15);
/// The id of the request whose answer is left unread. An answer has the id of its request, and this one is more than a
/// socket holds: from then on the proxy can send nothing, which a few seconds of notices would not bring about.
const LONG_ID: usize = 600_000;
/// No notice is this long.
const LONGEST_NOTICE: u64 = 1024;

/// What it does once it has subscribed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewerHabit {
    Reads,
    Stops,
}

/// An attached viewer; gone when dropped.
pub struct BenchViewer {
    stream: UnixStream,
    reading: Option<JoinHandle<()>>,
}

impl BenchViewer {
    /// Subscribes to `running`, whose runtime folder is `folder`.
    pub fn attach(
        running: &mut BenchProcess,
        folder: &Path,
        habit: ViewerHabit,
    ) -> Result<BenchViewer> {
        let mut stream = connect(running, folder)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"subscribe"}"#;
        writeln!(stream, "{subscribe}")?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut answer = String::new();
        reader
            .read_line(&mut answer)
            .context("subscribe is not answered")?;
        ensure!(
            answer.contains(r#""result""#),
            "subscribe is answered by {answer}"
        );
        let reading = match habit {
            ViewerHabit::Reads => {
                // From here on it waits for ever: what ends it is the end of the stream.
                stream.set_read_timeout(None)?;
                Some(thread::spawn(move || {
                    // However it ends, the viewer's part is over.
                    let _ = copy(&mut reader, &mut sink());
                }))
            }
            ViewerHabit::Stops => {
                let id = "x".repeat(LONG_ID);
                writeln!(
                    stream,
                    r#"{{"jsonrpc":"2.0","id":"{id}","method":"stats"}}"#
                )?;
                stop_inside_answer(&mut reader)?;
                None
            }
        };
        Ok(BenchViewer { stream, reading })
    }
}

impl Drop for BenchViewer {
    fn drop(&mut self) {
        // It fails if the proxy has gone first, and then there is nothing to end.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
    }
}

/// Reads notices up to the beginning of the long answer, so that the work on it is not part of what is measured.
fn stop_inside_answer(reader: &mut BufReader<UnixStream>) -> Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut short = reader.by_ref().take(LONGEST_NOTICE);
        short
            .read_until(b'\n', &mut line)
            .context("stats is not answered")?;
        ensure!(!line.is_empty(), "the proxy has let its viewer go");
        if !line.ends_with(b"\n") {
            return Ok(());
        }
    }
}

/// Waits for the socket: it is made while the proxy starts, and no line on a pipe of ours says when.
fn connect(running: &mut BenchProcess, folder: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(stream) = socket(folder).and_then(|path| UnixStream::connect(path).ok()) {
            return Ok(stream);
        }
        if let Some(status) = running.child.try_wait()? {
            bail!("it ended with {status}{}", running.last_words());
        }
        if Instant::now() > deadline {
            bail!("it has no control socket{}", running.last_words());
        }
        thread::sleep(Duration::from_micros(200));
    }
}

fn socket(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder.join("mcp-proxy")).ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|ending| ending == "sock"))
}
