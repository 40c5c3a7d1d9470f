//! Everything that belongs to one user.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Id, Message};
use rustc_hash::FxHashMap;

use crate::audit::RelayAuditEvent;
use crate::client_side::{ClientSide, NewClient};
use crate::context::RelayContext;
use crate::counters::RelayCounters;
use crate::extension_side::{ExtensionSide, NewExtension};
use crate::fault::RelayFault;
use crate::ids::{IdSource, SocketId};
use crate::opening::{self, Credentials};
use crate::outbox::{Outbox, RelayClose, SocketOutput};
use crate::rates::RateClock;
use crate::settings::{RelayAccess, RelaySettings};
use crate::time::RelayTime;

/// The clients and extensions of one user, and everything between them.
///
/// Events come in through the methods. What is to be written comes out of [`UserRelay::take`], for the sockets that
/// [`UserRelay::take_sockets_with_output`] names.
#[derive(Debug)]
pub struct UserRelay {
    name: String,
    clock: RateClock,
    clients: ClientSide,
    extensions: ExtensionSide,
    context: RelayContext,
    /// Sockets that another has replaced, until they are closed.
    replaced: FxHashMap<SocketId, Outbox>,
    next_tick: Duration,
}

impl UserRelay {
    /// A user without sockets, with the policy for this user if there is one.
    pub fn new(name: &str, mut settings: RelaySettings, ids: IdSource) -> UserRelay {
        if let Some(own) = settings.user_policies.get(name) {
            settings.policy = Arc::clone(own);
        }
        let clock = RateClock::default();
        UserRelay {
            name: name.to_owned(),
            clients: ClientSide::new(name, &settings, clock.clone()),
            extensions: ExtensionSide::default(),
            context: RelayContext::new(name, settings, ids),
            replaced: FxHashMap::default(),
            next_tick: Duration::ZERO,
            clock,
        }
    }

    /// A client has shown a valid token.
    pub fn client_joined(&mut self, socket: SocketId, new: &NewClient, now: RelayTime) {
        if self.is_full() {
            let answer = RelayFault::SocketLimit.answer(new.request.as_ref());
            return self.turn_away(socket, Some(answer));
        }
        self.run(now, |clients, extensions, context| {
            clients.join(socket, new, extensions, context);
        });
        self.next_tick = now.elapsed;
    }

    /// An extension has shown a valid token.
    pub fn extension_joined(&mut self, socket: SocketId, new: &NewExtension, now: RelayTime) {
        if self.is_full() {
            return self.turn_away(socket, None);
        }
        let name = self.name.clone();
        let named = match self.context.settings.access {
            RelayAccess::Direct => &self.extensions.named(new),
            RelayAccess::Tokens => new,
        };
        let older = self.run(now, |_, extensions, context| {
            extensions.join(socket, &name, named, context)
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
        let access = self.context.settings.access;
        if self.clients.has(socket) {
            let is_handshake = opening::is_handshake(message);
            return is_handshake.then(|| opening::client_credentials(message, access));
        }
        let is_renewal = self.extensions.is_renewal(socket, message);
        is_renewal.then(|| opening::extension_credentials(message, access))
    }

    /// The credentials of a renewal are good.
    pub fn renewed(
        &mut self,
        socket: SocketId,
        credentials: &Credentials,
        expires_at: i64,
        now: RelayTime,
    ) {
        self.run(now, |clients, extensions, context| {
            clients.renew(socket, credentials, expires_at, extensions, context);
            extensions.renew(socket, expires_at);
        });
        self.next_tick = now.elapsed;
    }

    /// The credentials of a renewal are not good: the socket hears this and is closed.
    pub fn refused(&mut self, socket: SocketId, refusal: &SocketOutput, now: RelayTime) {
        for message in &refusal.messages {
            self.send_to_client(socket, message.clone(), now);
        }
        if let Some(close) = refusal.close {
            self.close(socket, close, now);
        }
    }

    /// Sends a client a message that the driver made.
    pub fn send_to_client(&mut self, socket: SocketId, message: Message, now: RelayTime) {
        self.run(now, |clients, _, context| {
            if let Some(outbox) = clients.outbox(socket) {
                outbox.push(message);
                context.sockets_with_output.push(socket);
            }
        });
    }

    /// Refuses a client's request that the driver does not pass on.
    pub fn refuse_request(
        &mut self,
        socket: SocketId,
        id: Option<&Id>,
        fault: &RelayFault,
        now: RelayTime,
    ) {
        self.run(now, |clients, _, context| {
            clients.refuse(socket, id, fault, context)
        });
    }

    /// A message of a socket that has joined.
    pub fn message(&mut self, socket: SocketId, message: Message, now: RelayTime) {
        if let Some(new) = self.extensions.late_introduction(socket, &message) {
            let taken = self.extensions.taken(socket);
            self.run(now, |_, extensions, context| {
                extensions.leave(socket, "Extension has another name", context);
            });
            self.extension_joined(socket, &new, now);
            return self.extensions.add_taken(socket, taken);
        }
        self.run(now, |clients, extensions, context| {
            match clients.has(socket) {
                true => clients.message(socket, message, extensions, context),
                false => extensions.message(socket, message, context),
            }
        });
    }

    /// Memory ran out for an extension's answer. `refusal` has its id.
    pub fn answer_refused(&mut self, socket: SocketId, refusal: &Message, now: RelayTime) {
        self.run(now, |_, extensions, context| {
            extensions.answer_refused(socket, refusal, context);
        });
    }

    /// Nothing more is written to an extension's socket. `begun` is how many of the messages taken for it were written at least
    /// in part; nothing of the others was or will be.
    pub fn messages_begun(&mut self, socket: SocketId, begun: u64) {
        self.extensions.messages_begun(socket, begun);
    }

    /// A socket does not take what is written to it, and is closed for that.
    pub fn stalled(&mut self, socket: SocketId, now: RelayTime) {
        self.run(now, |clients, extensions, context| {
            clients.stalled(socket, context);
            extensions.stalled(socket, context);
        });
    }

    /// A socket is gone.
    pub fn socket_closed(&mut self, socket: SocketId, now: RelayTime) {
        self.replaced.remove(&socket);
        self.run(now, |clients, extensions, context| {
            clients.leave(socket, extensions, context);
            extensions.leave(socket, "Extension closed", context);
        });
    }

    /// Closes a socket after what is waiting for it, for example because its token was revoked.
    pub fn close(&mut self, socket: SocketId, close: RelayClose, now: RelayTime) {
        self.run(now, |clients, extensions, context| {
            clients.close(socket, close, extensions, context);
            extensions.close(socket, close, context);
        });
    }

    /// Counts a renewal as a request to the relay itself.
    pub fn count_renewal(&mut self, now: RelayTime) -> Result<(), RelayFault> {
        self.clock.set(now.elapsed);
        self.clients.count_control()
    }

    /// Whether the user has as many sockets as allowed.
    fn is_full(&self) -> bool {
        self.sockets().len() >= self.context.settings.max_sockets
    }

    /// Closes a socket that is one too many. An extension expects no answer.
    fn turn_away(&mut self, socket: SocketId, answer: Option<Message>) {
        let counters = &mut self.context.counters;
        counters.count_fault(&RelayFault::SocketLimit);
        let mut outbox = Outbox::default();
        if let Some(answer) = answer {
            outbox.push(answer);
        }
        outbox.close(RelayClose::TryLater("too many sockets of this user"));
        self.replaced.insert(socket, outbox);
        self.context.sockets_with_output.push(socket);
    }

    /// The relay stops: everybody is told and closed.
    pub fn shut_down(&mut self, now: RelayTime) {
        self.run(now, |clients, extensions, context| {
            extensions.close_all(RelayClose::Restart, context);
            clients.close_all(RelayClose::Restart, extensions, context);
        });
    }

    /// Does what is due.
    pub fn tick(&mut self, now: RelayTime) {
        let next = self.run(now, |clients, extensions, context| {
            let next = extensions.tick(context);
            next.min(clients.tick(extensions, context))
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
            return outbox.take(budget);
        }
        self.run(now, |clients, extensions, context| {
            match clients.outbox(socket) {
                Some(outbox) => outbox.take(budget),
                None => extensions.take(socket, budget, context),
            }
        })
    }

    /// The sockets that may have something to write since the last call.
    pub fn take_sockets_with_output(&mut self) -> Vec<SocketId> {
        std::mem::take(&mut self.context.sockets_with_output)
    }

    /// What the audit log is to be told since the last call.
    pub fn audit_events(&mut self) -> Vec<RelayAuditEvent> {
        self.context.audit.take()
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

    /// How many clients and how many extensions have joined.
    pub fn peer_counts(&self) -> (usize, usize) {
        let extensions = self.extensions.sockets().count();
        (self.clients.count(), extensions)
    }

    /// What was counted.
    pub fn counters(&self) -> RelayCounters {
        self.context.counters
    }

    /// Lets the sides do something, and tells clients what comes of it.
    fn run<T>(
        &mut self,
        now: RelayTime,
        act: impl FnOnce(&mut ClientSide, &mut ExtensionSide, &mut RelayContext) -> T,
    ) -> T {
        self.clock.set(now.elapsed);
        self.context.now = now;
        let done = act(&mut self.clients, &mut self.extensions, &mut self.context);
        self.clients.take_events(&mut self.context);
        // Whatever was begun has a deadline within this time.
        let settings = &self.context.settings;
        let soon = now.elapsed + settings.command_timeout.min(settings.resume_window);
        self.next_tick = self.next_tick.min(soon);
        done
    }
}
