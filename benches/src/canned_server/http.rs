//! The canned server over HTTP: hyper on one thread, legacy sessions kept, JSON answers (never SSE).

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::convert::Infallible;
use std::rc::Rc;

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::COPY_BELOW;
use crate::canned::{ANSWER_START, CannedAnswer, CannedAnswers, MODERN_VERSION};

type CannedBody = UnsyncBoxBody<Bytes, Infallible>;

struct Server {
    answers: CannedAnswers,
    sessions: RefCell<HashSet<String>>,
    opened: Cell<u64>,
}

pub fn serve(answers: CannedAnswers) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        let server = Rc::new(Server {
            answers,
            sessions: RefCell::default(),
            opened: Cell::default(),
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
    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<CannedBody>, Infallible> {
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
        let mut response = Response::new(body_of(&answer));
        let length = ANSWER_START.len() + answer.id.len() + answer.rest.len();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if answer.opens_session {
            self.opened.set(self.opened.get() + 1);
            let id = format!("session-{:016x}", self.opened.get());
            if let Ok(value) = HeaderValue::from_str(&id) {
                headers.insert("mcp-session-id", value);
            }
            self.sessions.borrow_mut().insert(id);
        }
        Ok(response)
    }
}

fn empty(status: StatusCode) -> Response<CannedBody> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// The whole answer, its long end without a copy.
fn body_of(answer: &CannedAnswer<'_>) -> CannedBody {
    let mut start = BytesMut::from(ANSWER_START);
    start.extend_from_slice(answer.id.as_bytes());
    if answer.rest.len() < COPY_BELOW {
        start.extend_from_slice(&answer.rest);
        return Full::new(start.freeze()).boxed_unsync();
    }
    let pieces = [start.freeze(), answer.rest.clone()];
    StreamBody::new(stream::iter(pieces.map(|piece| Ok(Frame::data(piece))))).boxed_unsync()
}
