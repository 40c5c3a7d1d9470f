//! Who answers the requests of a listener: the one list of all the ways.
//!
//! An enum and not a trait object, because time matters here: the future of an answer lies in its connection's task
//! and is not allocated for every request. The rarer ways are boxed, so that they do not make that task larger.

use std::sync::Arc;

use ::http::Request;
use hyper::body::Incoming;

use crate::http::auto::AutoFront;
use crate::http::exchange::Exchange;
use crate::http::listener::Answer;
use crate::http::sessions::Sessions;
use crate::sse::exchange::SseExchange;
use crate::sse::front::SseFront;

/// Answers requests: passes them on, or ends HTTP here. One per listener.
#[derive(Clone)]
pub enum Front {
    /// Streamable HTTP on both sides.
    Exchange(Arc<Exchange>),
    /// Streamable HTTP here, something else ahead.
    Sessions(Arc<Sessions>),
    /// Streamable HTTP here, and a URL whose kind is not known yet.
    Auto(Arc<AutoFront>),
    /// HTTP+SSE on both sides.
    SseExchange(Arc<SseExchange>),
    /// HTTP+SSE here, something else ahead.
    Sse(Arc<SseFront>),
}

impl Front {
    /// Answers one request. The head has been checked and our own token removed.
    pub async fn answer(self, request: Request<Incoming>) -> Answer {
        match self {
            Front::Exchange(front) => front.answer(request).await,
            Front::Sessions(front) => front.answer(request).await,
            Front::Auto(front) => Box::pin(front.answer(request)).await,
            Front::SseExchange(front) => Box::pin(front.answer(request)).await,
            Front::Sse(front) => Box::pin(front.answer(request)).await,
        }
    }

    /// The path clients are told to use.
    pub fn path(&self) -> &'static str {
        match self {
            Front::Exchange(_) | Front::Sessions(_) | Front::Auto(_) => crate::http::PATH,
            Front::SseExchange(_) | Front::Sse(_) => crate::sse::PATH,
        }
    }

    /// Asks every session that ends here to end.
    pub fn stop_all(&self) {
        match self {
            Front::Exchange(_) | Front::SseExchange(_) => {}
            Front::Sessions(front) => front.stop_all(),
            Front::Auto(front) => front.stop_all(),
            Front::Sse(front) => front.stop_all(),
        }
    }

    /// How many sessions end here and are open.
    pub fn open_count(&self) -> usize {
        match self {
            Front::Exchange(_) | Front::SseExchange(_) => 0,
            Front::Sessions(front) => front.open_count(),
            Front::Auto(front) => front.open_count(),
            Front::Sse(front) => front.open_count(),
        }
    }
}
