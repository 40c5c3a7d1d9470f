//! stdio to HTTP: each line a POST on a kept connection, each answer a line.

use std::borrow::Cow;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use memchr::{memchr, memmem};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use super::outbox::Outbox;
use super::pipes;
use crate::canned::{LEGACY_VERSION, MODERN_VERSION};

/// Requests in flight at most, and so connections at most.
const IN_FLIGHT: usize = 64;

struct FloorServer {
    address: SocketAddr,
    path: String,
    host: HeaderValue,
    session: RefCell<Option<HeaderValue>>,
    idle: RefCell<Vec<SendRequest<Full<Bytes>>>>,
    outbox: Outbox,
}

#[derive(Deserialize)]
struct RequestEnvelope<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<CallParams<'a>>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

pub async fn relay(address: SocketAddr, path: String) -> Result<()> {
    let host = HeaderValue::from_str(&address.to_string())?;
    let server = Rc::new(FloorServer {
        address,
        path,
        host,
        session: RefCell::default(),
        idle: RefCell::default(),
        outbox: Outbox::default(),
    });
    let writer = Rc::clone(&server);
    let output = pipes::stdout()?;
    spawn_local(async move { writer.outbox.drain(output).await.ok() });
    let slots = Rc::new(Semaphore::new(IN_FLIGHT));
    let mut input = pipes::stdin()?;
    let mut buffer = BytesMut::with_capacity(256 * 1024);
    loop {
        buffer.reserve(64 * 1024);
        if input.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        while let Some(length) = memchr(b'\n', &buffer) {
            let line = buffer.split_to(length).freeze();
            buffer.advance(1);
            // The permit is given back when the answer is on its way.
            slots.acquire().await?.forget();
            let (server, slots) = (Rc::clone(&server), Rc::clone(&slots));
            spawn_local(async move {
                if let Err(error) = server.post(line).await {
                    eprintln!("floor: {error:#}");
                }
                slots.add_permits(1);
            });
        }
    }
}

impl FloorServer {
    async fn post(&self, line: Bytes) -> Result<()> {
        let request = self.request(line)?;
        let kept = self.idle.borrow_mut().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => connect(self.address).await?,
        };
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        let (head, body) = response.into_parts();
        if let Some(id) = head.headers.get("mcp-session-id") {
            *self.session.borrow_mut() = Some(id.clone());
        }
        let body = body.collect().await?.to_bytes();
        self.idle.borrow_mut().push(connection);
        ensure!(
            head.status.is_success(),
            "the server answered {}",
            head.status
        );
        if !body.is_empty() {
            self.outbox.push(&[&body, b"\n"]).await;
        }
        Ok(())
    }

    fn request(&self, line: Bytes) -> Result<Request<Full<Bytes>>> {
        let envelope: RequestEnvelope<'_> = serde_json::from_slice(&line)?;
        let mut request = Request::post(self.path.as_str())
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = self.session.borrow().as_ref() {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", LEGACY_VERSION);
        } else if memmem::find(&line, MODERN_VERSION.as_bytes()).is_some() {
            request = request.header("mcp-protocol-version", MODERN_VERSION);
            if let Some(method) = envelope.method {
                request = request.header("mcp-method", method.as_ref());
            }
            if let Some(name) = envelope.params.and_then(|params| params.name) {
                request = request.header("mcp-name", name.as_ref());
            }
        }
        Ok(request.body(Full::new(line.clone()))?)
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    spawn_local(async move { connection.await.ok() });
    Ok(sender)
}
