//! What one run of the proxy shares: the clock, the sequence and the record.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use mcp_proxy_session::{DiskSync, MessageId, RecordEvent, Recorder, new_salt};
use mcp_proxy_wire::terminal_text::sanitize;
use tokio::sync::Notify;

use crate::connection::{Connection, NewConnection};
use crate::connections::ConnectionRegistry;
use crate::intercept::{HoldOptions, Interceptor};
use crate::link::LinkEnd;
use crate::lost_notifications::LostNotifications;
use crate::memory_budget::MemoryBudget;
use crate::peer::Peer;
use crate::replay::{InjectionQueues, MessageInjector};
use crate::rules::LiveRules;
use crate::unredacted_messages::UnredactedMessages;

/// Gets what the user must see: what happens to the record or to a session.
pub(crate) type WarnCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// What a run is made with.
pub struct RunOptions {
    /// The record, or none (`--no-record`).
    pub recorder: Option<Recorder>,
    /// Where warnings go: about the record, and about sessions that were lost.
    pub warn: WarnCallback,
    /// `--pass-noise`: stray lines of a stdio server are forwarded too.
    pub pass_noise: bool,
    /// How messages are held.
    pub hold: HoldOptions,
}

/// One run: every connection's messages take their number here and are written to one record.
///
/// Any thread may use it. Where one lock is taken under another, this is the order: those of a transport (its table of
/// sessions, a session) → a connection's injections, or the holds ([`Interceptor`]) → the record_writer → the connection's correlator →
/// its multiplexer. All others (release queues, the registry, a server's peer, an opening, awaited answers, rules) are taken last and alone.
pub struct ProxyRun {
    start: Instant,
    wall: SystemTime,
    /// `warn` is called while this is locked, so it must not use the pipeline.
    record_writer: Mutex<RecordWriter>,
    connections: AtomicU32,
    pub(crate) warn: WarnCallback,
    pub(crate) pass_noise: bool,
    warned_stray: AtomicBool,
    failed: Notify,
    intercept: Arc<Interceptor>,
    rules: LiveRules,
    injection_queues: InjectionQueues,
    registry: ConnectionRegistry,
    /// Where clients connect, once that is known.
    address: OnceLock<String>,
    /// How far the record has reached the disk, where messages wait for that.
    disk: Option<DiskSync>,
    memory: MemoryBudget,
    lost_notifications: Arc<AtomicU64>,
}

/// What a message that waits for the disk waits for.
#[derive(Default)]
pub struct DurableWait(Option<u64>);

/// The sequence and the record move together: a line's place in the file is its number.
pub(crate) struct RecordWriter {
    sequence: u64,
    salt: u64,
    pub(crate) recorder: Option<Recorder>,
    /// What the record does not show of the newest messages.
    pub(crate) unredacted: UnredactedMessages,
    /// The number of the newest message whose line a reader of the record finds.
    written: u64,
    /// How often the record was written.
    writes: u64,
}

/// How far a run has come, for those who look at it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordProgress {
    /// The newest message that can be read from the record.
    pub upto: u64,
    /// Changes whenever the record does: a verdict on an older message counts too.
    pub version: u64,
}

impl RecordWriter {
    /// The next number and id.
    pub(crate) fn next_number(&mut self, wall: SystemTime) -> (u64, MessageId) {
        self.sequence += 1;
        (
            self.sequence,
            MessageId::new(wall, self.salt, self.sequence),
        )
    }
}

impl ProxyRun {
    /// Starts a run.
    pub fn new(options: RunOptions) -> Arc<ProxyRun> {
        let disk = options.recorder.as_ref().and_then(Recorder::disk_sync);
        Arc::new(ProxyRun {
            start: Instant::now(),
            wall: SystemTime::now(),
            record_writer: Mutex::new(RecordWriter {
                sequence: 0,
                salt: new_salt(),
                recorder: options.recorder,
                unredacted: UnredactedMessages::default(),
                written: 0,
                writes: 0,
            }),
            connections: AtomicU32::new(0),
            warn: options.warn,
            pass_noise: options.pass_noise,
            warned_stray: AtomicBool::new(false),
            failed: Notify::new(),
            intercept: Interceptor::new(options.hold),
            rules: LiveRules::default(),
            injection_queues: InjectionQueues::default(),
            registry: ConnectionRegistry::default(),
            address: OnceLock::new(),
            disk,
            memory: MemoryBudget::default(),
            lost_notifications: Arc::default(),
        })
    }

    /// How much may wait in memory.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// How many notifications clients have lost so far.
    pub fn lost_notifications(&self) -> u64 {
        self.lost_notifications.load(Ordering::Relaxed)
    }

    /// For the client of a new connection.
    pub(crate) fn count_lost_notifications(&self) -> LostNotifications {
        LostNotifications::new(Arc::clone(&self.lost_notifications))
    }

    /// Clients connect here from now on.
    pub fn set_address(&self, address: &str) {
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
    pub fn may_hold_or_change(&self) -> bool {
        self.intercept.is_active() || self.rules.is_active()
    }

    /// Whether something in messages is hidden from the record.
    pub(crate) fn redacts(&self) -> bool {
        let record_writer = self.lock_record_writer();
        record_writer
            .recorder
            .as_ref()
            .is_some_and(Recorder::redacts)
    }

    /// How long a message may be kept here before it is forwarded.
    pub fn longest_hold(&self) -> Duration {
        self.intercept
            .hold_timeout()
            .max(self.rules.longest_delay())
    }

    /// What holds messages.
    pub fn intercept(&self) -> &Arc<Interceptor> {
        &self.intercept
    }

    /// Whether the proxy may have to say something to a server in a client's place: then it must know how that client
    /// speaks.
    pub fn may_inject(&self) -> bool {
        self.injection_queues.replays_enabled() || self.may_hold_or_change()
    }

    /// Who sends messages of ours on sessions that are passed through.
    pub fn set_injector(&self, injector: Weak<dyn MessageInjector>) {
        self.injection_queues.set_injector(injector);
    }

    /// Where messages can be added to conversations.
    pub(crate) fn injection_queues(&self) -> &InjectionQueues {
        &self.injection_queues
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
        self.lock_record_writer().sequence
    }

    /// A run without a record has a temporary one for its viewers: see [`Recorder::temporary`].
    pub fn keep_temporary_record(&self, recorder: Recorder) {
        self.lock_record_writer().recorder.get_or_insert(recorder);
    }

    /// How far a viewer can see. Nobody is told: a viewer looks now and then, so that messages pay nothing for it.
    pub fn progress(&self) -> RecordProgress {
        let record_writer = self.lock_record_writer();
        match &record_writer.recorder {
            Some(_) => RecordProgress {
                upto: record_writer.written,
                version: record_writer.writes,
            },
            None => RecordProgress {
                upto: record_writer.sequence,
                version: record_writer.sequence,
            },
        }
    }

    /// A message to the server as it was sent, if the record hides something of it and it is still known.
    pub(crate) fn unredacted(&self, sequence: u64) -> Option<Bytes> {
        self.lock_record_writer().unredacted.get(sequence)
    }

    /// Says something to the user and notes it in the record.
    pub fn report(&self, text: &str) {
        self.record_event(&RecordEvent::Note { text });
        (self.warn)(text);
    }

    /// Writes an `io` record that stands for itself.
    pub fn record_event(&self, io: &RecordEvent<'_>) {
        let now = self.now();
        let mut record_writer = self.lock_record_writer();
        if let Some(recorder) = &mut record_writer.recorder {
            recorder.record_event(self.wall(now), io);
        }
        // A note guards no message; when the disk is full the next message says so.
        drop(self.flush(&mut record_writer));
    }

    /// Warns of the first line on a server's stdout that is not a message. It is often a `print` that was forgotten, and a
    /// client without a proxy would fail on it.
    pub(crate) fn warn_stray(&self, line: &str) {
        if !self.warned_stray.swap(true, Ordering::Relaxed) {
            let line = sanitize(line);
            (self.warn)(&format!(
                "the server printed a line to stdout that is not JSON-RPC: {line} (recorded, not forwarded; --pass-noise forwards it)"
            ));
        }
    }

    /// The file that is recorded to now. It changes when the record has reached its size limit.
    pub fn record_path(&self) -> Option<PathBuf> {
        let record_writer = self.lock_record_writer();
        let recorder = record_writer.recorder.as_ref()?;
        Some(recorder.path().to_owned())
    }

    /// All files of the record, in order; none of a temporary one.
    pub fn record_files(&self) -> Vec<PathBuf> {
        match &self.lock_record_writer().recorder {
            Some(recorder) if !recorder.is_temporary() => recorder.paths().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Removes a record that has no messages: the run could not start. Nothing is recorded after this.
    pub fn discard_empty_record(&self) {
        let mut record_writer = self.lock_record_writer();
        if let Some(recorder) = &record_writer.recorder
            && recorder.messages() == 0
            && !recorder.is_temporary()
        {
            // The lock goes with the recorder, so nobody takes the file for one of a running proxy meanwhile.
            let _ = std::fs::remove_file(recorder.path());
            record_writer.recorder = None;
        }
    }

    /// Ends the record.
    pub fn end(&self, why: &str) {
        let now = self.now();
        let mut record_writer = self.lock_record_writer();
        if let Some(recorder) = &mut record_writer.recorder
            && let Err(error) = recorder.end(self.wall(now), why)
        {
            (self.warn)(&format!("record: {error}"));
        }
    }

    /// Resolves when the record cannot be written and the run was told to stop then.
    pub async fn record_lost(&self) {
        self.failed.notified().await;
    }

    /// Gives the lines that are pending to the operating system, in one write.
    pub(crate) fn flush(&self, record_writer: &mut RecordWriter) -> Result<(), LinkEnd> {
        let Some(recorder) = &mut record_writer.recorder else {
            return Ok(());
        };
        record_writer.writes += 1;
        record_writer.written = record_writer.sequence;
        let (outcome, warning) = (recorder.flush(), recorder.warning());
        if let Some(file) = recorder.take_new_file() {
            (self.warn)(&format!(
                "the record has reached --max-record-size; it continues in {}",
                file.display()
            ));
        }
        // Once in each outage.
        if let Some(warning) = warning {
            (self.warn)(&warning);
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

    pub(crate) fn lock_record_writer(&self) -> MutexGuard<'_, RecordWriter> {
        // A poisoned record_writer is still whole: every method leaves it between two lines.
        self.record_writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn record_failed() -> LinkEnd {
    LinkEnd::failed(
        mcp_proxy_wire::Side::Client,
        mcp_proxy_wire::ErrorCode::RECORD_FAILED,
        "the proxy cannot write its record and was told to stop",
    )
}
