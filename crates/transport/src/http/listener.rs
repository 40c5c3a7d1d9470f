//! Accepts HTTP connections from clients, checks who they are, and hands requests to a [`Front`].

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcp_proxy_wire::{ErrorCode, Message, error_response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{Admission, Refusal};
use super::joined::{Away, Joined};
use super::payload::Payload;
use crate::front::Front;

/// Client connections at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 4_096;
const HEADER_DEADLINE: Duration = Duration::from_secs(30);
const TLS_DEADLINE: Duration = Duration::from_secs(10);

/// A response of ours.
pub type Answer = Response<Payload>;

/// Told why a request was turned away, for the record.
pub type OnRefusal = Arc<dyn Fn(&str) + Send + Sync>;

/// What a listener is made with.
pub struct ListenerOptions {
    /// Who may speak.
    pub admission: Admission,
    /// Certificate and key.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// A client that takes nothing for this long is given up.
    pub stall: Duration,
    /// Others than this machine's own programs can connect: a head that comes too slowly ends its connection.
    pub is_public: bool,
    /// Where refusals are noted.
    pub on_refusal: OnRefusal,
}

/// A bound port that does not accept yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    options: ListenerOptions,
}

impl Listener {
    /// Binds. Port 0 picks a free one.
    pub async fn bind(
        host: &str,
        port: u16,
        options: ListenerOptions,
    ) -> std::io::Result<Listener> {
        let socket = TcpListener::bind((host, port)).await?;
        let address = socket.local_addr()?;
        Ok(Listener {
            socket,
            address,
            options,
        })
    }

    /// The URL to tell people.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Accepts until `stop` resolves. Connections that are open then are dropped by the caller's runtime.
    pub async fn run(self, front: Front, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let acceptor = self.options.tls.clone().map(TlsAcceptor::from);
        let options = Arc::new(self.options);
        let mut stop = std::pin::pin!(stop);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let stream = tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => {
                        // Out of descriptors, or the client left already: a short pause, then on.
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
                () = &mut stop => return,
            };
            let (front, options) = (front.clone(), Arc::clone(&options));
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                serve(stream, acceptor, front, options).await;
                drop(place);
            });
        }
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    front: Front,
    options: Arc<ListenerOptions>,
) {
    let _ = tune(&stream, options.stall);
    match acceptor {
        None => http1(stream, front, options).await,
        Some(acceptor) => {
            let accepted = tokio::time::timeout(TLS_DEADLINE, acceptor.accept(stream)).await;
            if let Ok(Ok(stream)) = accepted {
                http1_or_2(stream, front, options).await;
            }
        }
    }
}

/// What every socket gets. Nagle's algorithm and delayed acknowledgements together cost 40 ms a message; and a peer
/// that is dead, or takes nothing for `stall`, is noticed by the kernel, which then ends the connection.
pub(super) fn tune(stream: &TcpStream, stall: Duration) -> std::io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    #[cfg(target_os = "linux")]
    {
        let milliseconds = u32::try_from(stall.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stall;
    Ok(())
}

/// HTTP/1.1 on a plain socket; under TLS the client may choose h2.
async fn http1(stream: TcpStream, front: Front, options: Arc<ListenerOptions>) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.header_read_timeout(options.is_public.then_some(HEADER_DEADLINE));
    // hyper takes every end of input for the client's; which one is, `Presence` says.
    builder.half_close(true);
    let (stall, on_refusal) = (options.stall, Arc::clone(&options.on_refusal));
    let (joined, mut presence) = Joined::new(stream, stall);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(joined), service(front, options)));
    let away = poll_fn(|cx| match serving.as_mut().poll(cx) {
        // The peer's own troubles (a reset, a bad request line) end its connection and nothing else.
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => presence.poll_away(cx).map(Some),
    });
    // What the connection was working on is dropped with it, and says so where it matters.
    if let Some(Away::HalfClosed) = away.await {
        let seconds = stall.as_secs();
        on_refusal(&format!(
            "a client that had closed its sending side was given up: its answer was not complete after {seconds} s"
        ));
    }
}

async fn http1_or_2(stream: TlsStream<TcpStream>, front: Front, options: Arc<ListenerOptions>) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE);
    let service = service(front, options);
    drop(
        builder
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

fn service(
    front: Front,
    options: Arc<ListenerOptions>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Answer,
    Error = Infallible,
    Future: Future<Output = Result<Answer, Infallible>> + Send,
> {
    service_fn(move |request| {
        let (front, options) = (front.clone(), Arc::clone(&options));
        async move { Ok(admit(request, front, &options).await) }
    })
}

async fn admit(mut request: Request<Incoming>, front: Front, options: &ListenerOptions) -> Answer {
    let authority = request.uri().authority().cloned();
    let authority = authority.as_ref().map(http::uri::Authority::as_str);
    let admitted = options.admission.admit(request.headers_mut(), authority);
    let answer = match admitted {
        Ok(()) => front.answer(request).await,
        Err(refusal) => refused(refusal),
    };
    if answer.status().is_client_error() || answer.status().is_server_error() {
        note_refusal(&answer, &options.on_refusal);
    }
    answer
}

/// Answers of our own making are known by their error code; a server's failures are in the record already.
fn note_refusal(answer: &Answer, on_refusal: &OnRefusal) {
    if let Payload::Whole(Some(bytes)) = answer.body()
        && let message = Message::parse(bytes.clone())
        && message
            .error_code()
            .is_some_and(|code| ErrorCode::OWN.iter().any(|own| own.code.0 == code))
    {
        let text = String::from_utf8_lossy(bytes);
        on_refusal(&format!(
            "a request was answered with HTTP {}: {text}",
            answer.status().as_u16()
        ));
    }
}

fn refused(refusal: Refusal) -> Answer {
    let mut answer = error(refusal.status, refusal.code, refusal.text);
    if refusal.status == 401 {
        answer.headers_mut().insert(
            http::header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer"),
        );
    }
    answer
}

/// A JSON-RPC error without an id, as an HTTP answer.
pub fn error(status: u16, code: ErrorCode, text: &str) -> Answer {
    json(status, error_response(None, code, text, None))
}

/// A message as an HTTP answer.
pub fn json(status: u16, message: Message) -> Answer {
    json_bytes(status, message.into_raw())
}

/// A message's bytes as an HTTP answer.
pub fn json_bytes(status: u16, message: Bytes) -> Answer {
    let mut answer = Response::new(Payload::whole(message));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    answer.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    answer
}

/// An answer without a body.
pub fn bare(status: u16) -> Answer {
    let mut answer = Response::new(Payload::empty());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    answer
}

/// An SSE answer fed by `payload`.
pub fn events(payload: Payload) -> Answer {
    let mut answer = Response::new(payload);
    let headers = answer.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// Whether a request's path is `path`, with or without a slash at its end.
pub fn is_path(uri: &Uri, path: &str) -> bool {
    let asked = uri.path();
    asked == path || asked.strip_suffix('/') == Some(path)
}
