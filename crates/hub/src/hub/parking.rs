//! Requests that wait for servers that are starting: the first list that a client gets should be complete.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, Field, IdKey, Message, error_response};

use super::proxy_calls::{arguments_of, is_read_result};
use super::requests::ClientRequest;
use super::servers::{Server, SettleDeadlines};
use super::{Hub, ServerState};
use crate::catalog::{ItemKind, ListExposure, ServerIndex, ToolExposure};
use crate::dispatch_tool::{self, DispatchOperation, Refresh};
use crate::proxy_tool::{self, CapabilityType, ListQuery, ProxyOperation, SearchWords};
use crate::read_tool::READ_TOOL_NAME;
use crate::resolve::LookupError;
use crate::server_link::ClientId;
use crate::settings::OwnToolUse;

/// The requests of a client that wait for servers that are starting.
#[derive(Debug, Default)]
pub(super) struct ParkedRequests {
    requests: Vec<ParkedRequest>,
    /// A request that has waited is being answered, and does not wait again.
    has_waited: bool,
}

#[derive(Debug)]
struct ParkedRequest {
    message: Message,
    sequence: Option<u64>,
    until: Instant,
}

/// What a request waits for.
#[derive(Debug)]
struct ServerWait {
    until: Instant,
    /// The servers that the request names.
    named: Vec<ServerIndex>,
}

impl ParkedRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a request that has waited is being answered now.
    pub(super) fn is_answering(&self) -> bool {
        self.has_waited
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.requests.iter().map(|parked| parked.until).min()
    }
}

impl Hub {
    /// Lets a request wait for servers that are starting. `false`: there is nothing to wait for, or it has waited enough.
    pub(super) fn park(&mut self, request: ClientRequest<'_>) -> bool {
        let client = self.clients.get(&request.client);
        if client.is_none_or(|client| client.parked.has_waited) {
            return false;
        }
        let Some(wait) = self.wait_of(request) else {
            return false;
        };
        for index in wait.named {
            if self.server(index).is_never_listed() {
                self.start_main(index, request.now);
            }
        }
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.parked.requests.push(ParkedRequest {
                message: request.message.clone(),
                sequence: request.sequence,
                until: wait.until,
            });
        }
        self.schedule(wait.until);
        true
    }

    /// Answers the requests that waited for servers, and have nothing to wait for any more.
    pub(super) fn answer_parked(&mut self, now: Instant) {
        let waiting = self.clients.iter();
        let waiting = waiting.filter(|(_, client)| !client.parked.is_empty());
        let waiting: Vec<ClientId> = waiting.map(|(id, _)| *id).collect();
        waiting
            .into_iter()
            .for_each(|client| self.unpark(client, now));
    }

    fn unpark(&mut self, id: ClientId, now: Instant) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.parked.has_waited = true;
        for parked in std::mem::take(&mut client.parked.requests) {
            let request = ClientRequest {
                client: id,
                message: &parked.message,
                sequence: parked.sequence,
                now,
            };
            if parked.until > now && self.wait_of(request).is_some() {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.parked.requests.push(parked);
                }
                continue;
            }
            self.client_request(request);
        }
        if let Some(client) = self.clients.get_mut(&id) {
            client.parked.has_waited = false;
        }
        self.release(id);
    }

    /// The requests of a client that wait fail.
    pub(super) fn fail_parked(&mut self, client: ClientId, code: ErrorCode, text: &str) {
        let Some(it) = self.clients.get_mut(&client) else {
            return;
        };
        for parked in std::mem::take(&mut it.parked.requests) {
            let id = parked.message.id();
            self.send_to_client(client, error_response(id.as_ref(), code, text, None));
        }
        self.release(client);
    }

    /// A client does not want the answer to a request that waits. Returns whether there was such a request.
    pub(super) fn cancel_parked(&mut self, client: ClientId, key: &IdKey) -> bool {
        let Some(client) = self.clients.get_mut(&client) else {
            return false;
        };
        let requests = &mut client.parked.requests;
        let before = requests.len();
        requests.retain(|parked| parked.message.id().is_none_or(|id| id.key() != *key));
        requests.len() < before
    }

    /// Clients whose patience is over get what there is.
    pub(super) fn wake_clients(&mut self, now: Instant) {
        let due = self.clients.iter();
        let due = due.filter(|(_, client)| client.parked.deadline().is_some_and(|at| at <= now));
        let due: Vec<ClientId> = due.map(|(id, _)| *id).collect();
        due.into_iter().for_each(|client| self.unpark(client, now));
        self.wake_listens(now);
    }

    /// What a request has to wait for. `None`: it can be answered now.
    fn wait_of(&self, request: ClientRequest<'_>) -> Option<ServerWait> {
        let ClientRequest {
            client,
            message,
            now,
            ..
        } = request;
        let is_pending = |server: &Server| {
            let is_unknown = server.listing.is_none() || !server.settled;
            server.disabled_reason().is_none() && is_unknown
        };
        if !self.build.is_building() && !self.servers.iter().any(is_pending) {
            return None;
        }
        let opening = |deadlines: SettleDeadlines| deadlines.opening;
        let lists = |deadlines: SettleDeadlines| deadlines.lists;
        match message.method().as_deref()? {
            "initialize" | "server/discover" => self.settle_wait(client, now, opening),
            method @ ("tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "prompts/list") => match self.shows_items(client, method) {
                true => self.settle_wait(client, now, lists),
                false => self.settle_wait(client, now, opening),
            },
            "tools/call" => self.call_wait(request),
            _ => None,
        }
    }

    /// Whether a list shows what servers offer to this client, and not just the hub's own tools.
    fn shows_items(&self, client: ClientId, method: &str) -> bool {
        let filter = &self.profile(client).filter;
        match method {
            "tools/list" => {
                let pins = |server: &Server| !server.settings.naming.pinned.is_empty();
                filter.tools == ToolExposure::All
                    || !filter.pinned.is_empty()
                    || self.servers.iter().any(pins)
            }
            "prompts/list" => filter.prompts == ListExposure::Listed,
            _ => filter.resources == ListExposure::Listed,
        }
    }

    /// Waits until every server that has just been started has been ready, or has failed, and is in the catalog, but only so
    /// long after its start.
    fn settle_wait(
        &self,
        client: ClientId,
        now: Instant,
        deadline: fn(SettleDeadlines) -> Instant,
    ) -> Option<ServerWait> {
        let view = self.view(client);
        let servers = view.servers().map(|(index, _)| self.server(index));
        let just_started = servers.filter(|server| !server.settled || self.build.is_building());
        let until = just_started.filter_map(|server| server.settle_by.map(deadline));
        let until = until.max().filter(|until| *until > now)?;
        let named = Vec::new();
        Some(ServerWait { until, named })
    }

    /// Waits for one server that has not said yet what it offers, as a call to it does.
    fn named_wait(&self, index: ServerIndex, now: Instant) -> Option<ServerWait> {
        let server = self.server(index);
        let is_starting = || self.status_of(index).state == ServerState::Starting;
        let is_awaited = match server.listing {
            Some(_) => !server.stale && self.build.is_building(),
            None => server.is_never_listed() || is_starting(),
        };
        is_awaited.then(|| ServerWait {
            until: now + self.settings.start_patience,
            named: vec![index],
        })
    }

    /// What a call of a tool waits for: one of the hub's own, or one of a server.
    fn call_wait(&self, request: ClientRequest<'_>) -> Option<ServerWait> {
        let ClientRequest {
            client, message, ..
        } = request;
        let profile = self.profile(client);
        let name = message.text(Field::Name)?;
        let is_called = |own: &str, offered| offered == OwnToolUse::Offered && name == *own;
        let is_read = is_called(READ_TOOL_NAME, profile.read_tool);
        if is_read && is_read_result(message) {
            return None;
        }
        if is_read || is_called(&self.proxy_tool.name, profile.proxy_tool) {
            let arguments = arguments_of(message);
            let parsed = proxy_tool::parse_arguments(arguments.as_ref(), &self.proxy_tool, &[]);
            return match parsed.ok()? {
                ProxyOperation::Batch(operations) => {
                    let operations = operations.iter().flatten();
                    let waits = operations.filter_map(|one| self.proxy_wait(request, one));
                    waits.reduce(|one, other| ServerWait {
                        until: one.until.max(other.until),
                        named: [one.named, other.named].concat(),
                    })
                }
                operation => self.proxy_wait(request, &operation),
            };
        }
        if is_called(&self.settings.dispatch_tool.name, profile.dispatch_tool) {
            let arguments = message.span(Field::Param("arguments"));
            let options = &self.settings.dispatch_tool;
            let parsed = dispatch_tool::parse_arguments(message, arguments, options);
            return match parsed.ok()? {
                (operation, Refresh::No) => self.dispatch_wait(request, &operation),
                (_, Refresh::Yes) => None,
            };
        }
        match self.view(client).resolve(ItemKind::Tool, None, &name) {
            Err(error) => self.unknown_name_wait(request, &error),
            Ok(_) => None,
        }
    }

    /// What a request waits for whose name nobody has listed. One that is like a name that is known is answered at once, unless
    /// a server is about to say what it offers.
    fn unknown_name_wait(
        &self,
        request: ClientRequest<'_>,
        error: &LookupError,
    ) -> Option<ServerWait> {
        match error {
            LookupError::NotFound { near, .. }
                if near.is_empty() || self.is_reading_lists(request.client) =>
            {
                self.settle_wait(request.client, request.now, |deadlines| deadlines.lists)
            }
            _ => None,
        }
    }

    /// Whether a server that this client sees is ready and is being asked for its first lists, or these are being added to the catalog.
    fn is_reading_lists(&self, client: ClientId) -> bool {
        let view = self.view(client);
        let mut servers = view.servers().map(|(index, _)| self.server(index));
        let is_asked = servers.any(|server| {
            let main = server.shared_link(server.main_era());
            let link = main.and_then(|link| self.links.get(&link));
            let is_ready = link.is_some_and(|link| link.state.is_ready());
            is_ready && server.listing.is_none() && !server.lists_failed
        });
        is_asked || self.build.is_building()
    }

    /// What an operation of the `proxy` tool waits for. A call to a known server waits there.
    fn proxy_wait(
        &self,
        request: ClientRequest<'_>,
        operation: &ProxyOperation,
    ) -> Option<ServerWait> {
        let ClientRequest { client, now, .. } = request;
        let view = self.view(client);
        let everything = || self.settle_wait(client, now, |deadlines| deadlines.lists);
        let (kind, path, waits_there) = match operation {
            ProxyOperation::List(ListQuery { filter_server, .. })
            | ProxyOperation::Search(SearchWords { filter_server, .. }) => {
                let named = filter_server.as_deref();
                let named = named.and_then(|name| view.find_server(name));
                return named.map_or_else(everything, |index| self.named_wait(index, now));
            }
            ProxyOperation::Info { kind, path } => (kind, path, false),
            // Whether it only reads is known from the list.
            ProxyOperation::Call { kind, path, .. } => {
                let needs_list = *kind == CapabilityType::Tool && self.is_read_tool(request);
                (kind, path, !needs_list)
            }
            ProxyOperation::Batch(_) => return None,
        };
        match view.resolve(kind.item_kinds()[0], None, path) {
            Ok(found) if waits_there || found.entry().is_some() => None,
            Ok(found) => self.named_wait(found.server(), now),
            Err(error) => self.unknown_name_wait(request, &error),
        }
    }

    /// What an operation of the `proxy-dispatch` tool waits for. A call of a tool that is like no other waits elsewhere.
    fn dispatch_wait(
        &self,
        request: ClientRequest<'_>,
        operation: &DispatchOperation,
    ) -> Option<ServerWait> {
        let ClientRequest { client, now, .. } = request;
        let named = operation.connection();
        let named = named.and_then(|name| self.view(client).find_server(name));
        match operation {
            DispatchOperation::Status { .. } => {
                self.settle_wait(client, now, |deadlines| deadlines.opening)
            }
            DispatchOperation::List(_) | DispatchOperation::Search(_) => match named {
                Some(index) => self.named_wait(index, now),
                None => self.settle_wait(client, now, |deadlines| deadlines.lists),
            },
            DispatchOperation::Call(call) if !self.is_unknown(client, call) => {
                let view = self.view(client);
                let found = view.resolve(ItemKind::Tool, call.connection.as_deref(), &call.tool);
                let error = found.err()?;
                self.unknown_name_wait(request, &error)
            }
            DispatchOperation::Call(_) | DispatchOperation::ReadResult { .. } => None,
        }
    }
}
