//! An HTTP+SSE server: we are its client.
//!
//! The event stream is the session. When it ends, another one is opened, or the link ends ([`SessionLoss`]).

mod reconnect;
mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use mcp_proxy_core::{BoxFuture, Connection, FrameWriter, Link, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::headers::HeaderEdits;
use mcp_proxy_wire::{Direction, ErrorCode, Field, Id, IdKey, Message, Side};
use rustc_hash::FxHashMap;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::http::bridge_client::BridgeClient;
use crate::http::collect::collect;
use crate::http::dial::{AnswerInbox, PostedMessage, first_line, is_rpc, status_text};
use crate::http::incoming_body::IncomingBody;
use crate::http::outgoing_body::OutgoingBody;
use crate::http::remote::RemoteServer;
use crate::http::token_source::SignInNeeded;
use crate::in_flight_budget::InFlightBudget;
use crate::inbox::{InboxItem, InboxSender, inbox};
use crate::reopen_attempts::ReopenAttempts;
use crate::session_opening::{RemoteLinkOptions, SessionLoss, SessionOpening};
use stream::SseServerStream;

const ACCEPT_DEADLINE: Duration = Duration::from_secs(60);
/// Most servers accept a POST at once; one that does not must not hold the others up.
const ORDER_WAIT: Duration = Duration::from_millis(200);
/// Unanswered requests that are remembered, as many as a connection tracks.
const UNANSWERED_MAX: usize = 16_384;

/// The link for the pumps: connected, endpoint known.
pub async fn sse_link(
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    options: RemoteLinkOptions,
) -> Result<Link, LinkEnd> {
    let (sender, reader) = inbox();
    let writer = connect(remote, connection, sender, options).await?;
    Ok(Link::new(reader, writer))
}

/// Opens the stream, waits for the endpoint, and reads on in a task of its own.
pub(crate) async fn connect(
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    inbox: InboxSender,
    options: RemoteLinkOptions,
) -> Result<SseWriter, LinkEnd> {
    let client = BridgeClient::new(remote, Arc::clone(&connection));
    let (mut stream, endpoint) = SseServerStream::open(&client, options.max).await?;
    let session = Arc::new(SseSession {
        client,
        endpoint: RwLock::new(endpoint),
        answers: AnswerInbox::new(connection, inbox.clone()),
        room: InFlightBudget::new(),
        memory: (options.on_loss == SessionLoss::Reopen).then(Mutex::default),
        max: options.max,
    });
    let reading = Arc::clone(&session);
    let reading = tokio::spawn(async move {
        let mut attempts = ReopenAttempts::default();
        let end = loop {
            let opened = Instant::now();
            let end = stream.run(&reading, &inbox).await;
            attempts.lost_after(opened.elapsed());
            match Box::pin(reading.reconnect(end, &mut attempts)).await {
                Ok(next) => stream = next,
                Err(end) => break end,
            }
        };
        drop(inbox.send(InboxItem::End(end)).await);
    });
    Ok(SseWriter {
        session,
        reading: Some(reading),
        last: None,
    })
}

/// One session with a server, or one after the other.
struct SseSession {
    client: BridgeClient,
    /// Where messages go. Locked while there is no stream: they wait.
    endpoint: RwLock<Uri>,
    answers: AnswerInbox,
    /// For requests that the server has not accepted.
    room: InFlightBudget,
    /// What is remembered for opening the session again; `None`: it is not.
    memory: Option<Mutex<SseMemory>>,
    max: usize,
}

/// What a new session would need.
#[derive(Default)]
struct SseMemory {
    opening: SessionOpening,
    /// The protocol version that the client and the server have agreed on.
    agreed: Option<String>,
    /// The client's `initialize`, until it is answered.
    initialize: Option<IdKey>,
    /// Requests that the server has, and has not answered.
    unanswered: FxHashMap<IdKey, Id>,
    /// Requests of the proxy's own that are open.
    own: usize,
}

impl SseSession {
    fn memory(&self) -> Option<MutexGuard<'_, SseMemory>> {
        let memory = self.memory.as_ref()?;
        Some(memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers a message that is about to be sent.
    fn observe(&self, posted: &PostedMessage, message: &Message) {
        let Some(mut memory) = self.memory() else {
            return;
        };
        let method = posted.method.as_deref();
        memory.opening.observe(method, message);
        if method == Some("initialize") {
            memory.initialize = posted.asked.first().map(Id::key);
        }
        if method == Some("notifications/cancelled")
            && let Some(span) = message.span(Field::RequestId)
        {
            let key = Id::from_token(message.slice(span)).key();
            memory.unanswered.remove(&key);
        }
        for id in &posted.asked {
            if memory.unanswered.len() < UNANSWERED_MAX {
                memory.unanswered.insert(id.key(), id.clone());
            }
        }
    }

    /// Looks at an answer of the server's.
    fn note_answer(&self, message: &Message) {
        let (Some(mut memory), Some(id)) = (self.memory(), message.id()) else {
            return;
        };
        let key = id.key();
        memory.unanswered.remove(&key);
        if memory.initialize.as_ref() == Some(&key) {
            memory.initialize = None;
            let version = message.text(Field::ResultField("protocolVersion"));
            memory.agreed = version.map(std::borrow::Cow::into_owned);
        }
    }

    /// The server did not take a message. Returns those of its requests that nobody has answered meanwhile.
    fn forget(&self, asked: &[Id]) -> Vec<Id> {
        let mut asked = asked.to_vec();
        if let Some(mut memory) = self.memory() {
            asked.retain(|id| memory.unanswered.remove(&id.key()).is_some());
        }
        asked
    }

    /// Whether requests of the client wait for their answers.
    fn has_open(&self) -> bool {
        let own = self.memory().map_or(0, |memory| memory.own);
        let connection = &self.client.connection;
        match own {
            0 => connection.has_open(Direction::ClientToServer),
            own => connection.open_requests(Direction::ClientToServer).len() > own,
        }
    }
}

/// The writing half: POSTs to the endpoint.
pub(crate) struct SseWriter {
    session: Arc<SseSession>,
    reading: Option<JoinHandle<()>>,
    /// The POST before, if it was a request's.
    last: Option<JoinHandle<()>>,
}

impl SseSession {
    async fn send(&self, message: Message, posted: &PostedMessage) {
        let endpoint = self.endpoint.read().await.clone();
        self.observe(posted, &message);
        match self.post(endpoint, message, posted.edits.as_deref()).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self.receive_refusal(response, posted).await,
            Err(end) => self.fail(posted, &posted.asked, end).await,
        }
    }

    async fn post(
        &self,
        endpoint: Uri,
        message: Message,
        edits: Option<&HeaderEdits>,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let payload = OutgoingBody::whole(message.into_raw());
        self.client
            .send_edited(Method::POST, endpoint, headers, payload, edits)
            .await
    }

    /// The server's own answer, although it did not come on its stream, or something else that is recorded as it came.
    async fn receive_refusal(&self, response: Response<IncomingBody>, posted: &PostedMessage) {
        let needed = SignInNeeded::of(&response);
        let (parts, body) = response.into_parts();
        let body = collect(body, self.max, self.answers.memory()).await;
        let message = Message::parse(body.into_bytes());
        if let Some(needed) = needed {
            self.answers.record_failure(parts, message).await;
            return self.fail(posted, &posted.asked, needed.into_end()).await;
        }
        let (status, line) = (status_text(parts.status), first_line(message.raw()));
        let left = match is_rpc(&message) {
            true => self.answers.take(parts, message, &posted.asked).await,
            false => {
                self.answers.record_failure(parts, message).await;
                posted.asked.clone()
            }
        };
        let text = format!("{status}{line}");
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text);
        self.fail(posted, &left, end).await;
    }

    /// Answers the requests of a POST that the server has not answered. If those are all, it did not take the message.
    async fn fail(&self, posted: &PostedMessage, left: &[Id], end: LinkEnd) {
        if left.len() == posted.asked.len() {
            self.answers.note_untaken(posted, &end.to_string());
        }
        self.answers.fail(&self.forget(left), &end).await;
    }
}

impl SseWriter {
    /// Sends one message. A server may answer the POST of a request only after it has
    /// worked on it, and may need another message for that, so requests are waited for only as long as keeps messages in
    /// order.
    pub(crate) async fn put(&mut self, message: Message, posted: PostedMessage) {
        if let Some(last) = self.last.take() {
            drop(timeout(ORDER_WAIT, last).await);
        }
        let post = Arc::clone(&self.session);
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

    /// Sends messages in order.
    pub(crate) async fn put_all(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            if let Some((message, posted)) = PostedMessage::new(frame) {
                self.put(message, posted).await;
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
        if self.session.has_open() {
            return Box::pin(std::future::ready(()));
        }
        let session = Arc::clone(&self.session);
        let reading = self.reading.take();
        reading.iter().for_each(JoinHandle::abort);
        Box::pin(async move {
            if let Some(reading) = reading {
                // When it has stopped, no request of the proxy's own is open any more.
                drop(reading.await);
            }
            session.answers.end(LinkEnd::Closed).await;
        })
    }
}

impl Drop for SseWriter {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}
