//! HTTP to stdio: a process for each legacy session, one shared process for requests without a session.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::spawn_local;

use super::process::{AnswerEnvelope, FloorProcess, IdMode};

struct FloorSessions {
    command: Vec<String>,
    open: RefCell<HashMap<String, Rc<FloorProcess>>>,
    shared: RefCell<Option<Rc<FloorProcess>>>,
    opened: RefCell<u64>,
}

pub async fn serve(command: Vec<String>) -> Result<()> {
    let listener = super::listen().await?;
    let sessions = Rc::new(FloorSessions {
        command,
        open: RefCell::default(),
        shared: RefCell::default(),
        opened: RefCell::default(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let sessions = Rc::clone(&sessions);
        spawn_local(async move {
            let service = service_fn(|request| sessions.respond(request));
            http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok()
        });
    }
}

impl FloorSessions {
    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(self
            .carry(request)
            .await
            .unwrap_or_else(|_| empty(StatusCode::BAD_GATEWAY)))
    }

    async fn carry(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        let session = request
            .headers()
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        if request.method() == Method::DELETE {
            if let Some(process) = session.and_then(|id| self.open.borrow_mut().remove(&id)) {
                process.stop();
            }
            return Ok(empty(StatusCode::OK));
        }
        let body = request.into_body().collect().await?.to_bytes();
        let envelope: AnswerEnvelope<'_> = serde_json::from_slice(&body)?;
        let mut fresh = None;
        let process = match session {
            Some(id) => self.open.borrow().get(&id).cloned(),
            None if envelope.method == Some("initialize") => {
                let (id, process) = self.open_session()?;
                fresh = Some(id);
                Some(process)
            }
            None => Some(self.shared()?),
        };
        let Some(process) = process else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        let Some(answer) = process.send(&body, envelope.id).await else {
            let gone = envelope.id.is_some();
            return Ok(empty(if gone {
                StatusCode::BAD_GATEWAY
            } else {
                StatusCode::ACCEPTED
            }));
        };
        let mut response = Response::new(Full::new(answer));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(id) = fresh {
            response
                .headers_mut()
                .insert("mcp-session-id", HeaderValue::from_str(&id)?);
        }
        Ok(response)
    }

    fn open_session(&self) -> Result<(String, Rc<FloorProcess>)> {
        let process = FloorProcess::start(&self.command, IdMode::Pass)?;
        let mut opened = self.opened.borrow_mut();
        *opened += 1;
        let id = format!("copy-{:016x}", *opened);
        self.open
            .borrow_mut()
            .insert(id.clone(), Rc::clone(&process));
        Ok((id, process))
    }

    fn shared(&self) -> Result<Rc<FloorProcess>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(process) = shared.as_ref() {
            return Ok(Rc::clone(process));
        }
        let process = FloorProcess::start(&self.command, IdMode::Exchange)?;
        *shared = Some(Rc::clone(&process));
        Ok(process)
    }
}

pub(super) fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
