//! A server process with requests in flight: answers find their way back by id.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result};
use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::outbox::Outbox;
use super::pipes;

/// What is read of a message; the rest stays bytes.
#[derive(Deserialize)]
pub struct AnswerEnvelope<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: Option<&'a str>,
}

/// Whether ids pass as they are (the process has one client) or are exchanged for our own (it is shared).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IdMode {
    Pass,
    Exchange,
}

pub struct FloorProcess {
    child: RefCell<Child>,
    outbox: Rc<Outbox>,
    pending: RefCell<HashMap<Vec<u8>, oneshot::Sender<Bytes>>>,
    ids: IdMode,
    last_id: Cell<u64>,
}

impl FloorProcess {
    pub fn start(command: &[String], ids: IdMode) -> Result<Rc<FloorProcess>> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command[0]))?;
        let input = pipes::sender(child.stdin.take().context("the child has a stdin")?.into())?;
        let output = pipes::receiver(
            child
                .stdout
                .take()
                .context("the child has a stdout")?
                .into(),
        )?;
        let process = Rc::new(FloorProcess {
            child: RefCell::new(child),
            outbox: Rc::default(),
            pending: RefCell::default(),
            ids,
            last_id: Cell::new(0),
        });
        let outbox = Rc::clone(&process.outbox);
        spawn_local(async move { outbox.drain(input).await.ok() });
        spawn_local(Rc::clone(&process).read(output));
        Ok(process)
    }

    /// Sends one message; a request's answer comes back, a notification has none.
    pub async fn send(&self, message: &[u8], id: Option<&RawValue>) -> Option<Bytes> {
        let Some(id) = id else {
            self.outbox.push(&[message, b"\n"]).await;
            return None;
        };
        let (sender, receiver) = oneshot::channel();
        if self.ids == IdMode::Pass {
            self.pending.borrow_mut().insert(id.get().into(), sender);
            self.outbox.push(&[message, b"\n"]).await;
            return receiver.await.ok();
        }
        self.last_id.set(self.last_id.get() + 1);
        let own = self.last_id.get().to_string();
        self.pending.borrow_mut().insert(own.clone().into(), sender);
        let (before, after) = around(message, id);
        self.outbox
            .push(&[before, own.as_bytes(), after, b"\n"])
            .await;
        let answer = receiver.await.ok()?;
        let envelope: AnswerEnvelope<'_> = serde_json::from_slice(&answer).ok()?;
        let (before, after) = around(&answer, envelope.id?);
        Some([before, id.get().as_bytes(), after].concat().into())
    }

    pub fn stop(&self) {
        let mut child = self.child.borrow_mut();
        // Both fail only when it has already ended.
        let _ = child.kill();
        let _ = child.wait();
    }

    async fn read(self: Rc<Self>, mut output: Receiver) {
        let mut buffer = BytesMut::with_capacity(256 * 1024);
        let mut searched = 0;
        loop {
            buffer.reserve(64 * 1024);
            match output.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            while let Some(length) = memchr(b'\n', &buffer[searched..]) {
                let line = buffer.split_to(searched + length).freeze();
                buffer.advance(1);
                searched = 0;
                self.deliver(line);
            }
            searched = buffer.len();
        }
        // Requests that still wait learn that no answer will come.
        self.pending.borrow_mut().clear();
    }

    fn deliver(&self, line: Bytes) {
        let Ok(envelope) = serde_json::from_slice::<AnswerEnvelope<'_>>(&line) else {
            return;
        };
        let Some(id) = envelope.id else { return };
        if let Some(waiting) = self.pending.borrow_mut().remove(id.get().as_bytes()) {
            // The client may have gone.
            let _ = waiting.send(line.clone());
        }
    }
}

/// The bytes of `message` before and behind its id.
fn around<'a>(message: &'a [u8], id: &RawValue) -> (&'a [u8], &'a [u8]) {
    let start = id.get().as_ptr() as usize - message.as_ptr() as usize;
    (&message[..start], &message[start + id.get().len()..])
}
