//! Everything that belongs to one user.

use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::Message;
use rustc_hash::FxHashMap;

use crate::client_side::{ClientSide, NewClient, Surroundings};
use crate::counters::RelayCounters;
use crate::exchange::LocalExchange;
use crate::extension_side::{ExtensionSide, NewExtension};
use crate::fault::RelayFault;
use crate::ids::{IdSource, SocketId};
use crate::opening::{self, Credentials};
use crate::outbox::{Outbox, RelayClose, SocketOutput};
use crate::rates::ToldClock;
use crate::settings::RelaySettings;
use crate::time::RelayTime;

/// The clients and extensions of one user, and everything between them.
///
/// Events come in through the methods. What is to be written comes out of [`UserRelay::take`], for the sockets that
/// [`UserRelay::woken`] names.
#[derive(Debug)]
pub struct UserRelay {
    name: String,
    settings: RelaySettings,
    ids: IdSource,
    clock: ToldClock,
    clients: ClientSide,
    extensions: ExtensionSide,
    exchange: LocalExchange,
    /// Sockets that another has replaced, until they are closed.
    replaced: FxHashMap<SocketId, Outbox>,
    counters: RelayCounters,
    woken: Vec<SocketId>,
    next_tick: Duration,
}

impl UserRelay {
    /// A user without sockets.
    pub fn new(name: &str, settings: RelaySettings, ids: IdSource) -> UserRelay {
        let clock = ToldClock::default();
        UserRelay {
            name: name.to_owned(),
            clients: ClientSide::new(name, &settings, clock.clone()),
            extensions: ExtensionSide::default(),
            exchange: LocalExchange::default(),
            replaced: FxHashMap::default(),
            counters: RelayCounters::default(),
            woken: Vec::new(),
            next_tick: Duration::ZERO,
            settings,
            ids,
            clock,
        }
    }

    /// A client has shown a valid token.
    pub fn client_joined(&mut self, socket: SocketId, new: &NewClient, now: RelayTime) {
        if self.is_full(socket) {
            return;
        }
        self.run(now, |clients, _, around| clients.join(socket, new, around));
        self.next_tick = now.elapsed;
    }

    /// An extension has shown a valid token.
    pub fn extension_joined(&mut self, socket: SocketId, new: &NewExtension, now: RelayTime) {
        if self.is_full(socket) {
            return;
        }
        let name = self.name.clone();
        let older = self.run(now, |clients, extensions, around| {
            extensions.join(socket, &name, new, clients.count(), around)
        });
        self.replaced.extend(older);
        self.next_tick = now.elapsed;
    }

    /// The credentials that a message of a socket shows, if it shows any: a client's further handshake, or an extension's
    /// answer to a further `authenticate`. They are to be checked before the message is passed on.
    pub fn renewal(
        &self,
        socket: SocketId,
        message: &Message,
    ) -> Option<Result<Credentials, RelayFault>> {
        if self.clients.has(socket) {
            let is_handshake = opening::is_handshake(message);
            return is_handshake.then(|| opening::client_credentials(message));
        }
        let is_renewal = self.extensions.is_renewal(socket, message);
        is_renewal.then(|| opening::extension_credentials(message))
    }

    /// The credentials of a renewal are good.
    pub fn renewed(
        &mut self,
        socket: SocketId,
        credentials: &Credentials,
        expires_at: i64,
        now: RelayTime,
    ) {
        let request = credentials.request.as_ref();
        self.run(now, |clients, extensions, around| {
            clients.renew(socket, expires_at, request, around);
            extensions.renew(socket, expires_at);
        });
        self.next_tick = now.elapsed;
    }

    /// The credentials of a renewal are not good: the socket hears this and is closed.
    pub fn refused(&mut self, socket: SocketId, refusal: &SocketOutput, now: RelayTime) {
        for message in &refusal.messages {
            self.say(socket, message.clone(), now);
        }
        if let Some(close) = refusal.close {
            self.close(socket, close, now);
        }
    }

    /// Something that only the driver knows, for a client.
    pub fn say(&mut self, socket: SocketId, message: Bytes, now: RelayTime) {
        self.run(now, |clients, _, around| {
            if let Some(outbox) = clients.outbox(socket) {
                outbox.push(message);
                around.woken.push(socket);
            }
        });
    }

    /// A message of a socket that has joined.
    pub fn message(&mut self, socket: SocketId, message: Message, now: RelayTime) {
        self.run(now, |clients, extensions, around| {
            match clients.has(socket) {
                true => clients.message(socket, message, around),
                false => extensions.message(socket, message, around),
            }
        });
    }

    /// A socket is gone.
    pub fn left(&mut self, socket: SocketId, now: RelayTime) {
        self.replaced.remove(&socket);
        self.run(now, |clients, extensions, around| {
            clients.leave(socket, around);
            extensions.leave(socket, "Extension closed", around);
        });
    }

    /// Closes a socket after what is waiting for it, for example because its token was revoked.
    pub fn close(&mut self, socket: SocketId, close: RelayClose, now: RelayTime) {
        self.run(now, |clients, extensions, around| {
            clients.close(socket, close, around);
            extensions.close(socket, close, around);
        });
    }

    /// Counts a renewal as a request to the relay itself.
    pub fn count_renewal(&mut self, now: RelayTime) -> Result<(), RelayFault> {
        self.clock.set(now.elapsed);
        self.clients.count_control()
    }

    /// Whether the user has as many sockets as allowed. A further one is closed.
    fn is_full(&mut self, socket: SocketId) -> bool {
        let open = self.sockets().len();
        if open < self.settings.max_sockets {
            return false;
        }
        let mut outbox = Outbox::default();
        outbox.close(RelayClose::TryLater("too many sockets of this user"));
        self.replaced.insert(socket, outbox);
        self.woken.push(socket);
        true
    }

    /// The relay stops: everybody is told and closed.
    pub fn shut_down(&mut self, now: RelayTime) {
        self.run(now, |clients, extensions, around| {
            extensions.close_all(RelayClose::Restart, around);
            clients.close_all(RelayClose::Restart, around);
        });
    }

    /// Does what is due.
    pub fn tick(&mut self, now: RelayTime) {
        let next = self.run(now, |clients, extensions, around| {
            let next = extensions.tick(around);
            next.min(clients.tick(around))
        });
        self.next_tick = next;
    }

    /// When [`UserRelay::tick`] has something to do.
    pub fn next_tick(&self) -> Duration {
        self.next_tick
    }

    /// What to write to a socket now: about `budget` bytes.
    pub fn take(&mut self, socket: SocketId, budget: usize, now: RelayTime) -> SocketOutput {
        if let Some(outbox) = self.replaced.get_mut(&socket) {
            let mut output = SocketOutput::default();
            outbox.take(budget, &mut output);
            return output;
        }
        self.run(now, |clients, extensions, around| {
            match clients.outbox(socket) {
                Some(outbox) => {
                    let mut output = SocketOutput::default();
                    outbox.take(budget, &mut output);
                    output
                }
                None => extensions.take(socket, budget, around),
            }
        })
    }

    /// The sockets that may have something to write since the last call.
    pub fn woken(&mut self) -> Vec<SocketId> {
        std::mem::take(&mut self.woken)
    }

    /// Whether nobody is here and nobody can come back to anything.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.extensions.is_empty() && self.replaced.is_empty()
    }

    /// All sockets that have joined.
    pub fn sockets(&self) -> Vec<SocketId> {
        self.clients
            .sockets()
            .chain(self.extensions.sockets())
            .collect()
    }

    /// What was counted.
    pub fn counters(&self) -> RelayCounters {
        self.counters
    }

    /// Lets the sides do something, and then lets them talk until neither has anything more to say.
    fn run<T>(
        &mut self,
        now: RelayTime,
        act: impl FnOnce(&mut ClientSide, &mut ExtensionSide, &mut Surroundings<'_>) -> T,
    ) -> T {
        self.clock.set(now.elapsed);
        let mut around = Surroundings {
            now,
            settings: &self.settings,
            ids: &mut self.ids,
            counters: &mut self.counters,
            exchange: &mut self.exchange,
            woken: &mut self.woken,
        };
        let done = act(&mut self.clients, &mut self.extensions, &mut around);
        loop {
            if let Some((extension, message)) = self.exchange.for_extensions.pop_front() {
                let mut around = Surroundings {
                    exchange: &mut self.exchange,
                    now,
                    settings: &self.settings,
                    ids: &mut self.ids,
                    counters: &mut self.counters,
                    woken: &mut self.woken,
                };
                self.extensions.receive(&extension, message, &mut around);
            } else if let Some(message) = self.exchange.for_clients.pop_front() {
                let mut around = Surroundings {
                    exchange: &mut self.exchange,
                    now,
                    settings: &self.settings,
                    ids: &mut self.ids,
                    counters: &mut self.counters,
                    woken: &mut self.woken,
                };
                self.clients.receive(message, &mut around);
            } else {
                break;
            }
        }
        // Whatever was begun has a deadline within this time.
        let soon = now.elapsed
            + self
                .settings
                .command_timeout
                .min(self.settings.resume_window);
        self.next_tick = self.next_tick.min(soon);
        done
    }
}
