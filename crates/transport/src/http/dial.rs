//! A streamable HTTP server for a client of another kind: we are its client.
//!
//! The proxy keeps the session id, sends the headers each revision asks for, opens the GET stream after
//! `initialized`, and turns failures that are not JSON-RPC into errors. A session that the server has lost is opened again,
//! or ends the link, as its options say ([`SessionLoss`](crate::SessionLoss)).

mod answer_inbox;
mod answers;
mod get_stream;
mod reopening;
mod state;

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response};
use mcp_proxy_core::{BoxFuture, Connection, FrameWriter, Link, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::headers::{self, HeaderEdits, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use mcp_proxy_wire::revision::{Era, names_version};
use mcp_proxy_wire::{Body, Frame, Id, Kind, Message};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::bridge_client::BridgeClient;
use super::incoming_body::IncomingBody;
use super::outgoing_body::OutgoingBody;
use super::remote::RemoteServer;
use crate::RemoteLinkOptions;
use crate::in_flight_budget::{BudgetPermit, InFlightBudget};
use crate::inbox::{InboxSender, inbox};
pub(crate) use answer_inbox::{AnswerInbox, proxy_frame, received};
pub(crate) use answers::{first_line, is_rpc, status_text};
use reopening::Reopening;
use state::{HttpLinkState, OpenPost, OpenPostGuard};

/// Requests in flight to one server from one client.
const POSTS_MAX: usize = 256;
/// A notification that is not accepted within this is given up.
const ACCEPT_DEADLINE: Duration = Duration::from_secs(60);
/// A session's DELETE may take this long.
const DELETE_DEADLINE: Duration = Duration::from_secs(2);

/// A link to a streamable HTTP server.
pub struct HttpLink {
    client: BridgeClient,
    answers: AnswerInbox,
    /// How to open the session again; `None`: it is not.
    reopening: Option<Reopening>,
    posts: Arc<Semaphore>,
    /// For requests that the server has not begun to answer.
    room: InFlightBudget,
    state: HttpLinkState,
    max: usize,
}

/// What has to be known of a message until its POST is answered.
pub(crate) struct PostedMessage {
    /// Its number in the record.
    pub(crate) sequence: Option<u64>,
    pub(crate) method: Option<String>,
    /// The ids of the requests in it.
    pub(crate) asked: Vec<Id>,
    /// Changes to the head of its POST.
    pub(crate) edits: Option<Box<HeaderEdits>>,
}

impl PostedMessage {
    /// Of a frame with a whole message; others are not POSTed.
    pub(crate) fn new(frame: Frame) -> Option<(Message, PostedMessage)> {
        let Body::Message(message) = frame.body else {
            return None;
        };
        let posted = PostedMessage {
            sequence: frame.sequence,
            method: message.method().map(std::borrow::Cow::into_owned),
            asked: request_ids(&message),
            edits: frame.header_edits,
        };
        Some((message, posted))
    }
}

impl HttpLink {
    /// Nothing is sent yet.
    pub fn new(
        remote: Arc<RemoteServer>,
        connection: Arc<Connection>,
        inbox: InboxSender,
        options: RemoteLinkOptions,
    ) -> Arc<HttpLink> {
        Arc::new(HttpLink {
            client: BridgeClient::new(remote, Arc::clone(&connection)),
            answers: AnswerInbox::new(connection, inbox),
            reopening: Reopening::new(options.on_loss),
            posts: Arc::new(Semaphore::new(POSTS_MAX)),
            room: InFlightBudget::new(),
            state: HttpLinkState::default(),
            max: options.max,
        })
    }

    /// The link for the pumps.
    pub fn link(
        remote: Arc<RemoteServer>,
        connection: Arc<Connection>,
        options: RemoteLinkOptions,
    ) -> Link {
        let (sender, reader) = inbox();
        let http = HttpLink::new(remote, connection, sender, options);
        let finish = Arc::clone(&http);
        Link::new(reader, HttpWriter::new(http)).with_finish(Box::pin(async move {
            finish.finish().await;
        }))
    }

    /// POSTs the first message.
    pub(crate) async fn send(
        &self,
        message: &Message,
        posted: &PostedMessage,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        self.observe(posted.method.as_deref(), message);
        self.send_as(message, era(message), posted).await
    }

    /// The same, once its era is known.
    async fn send_as(
        &self,
        message: &Message,
        era: Era,
        posted: &PostedMessage,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let mut headers = self.headers();
        if era == Era::Modern {
            let params = self.client.remote.tools().of(message);
            for (name, value) in headers::modern_request_headers(message, &params) {
                headers.insert(name, value);
            }
            headers.remove(MCP_SESSION_ID);
        }
        self.send_with(headers, message, posted.edits.as_deref())
            .await
    }

    /// The same with these headers for the session.
    async fn send_with(
        &self,
        mut headers: HeaderMap,
        message: &Message,
        edits: Option<&HeaderEdits>,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        let payload = OutgoingBody::whole(message.raw().clone());
        let url = self.client.remote.url().clone();
        self.client
            .send_edited(Method::POST, url, headers, payload, edits)
            .await
    }

    /// The session and version headers, once they are known.
    fn headers(&self) -> HeaderMap {
        let (session, version) = self.state.session();
        session_headers(session, version)
    }

    /// A request: its POST lives in a task of its own until it is answered.
    fn spawn_post(
        self: &Arc<Self>,
        message: Message,
        posted: PostedMessage,
        (opened, room): (OpenPostGuard, BudgetPermit),
    ) -> tokio::task::JoinHandle<()> {
        let link = Arc::clone(self);
        let era = era(&message);
        let keys: Vec<_> = posted.asked.iter().map(Id::key).collect();
        let (start, started) = oneshot::channel();
        let task = tokio::spawn(async move {
            let _opened = opened;
            // The task forgets its request at its end, so the request must be known before the task begins.
            if started.await.is_err() {
                return;
            }
            let Ok(_place) = link.posts.acquire().await else {
                return;
            };
            // Boxed: tokio copies a task several times, and this part of it is large.
            Box::pin(link.post(message, era, &posted, Some(room))).await;
        });
        for key in keys {
            let open = OpenPost {
                abort: task.abort_handle(),
                modern: era == Era::Modern,
                cancelled: false,
            };
            self.state.remember(key, open);
        }
        // The task waits for this; it cannot have ended.
        let _ = start.send(());
        task
    }

    async fn post(
        self: &Arc<Self>,
        message: Message,
        era: Era,
        posted: &PostedMessage,
        room: Option<BudgetPermit>,
    ) {
        let generation = self.state.generation();
        let sent = match self.send_as(&message, era, posted).await {
            Ok(response) if self.may_have_lost_session(&response, posted, &message) => {
                let refused = (generation, &message);
                // Boxed, as other rare ways are, so that each POST need not have room for it.
                Box::pin(self.send_on_new_session(response, refused, posted)).await
            }
            sent => Some(sent),
        };
        // The server has it: a stream of answers may last for hours.
        drop((message, room));
        match sent {
            None => {}
            Some(Ok(response)) => self.receive(response, posted).await,
            Some(Err(end)) => {
                self.answers.note_untaken(posted, &end.to_string());
                Box::pin(self.answers.fail(&posted.asked, &end)).await;
            }
        }
        for id in &posted.asked {
            self.state.forget(&id.key());
        }
    }

    /// Takes an answer that somebody else asked for, in a task of its own.
    pub(crate) fn receive_in_task(
        self: &Arc<Self>,
        response: Response<IncomingBody>,
        posted: PostedMessage,
    ) -> tokio::task::JoinHandle<()> {
        let (link, opened) = (Arc::clone(self), self.state.opened());
        tokio::spawn(async move {
            let _opened = opened;
            link.receive(response, &posted).await;
        })
    }

    /// Ends the session on the server.
    pub async fn finish(&self) {
        self.state.abort_all();
        self.end_session(self.headers()).await;
    }

    /// Ends the session of these headers, if they name one.
    async fn end_session(&self, headers: HeaderMap) {
        if headers.contains_key(MCP_SESSION_ID) {
            let url = self.client.remote.url().clone();
            let delete = self
                .client
                .send(Method::DELETE, url, headers, OutgoingBody::empty());
            // 405 is a fine answer, and a server that is gone needs no goodbye.
            drop(timeout(DELETE_DEADLINE, delete).await);
        }
    }
}

fn session_headers(session: Option<HeaderValue>, version: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(session) = session {
        headers.insert(MCP_SESSION_ID, session);
    }
    if let Some(version) = version {
        headers.insert(MCP_PROTOCOL_VERSION, version);
    }
    headers
}

/// The era in which a message is written.
fn era(message: &Message) -> Era {
    match names_version(message) {
        true => Era::Modern,
        false => Era::Legacy,
    }
}

/// The ids of the requests in a message: one, or those of a batch.
fn request_ids(message: &Message) -> Vec<Id> {
    match message.kind() {
        Kind::Request => message.id().into_iter().collect(),
        // Every POST is answered somehow, so also what is broken can be.
        Kind::Malformed if message.has_id_and_method() => message.id().into_iter().collect(),
        Kind::Batch => message
            .parts()
            .unwrap_or_default()
            .iter()
            .filter(|part| part.kind() == Kind::Request)
            .filter_map(Message::id)
            .collect(),
        _ => Vec::new(),
    }
}

/// The writing half: requests go out side by side, everything else in order.
pub(crate) struct HttpWriter {
    link: Arc<HttpLink>,
    /// `initialize` is on its way: its answer brings the session that all others need.
    opening: Option<tokio::task::JoinHandle<()>>,
}

impl HttpWriter {
    /// The writing half of `link`.
    pub(crate) fn new(link: Arc<HttpLink>) -> HttpWriter {
        HttpWriter {
            link,
            opening: None,
        }
    }

    /// The same, while the answer to `initialize` is being read.
    pub(crate) fn opening(link: Arc<HttpLink>, opening: tokio::task::JoinHandle<()>) -> HttpWriter {
        HttpWriter {
            opening: Some(opening),
            ..HttpWriter::new(link)
        }
    }

    /// Sends one message.
    async fn put(&mut self, message: Message, posted: PostedMessage, opened: OpenPostGuard) {
        if let Some(opening) = self.opening.take() {
            drop(opening.await);
        }
        let method = posted.method.as_deref();
        if method == Some("notifications/cancelled") && self.link.state.cancel(&message) {
            return;
        }
        self.link.observe(method, &message);
        let initialized = method == Some("notifications/initialized");
        let opens = method == Some("initialize");
        if !posted.asked.is_empty() {
            let room = self.link.room.take(message.len()).await;
            let task = self.link.spawn_post(message, posted, (opened, room));
            if opens {
                self.opening = Some(task);
            }
            return;
        }
        let era = era(&message);
        let post = Box::pin(self.link.post(message, era, &posted, None));
        if timeout(ACCEPT_DEADLINE, post).await.is_err() {
            let why = "the server did not accept it within 60 s";
            self.link.answers.note_untaken(&posted, why);
        }
        if initialized {
            self.link.open_get();
        }
    }

    /// Sends messages in order. After an error, those that were not sent are left.
    pub(crate) async fn put_all(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        let mut waiting = frames.drain(..);
        while let Some(outgoing) = waiting.next() {
            let Some(opened) = self.link.state.opened() else {
                let unsent: Vec<_> = std::iter::once(outgoing).chain(waiting).collect();
                frames.extend(unsent);
                return Err(LinkEnd::Closed);
            };
            let frame = outgoing.into_written();
            if let Some((message, posted)) = frame.and_then(PostedMessage::new) {
                self.put(message, posted, opened).await;
            }
        }
        Ok(())
    }
}

impl FrameWriter for HttpWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put_all(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        let link = Arc::clone(&self.link);
        link.state.abort_cancelled();
        // What is open may still be answered; when nothing is, the link is over.
        tokio::spawn(async move {
            link.state.drained().await;
            link.answers.end(LinkEnd::Closed).await;
        });
        Box::pin(std::future::ready(()))
    }
}
