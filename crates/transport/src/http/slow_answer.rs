//! An answer that takes long becomes an event stream before it is there. What lies between client and proxy, and the
//! client itself, gives up on a request without a response head after a while (Node's `fetch` after 300 s, many reverse
//! proxies after 60 s), and a legacy client can come back for the answer if its connection breaks.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT;
use mcp_proxy_wire::headers::MCP_PROTOCOL_VERSION;
use mcp_proxy_wire::revision::LATEST_LEGACY;
use tokio::time::timeout;

use super::event_stream::StreamItem;
use super::stream_queue::StreamReceiver;

/// An answer that has not come after this is slow.
const SLOW: Duration = Duration::from_secs(2);
/// How long a client should wait before it comes back, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// The answer did not come in time.
pub(super) struct SlowAnswer;

/// The first item of a POST's stream, or that it takes long, if the client can take an event stream then.
pub(super) async fn first_item(
    messages: &mut StreamReceiver,
    can_stream: bool,
) -> Result<Option<StreamItem>, SlowAnswer> {
    match can_stream {
        true => timeout(SLOW, messages.next()).await.map_err(|_| SlowAnswer),
        false => Ok(messages.next().await),
    }
}

/// Whether a client says that it takes event streams.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter();
    values.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.to_ascii_lowercase().contains("text/event-stream")
    })
}

/// Whether a client takes an event without data as the beginning of a stream. Those of earlier revisions take all data for
/// JSON.
pub(super) fn takes_priming_event(headers: &HeaderMap) -> bool {
    let version = headers.get(MCP_PROTOCOL_VERSION);
    version.is_some_and(|version| version.as_bytes() >= LATEST_LEGACY.as_bytes())
}

/// The event that begins a stream, so that its client can come back for the rest.
pub(super) fn priming_event(id: &str) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {RETRY_MS}\ndata: \n\n"))
}
