//! Connections to one plain-HTTP server, reused.
//!
//! Own code, because time matters here: the general client of hyper-util starts a task and takes two locks for every
//! request. One origin, HTTP/1.1 and a list are all that is needed; https goes the general way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::payload::Payload;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// A connection that lay idle for longer is not trusted: servers close them about then.
const IDLE_MAX: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;

/// The connections to one server.
pub struct Pool {
    host: String,
    port: u16,
    authority: HeaderValue,
    stall: Duration,
    idle: Mutex<Vec<(SendRequest<Payload>, Instant)>>,
}

/// A body as it arrives, from a client or from a server; a server's connection goes back to its pool at the end.
pub struct Inflow {
    body: Incoming,
    back: Option<(Arc<Pool>, SendRequest<Payload>)>,
}

impl From<Incoming> for Inflow {
    fn from(body: Incoming) -> Inflow {
        Inflow { body, back: None }
    }
}

impl Inflow {
    /// The next data; trailers are passed over.
    pub fn poll_data(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Bytes, hyper::Error>>> {
        use std::task::{Poll, ready};
        loop {
            match ready!(std::pin::Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => {
                    self.back = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.give_back();
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// The next data, awaited.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Whether nothing more will come.
    pub fn is_done(&mut self) -> bool {
        let done = self.body.is_end_stream();
        if done {
            self.give_back();
        }
        done
    }

    fn give_back(&mut self) {
        if let Some((pool, sender)) = self.back.take() {
            pool.keep(sender);
        }
    }
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// No connection.
    #[error("cannot connect ({0})")]
    Connect(std::io::Error),
    /// The connection broke.
    #[error("connection failed ({0})")]
    Broken(hyper::Error),
}

impl Pool {
    /// For the server of `url`, which is plain HTTP.
    pub fn new(url: &Uri, stall: Duration) -> Option<Arc<Pool>> {
        let host = url.host()?.trim_matches(['[', ']']).to_owned();
        let authority = HeaderValue::from_str(url.authority()?.as_str()).ok()?;
        Some(Arc::new(Pool {
            host,
            port: url.port_u16().unwrap_or(80),
            authority,
            stall,
            idle: Mutex::default(),
        }))
    }

    /// Sends a request on an idle connection, or on a new one.
    pub async fn send(
        self: &Arc<Self>,
        mut request: Request<Payload>,
    ) -> Result<Response<Inflow>, PoolError> {
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(HOST, self.authority.clone());
        while let Some(mut sender) = self.take() {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.answered(response, sender)),
                Err(mut failed) => match failed.take_message() {
                    // The server had closed it meanwhile, and has seen nothing of the request.
                    Some(back) => request = back,
                    None => return Err(PoolError::Broken(failed.into_error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        let response = sender
            .send_request(request)
            .await
            .map_err(PoolError::Broken)?;
        Ok(self.answered(response, sender))
    }

    fn answered(
        self: &Arc<Self>,
        response: Response<Incoming>,
        sender: SendRequest<Payload>,
    ) -> Response<Inflow> {
        let back = Some((Arc::clone(self), sender));
        response.map(|body| Inflow { body, back })
    }

    async fn connect(&self) -> Result<SendRequest<Payload>, PoolError> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(CONNECT_DEADLINE, connecting)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
            .map_err(PoolError::Connect)?;
        let _ = super::listener::tune(&stream, self.stall);
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(PoolError::Broken)?;
        tokio::spawn(async move {
            // A broken connection is told to the request that uses it.
            drop(connection.await);
        });
        Ok(sender)
    }

    fn take(&self) -> Option<SendRequest<Payload>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((sender, since)) = idle.pop() {
            if !sender.is_closed() && since.elapsed() < IDLE_MAX {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, sender: SendRequest<Payload>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < IDLE_CONNECTIONS {
            idle.push((sender, Instant::now()));
        }
    }
}
