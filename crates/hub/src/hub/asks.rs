//! What servers send by themselves: questions to a client, log messages, notices of change.

use std::collections::BTreeSet;
use std::time::Instant;

use mcp_proxy_wire::{Era, ErrorCode, Field, Message, error_response};

use super::log_levels::LogLevel;
use super::roots::RootsQuestion;
use super::servers::LinkOwner;
use super::{Hub, LinkUsers};
use crate::server_link::{ClientId, LinkId};

/// Which client a server's question is for.
pub(super) enum Addressee {
    Client(ClientId),
    /// Several clients have calls open, so it cannot be known.
    Unclear,
    /// There is no client.
    Nobody,
}

impl Hub {
    /// A server asks a client something: sampling, elicitation, roots.
    pub(super) fn server_asks(&mut self, id: LinkId, message: &Message, now: Instant) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let index = link.server;
        let method = message.method().unwrap_or_default().into_owned();
        let fixed_roots = self.server(index).settings.roots.clone();
        match (&*method, fixed_roots) {
            ("ping", _) => return self.answer_server(id, message, "{}"),
            ("roots/list", Some(roots)) => {
                let roots = String::from_utf8_lossy(&roots).into_owned();
                return self.answer_server(id, message, &format!("{{\"roots\":{roots}}}"));
            }
            _ => {}
        }
        let about_task = self.message_about_task(id, message);
        let (message, addressee) = match &about_task {
            Some((client, message)) => (message, Addressee::Client(*client)),
            None => (message, self.addressee(id)),
        };
        let is_kept =
            method == "roots/list" && self.keep_roots_question(id, message, &addressee, now);
        if !is_kept {
            self.ask_client(id, message, addressee, now);
        }
    }

    /// Passes a server's question on, or says why that is not possible.
    pub(super) fn ask_client(
        &mut self,
        id: LinkId,
        message: &Message,
        addressee: Addressee,
        now: Instant,
    ) {
        let Some(index) = self.links.get(&id).map(|link| link.server) else {
            return;
        };
        let method = message.method().unwrap_or_default();
        if method == "roots/list" {
            self.note_roots(id, RootsQuestion::Refused);
        }
        let client = match addressee {
            Addressee::Client(client) => client,
            Addressee::Unclear => {
                self.stop_sharing(index);
                let text =
                    "several clients share this server, and it is not clear which of them is asked";
                return self.refuse(id, message, ErrorCode::CANNOT_CARRY, text);
            }
            Addressee::Nobody => {
                let text = "no client is connected that could answer";
                return self.refuse(id, message, ErrorCode::CANNOT_CARRY, text);
            }
        };
        let Some(asked) = self.clients.get(&client) else {
            return;
        };
        if asked.era() == Era::Modern {
            // The place where a later version answers the call with `input_required` instead.
            let text =
                "the client speaks 2026-07-28, where servers cannot ask in the middle of a call";
            return self.refuse(id, message, ErrorCode::CANNOT_CARRY, text);
        }
        let capability = match &*method {
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            _ => {
                let text = "servers cannot ask this";
                return self.refuse(id, message, ErrorCode::METHOD_NOT_FOUND, text);
            }
        };
        if !asked.can(capability) {
            let text = format!("the client did not declare the capability {capability}");
            return self.refuse(id, message, ErrorCode::METHOD_NOT_FOUND, &text);
        }
        if method == "roots/list" {
            self.note_roots(id, RootsQuestion::Settled);
            self.note_roots_asked(id, now);
            self.claim_link(id, client, now);
        }
        let asked = self
            .links
            .get_mut(&id)
            .and_then(|link| link.state.ask(client, message));
        match asked {
            Some(message) => self.send_to_client(client, message),
            None => {
                let text = "the client has too many unanswered questions";
                self.refuse(id, message, ErrorCode::CANNOT_CARRY, text);
            }
        }
    }

    pub(super) fn addressee(&self, id: LinkId) -> Addressee {
        let Some(link) = self.links.get(&id) else {
            return Addressee::Nobody;
        };
        if let LinkOwner::Client(client) = link.owner {
            return Addressee::Client(client);
        }
        let mut callers: Vec<ClientId> = self
            .calls
            .values()
            .filter(|call| call.link == Some(id))
            .filter(|call| call.is_sent || self.is_gate_closed(id, call.client))
            .map(|call| call.client)
            .collect();
        callers.sort_unstable();
        callers.dedup();
        match callers[..] {
            [client] => return Addressee::Client(client),
            [] => {}
            _ => return Addressee::Unclear,
        }
        let mut connected = self.clients.keys();
        match (connected.next(), connected.next()) {
            (Some(only), None) => Addressee::Client(*only),
            (None, _) => Addressee::Nobody,
            _ => Addressee::Unclear,
        }
    }

    fn answer_server(&mut self, link: LinkId, request: &Message, result: &str) {
        let Some(id) = request.id() else {
            return;
        };
        let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
        text.extend_from_slice(id.token());
        text.extend_from_slice(br#","result":"#);
        text.extend_from_slice(result.as_bytes());
        text.push(b'}');
        if let Some(link) = self.links.get_mut(&link) {
            link.state.send(Message::parse(text));
        }
    }

    fn refuse(&mut self, link: LinkId, request: &Message, code: ErrorCode, why: &str) {
        let answer = error_response(request.id().as_ref(), code, why, None);
        if let Some(link) = self.links.get_mut(&link) {
            link.state.send(answer);
        }
    }

    /// A server tells something that belongs to no call.
    pub(super) fn server_notifies(&mut self, id: LinkId, message: &Message) {
        match message.method().as_deref() {
            Some("notifications/message") => self.log_message(id, message),
            Some("notifications/resources/updated") => self.resource_updated(id, message),
            Some("notifications/tasks/status") => {
                if let Some((client, message)) = self.message_about_task(id, message) {
                    self.send_to_client(client, message);
                }
            }
            Some("notifications/elicitation/complete") => {
                for client in self.clients_of(id) {
                    self.send_to_client(client, message.clone());
                }
            }
            _ => {}
        }
    }

    /// The clients that use a link, without those that wait for the answer to their `initialize`: they must not hear anything
    /// before it.
    pub(super) fn clients_of(&self, id: LinkId) -> Vec<ClientId> {
        let Some(link) = self.links.get(&id) else {
            return Vec::new();
        };
        match link.owner {
            LinkOwner::Client(client) => vec![client],
            LinkOwner::Everyone => {
                let server = link.server;
                let server = self.server(server);
                let clients = self.clients.iter();
                clients
                    .filter(|(_, client)| client.is_initialized || client.era() == Era::Modern)
                    .map(|(id, _)| *id)
                    .filter(|id| !server.has_own(*id))
                    .collect()
            }
        }
    }

    /// Log messages reach the clients that want them at this level, and only those that the messages may be about.
    fn log_message(&mut self, id: LinkId, message: &Message) {
        let level = message.text(Field::Param("level"));
        let level = level.and_then(|level| LogLevel::parse(&level));
        let server_era = self.links.get(&id).map(|link| link.state.era);
        for client_id in self.log_listeners(id) {
            let Some(client) = self.clients.get(&client_id) else {
                continue;
            };
            let wanted = match client.level {
                // A legacy server may log without being asked.
                None => client.era() == Era::Legacy && server_era == Some(Era::Legacy),
                Some(least) => level.is_none_or(|level| level >= least),
            };
            if wanted {
                self.send_to_client(client_id, message.clone());
            }
        }
    }

    /// The clients that a log message may be about. Nothing says which call it belongs to, so on a shared link it is for those
    /// with an open call. While no call is open, it is for the only client that has used the link.
    fn log_listeners(&self, id: LinkId) -> BTreeSet<ClientId> {
        let Some(link) = self.links.get(&id) else {
            return BTreeSet::new();
        };
        if let LinkOwner::Client(client) = link.owner {
            return BTreeSet::from([client]);
        }
        let calls = self.calls.values();
        let on_link = calls.filter(|call| call.is_sent && call.link == Some(id));
        let callers: BTreeSet<ClientId> = on_link.map(|call| call.client).collect();
        if !callers.is_empty() {
            return callers;
        }
        let is_legacy = |id: &ClientId| {
            let client = self.clients.get(id);
            client.is_some_and(|client| client.era() == Era::Legacy)
        };
        let connected = self.clients_of(id).into_iter().filter(is_legacy);
        match link.users {
            LinkUsers::One(user) => connected.filter(|client| *client == user).collect(),
            LinkUsers::Several => BTreeSet::new(),
            // Nobody's data is in it yet.
            LinkUsers::Nobody => {
                let connected: Vec<ClientId> = connected.collect();
                let is_alone = connected.len() == 1;
                let asked = |client: &ClientId| self.clients[client].level.is_some();
                let connected = connected.into_iter();
                connected
                    .filter(|client| is_alone || asked(client))
                    .collect()
            }
        }
    }

    /// A client's roots have changed: servers that it uses are told.
    pub(super) fn roots_changed(&mut self, client: ClientId, message: &Message) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for id in links {
            let uses = self.clients_of(id).contains(&client);
            if let Some(link) = self
                .links
                .get_mut(&id)
                .filter(|link| uses && link.state.is_ready())
                && link.state.era == Era::Legacy
            {
                link.state.send(message.clone());
            }
            self.flush_link(id, None);
        }
    }
}
