//! An HTTP+SSE server for a client of another kind: we are its client.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use mcp_proxy_core::{BoxFuture, Connection, FrameWriter, Link, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, Id, Limits, Message, Origin, Side, SseEvent, SseSplitter, SseUnit,
    StreamId, headers,
};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use crate::http::collect::collect;
use crate::http::dial::{AnswerInbox, PostedMessage, first_line, is_rpc};
use crate::http::incoming_body::IncomingBody;
use crate::http::outgoing_body::OutgoingBody;
use crate::http::relayed_body::event_frame;
use crate::http::remote::RemoteServer;
use crate::in_flight_budget::InFlightBudget;
use crate::inbox::{InboxItem, InboxSender, inbox};

/// A server names its endpoint at once; this is for slow starts.
const ENDPOINT_DEADLINE: Duration = Duration::from_secs(15);
const ACCEPT_DEADLINE: Duration = Duration::from_secs(60);
/// Most servers accept a POST at once; one that does not must not hold the others up.
const ORDER_WAIT: Duration = Duration::from_millis(200);

/// The link for the pumps: connected, endpoint known.
pub async fn sse_link(
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    max: usize,
) -> Result<Link, LinkEnd> {
    let (sender, reader) = inbox();
    let writer = connect(remote, connection, sender, max).await?;
    Ok(Link::new(reader, writer))
}

/// Opens the stream, waits for the endpoint, and reads on in a task of its own.
pub(crate) async fn connect(
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    inbox: InboxSender,
    max: usize,
) -> Result<SseWriter, LinkEnd> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let url = remote.url().clone();
    let response = remote
        .send(Method::GET, url, headers, OutgoingBody::empty())
        .await?;
    let status = response.status();
    if !status.is_success() || !headers::is_sse(response.headers()) {
        let text = format!("the server gave no event stream (HTTP {})", status.as_u16());
        return Err(LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text));
    }
    let mut stream = SseServerStream {
        body: response.into_body(),
        splitter: SseSplitter::new(Limits {
            cut: usize::MAX,
            max,
        }),
        units: Vec::new(),
        max,
    };
    let endpoint = timeout(ENDPOINT_DEADLINE, stream.endpoint(&remote)).await;
    let endpoint = endpoint.unwrap_or_else(|_| {
        let text = format!(
            "the server named no endpoint within {} s",
            ENDPOINT_DEADLINE.as_secs()
        );
        Err(LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text))
    })?;
    let arrivals = inbox.clone();
    let reading = tokio::spawn(async move {
        let end = stream.run(&arrivals).await;
        drop(arrivals.send(InboxItem::End(end)).await);
    });
    Ok(SseWriter {
        post: Arc::new(SsePostClient {
            remote,
            connection: Arc::clone(&connection),
            endpoint,
            answers: AnswerInbox::new(connection, inbox),
            room: InFlightBudget::new(),
            max,
        }),
        reading: reading.abort_handle(),
        last: None,
    })
}

struct SseServerStream {
    body: IncomingBody,
    splitter: SseSplitter,
    units: Vec<SseUnit>,
    max: usize,
}

impl SseServerStream {
    /// Reads until the endpoint event.
    async fn endpoint(&mut self, remote: &RemoteServer) -> Result<Uri, LinkEnd> {
        loop {
            while !self.units.is_empty() {
                let SseUnit::Event(event) = self.units.remove(0) else {
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

    async fn run(&mut self, inbox: &InboxSender) -> LinkEnd {
        loop {
            for unit in self.units.drain(..) {
                let SseUnit::Event(event) = unit else {
                    if let SseUnit::TooLarge { seen, .. } = unit {
                        return crate::lines::too_large(Side::Server, seen, self.max);
                    }
                    continue;
                };
                let (envelope, body) = event_frame(event);
                let frame = Frame::new(StreamId::Only, Origin::Server, envelope, body);
                if matches!(frame.body, Body::Whole(_))
                    && inbox.send(InboxItem::Frame(frame)).await.is_err()
                {
                    return LinkEnd::Closed;
                }
            }
            if !self.more().await {
                let text = "the server closed its event stream";
                return LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, text);
            }
        }
    }

    /// Reads on; `false` at the end.
    async fn more(&mut self) -> bool {
        match self.body.next().await {
            Some(Ok(piece)) => {
                self.splitter.push(piece, &mut self.units);
                true
            }
            Some(Err(_)) | None => false,
        }
    }
}

/// The endpoint may be relative or absolute; on another origin it is refused.
pub(super) fn endpoint_of(event: &SseEvent, remote: &RemoteServer) -> Result<Uri, LinkEnd> {
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

/// The writing half: POSTs to the endpoint.
pub(crate) struct SseWriter {
    post: Arc<SsePostClient>,
    reading: AbortHandle,
    /// The POST before, if it was a request's.
    last: Option<JoinHandle<()>>,
}

struct SsePostClient {
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    endpoint: Uri,
    answers: AnswerInbox,
    /// For requests that the server has not accepted.
    room: InFlightBudget,
    max: usize,
}

impl SsePostClient {
    async fn send(&self, message: Message, posted: &PostedMessage) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let payload = OutgoingBody::whole(message.into_raw());
        let sent = self
            .remote
            .send(Method::POST, self.endpoint.clone(), headers, payload)
            .await;
        match sent {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self.receive_refusal(response, posted).await,
            Err(end) => self.fail(posted, &posted.asked, &end.to_string()).await,
        }
    }

    /// The server's own answer, although it did not come on its stream, or something else that is recorded as it came.
    async fn receive_refusal(&self, response: Response<IncomingBody>, posted: &PostedMessage) {
        let (parts, body) = response.into_parts();
        let message = Message::parse(collect(body, self.max).await.into_bytes());
        let (status, line) = (parts.status.as_u16(), first_line(message.raw()));
        let left = match is_rpc(&message) {
            true => self.answers.take(parts, message, &posted.asked).await,
            false => {
                self.answers.record_failure(parts, message).await;
                posted.asked.clone()
            }
        };
        let text = format!("the server answered HTTP {status}{line}");
        self.fail(posted, &left, &text).await;
    }

    /// Answers the requests of a POST that the server has not answered. If those are all, it did not take the message.
    async fn fail(&self, posted: &PostedMessage, left: &[Id], text: &str) {
        if left.len() == posted.asked.len() {
            self.answers.note_untaken(posted, text);
        }
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text);
        self.answers.fail(left, &end).await;
    }
}

impl SseWriter {
    /// Sends one message, which has this number in the record. A server may answer the POST of a request only after it has
    /// worked on it, and may need another message for that, so requests are waited for only as long as keeps messages in
    /// order.
    pub(crate) async fn put(&mut self, message: Message, sequence: Option<u64>) {
        if let Some(last) = self.last.take() {
            drop(timeout(ORDER_WAIT, last).await);
        }
        let post = Arc::clone(&self.post);
        let posted = PostedMessage::new(&message, sequence);
        if posted.asked.is_empty() {
            let sent = timeout(ACCEPT_DEADLINE, post.send(message, &posted)).await;
            if sent.is_err() {
                let why = "the server did not accept it in time";
                post.answers.note_untaken(&posted, why);
            }
            return;
        }
        let room = post.room.take(message.len()).await;
        self.last = Some(tokio::spawn(async move {
            post.send(message, &posted).await;
            drop(room);
        }));
    }

    async fn put_all(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            if let Body::Whole(message) = frame.body {
                self.put(message, frame.sequence).await;
            }
        }
        Ok(())
    }
}

impl FrameWriter for SseWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put_all(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        // The stream is the session: it stays while requests are open, and ends with the link.
        if !self
            .post
            .connection
            .has_open(mcp_proxy_wire::Direction::ClientToServer)
        {
            let post = Arc::clone(&self.post);
            self.reading.abort();
            return Box::pin(async move { post.answers.end(LinkEnd::Closed).await });
        }
        Box::pin(std::future::ready(()))
    }
}

impl Drop for SseWriter {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
