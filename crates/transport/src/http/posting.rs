//! Messages of the proxy's own on a session that is passed through: replays, and answers in the client's place.
//!
//! They carry the headers of the client's last POST, so that the server takes them for the same session and the same user.
//! What is answered to them is recorded and goes to no client.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri};
use mcp_proxy_core::replay::{Aside, Posted};
use mcp_proxy_core::{Connection, LinkEnd};
use mcp_proxy_wire::headers::{
    self, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, ParamHeader,
};
use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{
    Body, Carriage, Direction, ExchangeId, Limits, Message, Side, SseSplitter, SseUnit,
};

use super::collect::{Collected, collect};
use super::dial::{first_line, is_rpc};
use super::inflow::Inflow;
use super::payload::Payload;
use super::remote::Remote;
use super::through::event_frame;

/// How a client's last POST spoke to the server. Nothing, until there was one.
#[derive(Clone, Default)]
pub struct LastHead(Option<Arc<Head>>);

struct Head {
    uri: Uri,
    headers: HeaderMap,
}

impl LastHead {
    /// Remembers a POST. Clients hardly ever change what they say here, so nearly always this is a comparison.
    pub fn see(&mut self, parts: &Parts) {
        if parts.method != Method::POST {
            return;
        }
        let is_known = |head: &Arc<Head>| {
            head.uri == parts.uri
                && head.headers.len() == parts.headers.len()
                && head.headers.iter().zip(&parts.headers).all(is_same)
        };
        if !self.0.as_ref().is_some_and(is_known) {
            self.0 = Some(Arc::new(Head {
                uri: parts.uri.clone(),
                headers: parts.headers.clone(),
            }));
        }
    }

    /// Whether there was one.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// The query of its URL.
    pub fn query(&self) -> Option<&str> {
        self.0.as_ref()?.uri.query()
    }

    /// The headers for a message of ours.
    fn of(&self, message: &Message, params: &[ParamHeader]) -> HeaderMap {
        let mut headers = match &self.0 {
            Some(head) => head.headers.clone(),
            None => HeaderMap::new(),
        };
        headers::strip_hop_by_hop(&mut headers);
        let is_modern = headers.contains_key(MCP_METHOD) || names_version(message);
        let of_message: Vec<HeaderName> = headers
            .keys()
            .filter(|name| repeats_body(name) || *name == LAST_EVENT_ID)
            .cloned()
            .collect();
        for name in of_message {
            headers.remove(name);
        }
        if is_modern {
            headers.extend(headers::modern_request_headers(message, params));
        }
        let accepts = "application/json, text/event-stream";
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accepts));
        headers
    }
}

/// Whether a header is the same as before, as far as it does not speak of the message.
fn is_same(
    ((name, value), (new_name, new_value)): (
        (&HeaderName, &HeaderValue),
        (&HeaderName, &HeaderValue),
    ),
) -> bool {
    name == new_name && (value == new_value || repeats_body(name))
}

/// Whether a header says something about the body that it comes with.
fn repeats_body(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == CONTENT_ENCODING
        || *name == MCP_METHOD
        || *name == MCP_NAME
        || name.as_str().starts_with(MCP_PARAM_PREFIX)
}

/// Where messages of ours go.
pub struct Posting {
    /// The server.
    pub remote: Arc<Remote>,
    /// The place on it.
    pub url: Uri,
    /// Whose session it is.
    pub connection: Arc<Connection>,
    /// How its client speaks.
    pub head: LastHead,
    /// The exchange of the message.
    pub exchange: ExchangeId,
    /// The largest message.
    pub max: usize,
}

impl Posting {
    /// Records a message and prepares to send it. `params` are the arguments that its tool wants in headers.
    pub fn post(self, message: Message, params: &[ParamHeader]) -> Result<Posted, LinkEnd> {
        let now = self.connection.pipeline.now();
        let direction = Direction::ClientToServer;
        let (_, request) =
            self.connection
                .author_numbered(direction, self.exchange, message.clone(), now)?;
        let headers = self.head.of(&message, params);
        Ok(Posted {
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
    pub async fn deliver(self, answer: Message) -> Result<(), String> {
        self.tell(&answer).await
    }

    async fn send(
        &self,
        headers: HeaderMap,
        message: &Message,
    ) -> Result<Response<Inflow>, LinkEnd> {
        let payload = Payload::whole(message.raw().clone());
        let url = self.url.clone();
        self.remote.send(Method::POST, url, headers, payload).await
    }

    /// Sends what asks for no answer.
    async fn tell(&self, message: &Message) -> Result<(), String> {
        let sent = self.send(self.head.of(message, &[]), message).await;
        let (parts, body) = sent.map_err(|end| end.to_string())?.into_parts();
        if parts.status.is_success() {
            return Ok(());
        }
        let bytes = collected(collect(body, self.max).await);
        Err(refusal(parts.status, &bytes))
    }

    /// Reads what is answered to a POST: JSON, a stream, or a word that it was taken.
    async fn read(&self, response: Response<Inflow>) -> Result<(), String> {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let status = parts.status;
        let mut aside = Aside::new(&self.connection, self.exchange);
        if status.is_success() && headers::is_sse(&parts.headers) {
            let carriage = Carriage::Response(Box::new(parts));
            self.take(&mut aside, carriage, Body::Empty).await?;
            return self.events(&mut aside, body).await;
        }
        let bytes = match collect(body, self.max).await {
            Collected::Whole(bytes) => bytes,
            Collected::More(read, _) => {
                let end = crate::lines::too_large(Side::Server, read.len(), self.max);
                return Err(end.to_string());
            }
            Collected::Broken(_, why) => return Err(format!("the answer broke off: {why}")),
        };
        let message = Message::parse(bytes.clone());
        let is_rpc = is_rpc(&message);
        let body = match bytes.is_empty() || (status.is_success() && !is_rpc) {
            true => Body::Empty,
            false => Body::Whole(message),
        };
        let carriage = Carriage::Response(Box::new(parts));
        self.take(&mut aside, carriage, body).await?;
        match status.is_success() {
            // What was only taken may be answered on another stream.
            true if !is_rpc => Ok(()),
            true => Err("the server answered something else".to_owned()),
            false => Err(refusal(status, &bytes)),
        }
    }

    async fn events(&self, aside: &mut Aside, mut body: Inflow) -> Result<(), String> {
        let mut splitter = SseSplitter::new(Limits {
            cut: usize::MAX,
            max: self.max,
        });
        let mut units = Vec::new();
        loop {
            let end = match body.next().await {
                Some(Ok(piece)) => {
                    splitter.push(piece, &mut units);
                    None
                }
                Some(Err(error)) => Some(format!("the server's stream broke off: {error}")),
                None => Some("the server's stream ended without the answer".to_owned()),
            };
            if end.is_some() {
                splitter.finish(&mut units);
            }
            for unit in units.drain(..) {
                match unit {
                    SseUnit::Event(event) => {
                        let (carriage, body) = event_frame(event);
                        self.take(aside, carriage, body).await?;
                    }
                    SseUnit::TooLarge { seen, .. } => {
                        let end = crate::lines::too_large(Side::Server, seen, self.max);
                        return Err(end.to_string());
                    }
                    // Nothing is cut.
                    SseUnit::Open { .. } | SseUnit::More(_) | SseUnit::Close(_) => {}
                }
            }
            if let Some(why) = end {
                return Err(why);
            }
        }
    }

    /// Records what came, and answers what the server asks.
    async fn take(&self, aside: &mut Aside, carriage: Carriage, body: Body) -> Result<(), String> {
        let replies = aside.take(carriage, body).await;
        for reply in replies.map_err(|end| end.to_string())? {
            if let Err(why) = self.tell(&reply).await {
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

fn collected(body: Collected) -> bytes::Bytes {
    match body {
        Collected::Whole(bytes) | Collected::More(bytes, _) | Collected::Broken(bytes, _) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(headers: &[(&'static str, &'static str)]) -> Parts {
        let mut request = http::Request::post("http://h/mcp?k=1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn headers_of_the_session_stay_and_those_of_the_message_follow_it() {
        let mut last = LastHead::default();
        last.see(&post(&[
            ("authorization", "Bearer t"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("mcp-param-region", "eu"),
            ("content-length", "7"),
            ("connection", "close"),
        ]));
        let message = Message::parse(r#"{"id":1,"method":"tools/list"}"#);
        let headers = last.of(&message, &[]);
        assert_eq!(headers["authorization"], "Bearer t");
        assert_eq!(headers["mcp-method"], "tools/list");
        for gone in [
            "mcp-name",
            "mcp-param-region",
            "connection",
            "content-length",
        ] {
            assert!(!headers.contains_key(gone), "{gone}");
        }
        assert_eq!(last.query(), Some("k=1"));
    }

    #[test]
    fn only_what_is_new_is_remembered() {
        let mut last = LastHead::default();
        last.see(&post(&[("authorization", "a"), ("content-length", "1")]));
        let first = last.0.clone().unwrap();
        last.see(&post(&[("authorization", "a"), ("content-length", "2")]));
        assert!(Arc::ptr_eq(&first, last.0.as_ref().unwrap()));
        last.see(&post(&[("authorization", "b"), ("content-length", "2")]));
        assert!(!Arc::ptr_eq(&first, last.0.as_ref().unwrap()));
    }
}
