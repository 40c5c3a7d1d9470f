//! Hanging up in the middle of an answer, from inside the request that is being answered.
//!
//! SEP-1699 lets a legacy server end a stream early and have the client come back for the rest. rmcp hands the
//! rest to a client that has come back, but gives a tool no way to hang up. So each request carries a
//! [`StreamCutter`] for its own answer, and hears when the session's client is there again.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The sessions whose clients have come back, one message each time.
pub(super) type ReturningSessions = broadcast::Sender<HeaderValue>;

/// Ends the answer to one HTTP request. A clone of it is among the request's extensions.
#[derive(Clone)]
pub(crate) struct StreamCutter {
    cut: CancellationToken,
    session: Option<HeaderValue>,
    returns: ReturningSessions,
}

impl StreamCutter {
    pub(super) fn new<B>(request: &Request<B>, returns: &ReturningSessions) -> StreamCutter {
        StreamCutter {
            cut: CancellationToken::new(),
            session: request.headers().get("mcp-session-id").cloned(),
            returns: returns.clone(),
        }
    }

    /// Ends the answer after what has been sent so far, and waits for the client to come back.
    ///
    /// Waiting is needed: rmcp drops an answer that is given while nobody is there to take it.
    pub(crate) async fn hang_up(&self) {
        let mut returns = self.returns.subscribe();
        self.cut.cancel();
        while let Ok(session) = returns.recv().await {
            if Some(session) == self.session {
                return;
            }
        }
    }

    pub(super) fn apply(&self, body: BoxBody<Bytes, Infallible>) -> CuttableBody {
        CuttableBody {
            body,
            cut: Box::pin(self.cut.clone().cancelled_owned()),
        }
    }
}

/// The session that this request comes back to, if that is what it does.
pub(super) fn returning<B>(request: &Request<B>) -> Option<HeaderValue> {
    let headers = request.headers();
    if request.method() != Method::GET || !headers.contains_key("last-event-id") {
        return None;
    }
    headers.get("mcp-session-id").cloned()
}

/// The body of an answer, until it ends or is cut.
pub(super) struct CuttableBody {
    body: BoxBody<Bytes, Infallible>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Body for CuttableBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // What is ready goes out first, so that a cut never loses an event that was sent before it.
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame),
            Poll::Pending => self.cut.as_mut().poll(context).map(|()| None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
