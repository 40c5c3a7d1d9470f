//! What clients see: the opening answer, the native lists, and the `proxy` tool's view of the same catalog.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_spill::is_handle;
use mcp_proxy_wire::revision::{KNOWN, LATEST_LEGACY, MODERN, meta};
use mcp_proxy_wire::{Era, Field, Id, Message, era_of, json_string};

use super::answers::without_paths;
use super::requests::{self, CallTarget};
use super::{Hub, ServerState};
use crate::catalog::{
    CatalogEntry, CatalogServer, CatalogView, ChangedKinds, ItemKind, ServerIndex,
};
use crate::config::EraOffer;
use crate::proxy_tool::{
    self, ArgumentError, CapabilityType, ListDetail, ListQuery, ProxyOperation, ProxyToolError,
    SearchWords, UnavailableServer, UnavailableState,
};
use crate::read_tool::READ_TOOL_NAME;
use crate::resolve::{LookupError, ResolvedItem};
use crate::server_link::{ClientId, TASK_EXTENSION};
use crate::settings::{OwnToolUse, ProfileSettings};

/// Bytes of the instructions: our own line, and those of all servers. Some clients cut what is longer.
const INSTRUCTIONS_MAX: usize = 2 * 1024;
/// Bytes of the servers' names in that line.
const NAMES_MAX: usize = 512;

/// What the hub offers to clients, without the braces. Servers come and go, so it always says that lists may change.
const CAPABILITIES: &str = r#""tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}"#;

impl Hub {
    pub(super) fn tell_changes(&mut self, id: ClientId, changed: ChangedKinds) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let is_told = client.is_initialized || client.era() == Era::Modern;
        let notices = [
            (changed.tools, "tools"),
            (changed.resources, "resources"),
            (changed.prompts, "prompts"),
        ];
        for (is_changed, list) in notices {
            if is_changed && is_told {
                let notice =
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
                let notice = Message::parse(notice);
                self.tell(id, &notice, |listen| listen.hears_of_list(list));
            }
        }
    }

    /// Tells all clients what has changed in the lists of their profiles.
    pub(super) fn tell_profiles(&mut self, changes: &[ChangedKinds]) {
        let clients = self.clients.iter();
        let clients: Vec<(ClientId, usize)> =
            clients.map(|(id, client)| (*id, client.profile)).collect();
        for (client, profile) in clients {
            if let Some(changed) = changes.get(profile) {
                self.tell_changes(client, *changed);
            }
        }
    }

    pub(super) fn view(&self, client: ClientId) -> Arc<CatalogView> {
        let profile = self.clients.get(&client).map_or(0, |client| client.profile);
        Arc::clone(&self.views[profile])
    }

    /// What the profile of this client has.
    pub(super) fn profile(&self, client: ClientId) -> &ProfileSettings {
        let profile = self.clients.get(&client).map_or(0, |client| client.profile);
        &self.settings.profiles[profile]
    }

    /// `initialize`.
    pub(super) fn answer_initialize(&mut self, client: ClientId, id: &Id, message: &Message) {
        self.note_legacy_client(client, message);
        let wanted = message
            .text(Field::Param("protocolVersion"))
            .unwrap_or_default();
        let spoken = KNOWN
            .iter()
            .find(|known| **known == wanted && era_of(known) == Some(Era::Legacy))
            .unwrap_or(&LATEST_LEGACY);
        let info = String::from_utf8_lossy(&self.settings.server_info).into_owned();
        let instructions = self.instructions(client);
        let capabilities = self.capabilities(client);
        let result = format!(
            r#"{{"protocolVersion":"{spoken}","capabilities":{capabilities},"serverInfo":{info}{instructions}}}"#
        );
        self.result(client, id, &result);
    }

    /// `server/discover`.
    pub(super) fn answer_discover(&mut self, client: ClientId, id: &Id) {
        if !self.offers_modern(client) {
            return self.refuse_method(client, id, "server/discover");
        }
        let instructions = self.instructions(client);
        let capabilities = self.capabilities(client);
        let result = format!(
            r#"{{"supportedVersions":["{MODERN}"],"capabilities":{capabilities}{instructions},"ttlMs":0,"cacheScope":"private"}}"#
        );
        self.send_result(client, id, &result.into());
    }

    /// Whether a client that could speak both eras should speak the modern one. A server's question reaches only clients of
    /// its own era, so as long as a server might be a legacy one, such a client gets more in the legacy era.
    fn offers_modern(&self, client: ClientId) -> bool {
        let view = self.view(client);
        let mut servers = view.servers().map(|(index, _)| self.server(index));
        match self.settings.era {
            EraOffer::Modern => true,
            EraOffer::Legacy => false,
            EraOffer::Auto => servers
                .all(|server| server.disabled_reason().is_some() || server.speaks(Era::Modern)),
        }
    }

    /// Capabilities, as the client's era has them. Tasks are offered while a server has them.
    fn capabilities(&self, client: ClientId) -> String {
        let view = self.view(client);
        let offers = view.servers();
        let offers: Vec<_> = offers
            .map(|(index, _)| self.server(index).description.offers)
            .collect();
        let list = match offers.iter().any(|offers| offers.task_list) {
            true => r#""list":{},"#,
            false => "",
        };
        let tasks = match self.is_modern(client) {
            true if offers.iter().any(|offers| offers.task_extension) => {
                format!(r#","extensions":{{"{TASK_EXTENSION}":{{}}}}"#)
            }
            false if offers.iter().any(|offers| offers.tasks) => {
                format!(
                    r#","tasks":{{{list}"cancel":{{}},"requests":{{"tools":{{"call":{{}}}}}}}}"#
                )
            }
            _ => String::new(),
        };
        format!("{{{CAPABILITIES}{tasks}}}")
    }

    /// The line that says which tool to use and what is behind it, if there is such a tool.
    fn tool_line(&self, client: ClientId) -> Option<String> {
        let profile = self.profile(client);
        let full = [
            (profile.proxy_tool, self.proxy_tool.name.as_str()),
            (
                profile.dispatch_tool,
                self.settings.dispatch_tool.name.as_str(),
            ),
        ];
        let full = full.iter().find(|(used, _)| *used == OwnToolUse::Offered);
        let reads = profile.read_tool == OwnToolUse::Offered;
        let names = self.view(client).server_names(NAMES_MAX);
        if names.is_empty() {
            return None;
        }
        let servers = format!("the tools, resources and prompts of these servers: {names}");
        match (full, reads) {
            (Some((_, full)), true) => Some(format!(
                "Use `{full}` (or `{READ_TOOL_NAME}`, which changes nothing) to find and use {servers}."
            )),
            // The dispatcher finds resources and prompts too, but uses only tools.
            (Some((_, full)), false) if profile.proxy_tool == OwnToolUse::Absent => Some(format!(
                "Use `{full}` to find and call the tools of these servers: {names}."
            )),
            (Some((_, full)), false) => Some(format!("Use `{full}` to find and use {servers}.")),
            (None, true) => Some(format!(
                "Use `{READ_TOOL_NAME}`, which changes nothing, to find and read {servers}."
            )),
            (None, false) => None,
        }
    }

    /// Our own line and the instructions of all servers, as a member that follows others.
    fn instructions(&self, client: ClientId) -> String {
        let view = self.view(client);
        let mut text = self.tool_line(client).unwrap_or_default();
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let said = view.servers().filter_map(|(index, server)| {
            let said = self.server(index).description.instructions.as_ref()?;
            Some((server, said.trim()))
        });
        let said: Vec<_> = said.collect();
        let headings = said.iter().map(|(server, _)| heading(server));
        let headings: Vec<String> = headings.collect();
        let lengths: Vec<usize> = said.iter().map(|(_, said)| said.len()).collect();
        // What stands around each text: two line breaks, and a mark where it is cut.
        let around = headings
            .iter()
            .map(|heading| heading.len() + " …\n\n".len());
        let room = INSTRUCTIONS_MAX.saturating_sub(text.len() + around.sum::<usize>());
        let share = fair_share(&lengths, room);
        for (heading, (_, said)) in headings.iter().zip(said) {
            let shown = beginning(said, share);
            let rest = if shown.len() < said.len() { " …" } else { "" };
            if text.len() + heading.len() < INSTRUCTIONS_MAX && !shown.is_empty() {
                text.push_str(&format!("{heading}{shown}{rest}\n\n"));
            }
        }
        match text.trim_end() {
            "" => String::new(),
            text => format!(",\"instructions\":{}", json_string(text)),
        }
    }

    /// A native list.
    pub(super) fn answer_list(&mut self, client: ClientId, id: &Id, message: &Message) {
        let kind = match message.method().as_deref() {
            Some("resources/list") => ItemKind::Resource,
            Some("resources/templates/list") => ItemKind::Template,
            Some("prompts/list") => ItemKind::Prompt,
            _ => ItemKind::Tool,
        };
        let cursor = message.text(Field::Param("cursor"));
        let page = match self.view(client).page(kind, cursor.as_deref()) {
            Ok(page) => page,
            Err(error) => return self.invalid_params(client, message, &error.to_string()),
        };
        let mut text = Vec::with_capacity(page.items_len() + 256);
        text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        text.extend_from_slice(id.token());
        text.extend_from_slice(format!(",\"result\":{{\"{}\":", kind.list_member()).as_bytes());
        page.write_items(&mut text);
        if let Some(next) = page.next_cursor() {
            text.extend_from_slice(format!(",\"nextCursor\":{}", json_string(next)).as_bytes());
        }
        let era = match self.is_modern(client) {
            true => Era::Modern,
            false => Era::Legacy,
        };
        if era == Era::Modern {
            text.extend_from_slice(br#","ttlMs":0,"cacheScope":"private""#);
            text.extend_from_slice(self.modern_members().as_bytes());
        }
        text.extend_from_slice(b"}}");
        let answer = Message::parse(text);
        self.send_to_client(client, answer);
    }

    pub(super) fn is_modern(&self, client: ClientId) -> bool {
        self.clients
            .get(&client)
            .is_some_and(|client| client.era() == Era::Modern)
    }

    /// What every result of the hub's own has in the modern era, as members that follow others.
    fn modern_members(&self) -> String {
        let info = String::from_utf8_lossy(&self.settings.server_info);
        format!(
            r#","resultType":"complete","_meta":{{{}:{info}}}"#,
            json_string(meta::SERVER_INFO)
        )
    }

    /// `list` and `info` of the `proxy` tool.
    pub(super) fn query(&self, client: ClientId, operation: &ProxyOperation) -> Bytes {
        match operation {
            ProxyOperation::Search(query) => self.proxy_search(client, query),
            ProxyOperation::List(query) => self.proxy_list(client, query),
            ProxyOperation::Info { kind, path } => self.proxy_info(client, *kind, path),
            ProxyOperation::Call { .. } | ProxyOperation::Batch(_) => {
                proxy_tool::render_error(&ArgumentError::not_an_object().into())
            }
        }
    }

    fn proxy_list(&self, client: ClientId, query: &ListQuery) -> Bytes {
        let view = self.view(client);
        let kinds = query.kind.item_kinds();
        let entries: Vec<_> = kinds.iter().flat_map(|kind| view.entries(*kind)).collect();
        let named = query
            .filter_server
            .as_deref()
            .and_then(|name| view.find_server(name));
        let unavailable = self.unavailable_servers(client, named);
        let is_of_named = named.map(|named| move |entry: &CatalogEntry| entry.server == named);
        let is_selected = is_of_named
            .as_ref()
            .map(|is_selected| is_selected as &dyn Fn(&CatalogEntry) -> bool);
        let (page, total) = proxy_tool::page_of(entries.iter().copied(), query, is_selected);
        if let (None, 0, Some(name)) = (named, total, &query.filter_server) {
            return unknown_server(&view, name);
        }
        match query.detail {
            ListDetail::Full => {
                proxy_tool::render_list(entries.into_iter(), query, is_selected, &unavailable)
            }
            ListDetail::Brief => {
                let lines = page.into_iter().map(|entry| entry_line(&view, entry));
                proxy_tool::render_lines(query, total, lines.collect(), &unavailable)
            }
        }
    }

    fn proxy_search(&self, client: ClientId, query: &SearchWords) -> Bytes {
        let view = self.view(client);
        let named = match &query.filter_server {
            None => None,
            Some(name) => match view.find_server(name) {
                Some(server) => Some(server),
                None => return unknown_server(&view, name),
            },
        };
        let unavailable = self.unavailable_servers(client, named);
        search_result(&view, query, named, &unavailable)
    }

    /// The servers whose items are missing or old, of all that the client sees or of one.
    fn unavailable_servers(
        &self,
        client: ClientId,
        only: Option<ServerIndex>,
    ) -> Vec<UnavailableServer> {
        let view = self.view(client);
        let servers = view
            .servers()
            .filter(|(index, _)| only.is_none_or(|only| only == *index));
        servers
            .filter_map(|(index, server)| {
                let state = self.server(index);
                let is_missing = state.listing.is_none() || state.stale;
                let reason = state.unavailable_reason().filter(|_| is_missing)?;
                Some(UnavailableServer {
                    server: server.naming().name.clone(),
                    reason: without_paths(reason),
                    stale: state.stale,
                    state: match &state.sign_in_need {
                        _ if state.is_turned_off() => UnavailableState::TurnedOff,
                        Some(_) => UnavailableState::NeedsSignIn,
                        None => UnavailableState::Down,
                    },
                })
            })
            .collect()
    }

    fn proxy_info(&self, client: ClientId, kind: CapabilityType, path: &str) -> Bytes {
        let view = self.view(client);
        if kind == CapabilityType::Resource && is_handle(path) {
            return proxy_tool::render_error(&not_found(kind, path));
        }
        match view.resolve(kind.item_kinds()[0], None, path) {
            Err(error) => self.proxy_tool_refusal(kind, path, &error),
            Ok(found) => match found.entry() {
                Some(entry) => proxy_tool::render_info(entry, path),
                None => self.unlisted(kind, path, &found),
            },
        }
    }

    /// Nothing is known about it. If its server is down, that is why.
    fn unlisted(&self, kind: CapabilityType, path: &str, found: &ResolvedItem<'_>) -> Bytes {
        let server = self.server(found.server());
        let is_up = self.status_of(found.server()).state == ServerState::Ready;
        proxy_tool::render_error(&match server.unavailable_reason() {
            Some(reason) if !is_up => ProxyToolError::ServerUnavailable {
                server: server.name().to_owned(),
                reason: without_paths(reason),
            },
            _ => not_found(kind, path),
        })
    }

    /// What a name or URI means to this client, and a request for it as its server understands it.
    pub(super) fn route(
        &self,
        client: ClientId,
        kind: ItemKind,
        name: &str,
        request: &Message,
    ) -> Result<(CallTarget, Message), LookupError> {
        let (target, request) = requests::route(&self.view(client), kind, None, name, request)?;
        let is_resource = matches!(kind, ItemKind::Resource | ItemKind::Template);
        match is_resource && self.server(target.server).has_no_resources() {
            true => Err(LookupError::NotFound {
                kind,
                name: name.to_owned(),
                near: Vec::new(),
            }),
            false => Ok((target, request)),
        }
    }

    /// Whether this is a URI template, which names no resource yet.
    pub(super) fn is_template(&self, client: ClientId, path: &str) -> bool {
        let view = self.view(client);
        let found = view.resolve(ItemKind::Template, None, path);
        let entry = found
            .ok()
            .and_then(|found| found.entry().map(|entry| entry.public.clone()));
        path.contains('{') && entry.as_deref() == Some(path)
    }
}

/// The answer to a search through the `proxy` tool.
pub(crate) fn search_result(
    view: &CatalogView,
    query: &SearchWords,
    server: Option<ServerIndex>,
    unavailable: &[UnavailableServer],
) -> Bytes {
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let found = view.search(&query.query, query.kind.item_kinds(), server, limit);
    let lines = found.best.iter().map(|hit| entry_line(view, hit.entry));
    let total = found.total as u64;
    proxy_tool::render_search(query, total, found.fits, lines.collect(), unavailable)
}

/// What is said about an item on one line, under the name that it can be used by.
pub(crate) fn entry_line(view: &CatalogView, entry: &CatalogEntry) -> String {
    let server = view.catalog().server(entry.server);
    let server = server.map(|server| server.naming().name.as_str());
    proxy_tool::item_line(
        server,
        entry.kind,
        &entry.public,
        entry.definition.to_bytes(),
    )
}

fn unknown_server(view: &CatalogView, name: &str) -> Bytes {
    let servers = view
        .servers()
        .map(|(_, server)| server.naming().name.clone());
    proxy_tool::render_error(&ProxyToolError::UnknownServer {
        server: name.to_owned(),
        servers: servers.collect(),
    })
}

/// What stands above a server's instructions.
fn heading(server: &CatalogServer) -> String {
    let prefix = server.prefix().map_or_else(String::new, |prefix| {
        format!(" (names begin with {prefix}{})", server.naming().separator)
    });
    format!("## {}{prefix}\n", server.naming().name)
}

fn not_found(kind: CapabilityType, path: &str) -> ProxyToolError {
    ProxyToolError::NotFound {
        kind,
        path: path.to_owned(),
        near: Vec::new(),
    }
}

/// A text up to this many bytes, without half a character.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The most that each of several texts may have so that all of them fit. What short ones leave is for the long ones.
fn fair_share(lengths: &[usize], mut room: usize) -> usize {
    let mut lengths = lengths.to_vec();
    lengths.sort_unstable();
    let mut left = lengths.len();
    for length in lengths {
        if length > room / left {
            return room / left;
        }
        room -= length;
        left -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::{beginning, fair_share};

    #[test]
    fn a_character_is_not_cut_in_half() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", usize::MAX), "aé");
        assert_eq!(beginning("", 0), "");
    }

    #[test]
    fn long_texts_share_what_short_ones_leave() {
        assert_eq!(fair_share(&[10, 20, 30], 60), usize::MAX);
        assert_eq!(fair_share(&[9000, 10, 9000], 1010), 500);
        assert_eq!(fair_share(&[9000], 100), 100);
        assert_eq!(fair_share(&[], 100), usize::MAX);
    }
}
