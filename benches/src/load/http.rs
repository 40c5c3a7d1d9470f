//! The closed loop over HTTP: one kept connection, and for legacy requests one session, for each request in flight.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::{memchr, memmem};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, spawn_local};

use super::{Load, Window, Work};
use crate::canned::{self, BenchEra, MODERN_VERSION};

const FIRST_ID: u32 = 2_000_000;

/// Where a contender listens.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    pub address: SocketAddr,
    pub path: String,
}

/// A client with a connection of its own.
pub struct HttpSession {
    sender: SendRequest<Full<Bytes>>,
    target: HttpTarget,
    era: BenchEra,
    id: Option<HeaderValue>,
    next: u32,
}

/// Measures after a warm-up.
pub(super) async fn run(target: &HttpTarget, load: &Load) -> Result<Window> {
    let mut sessions = Vec::new();
    for work in load.work.iter().cycle().take(load.in_flight) {
        sessions.push((HttpSession::open(target, load.era).await?, work.clone()));
    }
    let (sessions, _) = work_for(sessions, load.warm_up()).await?;
    let (sessions, window) = work_for(sessions, load.time).await?;
    for (session, _) in sessions {
        session.close().await?;
    }
    Ok(window)
}

type Sessions = Vec<(HttpSession, Work)>;

async fn work_for(sessions: Sessions, time: Duration) -> Result<(Sessions, Window)> {
    let start = Instant::now();
    let end = start + time;
    let mut tasks = JoinSet::new();
    for (mut session, work) in sessions {
        tasks.spawn_local(async move {
            let mut latencies = Vec::new();
            while Instant::now() < end {
                let begun = Instant::now();
                session.work(&work).await?;
                latencies.push(begun.elapsed());
            }
            anyhow::Ok((session, work, latencies))
        });
    }
    let (mut sessions, mut all) = (Vec::new(), Vec::new());
    while let Some(finished) = tasks.join_next().await {
        let (session, work, mut latencies) = finished??;
        sessions.push((session, work));
        all.append(&mut latencies);
    }
    let window = Window {
        latencies: all,
        elapsed: start.elapsed(),
    };
    Ok((sessions, window))
}

impl HttpSession {
    pub async fn open(target: &HttpTarget, era: BenchEra) -> Result<HttpSession> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // A connection that fails shows in the next request.
        spawn_local(connection);
        let mut session = HttpSession {
            sender,
            target: target.clone(),
            era,
            id: None,
            next: FIRST_ID,
        };
        session
            .post("server/discover", None, canned::opening(era).into())
            .await?;
        if era == BenchEra::Legacy {
            session.post("", None, canned::initialized().into()).await?;
        }
        Ok(session)
    }

    async fn work(&mut self, work: &Work) -> Result<()> {
        match work {
            Work::Call(request) => {
                let id = self.next;
                self.next += 1;
                let body = request.with_id(id).into();
                let answer = self.post("tools/call", Some(&request.tool), body).await?;
                ensure!(
                    request.is_answered_by(&answer, id),
                    "request {id} was answered {}",
                    shown(&answer)
                );
            }
            Work::WholeList => drop(self.count_tools().await?),
        }
        Ok(())
    }

    /// Reads all pages of `tools/list`.
    pub async fn count_tools(&mut self) -> Result<usize> {
        let mut cursor = None;
        let mut count = 0;
        loop {
            let request = canned::list(cursor.as_deref());
            let answer = self.post("tools/list", None, request.into()).await?;
            // Every definition has it once.
            let tools = memmem::find_iter(&answer, br#""inputSchema""#).count();
            ensure!(tools > 0, "tools/list was answered {}", shown(&answer));
            count += tools;
            cursor = next_cursor(&answer);
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }

    /// Ends the session, so that a server process behind it ends too. What is answered does not matter.
    pub async fn close(mut self) -> Result<()> {
        if self.id.is_some() {
            let request = self.request(Method::DELETE, Bytes::new())?;
            self.sender.send_request(request).await?;
        }
        Ok(())
    }

    async fn post(&mut self, method: &str, tool: Option<&str>, body: Bytes) -> Result<Bytes> {
        let mut request = self.request(Method::POST, body)?;
        if self.era == BenchEra::Modern {
            let headers = request.headers_mut();
            headers.insert(
                "mcp-protocol-version",
                HeaderValue::from_static(MODERN_VERSION),
            );
            headers.insert("mcp-method", HeaderValue::from_str(method)?);
            if let Some(tool) = tool {
                headers.insert("mcp-name", HeaderValue::from_str(tool)?);
            }
        }
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        if let Some(id) = response.headers().get("mcp-session-id") {
            self.id = Some(id.clone());
        }
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(
            matches!(status, StatusCode::OK | StatusCode::ACCEPTED),
            "{method} was answered {status}: {}",
            shown(&body)
        );
        Ok(body)
    }

    fn request(&self, method: Method, body: Bytes) -> Result<hyper::Request<Full<Bytes>>> {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(&self.target.path)
            .header(HOST, self.target.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(id) = &self.id {
            request = request
                .header("mcp-session-id", id)
                .header("mcp-protocol-version", canned::LEGACY_VERSION);
        }
        Ok(request.body(Full::new(body))?)
    }
}

/// Where the next page begins, still escaped.
fn next_cursor(page: &[u8]) -> Option<String> {
    const KEY: &[u8] = br#""nextCursor":""#;
    let start = memmem::find(page, KEY)? + KEY.len();
    let length = memchr(b'"', &page[start..])?;
    String::from_utf8(page[start..start + length].to_vec()).ok()
}

/// The beginning of an answer, for a message.
fn shown(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(192)]).into_owned()
}
