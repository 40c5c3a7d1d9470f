//! The event stream of an HTTP+SSE server: its endpoint, and its messages.

use std::collections::VecDeque;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::{Body, ErrorCode, Frame, Message, Side, SseEvent, SseUnit, headers};
use tokio::time::timeout;

use super::SseSession;
use crate::http::bridge_client::BridgeClient;
use crate::http::dial::{proxy_frame, received, status_text};
use crate::http::event_collector::EventCollector;
use crate::http::incoming_body::IncomingBody;
use crate::http::outgoing_body::OutgoingBody;
use crate::http::relayed_events::event_frame;
use crate::http::remote::RemoteServer;
use crate::http::token_source::SignInNeeded;
use crate::inbox::{InboxItem, InboxSender};

/// A server names its endpoint at once; this is for slow starts.
const ENDPOINT_DEADLINE: Duration = Duration::from_secs(15);

/// A server's event stream.
pub(super) struct SseServerStream {
    body: IncomingBody,
    events: EventCollector,
    units: VecDeque<SseUnit>,
    /// What a piece was split into, for `units`.
    split: Vec<SseUnit>,
    /// What is answered for an event in front of `units` that there was no room for.
    refusal: Option<Message>,
    max: usize,
}

impl SseServerStream {
    /// Opens a stream and waits for its endpoint.
    pub(super) async fn open(
        client: &BridgeClient,
        max: usize,
    ) -> Result<(SseServerStream, Uri), LinkEnd> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let url = client.remote.url().clone();
        let response = client
            .send(Method::GET, url, headers, OutgoingBody::empty())
            .await?;
        if let Some(needed) = SignInNeeded::of(&response) {
            return Err(needed.into_end());
        }
        let status = response.status();
        if !status.is_success() || !headers::is_sse(response.headers()) {
            let text = format!("{} and gave no event stream", status_text(status));
            return Err(LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text));
        }
        let mut stream = SseServerStream {
            body: response.into_body(),
            events: EventCollector::new(max, client.connection.run.memory()),
            units: VecDeque::new(),
            split: Vec::new(),
            refusal: None,
            max,
        };
        let endpoint = timeout(ENDPOINT_DEADLINE, stream.endpoint(&client.remote)).await;
        let endpoint = endpoint.unwrap_or_else(|_| {
            let text = format!(
                "the server named no endpoint within {} s",
                ENDPOINT_DEADLINE.as_secs()
            );
            Err(LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text))
        })?;
        Ok((stream, endpoint))
    }

    /// Reads until the endpoint event.
    async fn endpoint(&mut self, remote: &RemoteServer) -> Result<Uri, LinkEnd> {
        loop {
            while let Some(unit) = self.units.pop_front() {
                let SseUnit::Event(event) = unit else {
                    continue;
                };
                if event.event.as_deref() == Some("endpoint") {
                    return endpoint_of(&event, remote);
                }
            }
            if !self.more().await {
                let text = "the server closed its event stream before it named an endpoint";
                return Err(LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text));
            }
        }
    }

    /// Hands its messages over until it ends.
    pub(super) async fn run(&mut self, session: &SseSession, inbox: &InboxSender) -> LinkEnd {
        loop {
            let frame = match self.next().await {
                Ok(frame) => frame,
                Err(end) => return end,
            };
            if let Body::Message(message) = &frame.body
                && message.is_answer()
            {
                session.note_answer(message);
            }
            if inbox.send(InboxItem::Frame(frame)).await.is_err() {
                return LinkEnd::Closed;
            }
        }
    }

    /// The next message, or what stands for one that was refused.
    pub(super) async fn next(&mut self) -> Result<Frame, LinkEnd> {
        loop {
            if let Some(answer) = self.refusal.take() {
                return Ok(proxy_frame(answer));
            }
            while let Some(unit) = self.units.pop_front() {
                let event = match unit {
                    SseUnit::Event(event) => event,
                    SseUnit::TooLarge => {
                        return Err(crate::lines::too_large(Side::Server, self.max));
                    }
                    _ => continue,
                };
                if let (envelope, Body::Message(message)) = event_frame(event) {
                    return Ok(received(envelope, message));
                }
            }
            if !self.more().await {
                let text = "the server closed its event stream";
                return Err(LinkEnd::failed(
                    Side::Server,
                    ErrorCode::SERVER_EXITED,
                    text,
                ));
            }
        }
    }

    /// Reads on; `false` at the end.
    async fn more(&mut self) -> bool {
        match self.body.next().await {
            Some(Ok(piece)) => {
                let refused = self.events.push(piece, &mut self.split);
                self.refusal = refused.and_then(|refused| refused.answer(Side::Server));
                self.units.extend(self.split.drain(..));
                true
            }
            Some(Err(_)) | None => false,
        }
    }
}

/// The endpoint may be relative or absolute; on another origin it is refused.
pub(in crate::sse) fn endpoint_of(event: &SseEvent, remote: &RemoteServer) -> Result<Uri, LinkEnd> {
    let data = event.data.as_deref().unwrap_or_default();
    let reference = String::from_utf8_lossy(data);
    remote
        .same_origin(remote.url(), reference.trim())
        .map_err(|why| {
            LinkEnd::failed(
                Side::Server,
                ErrorCode::SERVER_HTTP,
                format!("the server's endpoint is refused: {why}"),
            )
        })
}
