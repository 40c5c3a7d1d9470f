//! Accepts HTTP connections from clients, checks who they are, and hands requests to the handlers of their paths.

use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_wire::{ErrorCode, Id, Message, error_response};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_rustls::server::TlsStream;

use super::admission::{Admission, AdmissionRefusal};
use super::client_socket::{ClientDisconnect, ClientSocket, SocketHandle};
use super::connection_places::{ConnectionActivity, ConnectionPlaces, LeaveOnDrop, ServedBody};
use super::cors;
use super::handler::RequestSource;
use super::outgoing_body::{OutgoingBody, UnsentMessage};
use super::request_body::discard;
use super::routes::Routes;
use super::tls_handshakes::TlsHandshakes;
use super::upgrade::{ConnectionSlot, PendingUpgrade};

/// How many connections may wait to be accepted. Thousands of peers come back at once after a restart, and one that finds no
/// place tries again only after a second.
const BACKLOG: u32 = 4096;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Silent connections are looked for no more often than this.
const SWEEP_MIN: Duration = Duration::from_millis(10);
/// How often an h2 client is asked whether it is still there, and how long it may take to say so.
const H2_PING: Duration = Duration::from_secs(30);
const H2_PING_DEADLINE: Duration = Duration::from_secs(20);
/// See [`limit_unsent`].
#[cfg(target_os = "linux")]
const UNSENT_MAX: u32 = 128 * 1024;

/// A response of ours.
pub type HttpResponse = Response<OutgoingBody>;

/// Told why a request was turned away, for the record.
pub(crate) type RefusalCallback = Arc<dyn Fn(&str) + Send + Sync>;

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
    /// How much it takes on.
    pub limits: ListenerLimits,
    /// Where refusals are noted.
    pub on_refusal: RefusalCallback,
}

/// How many connections a listener takes, and how long it waits for each.
#[derive(Clone, Copy, Debug)]
pub struct ListenerLimits {
    /// Client connections at once, upgraded ones included. If another comes, the one that has been idle for longest
    /// makes room; if none is idle, it waits.
    pub connections: usize,
    /// How long the head of a request may take, and how long a new connection may bring none.
    pub header_deadline: Duration,
    /// How long a TLS handshake may take.
    pub tls_deadline: Duration,
}

impl Default for ListenerLimits {
    fn default() -> ListenerLimits {
        ListenerLimits {
            connections: 4_096,
            header_deadline: Duration::from_secs(30),
            tls_deadline: Duration::from_secs(10),
        }
    }
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
        let socket = listen(host, port).await?;
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

    /// Accepts until `stop` resolves. Upgraded connections end then; requests that are being answered are left to their
    /// tasks, so that sessions can still say that they end.
    pub async fn run(self, routes: Arc<Routes>, stop: impl Future<Output = ()>) {
        let places = ConnectionPlaces::new(self.options.limits.connections);
        let tls = self.options.tls.clone().map(TlsHandshakes::new);
        let options = Arc::new(self.options);
        // Dropped with this future: that tells the upgraded connections.
        let (_running, listening) = watch::channel(());
        let deadline = options.limits.header_deadline;
        let mut sweep = tokio::time::interval((deadline / 4).max(SWEEP_MIN));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = sweep.tick() => {
                    places.end_silent(deadline);
                    continue;
                }
                () = &mut stop => return,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or the client left already: a short pause, then the next.
                    if is_out_of_descriptors(&error) {
                        places.end_longest_idle();
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // A listener whose places are all taken still has to hear that it should stop.
            let permit = tokio::select! {
                permit = places.take() => permit,
                () = &mut stop => return,
            };
            let Some(permit) = permit else { return };
            let place = ConnectionSlot::new(permit, listening.clone());
            places.run(|activity| {
                let client = Arc::new(ClientConnection {
                    address,
                    routes: Arc::clone(&routes),
                    options: Arc::clone(&options),
                    place,
                    activity: Arc::clone(&activity),
                });
                let tls = tls.clone();
                tokio::spawn(async move {
                    let _leave = LeaveOnDrop(activity);
                    serve(stream, tls, client).await;
                })
            });
        }
    }
}

/// Listens at the first address of a host that can be bound.
async fn listen(host: &str, port: u16) -> std::io::Result<TcpListener> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in tokio::net::lookup_host((host, port)).await? {
        let listening = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }
        .and_then(|socket| {
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        });
        match listening {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The process, or the machine, has no more of them. An idle connection can give one back.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::MFILE, Errno::NFILE];
    known
        .iter()
        .any(|known| error.raw_os_error() == Some(known.raw_os_error()))
}

async fn serve(stream: TcpStream, tls: Option<TlsHandshakes>, client: Arc<ClientConnection>) {
    let options = &client.options;
    let _ = tune(&stream, options.stall);
    match tls {
        None => http1(stream, client).await,
        Some(tls) => {
            let deadline = options.limits.tls_deadline;
            let accepted = tokio::time::timeout(deadline, tls.accept(stream)).await;
            if let Ok(Some(stream)) = accepted {
                let _ = limit_unsent(stream.get_ref().0);
                // Boxed: it is larger than the other way, and every connection would have room for it.
                Box::pin(http1_or_2(stream, client)).await;
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

/// Lets a socket hold little that is not sent, for protocols that must notice whether a slow peer still takes something. A
/// full socket takes more only when a third of its buffer is free. That can be a megabyte, and a slow peer needs longer than
/// any stall deadline to take it.
pub(super) fn limit_unsent(stream: &TcpStream) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX)?;
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    Ok(())
}

/// HTTP/1.1 on a plain socket; under TLS the client may choose h2.
async fn http1(stream: TcpStream, client: Arc<ClientConnection>) {
    let options = Arc::clone(&client.options);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    let deadline = options.limits.header_deadline;
    builder.header_read_timeout(options.is_public.then_some(deadline));
    // hyper takes every end of input for a disconnect; `DisconnectWatch` decides which ones are.
    builder.half_close(true);
    let activity = Arc::clone(&client.activity);
    let (socket, mut watch) = ClientSocket::new(stream, options.stall, activity);
    let service = service(client, Some(socket.handle()));
    let serving = builder.serve_connection(TokioIo::new(socket), service);
    let mut serving = pin!(serving.with_upgrades());
    let away = poll_fn(|cx| match serving.as_mut().poll(cx) {
        // The peer's own troubles (a reset, a bad request line) end its connection and nothing else. Or it was upgraded:
        // the socket belongs to another task now, and nobody watches it from here.
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => watch.poll_disconnect(cx).map(Some),
    });
    // What the connection was working on is dropped with it, and says so where it matters.
    if let Some(ClientDisconnect::HalfClosed) = away.await {
        let seconds = options.stall.as_secs();
        (options.on_refusal)(&format!(
            "a client that had closed its sending side was given up: its answer was not complete after {seconds} s"
        ));
    }
}

async fn http1_or_2(stream: TlsStream<TcpStream>, client: Arc<ClientConnection>) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(client.options.limits.header_deadline);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING_DEADLINE);
    let serving =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), service(client, None));
    drop(serving.await);
}

/// Answers the requests of one connection. What was not written to `socket` when that ends is undelivered.
fn service(
    client: Arc<ClientConnection>,
    socket: Option<SocketHandle>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<ServedBody>,
    Error = Infallible,
    Future: Future<Output = Result<Response<ServedBody>, Infallible>> + Send,
> {
    service_fn(move |request| {
        let client = Arc::clone(&client);
        let under_way = client.activity.begin();
        let origin = cors::named_origin(&client.options.admission, request.headers());
        // Started outside of the block, so that the request is not moved into one more future.
        let answer = client.answer(request, socket.as_ref());
        let socket = socket.clone();
        async move {
            let mut answer = answer.await;
            if let Some(socket) = socket {
                answer.body_mut().track(&socket);
            }
            if answer.status().is_client_error() || answer.status().is_server_error() {
                note_refusal(&answer, &client.options.on_refusal);
            }
            if let Some(origin) = origin {
                cors::allow(&mut answer, origin);
            }
            Ok(answer.map(|body| ServedBody {
                body,
                _request: under_way,
            }))
        }
    })
}

/// What all requests of one connection have in common.
struct ClientConnection {
    address: SocketAddr,
    routes: Arc<Routes>,
    options: Arc<ListenerOptions>,
    place: Arc<ConnectionSlot>,
    activity: Arc<ConnectionActivity>,
}

impl ClientConnection {
    fn answer(
        &self,
        mut request: Request<Incoming>,
        socket: Option<&SocketHandle>,
    ) -> BoxFuture<'static, HttpResponse> {
        let authority = request.uri().authority().cloned();
        let authority = authority.as_ref().map(http::uri::Authority::as_str);
        let admission = &self.options.admission;
        if cors::is_preflight(request.method(), request.headers())
            && cors::named_origin(admission, request.headers()).is_some()
        {
            let admitted = admission.admit_origin(request.headers(), authority);
            return Box::pin(ready(match admitted {
                Ok(()) => cors::preflight_answer(request.headers()),
                Err(refusal) => refused(refusal),
            }));
        }
        let admitted = match self.routes.needs_token(request.uri().path()) {
            true => admission.admit(request.headers_mut(), authority),
            false => admission
                .admit_origin(request.headers(), authority)
                .map(|()| None),
        };
        match admitted {
            Ok(token) => {
                PendingUpgrade::offer(&mut request, &self.place, socket);
                let address = self.address;
                self.routes
                    .handle(RequestSource { token, address }, request)
            }
            // A client that asked first sends its body only if it is told to.
            Err(refusal) if request.headers().contains_key(EXPECT) => {
                Box::pin(ready(refused(refusal)))
            }
            Err(refusal) => Box::pin(async move {
                discard(request.into_body()).await;
                refused(refusal)
            }),
        }
    }
}

/// Answers of our own making are known by their error code; a server's failures are in the record already.
fn note_refusal(answer: &HttpResponse, on_refusal: &RefusalCallback) {
    if let OutgoingBody::Whole(Some(bytes)) = answer.body()
        && let message = Message::parse(bytes.clone())
        && message.error_code().is_some_and(ErrorCode::is_own)
    {
        let text = String::from_utf8_lossy(bytes);
        on_refusal(&format!(
            "a request was answered with HTTP {}: {text}",
            answer.status().as_u16()
        ));
    }
}

fn refused(refusal: AdmissionRefusal) -> HttpResponse {
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
pub(crate) fn error(status: u16, code: ErrorCode, text: &str) -> HttpResponse {
    error_answering(None, status, code, text)
}

/// The same for the request with this id.
pub(crate) fn error_answering(
    id: Option<&Id>,
    status: u16,
    code: ErrorCode,
    text: &str,
) -> HttpResponse {
    json(status, error_response(id, code, text, None))
}

/// A message as an HTTP answer.
pub(crate) fn json(status: u16, message: Message) -> HttpResponse {
    json_bytes(status, message.into_raw())
}

/// A message's bytes as an HTTP answer.
pub fn json_bytes(status: u16, message: Bytes) -> HttpResponse {
    let mut answer = Response::new(OutgoingBody::whole(message));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    answer.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    answer
}

/// The same for a message that is in the record.
pub(super) fn recorded_json(status: u16, message: Bytes, unsent: UnsentMessage) -> HttpResponse {
    let body = |whole| match whole {
        OutgoingBody::Whole(bytes) => OutgoingBody::Recorded(bytes, unsent),
        other => other,
    };
    json_bytes(status, message).map(body)
}

/// An answer without a body.
pub fn bare(status: u16) -> HttpResponse {
    let mut answer = Response::new(OutgoingBody::empty());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    answer
}

/// An SSE answer fed by `payload`.
pub(crate) fn events(payload: OutgoingBody) -> HttpResponse {
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_peer_is_seen_to_take_something() {
        let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listening.local_addr().unwrap();
        let peer = TcpStream::connect(address).await.unwrap();
        let (socket, _) = listening.accept().await.unwrap();
        limit_unsent(&socket).unwrap();
        let bytes = vec![0; 1 << 20];
        for _ in 0..3 {
            while socket.try_write(&bytes).is_ok() {}
            // Not a third of what the socket could hold.
            let taking = async {
                let mut taken = 0;
                while taken < 512 * 1024 {
                    peer.readable().await.unwrap();
                    taken += peer.try_read(&mut [0; 64 * 1024]).unwrap_or(0);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                writable = socket.writable() => writable.unwrap(),
                () = taking => {}
                () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nothing was taken"),
            }
        }
    }
}
