//! Requests about something that a server has: found by its name or URI, and sent there.

use std::time::Instant;

use mcp_proxy_spill::is_handle;
use mcp_proxy_wire::{ErrorCode, Field, Message, Span, error_response, json_string};

use super::Hub;
use super::calls::{AnswerForm, NewCall};
use super::proxy_calls;
use super::unlisted_names::UnlistedName;
use super::work::WorkTask;
use crate::catalog::{CatalogView, Hints, ItemKind, ServerIndex};
use crate::read_tool::READ_TOOL_NAME;
use crate::resolve::{LookupError, ResolvedItem};
use crate::server_link::ClientId;
use crate::settings::OwnToolUse;

const NAME_MISSING: &str = "params.name is missing";

/// A request of a client, with its number in the record and the time when it came.
#[derive(Clone, Copy)]
pub(super) struct ClientRequest<'a> {
    pub(super) client: ClientId,
    pub(super) message: &'a Message,
    pub(super) sequence: Option<u64>,
    pub(super) now: Instant,
}

/// Where a request names what it is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallName {
    /// `params.name` of this kind.
    Name(ItemKind),
    /// `params.uri`.
    Uri,
}

/// What a name or URI means.
#[derive(Debug)]
pub(super) struct CallTarget {
    pub(super) server: ServerIndex,
    /// The name or URI that the server knows.
    pub(super) original: String,
    pub(super) hints: Hints,
    /// The name may turn out to be another one.
    pub(super) unlisted: Option<Box<UnlistedName>>,
}

impl Hub {
    /// `tools/call`: one of the hub's own tools, or a tool of a server.
    pub(super) fn call_tool(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let name = message.text(Field::Name);
        let profile = self.profile(client);
        let is_called = |own: &str, offered: OwnToolUse| {
            offered == OwnToolUse::Offered && name.as_deref() == Some(own)
        };
        let is_proxy = is_called(&self.proxy_tool.name, profile.proxy_tool);
        let is_dispatch = is_called(&self.settings.dispatch_tool.name, profile.dispatch_tool);
        let is_read = is_called(READ_TOOL_NAME, profile.read_tool);
        if is_read && proxy_calls::is_read_result(message) {
            return self.read_stored_result(request);
        }
        match (is_proxy || is_read, is_dispatch) {
            (true, _) => return self.call_proxy_tool(request),
            (_, true) => return self.call_dispatch_tool(request),
            (false, false) => {}
        }
        match name {
            Some(name) => self.forward_to(request, ItemKind::Tool, &name, AnswerForm::Native),
            None => self.invalid_params(client, message, NAME_MISSING),
        }
    }

    /// `resources/read`: a result in a file, or a resource of a server.
    pub(super) fn read_resource(&mut self, request: ClientRequest<'_>) {
        let uri = request.message.text(Field::Uri);
        if let Some(uri) = uri.filter(|uri| is_handle(uri))
            && let Some(files) = self.files_of(request.client)
            && let Some(client) = self.clients.get(&request.client)
        {
            let task = WorkTask::ReadResource {
                files,
                uri: uri.into_owned(),
                era: client.era(),
            };
            return self.begin_work(request, task);
        }
        self.forward_named(request, CallName::Uri);
    }

    /// Forwards a request about something that is named in its parameters.
    pub(super) fn forward_named(&mut self, request: ClientRequest<'_>, name: CallName) {
        let ClientRequest {
            client, message, ..
        } = request;
        let (field, kind, missing) = match name {
            CallName::Name(kind) => (Field::Name, kind, NAME_MISSING),
            CallName::Uri => (Field::Uri, ItemKind::Resource, "params.uri is missing"),
        };
        let Some(public) = message.text(field) else {
            return self.invalid_params(client, message, missing);
        };
        self.forward_to(request, kind, &public, AnswerForm::Native);
    }

    /// `completion/complete`: `params.ref` names a prompt or a resource template.
    pub(super) fn complete(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let reference = message.span(Field::Param("ref"));
        let member = |name: &str| reference.and_then(|span| message.member(span, name));
        let (kind, span) = match (member("name"), member("uri")) {
            (Some(name), None) => (ItemKind::Prompt, name),
            (None, Some(uri)) => (ItemKind::Template, uri),
            (Some(_), Some(_)) | (None, None) => {
                let text =
                    "params.ref needs the name of a prompt or the uri of a template, not both";
                return self.invalid_params(client, message, text);
            }
        };
        let public = message.text_at(span).unwrap_or_default().into_owned();
        self.forward_to(request, kind, &public, AnswerForm::Plain);
    }

    /// Forwards a request to the server of what it names.
    pub(super) fn forward_to(
        &mut self,
        request: ClientRequest<'_>,
        kind: ItemKind,
        public: &str,
        form: AnswerForm,
    ) {
        let ClientRequest {
            client, message, ..
        } = request;
        match self.route(client, kind, public, message) {
            Ok((target, sent)) => self.forward(NewCall {
                request,
                sent,
                server: target.server,
                form,
                what: public.to_owned(),
                hints: target.hints,
                unlisted: target.unlisted,
            }),
            Err(error) => {
                self.audit_refused(request, kind, public);
                self.refuse_call(client, message, &error);
            }
        }
    }

    pub(super) fn invalid_params(&mut self, client: ClientId, message: &Message, text: &str) {
        let answer = error_response(message.id().as_ref(), ErrorCode::INVALID_PARAMS, text, None);
        self.send_to_client(client, answer);
    }

    /// A name or URI that means nothing, or more than one thing.
    pub(super) fn refuse_call(&mut self, client: ClientId, message: &Message, error: &LookupError) {
        let data = match error {
            LookupError::NotFound {
                kind: ItemKind::Resource | ItemKind::Template,
                name,
                ..
            } => Some(format!("{{\"uri\":{}}}", json_string(name))),
            _ => None,
        };
        let (id, text) = (message.id(), error.to_string());
        let code = ErrorCode::INVALID_PARAMS;
        let answer = error_response(id.as_ref(), code, &text, data.as_deref());
        self.send_to_client(client, answer);
    }
}

/// The request that is for one thing of this kind.
pub(super) fn method_of(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tools/call",
        ItemKind::Prompt => "prompts/get",
        ItemKind::Resource | ItemKind::Template => "resources/read",
    }
}

/// What a name or URI means to those who see `view`, on the given server if there is one, and a request for it as its server
/// understands it.
pub(super) fn route(
    view: &CatalogView,
    kind: ItemKind,
    server: Option<&str>,
    name: &str,
    request: &Message,
) -> Result<(CallTarget, Message), LookupError> {
    let found = view.resolve(kind, server, name)?;
    let edits = view.catalog().request_edits(request, &found);
    let edits = edits.ok_or_else(|| LookupError::ArgumentsNotAnObject {
        tool: name.to_owned(),
    })?;
    let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
    // The edits do not overlap, because the request names everything once.
    let sent = request.splice(&edits).unwrap_or_else(|_| request.clone());
    let is_guess = matches!(found, ResolvedItem::Unlisted { .. })
        && matches!(kind, ItemKind::Tool | ItemKind::Prompt);
    let unlisted = is_guess.then(|| {
        Box::new(UnlistedName {
            kind,
            name: name.to_owned(),
            request: request.clone(),
        })
    });
    let target = CallTarget {
        server: found.server(),
        original: found.original().to_owned(),
        hints: found
            .entry()
            .map_or_else(Hints::default, |entry| entry.hints),
        unlisted,
    };
    Ok((target, sent))
}
