//! The proxy's end of the control socket: one task for each viewer, which reads, answers, tells and writes.
//!
//! A task's buffers are bounded. While its viewer does not read, no more is read from it and no notice is taken, so what
//! would have been said merges into what is said later; after [`STALL`] it is given up.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_core::control::{ProxyControl, Viewer};
use mcp_proxy_wire::{ErrorCode, error_response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::line::{BufferedLine, LineBuffer};

/// The longest request: a held message may be replaced by one of its size.
const MAX_LINE: usize = 64 << 20;
/// With so much unread, no further request is taken.
const ROOM: usize = 1 << 20;
/// With so much unread, no notice is taken.
const NOTICE_ROOM: usize = 16 << 10;
/// A viewer that reads nothing of what it is sent for this long is given up.
const STALL: Duration = Duration::from_secs(120);
/// A refusal is one line; nobody waits longer than this until it is taken.
const REFUSAL: Duration = Duration::from_secs(1);

/// Serves viewers, for ever. When this is dropped their connections end.
pub async fn serve(listener: &UnixListener, control: &Arc<ProxyControl>) {
    let mut viewers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    viewers.spawn(admit_viewer(stream, Arc::clone(control)));
                }
                // Out of descriptors, most likely: the connected viewers continue.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = viewers.join_next() => {}
        }
    }
}

/// Lets a viewer in, or says why not.
async fn admit_viewer(stream: UnixStream, control: Arc<ProxyControl>) {
    let peer = stream.peer_cred();
    let own = rustix::process::geteuid().as_raw();
    let refusal = match &peer {
        Ok(peer) if peer.uid() == own => match control.attach(peer.pid()) {
            Ok(viewer) => return serve_viewer(stream, viewer).await,
            Err(error) => (error.to_string(), r#"{"reason":"limit"}"#),
        },
        _ => (
            "this proxy belongs to another user".to_owned(),
            r#"{"reason":"other_user"}"#,
        ),
    };
    let (text, data) = refusal;
    let answer = error_response(None, ErrorCode::INVALID_REQUEST, &text, Some(data));
    let line = [answer.raw(), &b"\n"[..]].concat();
    let mut stream = stream;
    drop(tokio::time::timeout(REFUSAL, stream.write_all(&line)).await);
}

async fn serve_viewer(stream: UnixStream, viewer: Viewer) {
    let Viewer {
        requests: desk,
        notifications: mut notices,
    } = viewer;
    let (mut reader, mut writer) = stream.into_split();
    let mut lines = LineBuffer::new(MAX_LINE);
    let mut out = BytesMut::new();
    let mut answering: Option<BoxFuture<'_, Option<Vec<u8>>>> = None;
    let mut reading = true;
    let mut behind = false;
    let mut moved = Instant::now();
    loop {
        if answering.is_none() && out.len() < ROOM {
            match lines.take() {
                Some(BufferedLine::Whole(line)) => answering = Some(Box::pin(desk.answer(line))),
                Some(BufferedLine::TooLong) => {
                    push(&mut out, &desk.too_long(MAX_LINE), &mut moved);
                    continue;
                }
                None if !reading && out.is_empty() => return,
                None => {}
            }
        }
        let has_room = out.len() < NOTICE_ROOM;
        if has_room && std::mem::take(&mut behind) {
            notices.fell_behind();
        }
        behind |= !has_room;
        let takes_more = reading && answering.is_none() && out.len() < ROOM;
        tokio::select! {
            biased;
            answer = finished(&mut answering) => {
                answering = None;
                if let Some(answer) = answer {
                    push(&mut out, &answer, &mut moved);
                }
            }
            written = writer.write_buf(&mut out), if !out.is_empty() => match written {
                Ok(1..) => moved = Instant::now(),
                Ok(0) | Err(_) => return,
            },
            () = tokio::time::sleep_until(moved + STALL), if !out.is_empty() => return,
            notice = notices.next(), if has_room && reading => {
                push(&mut out, &notice.to_json(), &mut moved);
            }
            read = reader.read_buf(lines.space()), if takes_more => match read {
                Ok(1..) => {}
                Ok(0) => reading = false,
                Err(_) => return,
            },
        }
    }
}

/// What is being answered, once it is; for ever, when nothing is.
async fn finished(answering: &mut Option<BoxFuture<'_, Option<Vec<u8>>>>) -> Option<Vec<u8>> {
    match answering {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

fn push(out: &mut BytesMut, line: &[u8], moved: &mut Instant) {
    if out.is_empty() {
        *moved = Instant::now();
        // What one large answer has grown is given back.
        if out.capacity() > ROOM {
            *out = BytesMut::new();
        }
    }
    out.extend_from_slice(line);
    out.extend_from_slice(b"\n");
}
