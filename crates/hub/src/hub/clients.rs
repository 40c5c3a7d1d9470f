//! Client sessions: who they are, and what they ask for.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_spill::SpillOwner;
use mcp_proxy_wire::revision::{MODERN, meta};
use mcp_proxy_wire::{
    Era, ErrorCode, Field, Id, IdKey, Kind, Message, error_response, json_string, request_era,
};
use rustc_hash::FxHashMap;

use super::answers::result_message;
use super::batches::BatchId;
use super::listening::ClientListen;
use super::log_levels::LogLevel;
use super::parking::ParkedRequests;
use super::requests::{CallName, ClientRequest};
use super::work::{WorkClient, WorkId};
use super::{Hub, HubAction};
use crate::catalog::{ItemKind, ServerIndex};
use crate::one_reading::second_reading;
use crate::server_link::{CallId, ClientId, LinkId};

/// Tells callers over HTTP apart: the same for all requests with the same credentials in the same profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerKey(pub u64);

/// A client session, or one request of a client that has no sessions.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) profile: usize,
    caller: Option<CallerKey>,
    era: Option<Era>,
    /// `capabilities` as the client declared them.
    capabilities: Option<Bytes>,
    /// What the client calls itself.
    pub(super) name: String,
    pub(super) level: Option<LogLevel>,
    /// The servers that this client shares with others.
    pub(super) shares: BTreeSet<ServerIndex>,
    /// Its unanswered requests.
    pub(super) open: FxHashMap<IdKey, OpenRequest>,
    pub(super) listens: Vec<ClientListen>,
    pub(super) parked: ParkedRequests,
    /// It will send nothing more, and leaves with its last answer.
    is_finished: bool,
    /// It has had the answer to its opening.
    pub(super) is_initialized: bool,
}

/// What a client's request became.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenRequest {
    Call(CallId),
    Batch(BatchId),
    /// The hub itself is busy with it.
    Work(WorkId),
}

impl Client {
    fn new(profile: usize, caller: Option<CallerKey>) -> Client {
        Client {
            profile,
            caller,
            era: None,
            capabilities: None,
            name: String::new(),
            level: None,
            shares: BTreeSet::new(),
            open: FxHashMap::default(),
            listens: Vec::new(),
            parked: ParkedRequests::default(),
            is_finished: false,
            is_initialized: false,
        }
    }

    /// The era that it speaks. One that has shown none yet is taken for a legacy client.
    pub(super) fn era(&self) -> Era {
        self.era.unwrap_or(Era::Legacy)
    }

    pub(super) fn capabilities(&self) -> Bytes {
        self.capabilities
            .clone()
            .unwrap_or_else(|| Bytes::from_static(b"{}"))
    }

    /// Whether it declared a capability.
    pub(super) fn can(&self, capability: &str) -> bool {
        let declared = Message::parse(self.capabilities());
        let whole = mcp_proxy_wire::Span::new(0, declared.len());
        declared.member(whole, capability).is_some()
    }

    /// Whether it can show its person a page in the middle of a call.
    pub(super) fn can_open_pages(&self) -> bool {
        let declared = Message::parse(self.capabilities());
        let whole = mcp_proxy_wire::Span::new(0, declared.len());
        let elicitation = declared.member(whole, "elicitation");
        elicitation.is_some_and(|span| declared.member(span, "url").is_some())
    }

    /// Whose results in files this client may read: over HTTP those of all sessions and requests of the same caller, because
    /// some clients open a session for each call. Any other client is the only one of its connection.
    pub(super) fn spill_owner(&self, id: ClientId) -> SpillOwner {
        match self.caller {
            Some(CallerKey(key)) => SpillOwner(key | 1 << 63),
            None => SpillOwner(id.0),
        }
    }

    /// Whose turns its work takes. Many legacy clients may have the same token, or none, but each has a session.
    pub(super) fn work_client(&self, id: ClientId) -> WorkClient {
        match self.caller {
            Some(caller) if self.era() == Era::Modern => WorkClient::Caller(caller),
            _ => WorkClient::Session(id),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let listens = self.listens.iter().filter_map(ClientListen::deadline);
        listens.chain(self.parked.deadline()).min()
    }
}

impl Hub {
    /// A client connects. `None` if there is no profile of this name.
    ///
    /// `caller` is who sent the HTTP request that opened the connection.
    pub fn client_opened(&mut self, profile: &str, caller: Option<CallerKey>) -> Option<ClientId> {
        let profile = self
            .settings
            .profiles
            .iter()
            .position(|known| known.name == profile)?;
        let id = ClientId(self.next_id());
        self.clients.insert(id, Client::new(profile, caller));
        Some(id)
    }

    /// A client will send nothing more. It is disconnected when its open requests are answered.
    pub fn client_finished(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.is_finished = true;
        }
        self.release(id);
    }

    /// Disconnects a client that has had its last answer.
    pub(super) fn release(&mut self, id: ClientId) {
        let is_done = |client: &Client| {
            client.is_finished && client.open.is_empty() && client.parked.is_empty()
        };
        if self.clients.get(&id).is_some_and(is_done) {
            self.actions.push(HubAction::CloseClient(id));
        }
    }

    /// A client has gone. Its calls are cancelled.
    pub fn client_closed(&mut self, id: ClientId, now: Instant) {
        let open = self.clients.get(&id).map(|client| &client.open);
        let open: Vec<OpenRequest> = open
            .into_iter()
            .flat_map(|open| open.values().copied())
            .collect();
        for open in open {
            self.audit_cancelled(open, now);
        }
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        let era = client.era();
        for open in client.open.into_values() {
            self.abandon(open);
        }
        self.drop_subscriptions(id);
        // Each request of a modern HTTP client is a client of its own, and its tasks outlive it.
        if era == Era::Legacy {
            self.tasks.forget_client(id);
        }
        self.close_own_links(id);
        if self.settings.spill.store.is_some() && client.caller.is_none() {
            self.actions.push(HubAction::ForgetFiles(SpillOwner(id.0)));
        }
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            if let Some(link) = self.links.get_mut(&link) {
                link.state.client_gone(id);
            }
            self.flush_link(link, None);
        }
        self.apply_log_levels();
    }

    /// What a client calls itself.
    pub fn client_name(&self, id: ClientId) -> Option<&str> {
        self.clients.get(&id).map(|client| &*client.name)
    }

    /// Tells a client that it has lost notifications, unless it wants no warnings.
    pub fn loss_warning(&self, id: ClientId, lost: u64) -> Option<Message> {
        let client = self.clients.get(&id)?;
        let wants = match client.level {
            Some(least) => least <= LogLevel::Warning,
            None => client.era() == Era::Legacy && client.is_initialized,
        };
        let text = format!(
            "This client read too slowly, so {lost} log, progress or other notifications were not delivered to it."
        );
        let data = format!(r#"{{"message":{},"lost":{lost}}}"#, json_string(&text));
        wants.then(|| {
            Message::parse(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"warning","logger":"mcp-proxy","data":{data}}}}}"#
            ))
        })
    }

    /// How many clients are connected.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// A message from a client, with its number in the record.
    pub fn client_message(
        &mut self,
        id: ClientId,
        message: &Message,
        sequence: Option<u64>,
        now: Instant,
    ) {
        if !self.clients.contains_key(&id) {
            return;
        }
        if let Some(reason) = second_reading(message) {
            return self.refuse_reading(id, message, sequence, &reason, now);
        }
        match message.kind() {
            Kind::Request => self.client_request(ClientRequest {
                client: id,
                message,
                sequence,
                now,
            }),
            Kind::Notification => self.client_notification(id, message, now),
            Kind::Response | Kind::Error => self.client_answer(id, message, now),
            Kind::Batch => {
                for part in message.parts().into_iter().flatten() {
                    self.client_message(id, &part, sequence, now);
                }
            }
            Kind::Other => {
                let text = "this is not a JSON-RPC request, notification or answer";
                let id_sent = message.id();
                self.send_to_client(
                    id,
                    error_response(id_sent.as_ref(), ErrorCode::INVALID_REQUEST, text, None),
                );
            }
            Kind::Malformed => {
                let text = "the message is not JSON";
                self.send_to_client(id, error_response(None, ErrorCode::PARSE_ERROR, text, None));
            }
        }
    }

    /// A message that its server may read otherwise than the hub. No server gets it.
    fn refuse_reading(
        &mut self,
        client: ClientId,
        message: &Message,
        sequence: Option<u64>,
        reason: &str,
        now: Instant,
    ) {
        match (message.kind(), message.id()) {
            // The server waits for an answer.
            (Kind::Response | Kind::Error, Some(id)) => {
                let text = format!("the client's answer is refused: {reason}");
                let code = ErrorCode::INVALID_REQUEST;
                let answer = error_response(Some(&id), code, &text, None);
                self.client_answer(client, &answer, now);
            }
            // Nobody waits for an answer.
            (Kind::Notification, _) => {}
            _ => {
                self.audit_ambiguous(ClientRequest {
                    client,
                    message,
                    sequence,
                    now,
                });
                self.invalid_params(client, message, reason);
            }
        }
    }

    pub(super) fn client_request(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let Some(id) = message.id() else {
            return;
        };
        if let Some(era) = request_era(message)
            && let Some(client) = self.clients.get_mut(&client)
        {
            client.era = Some(era);
        }
        let modern = self.clients.get(&client).map(Client::era) == Some(Era::Modern);
        if modern && let Err(refusal) = self.note_modern_client(client, &id, message) {
            return self.send_to_client(client, *refusal);
        }
        if self.refuse_while_stopping(request) || self.park(request) {
            return;
        }
        let method = message.method().unwrap_or_default();
        match (&*method, modern) {
            ("initialize", false) => self.answer_initialize(client, &id, message),
            ("server/discover", _) => self.answer_discover(client, &id),
            ("ping", false) => self.result(client, &id, "{}"),
            ("tools/list" | "resources/list" | "resources/templates/list" | "prompts/list", _) => {
                self.answer_list(client, &id, message);
            }
            ("tools/call", _) => self.call_tool(request),
            ("resources/read", _) => self.read_resource(request),
            ("prompts/get", _) => {
                self.forward_named(request, CallName::Name(ItemKind::Prompt));
            }
            ("completion/complete", _) => self.complete(request),
            ("resources/subscribe", false) => self.subscribe(request),
            ("resources/unsubscribe", false) => self.unsubscribe(request),
            ("logging/setLevel", false) => self.set_level(client, &id, message),
            ("subscriptions/listen", true) => self.listen(request, id),
            ("tasks/get" | "tasks/cancel", _)
            | ("tasks/result", false)
            | ("tasks/update", true) => self.forward_task(request),
            ("tasks/list", false) if self.offers_task_list(client) => self.list_tasks(request),
            (method, _) => self.refuse_method(client, &id, method),
        }
    }

    pub(super) fn refuse_method(&mut self, client: ClientId, id: &Id, method: &str) {
        let text = format!("the hub knows no method {method:?}");
        let answer = error_response(Some(id), ErrorCode::METHOD_NOT_FOUND, &text, None);
        self.send_to_client(client, answer);
    }

    /// What each modern request has to say about its client is checked and kept.
    fn note_modern_client(
        &mut self,
        client: ClientId,
        id: &Id,
        message: &Message,
    ) -> Result<(), Box<Message>> {
        let refuse = |code, text: &str, data: Option<&str>| {
            Err(Box::new(error_response(Some(id), code, text, data)))
        };
        let Some(version) = message.text(Field::Meta(meta::PROTOCOL_VERSION)) else {
            let text = format!("params._meta needs {}", meta::PROTOCOL_VERSION);
            return refuse(ErrorCode::INVALID_PARAMS, &text, None);
        };
        if version != MODERN {
            let data = format!(
                r#"{{"supported":["{MODERN}"],"requested":{}}}"#,
                json_string(&version)
            );
            let text = "the hub does not speak this protocol revision";
            return refuse(ErrorCode::UNSUPPORTED_VERSION, text, Some(&data));
        }
        let Some(capabilities) = message.span(Field::Meta(meta::CLIENT_CAPABILITIES)) else {
            let text = format!("params._meta needs {}", meta::CLIENT_CAPABILITIES);
            return refuse(ErrorCode::INVALID_PARAMS, &text, None);
        };
        let info = message.span(Field::Meta(meta::CLIENT_INFO));
        let name = info.and_then(|info| message.text_at(message.member(info, "name")?));
        let level = message.text(Field::Meta(meta::LOG_LEVEL));
        if let Some(client) = self.clients.get_mut(&client) {
            client.capabilities = Some(message.raw().slice(capabilities.range()));
            client.name = name.map_or_else(String::new, |name| name.into_owned());
            client.level = level.and_then(|level| LogLevel::parse(&level));
        }
        Ok(())
    }

    /// Keeps what a legacy client said about itself.
    pub(super) fn note_legacy_client(&mut self, client: ClientId, message: &Message) {
        let capabilities = message.span(Field::Param("capabilities"));
        let info = message.span(Field::Param("clientInfo"));
        let name = info.and_then(|info| message.text_at(message.member(info, "name")?));
        if let Some(client) = self.clients.get_mut(&client) {
            client.is_initialized = true;
            // Copied: the message may lie in a buffer of its connection that would be kept with it.
            let copied = |span| Bytes::copy_from_slice(message.slice(span));
            client.capabilities = capabilities.map(copied);
            client.name = name.map_or_else(String::new, |name| name.into_owned());
        }
    }

    fn client_notification(&mut self, client: ClientId, message: &Message, now: Instant) {
        match message.method().as_deref() {
            Some("notifications/cancelled") => self.cancel(client, message, now),
            Some("notifications/initialized") => self.client_is_open(client, now),
            Some("notifications/roots/list_changed") => self.roots_changed(client, message),
            Some("notifications/progress") => self.client_answer(client, message, now),
            _ => {}
        }
    }

    /// Something about a request that a server sent to this client.
    fn client_answer(&mut self, client: ClientId, message: &Message, now: Instant) {
        if self.page_answered(client, message, now) {
            return;
        }
        let token = match message.kind() {
            Kind::Notification => message.text(Field::ProgressToken),
            _ => message.text(Field::Id),
        };
        // Servers' requests reach clients as "sLINK-NUMBER".
        let link = token.as_deref().and_then(|token| {
            let (link, _) = token.strip_prefix('s')?.split_once('-')?;
            link.parse().ok().map(LinkId)
        });
        let Some(link) = link else {
            return;
        };
        if let Some(open) = self.links.get_mut(&link) {
            open.state.answer(client, message);
        }
        self.flush_link(link, None);
        if message.kind() != Kind::Notification {
            self.note_roots_answered(link, now);
        }
    }

    /// Sends a result, given as JSON.
    pub(super) fn result(&mut self, client: ClientId, id: &Id, result: &str) {
        self.send_to_client(client, result_message(id, result.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a3_two_http_clients_without_tokens_have_turns_of_their_own() {
        let (one, other) = (ClientId(1), ClientId(2));
        let mut client = Client::new(0, Some(CallerKey(7)));
        assert_eq!(client.spill_owner(one), client.spill_owner(other));
        assert_ne!(client.work_client(one), client.work_client(other));
        // Each request of a modern client has an id of its own.
        client.era = Some(Era::Modern);
        assert_eq!(client.work_client(one), client.work_client(other));
    }
}
