//! A body as it arrives, from a client or from a server.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;

use crate::tls;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
#[error("{}", innermost(.0))]
pub struct IncomingBodyError(#[from] hyper::Error);

/// A body as it arrives.
pub struct IncomingBody(Incoming);

impl From<Incoming> for IncomingBody {
    fn from(body: Incoming) -> IncomingBody {
        IncomingBody(body)
    }
}

impl IncomingBody {
    /// The next data; trailers are passed over.
    pub fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, IncomingBodyError>>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// The next data, awaited.
    pub async fn next(&mut self) -> Option<Result<Bytes, IncomingBodyError>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// How many bytes are still to come, if that is certain. It is not for chunks and for bodies that end with their
    /// connection.
    pub fn length(&self) -> Option<u64> {
        self.0.size_hint().exact()
    }

    /// Whether nothing more will come.
    pub fn is_done(&self) -> bool {
        self.0.is_end_stream()
    }
}

/// The innermost cause of an error of hyper's says it best: `Connection refused`, or what is wrong with TLS.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(error) = tls_error(cause) {
            return tls::failure_text(error);
        }
        match cause.source() {
            Some(next) => cause = next,
            None => return cause.to_string(),
        }
    }
}

/// TLS errors come wrapped in those of the socket.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return tls_error(io.get_ref()?);
    }
    error.downcast_ref()
}
