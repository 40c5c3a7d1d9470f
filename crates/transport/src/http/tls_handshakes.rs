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

/// Handshakes at once. When thousands of clients come together, those that have begun should be finished before more begin:
/// otherwise all of them take longer than their clients wait.
const MAX_HANDSHAKES: usize = 128;
/// The longest wait for a turn, and the longest turn, so that clients that start a handshake and stall do not keep others out.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Does the handshakes of a listener's clients.
#[derive(Clone)]
pub(super) struct TlsHandshakes {
    acceptor: TlsAcceptor,
    turns: Arc<Semaphore>,
}

impl TlsHandshakes {
    pub(super) fn new(config: Arc<ServerConfig>) -> TlsHandshakes {
        TlsHandshakes {
            acceptor: TlsAcceptor::from(config),
            turns: Arc::new(Semaphore::new(MAX_HANDSHAKES)),
        }
    }

    /// A client's stream after its handshake. Nothing if it has left, or does not speak TLS.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        // A client that says nothing needs no turn.
        stream.readable().await.ok()?;
        let turn = timeout(MAX_WAIT, self.turns.acquire()).await;
        // It may have given up meanwhile, and a signature would be wasted.
        let ready = stream.ready(Interest::READABLE).await.ok()?;
        if ready.is_read_closed() {
            return None;
        }
        let mut accepting = self.acceptor.accept(stream);
        if let Ok(accepted) = timeout(MAX_WAIT, &mut accepting).await {
            return accepted.ok();
        }
        drop(turn);
        accepting.await.ok()
    }
}
