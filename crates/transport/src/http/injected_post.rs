//! Messages of the proxy's own on a session that is passed through: replays, and answers in the client's place.
//!
//! They carry the headers of a POST of the client's, so that the server takes them for the same session and the same user.
//! What is answered to them is recorded and goes to no client.

use std::sync::Arc;

use http::{HeaderMap, Method, Response, Uri};
use mcp_proxy_core::replay::{PendingInjection, ReplayResponseReader};
use mcp_proxy_core::{Connection, LinkEnd};
use mcp_proxy_wire::headers::{self, ParamHeader};
use mcp_proxy_wire::{Body, ExchangeId, Message, Side, SseUnit, TransportEnvelope};

use super::collect::collect;
use super::dial::{first_line, is_rpc};
use super::event_collector::EventCollector;
use super::incoming_body::IncomingBody;
use super::outgoing_body::OutgoingBody;
use super::relayed_events::event_frame;
use super::remote::{RemoteServer, note_resent};
use super::request_heads::RequestHead;

/// Where messages of ours go.
pub(crate) struct InjectedPost {
    /// The server.
    pub remote: Arc<RemoteServer>,
    /// The place on it.
    pub url: Uri,
    /// Whose session it is.
    pub connection: Arc<Connection>,
    /// How its client speaks.
    pub head: Arc<RequestHead>,
    /// The exchange of the message.
    pub exchange: ExchangeId,
    /// The largest message.
    pub max: usize,
}

impl InjectedPost {
    /// Records a message and prepares to send it. `params` are the arguments that its tool wants in headers.
    pub(crate) fn post(
        self,
        message: Message,
        params: &[ParamHeader],
    ) -> Result<PendingInjection, LinkEnd> {
        let now = self.connection.run.now();
        let frame = self
            .connection
            .replay(self.exchange, message.clone(), now)?;
        let request = frame.sequence.unwrap_or_default();
        let headers = self.head.headers_for(&message, params);
        Ok(PendingInjection {
            request,
            sending: Box::pin(async move {
                match self.send(headers, &message).await {
                    Ok(response) => self.read(response).await,
                    Err(end) => {
                        let why = end.to_string();
                        self.connection.undelivered(&[request], &why);
                        Err(why)
                    }
                }
            }),
        })
    }

    /// Sends an answer that is recorded already.
    pub(crate) async fn deliver(self, answer: Message) -> Result<(), String> {
        self.send_notification(&answer).await
    }

    async fn send(
        &self,
        headers: HeaderMap,
        message: &Message,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let payload = OutgoingBody::whole(message.raw().clone());
        let url = self.url.clone();
        let response = self
            .remote
            .send(Method::POST, url, headers, payload)
            .await?;
        note_resent(&self.connection, &response);
        Ok(response)
    }

    /// Sends what asks for no answer.
    async fn send_notification(&self, message: &Message) -> Result<(), String> {
        let sent = self
            .send(self.head.headers_for(message, &[]), message)
            .await;
        let (parts, body) = sent.map_err(|end| end.to_string())?.into_parts();
        if parts.status.is_success() {
            return Ok(());
        }
        let memory = self.connection.run.memory();
        let bytes = collect(body, self.max, memory).await.into_bytes();
        Err(refusal(parts.status, &bytes))
    }

    /// Reads what is answered to a POST: JSON, a stream, or a word that it was taken.
    async fn read(&self, response: Response<IncomingBody>) -> Result<(), String> {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let status = parts.status;
        let mut aside = ReplayResponseReader::new(&self.connection, self.exchange);
        if status.is_success() && headers::is_sse(&parts.headers) {
            let envelope = TransportEnvelope::Response(Box::new(parts));
            self.take(&mut aside, envelope, Body::Empty).await?;
            return self.events(&mut aside, body).await;
        }
        let memory = self.connection.run.memory();
        let collected = collect(body, self.max, memory).await;
        let bytes = collected
            .into_answer(self.max)
            .map_err(|end| end.to_string())?;
        let message = Message::parse(bytes.clone());
        let is_rpc = is_rpc(&message);
        let body = match bytes.is_empty() || (status.is_success() && !is_rpc) {
            true => Body::Empty,
            false => Body::Message(message),
        };
        let envelope = TransportEnvelope::Response(Box::new(parts));
        self.take(&mut aside, envelope, body).await?;
        match status.is_success() {
            // What was only taken may be answered on another stream.
            true if !is_rpc => Ok(()),
            true => Err("the server answered something else".to_owned()),
            false => Err(refusal(status, &bytes)),
        }
    }

    async fn events(
        &self,
        aside: &mut ReplayResponseReader,
        mut body: IncomingBody,
    ) -> Result<(), String> {
        let mut events = EventCollector::new(self.max, self.connection.run.memory());
        let mut units = Vec::new();
        loop {
            let end = match body.next().await {
                Some(Ok(piece)) => {
                    let refused = events.push(piece, &mut units);
                    refused.map(|refused| refused.over.to_string())
                }
                Some(Err(error)) => Some(format!("the server's stream broke off: {error}")),
                None => Some("the server's stream ended without the answer".to_owned()),
            };
            if end.is_some() {
                events.finish(&mut units);
            }
            for unit in units.drain(..) {
                match unit {
                    SseUnit::Event(event) => {
                        let (envelope, body) = event_frame(event);
                        self.take(aside, envelope, body).await?;
                    }
                    SseUnit::TooLarge => {
                        let end = crate::lines::too_large(Side::Server, self.max);
                        return Err(end.to_string());
                    }
                    SseUnit::GivenUp(_) => {}
                }
            }
            if let Some(why) = end {
                return Err(why);
            }
        }
    }

    /// Records what came, and answers what the server asks.
    async fn take(
        &self,
        aside: &mut ReplayResponseReader,
        envelope: TransportEnvelope,
        body: Body,
    ) -> Result<(), String> {
        let replies = aside.take(envelope, body).await;
        for reply in replies.map_err(|end| end.to_string())? {
            if let Err(why) = self.send_notification(&reply).await {
                let text = format!("the server did not get our answer: {why}");
                self.connection.close_exchange(self.exchange, &text);
            }
        }
        Ok(())
    }
}

fn refusal(status: http::StatusCode, body: &[u8]) -> String {
    let (status, line) = (status.as_u16(), first_line(body));
    format!("the server answered HTTP {status}{line}")
}
