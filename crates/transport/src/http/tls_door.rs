//! The TLS handshakes of a listener.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Handshakes at once. Of thousands that come together, those that have begun are finished before others begin: otherwise all
/// of them take longer than their clients wait, and everything is done in vain.
const AT_ONCE: usize = 128;
/// Clients that begin and do not go on cannot keep the others out for longer than this.
const TURN: Duration = Duration::from_secs(1);

/// Lets clients in.
#[derive(Clone)]
pub(super) struct TlsDoor {
    acceptor: TlsAcceptor,
    turns: Arc<Semaphore>,
}

impl TlsDoor {
    pub(super) fn new(config: Arc<ServerConfig>) -> TlsDoor {
        TlsDoor {
            acceptor: TlsAcceptor::from(config),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// A client's stream after its handshake. Nothing if it has left, or does not speak TLS.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        // A client that says nothing needs no turn.
        stream.readable().await.ok()?;
        let _turn = timeout(TURN, self.turns.acquire()).await;
        // It may have given up meanwhile. Then its signature would be for nobody.
        let ready = stream.ready(Interest::READABLE).await.ok()?;
        if ready.is_read_closed() {
            return None;
        }
        self.acceptor.accept(stream).await.ok()
    }
}
