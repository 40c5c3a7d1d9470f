//! What clients see: the opening answer, the native lists, and the `proxy` tool's view of the same catalog.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_wire::revision::{KNOWN, LATEST_LEGACY, MODERN, meta};
use mcp_proxy_wire::{Era, Field, Id, Message, Span, era_of, json_string};

use super::Hub;
use super::answers::without_paths;
use super::requests::CallTarget;
use crate::catalog::{CatalogView, ChangedKinds, Hints, ItemKind};
use crate::proxy_tool::{
    self, CapabilityType, ListQuery, ProxyOperation, ProxyToolError, UnavailableServer,
};
use crate::resolve::{LookupError, ResolvedItem};
use crate::server_link::{ClientId, TASK_EXTENSION};
use crate::settings::ProxyToolUse;

/// Bytes of all servers' instructions together.
const INSTRUCTIONS_MAX: usize = 8 * 1024;

/// What the hub offers to clients, without the braces. Servers come and go, so it always says that lists may change.
const CAPABILITIES: &str = r#""tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}"#;

impl Hub {
    pub(super) fn tell_changes(&mut self, id: ClientId, changed: ChangedKinds) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let wants = |of: fn(&super::listening::ListenFilter) -> bool| match client.era() {
            Era::Legacy => client.is_initialized,
            Era::Modern => client.listen.as_ref().is_some_and(|(_, filter)| of(filter)),
        };
        let notices = [
            (changed.tools && wants(|filter| filter.tools), "tools"),
            (
                changed.resources && wants(|filter| filter.resources),
                "resources",
            ),
            (changed.prompts && wants(|filter| filter.prompts), "prompts"),
        ];
        for (due, list) in notices {
            if due {
                let notice =
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
                self.tell(id, &Message::parse(notice));
            }
        }
    }

    pub(super) fn view(&self, client: ClientId) -> Arc<CatalogView> {
        let profile = self.clients.get(&client).map_or(0, |client| client.profile);
        Arc::clone(&self.views[profile])
    }

    pub(super) fn offers_proxy_tool(&self, client: ClientId) -> bool {
        let profile = self.clients.get(&client).map_or(0, |client| client.profile);
        self.settings.profiles[profile].proxy_tool == ProxyToolUse::Offered
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
        let instructions = self.instructions(client);
        let capabilities = self.capabilities(client);
        let result = format!(
            r#"{{"supportedVersions":["{MODERN}"],"capabilities":{capabilities}{instructions},"ttlMs":0,"cacheScope":"private"}}"#
        );
        self.send_result(client, id, &result.into());
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

    /// The instructions of all servers, as a member that follows others.
    fn instructions(&self, client: ClientId) -> String {
        let view = self.view(client);
        let mut text = String::new();
        for (index, server) in view.servers() {
            let Some(said) = &self.server(index).description.instructions else {
                continue;
            };
            let prefix = server.prefix().map_or_else(String::new, |prefix| {
                format!(" (names begin with {prefix}{})", server.naming().separator)
            });
            let part = format!("## {}{prefix}\n{}\n\n", server.naming().name, said.trim());
            if text.len() + part.len() > INSTRUCTIONS_MAX {
                text.push_str("The instructions of further servers are left out.\n");
                break;
            }
            text.push_str(&part);
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
        if self.is_modern(client) {
            text.extend_from_slice(br#","ttlMs":0,"cacheScope":"private""#);
            text.extend_from_slice(self.modern_members().as_bytes());
        }
        text.extend_from_slice(b"}}");
        self.send_to_client(client, Message::parse(text));
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
            ProxyOperation::List(query) => self.proxy_list(client, query),
            ProxyOperation::Info { kind, path } => self.proxy_info(client, *kind, path),
            ProxyOperation::Call { .. } | ProxyOperation::Batch(_) => {
                proxy_tool::render_error(&ProxyToolError::NestedBatch)
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
        let unavailable: Vec<UnavailableServer> = view
            .servers()
            .filter(|(index, _)| named.is_none_or(|named| named == *index))
            .filter_map(|(index, server)| {
                let reason = self.server(index).unavailable_reason()?;
                let is_listed = self.server(index).listing.is_some();
                (!is_listed).then(|| UnavailableServer {
                    server: server.naming().name.clone(),
                    reason: without_paths(reason),
                })
            })
            .collect();
        proxy_tool::render_list(entries.into_iter(), query, named, &unavailable)
    }

    fn proxy_info(&self, client: ClientId, kind: CapabilityType, path: &str) -> Bytes {
        let view = self.view(client);
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
        proxy_tool::render_error(&match server.unavailable_reason() {
            Some(reason) => ProxyToolError::ServerUnavailable {
                server: server.name().to_owned(),
                reason: without_paths(reason),
            },
            None => ProxyToolError::NotFound {
                kind,
                path: path.to_owned(),
                near: Vec::new(),
            },
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
        let view = self.view(client);
        let found = view.resolve(kind, None, name)?;
        let edits = view.catalog().request_edits(request, &found);
        let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
        let request = request
            .splice_scalars(&edits)
            .unwrap_or_else(|_| request.clone());
        let target = CallTarget {
            server: found.server(),
            original: found.original().to_owned(),
            hints: found
                .entry()
                .map_or_else(Hints::default, |entry| entry.hints),
        };
        Ok((target, request))
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
