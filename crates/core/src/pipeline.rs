//! What one run of the proxy shares: the clock, the sequence and the record.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use mcp_proxy_session::{DiskSync, Io, Keeper, MessageId, Recorder, Ring, new_salt};
use tokio::sync::Notify;

use crate::connection::{Connection, NewConnection};
use crate::connections::ConnectionRegistry;
use crate::intercept::{HoldOptions, Intercept};
use crate::link::LinkEnd;
use crate::peer::Peer;
use crate::replay::{Inlets, Poster};
use crate::rules::LiveRules;

/// Told once, when something the user must see happens to the record.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// What a run is made with.
pub struct PipelineOptions {
    /// The record, or none (`--no-record`).
    pub recorder: Option<Recorder>,
    /// Where warnings about the record go.
    pub warn: Warn,
    /// `--pass-noise`: stray lines of a stdio server are forwarded too.
    pub pass_noise: bool,
    /// How messages are held.
    pub hold: HoldOptions,
}

/// One run: every connection's messages take their number here and are written to one record.
///
/// Any thread may use it. Where one lock is taken under another, this is the order: those of a transport (its table of
/// sessions, a session) → a connection's inlet, or the holds ([`Intercept`]) → the ledger → the connection's correlator →
/// its multiplexer. All others (mailboxes, the server's peer, the opening, awaited answers, rules) are taken last and alone.
pub struct Pipeline {
    start: Instant,
    wall: SystemTime,
    /// `warn` is called while this is locked, so it must not use the pipeline.
    ledger: Mutex<Ledger>,
    connections: AtomicU32,
    pub(crate) warn: Warn,
    pub(crate) pass_noise: bool,
    warned: AtomicBool,
    failed: Notify,
    intercept: Arc<Intercept>,
    rules: LiveRules,
    inlets: Inlets,
    registry: ConnectionRegistry,
    /// Where clients connect, once that is known.
    address: OnceLock<String>,
    /// How far the record has reached the disk, where messages wait for that.
    disk: Option<DiskSync>,
}

/// What a message that waits for the disk waits for.
#[derive(Default)]
pub struct DurableWait(Option<u64>);

/// The sequence and the record move together: a line's place in the file is its number.
pub(crate) struct Ledger {
    sequence: u64,
    salt: u64,
    pub(crate) recorder: Option<Keeper>,
    /// The number of the newest message whose line a reader of the record finds.
    written: u64,
    /// How often the record was written; lines that were pending before a write are in it.
    flushes: u64,
    /// The last of these writes that failed under `--on-record-error stop`: lines that were pending then are lost.
    failed_flush: Option<u64>,
}

/// How far a run has come, for those who look at it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The newest message that can be read from the record.
    pub upto: u64,
    /// Changes whenever the record does: a verdict on an older message counts too.
    pub version: u64,
}

/// How often the record had been written when the first and the last of some lines became pending.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    first: u64,
    last: u64,
}

impl Ticket {
    /// The same for these lines and for later ones.
    pub(crate) fn with(self, later: Ticket) -> Ticket {
        Ticket {
            first: self.first,
            last: later.last,
        }
    }
}

impl Ledger {
    /// The next number and id.
    pub(crate) fn next(&mut self, wall: SystemTime) -> (u64, MessageId) {
        self.sequence += 1;
        (
            self.sequence,
            MessageId::new(wall, self.salt, self.sequence),
        )
    }

    /// What tells later whether the lines that were just added have been written. `None`: there is no record. It is taken
    /// under the same lock as the lines are added: after that, any thread may write them, or fail to.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.recorder.as_ref().filter(|keeper| keeper.is_file())?;
        Some(Ticket {
            first: self.flushes,
            last: self.flushes,
        })
    }
}

impl Pipeline {
    /// Starts a run.
    pub fn new(options: PipelineOptions) -> Arc<Pipeline> {
        let disk = options.recorder.as_ref().and_then(Recorder::disk_sync);
        Arc::new(Pipeline {
            start: Instant::now(),
            wall: SystemTime::now(),
            ledger: Mutex::new(Ledger {
                sequence: 0,
                salt: new_salt(),
                recorder: options.recorder.map(Keeper::from),
                written: 0,
                flushes: 0,
                failed_flush: None,
            }),
            connections: AtomicU32::new(0),
            warn: options.warn,
            pass_noise: options.pass_noise,
            warned: AtomicBool::new(false),
            failed: Notify::new(),
            intercept: Intercept::new(options.hold),
            rules: LiveRules::default(),
            inlets: Inlets::default(),
            registry: ConnectionRegistry::default(),
            address: OnceLock::new(),
            disk,
        })
    }

    /// Clients connect here from now on.
    pub fn listens_on(&self, address: &str) {
        // A run listens once.
        drop(self.address.set(address.to_owned()));
    }

    /// Where clients connect: a URL; nothing over stdio.
    pub(crate) fn address(&self) -> Option<&str> {
        self.address.get().map(String::as_str)
    }

    /// The rules that the run obeys.
    pub fn rules(&self) -> &LiveRules {
        &self.rules
    }

    /// Whether somebody may hold, change or drop messages: then they are needed whole.
    pub fn may_stop(&self) -> bool {
        self.intercept.is_active() || self.rules.is_active()
    }

    /// Whether something in messages is hidden from the record.
    pub(crate) fn redacts(&self) -> bool {
        let ledger = self.ledger();
        ledger
            .recorder
            .as_ref()
            .is_some_and(|keeper| keeper.redacts())
    }

    /// How long a message may be kept here before it goes on.
    pub fn patience(&self) -> Duration {
        self.intercept.patience().max(self.rules.patience())
    }

    /// What holds messages.
    pub fn intercept(&self) -> &Arc<Intercept> {
        &self.intercept
    }

    /// Whether the proxy may have to say something to a server in a client's place: then it must know how that client
    /// speaks.
    pub fn may_speak(&self) -> bool {
        self.inlets.wanted() || self.may_stop()
    }

    /// Who sends messages of ours on sessions that are passed through.
    pub fn post_by(&self, poster: Weak<dyn Poster>) {
        self.inlets.post_by(poster);
    }

    /// Where messages can be added to conversations.
    pub(crate) fn inlets(&self) -> &Inlets {
        &self.inlets
    }

    /// The connections of the run.
    pub fn registry(&self) -> &ConnectionRegistry {
        &self.registry
    }

    /// Time since the run began. It is the `now` of every pure function below.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The wall clock at `now`, free of jumps within a run.
    pub fn wall(&self, now: Duration) -> SystemTime {
        self.wall + now
    }

    /// A new connection: one client session towards one server session.
    pub fn connect(
        self: &Arc<Self>,
        client: impl Into<Peer>,
        server: impl Into<Peer>,
    ) -> Arc<Connection> {
        self.open(NewConnection::between(client, server))
    }

    /// The same, with everything that can be said about a connection.
    pub fn open(self: &Arc<Self>, new: NewConnection) -> Arc<Connection> {
        Connection::new(Arc::clone(self), self.next_connection(), new)
    }

    fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many connections there were.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// How many messages were received or authored.
    pub fn messages(&self) -> u64 {
        self.ledger().sequence
    }

    /// A run without a record keeps its newest messages in memory, for viewers.
    pub fn keep_recent(&self, ring: Ring) {
        self.ledger().recorder.get_or_insert_with(|| ring.into());
    }

    /// How far a viewer can see. Nobody is told: a viewer looks now and then, so that messages pay nothing for it.
    pub fn progress(&self) -> Progress {
        let ledger = self.ledger();
        match &ledger.recorder {
            Some(Keeper::File(_)) => Progress {
                upto: ledger.written,
                version: ledger.flushes,
            },
            Some(Keeper::Ring(ring)) => Progress {
                upto: ledger.sequence,
                version: ring.added(),
            },
            None => Progress {
                upto: ledger.sequence,
                version: ledger.sequence,
            },
        }
    }

    /// Looks at the messages kept in memory. `None`: there is a record, or nothing is kept.
    pub fn recent<T>(&self, look: impl FnOnce(&Ring) -> T) -> Option<T> {
        match &self.ledger().recorder {
            Some(Keeper::Ring(ring)) => Some(look(ring)),
            _ => None,
        }
    }

    /// Writes an `io` record that stands for itself.
    pub fn note(&self, io: &Io<'_>) {
        let now = self.now();
        let mut ledger = self.ledger();
        if let Some(recorder) = &mut ledger.recorder {
            recorder.io(self.wall(now), io);
        }
        // A note guards no message; when the disk is full the next message says so.
        drop(self.flush(&mut ledger));
    }

    /// Ends the record.
    pub fn end(&self, why: &str) {
        let now = self.now();
        let mut ledger = self.ledger();
        if let Some(Keeper::File(recorder)) = &mut ledger.recorder
            && let Err(error) = recorder.end(self.wall(now), why)
        {
            (self.warn)(&format!("record: {error}"));
        }
    }

    /// Resolves when the record cannot be written and the run was told to stop then.
    pub async fn record_lost(&self) {
        self.failed.notified().await;
    }

    /// Writes what is pending, unless it was written since the ticket was taken. A pump yields before it asks for this,
    /// so that all tasks that are ready add their lines to the same write. That saves writes and nothing depends on it:
    /// on several threads the write may contain fewer lines.
    pub(crate) fn flush_since(&self, ticket: Ticket) -> Result<(), LinkEnd> {
        let mut ledger = self.ledger();
        if ledger
            .failed_flush
            .is_some_and(|failed| failed > ticket.first)
        {
            return Err(record_failed());
        }
        match ledger.flushes == ticket.last {
            true => self.flush(&mut ledger),
            false => Ok(()),
        }
    }

    /// Gives the lines that are pending to the operating system, in one write.
    pub(crate) fn flush(&self, ledger: &mut Ledger) -> Result<(), LinkEnd> {
        let Some(Keeper::File(recorder)) = &mut ledger.recorder else {
            return Ok(());
        };
        ledger.flushes += 1;
        ledger.written = ledger.sequence;
        let (outcome, warning) = (recorder.flush(), recorder.warning());
        if let Some(warning) = warning
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            (self.warn)(&warning);
        }
        if outcome.is_err() {
            ledger.failed_flush = Some(ledger.flushes);
        }
        outcome.map_err(|error| self.record_failed(&error))
    }

    /// `--on-record-error stop`: says so, and ends the link that could not be recorded.
    pub(crate) fn record_failed(&self, error: &mcp_proxy_session::Error) -> LinkEnd {
        (self.warn)(&format!(
            "record: {error}; stopping (--on-record-error stop)"
        ));
        self.failed.notify_one();
        record_failed()
    }

    /// Waits until everything that was recorded so far is on the disk, where messages must wait for that
    /// (`--durability fsync`).
    pub async fn durable(&self) -> Result<(), LinkEnd> {
        if self.disk.is_none() {
            return Ok(());
        }
        let mut wait = DurableWait::default();
        poll_fn(|cx| self.poll_durable(cx, &mut wait)).await
    }

    /// The same for a body that is polled. `wait` remembers between polls what is waited for.
    pub fn poll_durable(
        &self,
        cx: &mut Context<'_>,
        wait: &mut DurableWait,
    ) -> Poll<Result<(), LinkEnd>> {
        let Some(disk) = &self.disk else {
            return Poll::Ready(Ok(()));
        };
        let upto = *wait.0.get_or_insert_with(|| disk.written());
        let synced = ready!(disk.poll_synced(cx, upto));
        wait.0 = None;
        Poll::Ready(synced.map_err(|why| {
            (self.warn)(&format!("record: {why}; stopping (--on-record-error stop)"));
            self.failed.notify_one();
            record_failed()
        }))
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A poisoned ledger is still whole: every method leaves it between two lines.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record_failed() -> LinkEnd {
    LinkEnd::failed(
        mcp_proxy_wire::Side::Client,
        mcp_proxy_wire::ErrorCode::RECORD_FAILED,
        "the proxy cannot write its record and was told to stop",
    )
}
