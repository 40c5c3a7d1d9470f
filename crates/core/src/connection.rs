//! One client session towards one server session.

mod recorded_messages;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_session::{
    AnsweredRequest, CallerInfo, NewBatchPart, NewBody, NewVerdict, PeerInfo, RecordEvent,
};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, Id, Message, Origin, StreamId, Transport, error_response,
};

use crate::connections::name_of;
use crate::correlator::{Correlation, Correlator, TrackedRequest};
use crate::link::{LinkFailure, OutgoingFrame};
use crate::lost_notifications::LostNotifications;
use crate::message_pipeline::MessagePipeline;
use crate::multiplexer::{Recipient, RequestMultiplexer};
use crate::peer::Peer;
use crate::proxy_run::ProxyRun;
use crate::replay::{DELIVERY, Handshake, ReplayOrder, ReplayWaiters, needed_handshake_messages};

/// A connection: its number in the record, its two peers, its open requests.
pub struct Connection {
    /// The run it belongs to.
    pub run: Arc<ProxyRun>,
    /// Its number; the record writes it as `c1`.
    pub id: u32,
    /// The client.
    pub client: Peer,
    /// The server. What a URL of unknown kind speaks is found out with its first answer.
    server: Mutex<Peer>,
    /// What the server is called, which does not change.
    server_name: Arc<str>,
    /// The record's number of the call that this connection was opened for.
    parent: Option<u64>,
    streams: ClientStreams,
    correlator: Mutex<Correlator>,
    /// Tells the clients apart where several share the connection. Each stream is a client of its own.
    multiplexer: Option<Mutex<RequestMultiplexer<StreamId>>>,
    /// Only one client is left of those that shared it.
    is_unshared: AtomicBool,
    /// It connects two links: HTTP, if a side speaks it, ends here.
    is_carried: AtomicBool,
    /// How the client opened it, while rules may want to open another session like it.
    handshake: Mutex<Handshake<Message>>,
    /// Answers that are not the client's.
    replay_waiters: ReplayWaiters,
    lost: Arc<LostNotifications>,
}

/// What a connection is made with.
#[derive(Clone, Debug)]
pub struct NewConnection {
    /// The client.
    pub client: Peer,
    /// The server.
    pub server: Peer,
    /// The record's number of the call that it is opened for: the hub links a server's connection to its client's call.
    pub parent: Option<u64>,
    /// How a message from the server finds its way to the client.
    pub streams: ClientStreams,
}

/// How a message from the server finds its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStreams {
    /// By its frame's stream, or there is only one.
    Given,
    /// By its id: an HTTP session that ends here has many streams, and the server knows none of them.
    FoundById,
    /// By its id, among the streams of several clients that share the server: requests go out under ids of ours.
    Shared,
}

impl NewConnection {
    /// A connection between these peers.
    pub fn between(client: impl Into<Peer>, server: impl Into<Peer>) -> NewConnection {
        NewConnection {
            client: client.into(),
            server: server.into(),
            parent: None,
            streams: ClientStreams::Given,
        }
    }

    /// The same, with another way to the client's streams.
    #[must_use]
    pub fn with_streams(self, streams: ClientStreams) -> NewConnection {
        NewConnection { streams, ..self }
    }

    /// The same, opened for this call.
    #[must_use]
    pub fn caused_by(self, call: u64) -> NewConnection {
        NewConnection {
            parent: Some(call),
            ..self
        }
    }
}

/// A message on its way into the record.
pub(crate) struct RecordLine<'a> {
    /// Who wrote it, on which stream, in what.
    pub frame: &'a Frame,
    /// Its bytes, or where they are.
    pub body: NewBody<'a>,
    /// What it answers.
    pub answer: Option<&'a Correlation>,
    /// What the parts of a batch answer.
    pub parts: &'a [NewBatchPart],
}

impl Connection {
    pub(crate) fn new(run: Arc<ProxyRun>, id: u32, new: NewConnection) -> Arc<Connection> {
        let shared = new.streams == ClientStreams::Shared;
        let multiplexer = shared.then(RequestMultiplexer::default);
        let (client, server) = (described(&new.client), described(&new.server));
        let lost = Arc::new(run.count_lost_notifications());
        let connection = Arc::new(Connection {
            run,
            id,
            client: new.client,
            server_name: name_of(&new.server),
            server: Mutex::new(new.server),
            parent: new.parent,
            streams: new.streams,
            correlator: Mutex::default(),
            multiplexer: multiplexer.map(Mutex::new),
            is_unshared: AtomicBool::new(false),
            is_carried: AtomicBool::new(false),
            handshake: Mutex::default(),
            lost,
            replay_waiters: ReplayWaiters::default(),
        });
        connection.run.record_event(&RecordEvent::Open {
            connection: id,
            client: &client,
            server: &server,
            parent: connection.parent,
        });
        connection.run.registry().opened(&connection);
        connection
    }

    /// What its client has lost.
    pub fn lost_notifications(&self) -> &Arc<LostNotifications> {
        &self.lost
    }

    /// The pipeline of one direction: what a pump passes its frames through.
    pub fn message_pipeline(self: &Arc<Self>, direction: Direction) -> MessagePipeline {
        MessagePipeline::new(Arc::clone(self), direction)
    }

    /// A pipeline that records and correlates, without steps: for messages that go no further.
    pub fn record_only_pipeline(self: &Arc<Self>, direction: Direction) -> MessagePipeline {
        MessagePipeline::record_only(Arc::clone(self), direction)
    }

    /// Remembers a message if it is of the client's opening.
    pub(crate) fn note_handshake(&self, message: &Message) {
        let mut opening = self
            .handshake
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        opening.observe(message.method().as_deref(), || message.clone());
    }

    /// What opens a session for a message as the client opened its own, as far as that was seen.
    pub(crate) fn handshake_for(&self, message: &Message) -> Vec<Message> {
        let opening = self
            .handshake
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        opening
            .clone()
            .all()
            .take(needed_handshake_messages(message))
            .collect()
    }

    /// Writes an `act` for a verdict of the proxy's own, before its effect.
    pub fn record_proxy_verdict(&self, sequence: Option<u64>, kind: &'static str, why: &str) {
        self.record_verdict(NewVerdict {
            time: self.run.wall(self.run.now()),
            sequence,
            message: None,
            kind,
            by: "proxy".to_owned(),
            why: why.to_owned(),
            delay: None,
            replay_of: None,
            original_raw: None,
            raw: None,
        });
    }

    /// Notes which message a replay sends again.
    pub(crate) fn record_replay(&self, sequence: u64, order: &ReplayOrder) {
        let original = order.origin.sequence;
        let why = match order.origin.is_edited {
            true => format!("of #{original}, edited"),
            false => format!("of #{original}"),
        };
        self.record_verdict(NewVerdict {
            time: self.run.wall(self.run.now()),
            sequence: Some(sequence),
            message: None,
            kind: "replay",
            by: order.by.clone(),
            why,
            delay: None,
            replay_of: Some(order.origin),
            original_raw: None,
            raw: None,
        });
    }

    /// Writes an `act`, before its effect.
    pub(crate) fn record_verdict(&self, act: NewVerdict) {
        let mut record_writer = self.run.lock_record_writer();
        if let Some(recorder) = &mut record_writer.recorder {
            recorder.record_verdict(&act);
        }
        drop(self.run.flush(&mut record_writer));
    }

    /// A request that came in `direction` goes no further: it is not open, and an answer would be late.
    pub(crate) fn give_up(&self, direction: Direction, stream: StreamId, id: &Id) {
        self.correlator().give_up(direction, stream, id);
    }

    /// The client of this exchange has gone before it had the answer to its request. If one of the two was stopped on its way,
    /// it goes no further: nobody waits for it.
    pub fn client_left(&self, exchange: ExchangeId, id: &Id) {
        if !self.run.may_hold_or_change() {
            return;
        }
        let why = "the client went away before it was sent";
        let intercept = self.run.intercept();
        let asking = (self.id, Direction::ClientToServer);
        if self
            .correlator()
            .abandon_request(asking.1, exchange.into(), id)
        {
            intercept.drop_matching(why, |entry| {
                entry.ordering_key() == asking && entry.came_by(exchange.into())
            });
        } else if self.awaits_answer(exchange) {
            let answering = (self.id, Direction::ServerToClient);
            intercept.drop_matching(why, |entry| {
                entry.ordering_key() == answering && self.belongs_to(exchange, &entry.message)
            });
        }
    }

    /// On a shared connection: whether a message of the server's is for this exchange.
    fn belongs_to(&self, exchange: ExchangeId, message: &Message) -> bool {
        let Some(multiplexer) = self.multiplexer() else {
            return false;
        };
        match multiplexer.recipient(message) {
            Recipient::Client(client, _) => client == exchange.into(),
            Recipient::Everyone => multiplexer.oldest_open() == Some(exchange.into()),
            Recipient::AnyClient | Recipient::Nobody => false,
        }
    }

    /// A request is forwarded as another message.
    pub(crate) fn replace_request(
        &self,
        direction: Direction,
        stream: StreamId,
        was: &Message,
        now: &Message,
    ) {
        if let Some(id) = was.id().filter(|_| was.expects_answer()) {
            self.correlator()
                .replace_request(direction, stream, &id, now);
        }
    }

    /// A request, or the requests of a batch, have waited here until now.
    pub(crate) fn note_released(&self, direction: Direction, message: &Message, sequence: u64) {
        let now = self.run.now();
        let mut correlator = self.correlator();
        let mut note = |request: &Message| {
            if let Some(id) = request.id().filter(|_| request.expects_answer()) {
                correlator.note_released(direction, &id, sequence, now);
            }
        };
        match message.parts() {
            Some(parts) => parts.iter().for_each(note),
            None => note(message),
        }
    }

    /// Whether the streams of its client are found by the ids of messages.
    pub(crate) fn finds_by_id(&self) -> bool {
        self.streams != ClientStreams::Given
    }

    /// Whether a request is open: not answered, cancelled or given up.
    pub(crate) fn is_request_open(&self, direction: Direction, id: &Id, sequence: u64) -> bool {
        self.correlator().is_open(direction, id, sequence)
    }

    /// Whether the sender of a request has left a short time ago.
    pub(crate) fn has_left(&self, sequence: u64) -> bool {
        self.correlator().has_left(sequence)
    }

    /// Sends an answer of ours to the server of a connection that is passed through, in a task. The server asked on the
    /// stream of `asked`.
    pub fn deliver(self: &Arc<Self>, asked: ExchangeId, answer: Frame) {
        let Body::Message(message) = answer.body else {
            return;
        };
        let sequence = answer.sequence;
        let injector = self.run.injection_queues().injector();
        let sending = injector.map(|injector| injector.deliver_answer(self, asked, message));
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            let why = match sending {
                Some(Ok(sending)) => match tokio::time::timeout(DELIVERY, sending).await {
                    Ok(Ok(())) => return,
                    Ok(Err(why)) => why,
                    Err(_) => "it took too long".to_owned(),
                },
                Some(Err(error)) => error.to_string(),
                None => "its session is over".to_owned(),
            };
            connection.undelivered(sequence.as_slice(), &why);
        });
    }

    /// Its session is over: replays that wait for an answer are told, and no more are taken.
    pub fn end_replays(&self) {
        self.replay_waiters.close();
    }

    /// The answers that are not the client's.
    pub(crate) fn replay_waiters(&self) -> &ReplayWaiters {
        &self.replay_waiters
    }

    /// Error answers for every request of the client that is still open. If the record cannot be written, which is what
    /// they may be about, the client gets them all the same.
    pub(crate) fn fail_open(&self, failure: &LinkFailure, now: Duration) -> Vec<OutgoingFrame> {
        let open = self.open_requests(Direction::ClientToServer);
        open.iter()
            .map(|asked| {
                let LinkFailure {
                    code, text, data, ..
                } = failure;
                let message = error_response(Some(&asked.id), *code, text, data.as_deref());
                let direction = Direction::ServerToClient;
                let answer = self.author(direction, asked.stream, message.clone(), now);
                let unrecorded = |_| Frame::message(asked.stream, Origin::Proxy, message);
                OutgoingFrame::Frame(answer.unwrap_or_else(unrecorded))
            })
            .collect()
    }

    /// The open requests that came in `direction`.
    pub fn open_requests(&self, direction: Direction) -> Vec<TrackedRequest> {
        self.correlator().open_requests(direction)
    }

    /// Whether a request in `direction` waits for its answer.
    pub fn has_open(&self, direction: Direction) -> bool {
        self.correlator().has_open(direction)
    }

    /// Notes how the connection ended.
    pub fn close(&self, why: &str) {
        self.run.registry().ended(self);
        self.run.record_event(&RecordEvent::Close {
            connection: self.id,
            why,
        });
    }

    /// Notes why an HTTP exchange ended before its time.
    pub fn close_exchange(&self, exchange: ExchangeId, why: &str) {
        let text = format!("connection c{}, exchange {exchange}: {why}", self.id);
        self.run.record_event(&RecordEvent::Note { text: &text });
    }

    /// Notes something about this connection.
    pub fn note(&self, text: &str) {
        let text = format!("connection c{}: {text}", self.id);
        self.run.record_event(&RecordEvent::Note { text: &text });
    }

    /// Notes something about this connection that the user should see at once.
    pub fn warn(&self, text: &str) {
        self.note(text);
        (self.run.warn)(&format!("connection c{}: {text}", self.id));
    }

    /// On a shared connection: the client of this exchange has gone; what to tell the server, if it still works.
    pub fn cancel(&self, exchange: ExchangeId) -> Option<Message> {
        // An exchange carries one request.
        let (told, id) = {
            let mut multiplexer = self.multiplexer()?;
            let id = multiplexer.open_id(&exchange.into());
            (multiplexer.close(&exchange.into()).pop(), id)
        };
        if let Some(id) = id {
            let direction = Direction::ClientToServer;
            self.correlator()
                .cancel_request(direction, exchange.into(), &id);
        }
        told
    }

    /// On a shared connection: whether the request of this exchange still waits for its answer.
    pub fn awaits_answer(&self, exchange: ExchangeId) -> bool {
        self.multiplexer()
            .is_some_and(|multiplexer| multiplexer.is_open(&exchange.into()))
    }

    /// From here on one client has a shared connection to itself: ids pass as they are, and the server may ask. No
    /// request may be open.
    pub fn unshare(&self) {
        self.is_unshared.store(true, Ordering::Release);
    }

    /// What tells the clients of a shared connection apart.
    pub(crate) fn multiplexer(&self) -> Option<MutexGuard<'_, RequestMultiplexer<StreamId>>> {
        let multiplexer = self.multiplexer.as_ref()?;
        if self.is_unshared.load(Ordering::Acquire) {
            return None;
        }
        Some(multiplexer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that messages read and recorded could not be delivered.
    pub fn undelivered(&self, sequences: &[u64], why: &str) {
        for sequence in sequences {
            self.run.record_event(&RecordEvent::Undelivered {
                sequence: *sequence,
                why,
            });
        }
    }

    /// The server, as far as it is known.
    pub fn server_peer(&self) -> Peer {
        self.lock_server().clone()
    }

    /// Two links are connected from now on.
    pub(crate) fn set_carried(&self) {
        self.is_carried.store(true, Ordering::Relaxed);
    }

    /// Whether HTTP heads are forwarded: both sides speak the same kind of HTTP, and it does not end here.
    pub(crate) fn forwards_heads(&self) -> bool {
        let kind = self.client.transport;
        matches!(kind, Transport::StreamableHttp | Transport::Sse)
            && self.lock_server().transport == kind
            && !self.is_carried.load(Ordering::Relaxed)
    }

    /// Whether the proxy makes the HTTP request that carries a message of this direction: HTTP begins here.
    pub(crate) fn makes_heads(&self, direction: Direction) -> bool {
        let server = self.lock_server().transport;
        direction == Direction::ClientToServer
            && matches!(server, Transport::StreamableHttp | Transport::Sse)
            && self.is_carried.load(Ordering::Relaxed)
    }

    /// What the server is called: by viewers, filters and holds.
    pub(crate) fn server_name(&self) -> &Arc<str> {
        &self.server_name
    }

    /// The call that caused a message: its own, that of the request it answers, or that of the whole connection. This is the
    /// order in which an index finds it too.
    pub(crate) fn parent_of(&self, frame: &Frame, answer: Option<&Correlation>) -> Option<u64> {
        let of_request = || answer.and_then(|answer| answer.request.parent);
        frame.parent.or_else(of_request).or(self.parent)
    }

    /// The call that this connection was opened for.
    pub fn parent(&self) -> Option<u64> {
        self.parent
    }

    /// How the server is reached, as far as that is known.
    pub fn server(&self) -> Transport {
        self.lock_server().transport
    }

    /// What the server speaks was found out.
    pub fn set_server_transport(&self, transport: Transport) {
        self.lock_server().transport = transport;
        self.note(&format!("the server speaks {transport}"));
    }

    /// The transport of the link that a message travelling in `direction` is read from.
    pub fn transport_from(&self, direction: Direction) -> Transport {
        match direction {
            Direction::ClientToServer => self.client.transport,
            Direction::ServerToClient => self.server(),
        }
    }

    fn lock_server(&self) -> MutexGuard<'_, Peer> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn correlator(&self) -> MutexGuard<'_, Correlator> {
        self.correlator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.run.registry().ended(self);
    }
}

/// What the record says about the request that is answered.
pub(crate) fn answers(answer: Option<&Correlation>, now: Duration) -> Option<AnsweredRequest> {
    answer.map(|answer| AnsweredRequest {
        id: answer.request.message,
        sequence: answer.request.sequence,
        latency: answer.request.latency(now),
        held: answer.request.held,
    })
}

/// A peer as the record shows it: never its token or its headers.
fn described(peer: &Peer) -> PeerInfo {
    PeerInfo {
        name: peer.name.as_deref().map(str::to_owned),
        transport: peer.transport,
        caller: peer.caller.as_ref().map(|caller| CallerInfo {
            path: caller.path.clone(),
            address: caller.address.map(|address| address.to_string()),
        }),
    }
}
