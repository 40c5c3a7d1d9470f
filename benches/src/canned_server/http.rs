//! The canned server over HTTP: hyper on one thread, legacy sessions kept, JSON answers (never SSE).

use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::canned::{ANSWER_START, CannedAnswers, MODERN_VERSION, ToolSet};
use crate::processes;

/// Answers longer than this go out as a second piece, never copied.
const COPY_BELOW: usize = 16 * 1024;

struct Server {
    answers: CannedAnswers,
    sessions: RefCell<HashSet<String>>,
    opened: RefCell<u64>,
}

pub fn serve(tools: &ToolSet) -> Result<()> {
    processes::end_with_parent();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        let server = Rc::new(Server {
            answers: CannedAnswers::new(tools),
            sessions: RefCell::default(),
            opened: RefCell::default(),
        });
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Rc::clone(&server);
            tokio::task::spawn_local(async move {
                let service = service_fn(|request| server.respond(request));
                // A client that goes away ends its connection; nobody needs to hear of it.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

impl Server {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Pieces>, Infallible> {
        let modern = request
            .headers()
            .get("mcp-protocol-version")
            .is_some_and(|value| value == MODERN_VERSION);
        let session = request
            .headers()
            .get("mcp-session-id")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        match *request.method() {
            Method::POST => {}
            Method::DELETE if !modern => {
                let known = session.is_some_and(|id| self.sessions.borrow_mut().remove(&id));
                return Ok(empty(if known {
                    StatusCode::OK
                } else {
                    StatusCode::NOT_FOUND
                }));
            }
            _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
        }
        if modern && request.headers().get("mcp-method").is_none() {
            return Ok(empty(StatusCode::BAD_REQUEST));
        }
        let Ok(body) = request.into_body().collect().await else {
            return Ok(empty(StatusCode::BAD_REQUEST));
        };
        let body = body.to_bytes();
        let Some(answer) = self.answers.answer(&body) else {
            return Ok(empty(StatusCode::ACCEPTED));
        };
        if !modern
            && !answer.opens_session
            && !session.is_some_and(|id| self.sessions.borrow().contains(&id))
        {
            return Ok(empty(StatusCode::NOT_FOUND));
        }
        let mut response = Response::new(Pieces::new(answer.id, answer.rest));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if answer.opens_session {
            let id = self.open_session();
            if let Ok(value) = HeaderValue::from_str(&id) {
                response.headers_mut().insert("mcp-session-id", value);
            }
            self.sessions.borrow_mut().insert(id);
        }
        Ok(response)
    }

    fn open_session(&self) -> String {
        let mut opened = self.opened.borrow_mut();
        *opened += 1;
        format!("session-{:016x}", *opened)
    }
}

fn empty(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces {
        first: Bytes::new(),
        second: Bytes::new(),
    });
    *response.status_mut() = status;
    response
}

/// A body of known length in at most two pieces.
struct Pieces {
    first: Bytes,
    second: Bytes,
}

impl Pieces {
    fn new(id: &str, rest: Bytes) -> Pieces {
        let mut first =
            BytesMut::with_capacity(ANSWER_START.len() + id.len() + COPY_BELOW.min(rest.len()));
        first.put_slice(ANSWER_START);
        first.put_slice(id.as_bytes());
        if rest.len() < COPY_BELOW {
            first.put_slice(&rest);
            return Pieces {
                first: first.freeze(),
                second: Bytes::new(),
            };
        }
        Pieces {
            first: first.freeze(),
            second: rest,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.first.is_empty() {
            self.first = std::mem::take(&mut self.second);
        }
        let piece = std::mem::take(&mut self.first);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.first.len() + self.second.len()) as u64)
    }
}
