//! One client session towards one server session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_session::{Act, Answers, Io, NewBody, NewMessage, PeerInfo};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Id, Message, Origin, Transport,
    error_response,
};

use crate::correlate::{Asked, Correlator, Noting, Seen};
use crate::lane::Lane;
use crate::link::LinkEnd;
use crate::pipeline::Pipeline;
use crate::replay::{Awaited, DELIVERY, Opening, needed};
use crate::share::{Share, Whose};

/// A connection: its number in the record, its two kinds of transport, its open requests.
pub struct Connection {
    /// The run it belongs to.
    pub pipeline: Arc<Pipeline>,
    /// Its number; the record writes it as `c1`.
    pub id: u32,
    /// How the client speaks.
    pub client: Transport,
    /// How the server speaks; a URL of unknown kind is found out on the way.
    server: Mutex<Transport>,
    correlator: Mutex<Correlator>,
    share: Option<Mutex<Share>>,
    /// How the client opened it, while rules may want to open another session like it.
    opening: Mutex<Opening<Message>>,
    /// Answers that are not the client's.
    awaited: Awaited,
}

impl Connection {
    pub(crate) fn new(
        pipeline: Arc<Pipeline>,
        id: u32,
        client: Transport,
        server: Transport,
        share: Option<Share>,
    ) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            pipeline,
            id,
            client,
            server: Mutex::new(server),
            correlator: Mutex::default(),
            share: share.map(Mutex::new),
            opening: Mutex::default(),
            awaited: Awaited::default(),
        });
        connection.pipeline.note(&Io::Open {
            connection: id,
            client: &PeerInfo::new(client),
            server: &PeerInfo::new(server),
            parent: None,
        });
        connection
    }

    /// The lane of one direction: what a pump passes its frames through.
    pub fn lane(self: &Arc<Self>, direction: Direction) -> Lane {
        Lane::new(Arc::clone(self), direction)
    }

    /// A lane that records and correlates, without steps: for messages that go no further.
    pub fn record_lane(self: &Arc<Self>, direction: Direction) -> Lane {
        Lane::recording(Arc::clone(self), direction)
    }

    /// Remembers a message if it is of the client's opening.
    pub(crate) fn note_opening(&self, message: &Message) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.see(message.method().as_deref(), || message.clone());
    }

    /// What opens a session for a message as the client opened its own, as far as that was seen.
    pub(crate) fn opening(&self, message: &Message) -> Vec<Message> {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.clone().all().take(needed(message)).collect()
    }

    /// Writes an `act` for a verdict of the proxy's own, before its effect.
    pub fn act(&self, sequence: Option<u64>, kind: &'static str, why: &str) {
        self.act_on(Act {
            time: self.pipeline.wall(self.pipeline.now()),
            sequence,
            message: None,
            kind,
            by: "proxy".to_owned(),
            why: why.to_owned(),
            original_raw: None,
            raw: None,
        });
    }

    /// Writes an `act`, before its effect.
    pub(crate) fn act_on(&self, act: Act) {
        let mut ledger = self.pipeline.ledger();
        if let Some(recorder) = &mut ledger.recorder {
            recorder.act(&act);
        }
        drop(self.pipeline.flush(&mut ledger));
    }

    /// A request that came in `direction` goes no further: it is not open, and an answer would be late.
    pub(crate) fn give_up(&self, direction: Direction, exchange: ExchangeId, id: &Id) {
        self.correlator().give_up(direction, exchange, id);
    }

    /// The client of this exchange has gone before it had the answer to its request. If one of the two was stopped on its way,
    /// it goes no further: nobody waits for it.
    pub fn client_left(&self, exchange: ExchangeId, id: &Id) {
        if !self.pipeline.may_stop() {
            return;
        }
        let why = "the client went away before it was sent";
        let intercept = self.pipeline.intercept();
        let asking = (self.id, Direction::ClientToServer);
        if self.correlator().leave(asking.1, exchange, id) {
            intercept.give_up(why, |entry| {
                entry.way() == asking && entry.came_by(exchange)
            });
        } else if self.awaits_answer(exchange) {
            let answering = (self.id, Direction::ServerToClient);
            intercept.give_up(why, |entry| {
                entry.way() == answering && self.belongs_to(exchange, &entry.message)
            });
        }
    }

    /// On a shared connection: whether a message of the server's is for this exchange.
    fn belongs_to(&self, exchange: ExchangeId, message: &Message) -> bool {
        let whose = self.share().map(|share| share.whose(message));
        matches!(whose, Some(Whose::Owned(owner, _)) if owner == exchange)
    }

    /// A request goes on as something else.
    pub(crate) fn change(
        &self,
        direction: Direction,
        exchange: ExchangeId,
        was: &Message,
        now: &Message,
    ) {
        if let Some(id) = was.id().filter(|_| was.asks()) {
            self.correlator().change(direction, exchange, &id, now);
        }
    }

    /// Whether the streams of its client are found by the ids of messages: those of HTTP clients of servers of another kind.
    pub(crate) fn finds_by_id(&self) -> bool {
        self.client == Transport::StreamableHttp && self.server() != Transport::StreamableHttp
    }

    /// Whether a request is open: not answered, cancelled or given up.
    pub(crate) fn awaits(&self, direction: Direction, id: &Id, sequence: u64) -> bool {
        self.correlator().is_open(direction, id, sequence)
    }

    /// A message of our own making, recorded as such, ready to be written.
    pub fn author(
        &self,
        direction: Direction,
        exchange: ExchangeId,
        message: Message,
        now: Duration,
    ) -> Result<Frame, LinkEnd> {
        let authored = self.author_numbered(direction, exchange, message, now);
        authored.map(|(frame, _)| frame)
    }

    /// The same, with its number.
    pub fn author_numbered(
        &self,
        direction: Direction,
        exchange: ExchangeId,
        message: Message,
        now: Duration,
    ) -> Result<(Frame, u64), LinkEnd> {
        let wall = self.pipeline.wall(now);
        let mut ledger = self.pipeline.ledger();
        let (sequence, id) = ledger.next(wall);
        let answer = self.correlator().see(
            Seen {
                direction,
                exchange,
                sequence,
                message: id,
                at: now,
                noting: match self.pipeline.may_stop() {
                    true => Noting::About,
                    false => Noting::Nothing,
                },
            },
            &message,
        );
        if let Some(recorder) = &mut ledger.recorder {
            recorder.message(&NewMessage {
                sequence,
                id,
                time: wall,
                mono: now,
                direction,
                transport: self.transport_from(direction),
                connection: self.id,
                exchange: exchange.0,
                origin: Origin::Proxy,
                parent: None,
                carriage: &Carriage::Message,
                body: NewBody::Whole(&message),
                answers: answer.as_ref().map(|a| Answers {
                    id: a.asked.message,
                    sequence: a.asked.sequence,
                    latency: now.saturating_sub(a.asked.at),
                }),
                late: false,
                duplicate: false,
                parts: &[],
            });
        }
        self.pipeline.flush(&mut ledger)?;
        let frame = Frame {
            exchange,
            carriage: Carriage::Message,
            body: Body::Whole(message),
        };
        Ok((frame, sequence))
    }

    /// Sends an answer of ours to the server of a connection that is passed through, in a task. The server asked on the
    /// stream of `asked`.
    pub fn deliver(self: &Arc<Self>, asked: ExchangeId, answer: Message) {
        let poster = self.pipeline.inlets().poster();
        let sending = poster.map(|poster| poster.deliver(self, asked, answer));
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
            connection.note(&format!("the server did not get our answer: {why}"));
        });
    }

    /// Its session is over: replays that wait for an answer are told, and no more are taken.
    pub fn end_replays(&self) {
        self.awaited.close();
    }

    /// The answers that are not the client's.
    pub(crate) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// Error answers for every request of the client that is still open.
    pub fn fail_open(&self, code: ErrorCode, text: &str, now: Duration) -> Vec<Frame> {
        let open = self.open(Direction::ClientToServer);
        open.iter()
            .filter_map(|asked| {
                let message = error_response(Some(&asked.id), code, text, None);
                self.author(Direction::ServerToClient, asked.exchange, message, now)
                    .ok()
            })
            .collect()
    }

    /// The open requests that came in `direction`.
    pub fn open(&self, direction: Direction) -> Vec<Asked> {
        self.correlator().open(direction)
    }

    /// Whether a request in `direction` waits for its answer.
    pub fn has_open(&self, direction: Direction) -> bool {
        self.correlator().has_open(direction)
    }

    /// Notes how the connection ended.
    pub fn close(&self, why: &str) {
        self.pipeline.note(&Io::Close {
            connection: self.id,
            why,
        });
    }

    /// Notes why an HTTP exchange ended before its time.
    pub fn close_exchange(&self, exchange: ExchangeId, why: &str) {
        let text = format!("connection c{}, exchange {exchange}: {why}", self.id);
        self.pipeline.note(&Io::Note { text: &text });
    }

    /// Notes something about this connection.
    pub fn note(&self, text: &str) {
        let text = format!("connection c{}: {text}", self.id);
        self.pipeline.note(&Io::Note { text: &text });
    }

    /// On a shared connection: the client of this exchange has gone; what to tell the server, if it still works.
    pub fn cancel(&self, exchange: ExchangeId) -> Option<Message> {
        self.share()?.closed(exchange)
    }

    /// On a shared connection: whether the request of this exchange still waits for its answer.
    pub fn awaits_answer(&self, exchange: ExchangeId) -> bool {
        self.share().is_some_and(|share| share.is_open(exchange))
    }

    /// The table of a connection that several clients share.
    pub(crate) fn share(&self) -> Option<MutexGuard<'_, Share>> {
        let share = self.share.as_ref()?;
        Some(share.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that messages read and recorded could not be delivered.
    pub fn undelivered(&self, sequences: &[u64], why: &str) {
        for sequence in sequences {
            self.pipeline.note(&Io::Undelivered {
                sequence: *sequence,
                why,
            });
        }
    }

    /// How the server speaks, as far as it is known.
    pub fn server(&self) -> Transport {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's kind was found out.
    pub fn server_is(&self, kind: Transport) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = kind;
        self.note(&format!("the server speaks {kind}"));
    }

    /// The transport of the link that a message travelling in `direction` is read from.
    pub fn transport_from(&self, direction: Direction) -> Transport {
        match direction {
            Direction::ClientToServer => self.client,
            Direction::ServerToClient => self.server(),
        }
    }

    pub(crate) fn correlator(&self) -> MutexGuard<'_, Correlator> {
        self.correlator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
