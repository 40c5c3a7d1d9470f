//! HTTP upgrades: a connection leaves HTTP and carries another protocol, such as WebSocket, from then on.
//!
//! The listener keeps what it promised for connections: an upgraded one has its place among those that are allowed, and
//! ends when the listener stops.

use std::sync::Arc;

use http::{HeaderMap, Request, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::client_socket::SocketHandle;
use super::listener::{HttpResponse, bare};

/// The bytes of a connection that has left HTTP.
pub type UpgradedStream = TokioIo<Upgraded>;

/// A request's wish to leave HTTP. Only requests that ask for an upgrade have one.
#[derive(Clone)]
pub struct PendingUpgrade {
    stream: OnUpgrade,
    place: Arc<ConnectionSlot>,
    /// `None` under TLS.
    socket: Option<SocketHandle>,
}

/// A connection's place among those that its listener allows. Dropped, it is free for another.
pub(super) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    /// Its sender is dropped when the listener stops; nothing is ever sent.
    listening: watch::Receiver<()>,
}

impl ConnectionSlot {
    /// A place of a listener that runs for as long as there is a sender to `listening`.
    pub(super) fn new(permit: OwnedSemaphorePermit, listening: watch::Receiver<()>) -> Arc<Self> {
        Arc::new(ConnectionSlot {
            _permit: permit,
            listening,
        })
    }
}

impl PendingUpgrade {
    /// Takes the wish out of a request.
    pub fn take<B>(request: &mut Request<B>) -> Option<PendingUpgrade> {
        request.extensions_mut().remove()
    }

    /// Puts our own handle of an upgrade into the place of hyper's, which knows neither places nor the listener's end.
    pub(super) fn offer<B>(
        request: &mut Request<B>,
        place: &Arc<ConnectionSlot>,
        socket: Option<&SocketHandle>,
    ) {
        let extensions = request.extensions_mut();
        if let Some(stream) = extensions.remove::<OnUpgrade>() {
            extensions.insert(PendingUpgrade {
                stream,
                place: Arc::clone(place),
                socket: socket.cloned(),
            });
        }
    }

    /// Grants it: the answer to return, 101 with these headers, which name the protocol. As soon as the answer is
    /// written, `serve` runs in a task of its own until it is done or the listener stops. It does not run at all if
    /// the client leaves before.
    pub fn accept<S, F>(self, headers: HeaderMap, serve: S) -> HttpResponse
    where
        S: FnOnce(UpgradedStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let PendingUpgrade {
            stream,
            place,
            socket,
        } = self;
        if let Some(socket) = socket {
            socket.prepare_upgrade();
        }
        tokio::spawn(async move {
            let mut listening = place.listening.clone();
            let serving = async move {
                if let Ok(stream) = stream.await {
                    serve(TokioIo::new(stream)).await;
                }
            };
            tokio::select! {
                () = serving => {}
                _ = listening.changed() => {}
            }
            // Others may come now that the stream is closed.
            drop(place);
        });
        let mut answer = bare(StatusCode::SWITCHING_PROTOCOLS.as_u16());
        *answer.headers_mut() = headers;
        answer
    }
}
