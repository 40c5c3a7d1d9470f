//! Requests about something that a server has: found by its name or URI, and sent there.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, Field, Message, error_response, json_string};

use super::Hub;
use super::calls::{AnswerForm, NewCall};
use crate::catalog::{Hints, ItemKind, ServerIndex};
use crate::resolve::LookupError;
use crate::server_link::ClientId;

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
pub(super) struct CallTarget {
    pub(super) server: ServerIndex,
    /// The name or URI that the server knows.
    pub(super) original: String,
    pub(super) hints: Hints,
}

impl Hub {
    /// `tools/call`: the `proxy` tool, or a tool of a server.
    pub(super) fn call_tool(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let name = message.text(Field::Name);
        if name.as_deref() == Some(&self.proxy_tool.name) && self.offers_proxy_tool(client) {
            return self.call_proxy_tool(request);
        }
        self.forward_named(request, CallName::Name(ItemKind::Tool));
    }

    /// Forwards a request about something that is named in its parameters.
    pub(super) fn forward_named(&mut self, request: ClientRequest<'_>, name: CallName) {
        let ClientRequest {
            client, message, ..
        } = request;
        let (field, kind, missing) = match name {
            CallName::Name(kind) => (Field::Name, kind, "params.name is missing"),
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
            (_, Some(uri)) => (ItemKind::Template, uri),
            (None, None) => {
                let text = "params.ref needs the name of a prompt or the uri of a template";
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
            }),
            Err(error) => self.refuse_call(client, message, &error),
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
