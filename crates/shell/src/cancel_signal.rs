//! Ctrl-C. A command listens from its beginning to its end: a signal between two listeners would be lost.

use std::io;
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::CommandFailure;

/// The SIGINTs since this was made. While the program runs, none of them ends it by itself any more.
pub struct CancelSignal(Signal);

impl CancelSignal {
    /// Listens from now on.
    pub fn listen(runtime: &Runtime) -> io::Result<CancelSignal> {
        let _runtime = runtime.enter();
        signal(SignalKind::interrupt()).map(CancelSignal)
    }

    /// Forgets what came until now: at a prompt it was meant for nothing that runs.
    pub(crate) async fn forget_earlier(&mut self) {
        std::future::poll_fn(|context| {
            while self.0.poll_recv(context) == Poll::Ready(Some(())) {}
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for the next one.
    pub(crate) async fn received(&mut self) {
        if self.0.recv().await.is_none() {
            // There will be none.
            std::future::pending::<()>().await;
        }
    }

    /// What `work` returns, unless it is cancelled.
    pub async fn or_cancelled<T>(
        &mut self,
        work: impl Future<Output = Result<T, CommandFailure>>,
    ) -> Result<T, CommandFailure> {
        tokio::select! {
            biased;
            () = self.received() => Err(CommandFailure::Cancelled),
            outcome = work => outcome,
        }
    }
}
