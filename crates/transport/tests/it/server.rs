//! A listener on a free port, with handlers that tell what they see.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, MemoryBudget};
use mcp_proxy_transport::http::Admission;
use mcp_proxy_transport::http::{CollectedBody, collect};
use mcp_proxy_transport::http::{Handler, RequestSource};
use mcp_proxy_transport::http::{
    HttpResponse, Listener, ListenerLimits, ListenerOptions, bare, json_bytes,
};
use mcp_proxy_transport::http::{PendingUpgrade, UpgradedStream};
use mcp_proxy_transport::http::{Route, Routes};
use mcp_proxy_transport::tls;
use mcp_proxy_transport::websocket::SocketEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use crate::websocket::SocketEcho;

/// What nothing in a test takes as long as.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits for something that has to come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(DEADLINE, what).await.expect("it never came")
}

/// What handlers saw.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// An ordinary request was answered.
    Answered,
    /// A connection was upgraded.
    Upgraded(RequestFacts),
    /// The client closed its WebSocket with a handshake.
    Closed,
    /// The client was found to be gone.
    Gone,
}

/// What a handler knows of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestFacts {
    pub token: Option<String>,
    pub path: String,
}

type Events = mpsc::UnboundedSender<Event>;

/// A running listener: ordinary requests at `/mcp`, a WebSocket of a library at `/ws` and our own at `/echo`, which both
/// echo, and at `/raw` bytes that come back when the client has sent all of its own.
pub struct Server {
    pub address: SocketAddr,
    events: mpsc::UnboundedReceiver<Event>,
    socket_ends: mpsc::UnboundedReceiver<SocketEnd>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// What a test may choose.
#[derive(Default)]
pub struct Choices {
    pub admission: Admission,
    pub limits: ListenerLimits,
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Server {
    pub async fn start(choices: Choices) -> Server {
        let options = ListenerOptions {
            admission: choices.admission,
            tls: choices.tls,
            stall: DEADLINE,
            is_public: false,
            limits: choices.limits,
            on_refusal: Arc::new(|_| {}),
        };
        let listener = Listener::bind("127.0.0.1", 0, options).await.unwrap();
        let url = listener.url("");
        let address = url.rsplit_once('/').unwrap().1.parse().unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let (end_sender, socket_ends) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let routes = Routes::new()
            .with(Arc::new(Ordinary(sender.clone())), [Route::exact("/mcp")])
            .with(Arc::new(Echo(sender.clone())), [Route::exact("/ws")])
            .with(Arc::new(SocketEcho(end_sender)), [Route::exact("/echo")])
            .with(Arc::new(Raw(sender)), [Route::prefix("/raw")]);
        let running = tokio::spawn(listener.run(Arc::new(routes), async {
            let _ = stopped.await;
        }));
        Server {
            address,
            events,
            socket_ends,
            stop,
            running,
        }
    }

    /// The next event; waits for it.
    pub async fn event(&mut self) -> Event {
        soon(self.events.recv()).await.unwrap()
    }

    /// How the next WebSocket at `/echo` ended; waits for it.
    pub async fn socket_end(&mut self) -> SocketEnd {
        soon(self.socket_ends.recv()).await.unwrap()
    }

    /// Whether nothing has happened that was not asked for.
    pub fn is_quiet(&mut self) -> bool {
        self.events.try_recv().is_err()
    }

    /// Stops the listener and waits until it has.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        soon(self.running).await.unwrap();
    }
}

/// A certificate for `localhost`: the listener's side of it, and a client's.
pub fn certificate(folder: &Path) -> (Arc<rustls::ServerConfig>, Arc<rustls::ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let certificate = tls::ServerCertificate::open(&cert, &key).unwrap();
    let server = certificate.server_config().unwrap();
    let client = tls::client_config(Some(&cert)).unwrap();
    (server, Arc::new(client))
}

/// Sends the body of each request back.
struct Ordinary(Events);

impl Handler for Ordinary {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(async move {
            let memory = MemoryBudget::default();
            let CollectedBody::Whole(body) = collect(request.into_body(), 1 << 20, &memory).await
            else {
                return bare(400);
            };
            self.0.send(Event::Answered).unwrap();
            json_bytes(200, body)
        })
    }
}

fn facts(source: &RequestSource, request: &Request<Incoming>) -> RequestFacts {
    RequestFacts {
        token: source.token.as_deref().map(str::to_owned),
        path: request.uri().path().to_owned(),
    }
}

/// A WebSocket that echoes.
struct Echo(Events);

impl Handler for Echo {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        mut request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let Some(upgrade) = PendingUpgrade::take(&mut request) else {
            return Box::pin(std::future::ready(bare(426)));
        };
        let Ok(response) = create_response_with_body(&request, || ()) else {
            return Box::pin(std::future::ready(bare(400)));
        };
        let facts = facts(&source, &request);
        let headers = response.into_parts().0.headers;
        let answer = upgrade.accept(headers, move |stream| async move {
            self.0.send(Event::Upgraded(facts)).unwrap();
            let end = echo(stream).await;
            let _ = self.0.send(end);
        });
        Box::pin(std::future::ready(answer))
    }
}

async fn echo(stream: UpgradedStream) -> Event {
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    while let Some(message) = socket.next().await {
        match message {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                if socket.send(message).await.is_err() {
                    return Event::Gone;
                }
            }
            // The library answers pings and close frames itself.
            Ok(_) => {}
            Err(_) => return Event::Gone,
        }
    }
    // Under TLS that is said as well.
    let _ = socket.into_inner().shutdown().await;
    Event::Closed
}

/// Reads until the client sends no more, and then sends it all back.
struct Raw(Events);

impl Handler for Raw {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        mut request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let Some(upgrade) = PendingUpgrade::take(&mut request) else {
            return Box::pin(std::future::ready(bare(426)));
        };
        let facts = facts(&source, &request);
        let mut headers = HeaderMap::new();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "raw".parse().unwrap());
        let answer = upgrade.accept(headers, move |mut stream| async move {
            self.0.send(Event::Upgraded(facts)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            stream.write_all(&all).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        Box::pin(std::future::ready(answer))
    }
}
