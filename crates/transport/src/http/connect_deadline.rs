//! A deadline for all that it takes to reach an https server: TCP, a proxy's answer to CONNECT, and TLS.

use std::error::Error;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use mcp_proxy_core::BoxFuture;
use tokio::time::timeout;
use tower_service::Service;

const DEADLINE: Duration = Duration::from_secs(20);

/// A connector that gives up in time.
#[derive(Clone)]
pub(super) struct ConnectDeadline<C>(pub(super) C);

impl<C> Service<Uri> for ConnectDeadline<C>
where
    C: Service<Uri, Error: Into<Box<dyn Error + Send + Sync>>, Future: Send + 'static>,
{
    type Response = C::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<C::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = timeout(DEADLINE, self.0.call(server));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => {
                    let text = format!("no connection within {} s", DEADLINE.as_secs());
                    Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct SilentProxy;

    impl Service<Uri> for SilentProxy {
        type Response = ();
        type Error = io::Error;
        type Future = std::future::Pending<Result<(), io::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            std::future::pending()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_does_not_answer_is_given_up() {
        let mut connector = ConnectDeadline(SilentProxy);
        let error = connector
            .call(Uri::from_static("https://mcp.example"))
            .await;
        let error = error.unwrap_err().downcast::<io::Error>().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
