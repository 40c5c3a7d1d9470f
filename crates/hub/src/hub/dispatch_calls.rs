//! Calls of the `proxy-dispatch` tool.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_core::answer_under;
use mcp_proxy_spill::{ReadLimit, SpillError};
use mcp_proxy_wire::{ErrorCode, Field, Id, Message, Span, fold_name};

use super::Hub;
use super::answers::result_message;
use super::calls::{AnswerForm, NewCall, error_text};
use super::dispatch_answers::{self, ListedConnection};
use super::proxy_calls::{server_request, tool_request};
use super::requests::{self, CallTarget, ClientRequest};
use super::result_references::with_results;
use super::spilling::SpillOutcome;
use super::work::{OwnedFiles, WorkTask};
use crate::catalog::{Catalog, CatalogView, ItemKind};
use crate::dispatch_tool::{
    self, DispatchAction, DispatchArguments, DispatchCall, DispatchOperation, DispatchParameter,
    DispatchSpill, DispatchToolError, DispatchToolOptions, DispatchedCall, MissingConnection,
    Refresh, may_have_references,
};
use crate::one_reading::is_misspelt_meta;
use crate::proxy_tool::ArgumentError;
use crate::read_tool::READ_TOOL_NAME;
use crate::resolve::LookupError;
use crate::server_link::ClientId;
use crate::settings::OwnToolUse;

/// Longer lists take about a millisecond or more.
const LONG_LIST: usize = 500;

/// What an answer to a call of the `proxy-dispatch` tool says next to the result.
#[derive(Clone, Debug)]
pub(super) struct DispatchForm {
    /// The server's alias and name.
    pub(super) connection: (String, String),
    pub(super) tool: String,
    pub(super) arguments: DispatchArguments,
    pub(super) spill: DispatchSpill,
}

/// A call whose arguments are in a file that has not been read yet, or have parts that are.
#[derive(Debug)]
pub(super) struct FileCall {
    pub(super) view: Arc<CatalogView>,
    pub(super) request: Message,
    pub(super) call: DispatchCall,
}

/// The same call with its arguments, as its server gets it.
#[derive(Debug)]
pub(super) struct RoutedFileCall {
    view: Arc<CatalogView>,
    call: DispatchCall,
    target: CallTarget,
    sent: Message,
}

impl Hub {
    pub(super) fn call_dispatch_tool(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let Some(id) = message.id() else {
            return;
        };
        let arguments = message.span(Field::Param("arguments"));
        let options = &self.settings.dispatch_tool;
        let parsed = dispatch_tool::parse_arguments(message, arguments, options);
        let done = match parsed {
            Ok((operation, Refresh::Yes)) => {
                self.refresh_first(request, operation);
                None
            }
            Ok((operation, Refresh::No)) => {
                let now = self.wait_for_lists(request, operation);
                now.and_then(|operation| self.run_dispatch(request, operation))
            }
            Err(error) => Some(dispatch_tool::render_error(&error.into(), None)),
        };
        if let Some(result) = done {
            self.send_result(client, &id, &result);
        }
    }

    /// `readresult` of the `proxy-read` tool. Whatever else its arguments could mean is refused.
    pub(super) fn read_stored_result(&mut self, request: ClientRequest<'_>) {
        let arguments = request.message.span(Field::Param("arguments"));
        let options = DispatchToolOptions {
            name: READ_TOOL_NAME.to_owned(),
            ..self.settings.dispatch_tool.clone()
        };
        let parsed = dispatch_tool::parse_arguments(request.message, arguments, &options);
        let done = match parsed.map(|(operation, _)| operation) {
            Ok(operation @ DispatchOperation::ReadResult { .. }) => {
                self.run_dispatch(request, operation)
            }
            Ok(operation) => {
                let text = format!(
                    "Unsupported {READ_TOOL_NAME} action '{}'.",
                    operation.action()
                );
                let error = ArgumentError::new("unsupported-action", text);
                Some(dispatch_tool::render_error(&error.into(), None))
            }
            Err(error) => Some(dispatch_tool::render_error(&error.into(), None)),
        };
        if let (Some(result), Some(id)) = (done, request.message.id()) {
            self.send_result(request.client, &id, &result);
        }
    }

    /// Whether a call names a tool that nobody has listed, and nothing like it either.
    pub(super) fn is_unknown(&self, client: ClientId, call: &DispatchCall) -> bool {
        let view = self.view(client);
        let found = view.resolve(ItemKind::Tool, call.connection.as_deref(), &call.tool);
        matches!(found, Err(LookupError::NotFound { near, .. }) if near.is_empty())
    }

    /// Runs one operation of the tool. A result that is known at once is returned.
    pub(super) fn run_dispatch(
        &mut self,
        request: ClientRequest<'_>,
        operation: DispatchOperation,
    ) -> Option<Bytes> {
        let action = operation.action();
        self.try_dispatch(request, operation)
            .unwrap_or_else(|error| Some(dispatch_tool::render_error(&error, Some(action))))
    }

    fn try_dispatch(
        &mut self,
        request: ClientRequest<'_>,
        operation: DispatchOperation,
    ) -> Result<Option<Bytes>, DispatchToolError> {
        let client = request.client;
        let view = self.view(client);
        if let Some(connection) = operation.connection() {
            let found = view.require_server(connection);
            found.map_err(|error| refusal(&view, &error, None, connection))?;
        }
        match operation {
            DispatchOperation::Status { connection } => {
                let connections = self.connections(client, connection.as_deref());
                if view.count(ItemKind::Tool) > LONG_LIST {
                    self.begin_work(request, WorkTask::Status { view, connections });
                    return Ok(None);
                }
                Ok(Some(dispatch_answers::status(&view, &connections)))
            }
            DispatchOperation::List(query) => {
                let connections = self.connections(client, query.connection.as_deref());
                if query.include_tools && view.count(ItemKind::Tool) > LONG_LIST {
                    let task = WorkTask::List {
                        view,
                        connections,
                        query,
                    };
                    self.begin_work(request, task);
                    return Ok(None);
                }
                Ok(Some(dispatch_answers::list(&view, &connections, &query)))
            }
            DispatchOperation::Search(query) => {
                let missing = self.missing_connections(client, query.connection.as_deref());
                if view.catalog().is_search_ready() {
                    return Ok(Some(dispatch_answers::search(&view, &query, &missing)));
                }
                let task = WorkTask::Search {
                    view,
                    query,
                    missing,
                };
                self.begin_work(request, task);
                Ok(None)
            }
            DispatchOperation::ReadResult {
                file,
                request: part,
                limit,
            } => {
                let files = self.files_for(client, DispatchParameter::ResultFile)?;
                let fitting = || ReadLimit::with_notes(self.whole_result_bytes(client));
                let task = WorkTask::ReadResult {
                    files,
                    file,
                    request: part,
                    limit: limit.unwrap_or_else(fitting),
                };
                self.begin_work(request, task);
                Ok(None)
            }
            DispatchOperation::Call(call) => {
                let sent = self.dispatch_call(request, view, call);
                sent.map_err(|error| self.with_missing(client, error))?;
                Ok(None)
            }
        }
    }

    /// A tool that was not found may be one of a server whose tools are not known.
    fn with_missing(&self, client: ClientId, mut error: DispatchToolError) -> DispatchToolError {
        if let DispatchToolError::ToolNotFound {
            connection: None,
            missing,
            ..
        } = &mut error
        {
            *missing = self.missing_connections(client, None);
        }
        error
    }

    fn dispatch_call(
        &mut self,
        request: ClientRequest<'_>,
        view: Arc<CatalogView>,
        call: DispatchCall,
    ) -> Result<(), DispatchToolError> {
        let arguments = match &call.arguments {
            DispatchArguments::None => None,
            DispatchArguments::Inline(arguments) if may_have_references(arguments) => {
                return self.load_arguments(request, view, call, DispatchParameter::Arguments);
            }
            DispatchArguments::Inline(arguments) => Some(arguments.clone()),
            DispatchArguments::File(_) => {
                return self.load_arguments(request, view, call, DispatchParameter::ArgumentsFile);
            }
        };
        let found = routed(&view, request.message, &call, arguments.as_deref());
        let (target, sent) = found.inspect_err(|_| {
            self.audit_refused(request, ItemKind::Tool, &call.tool);
        })?;
        self.forward_dispatch(request, call, target, sent);
        Ok(())
    }

    fn load_arguments(
        &mut self,
        request: ClientRequest<'_>,
        view: Arc<CatalogView>,
        call: DispatchCall,
        parameter: DispatchParameter,
    ) -> Result<(), DispatchToolError> {
        let files = self.files_for(request.client, parameter)?;
        let call = Box::new(FileCall {
            view,
            request: request.message.clone(),
            call,
        });
        self.begin_work(request, WorkTask::LoadArguments { files, call });
        Ok(())
    }

    /// Sends a call whose arguments were in a file.
    pub(super) fn forward_file_call(
        &mut self,
        request: ClientRequest<'_>,
        routed: RoutedFileCall,
    ) -> Result<(), DispatchToolError> {
        let RoutedFileCall {
            view: old,
            call,
            target,
            sent,
        } = routed;
        let view = self.view(request.client);
        if !Arc::ptr_eq(&old, &view) {
            // Servers may have other places by now, and tools other names or fixed arguments.
            return self.dispatch_call(request, view, call);
        }
        self.forward_dispatch(request, call, target, sent);
        Ok(())
    }

    fn forward_dispatch(
        &mut self,
        request: ClientRequest<'_>,
        call: DispatchCall,
        target: CallTarget,
        sent: Message,
    ) {
        let naming = &self.server(target.server).settings.naming;
        let form = DispatchForm {
            connection: (naming.alias.clone(), naming.name.clone()),
            tool: call.tool.clone(),
            arguments: call.arguments,
            spill: call.spill,
        };
        self.forward(NewCall {
            request,
            sent,
            server: target.server,
            form: AnswerForm::Dispatch(Box::new(form)),
            what: call.tool,
            hints: target.hints,
            unlisted: target.unlisted,
        });
    }

    /// The catalog, if clients can search it.
    pub fn searched_catalog(&self) -> Option<Arc<Catalog>> {
        let mut profiles = self.settings.profiles.iter();
        let is_searched = profiles.any(|profile| {
            [profile.proxy_tool, profile.dispatch_tool, profile.read_tool]
                .contains(&OwnToolUse::Offered)
        });
        is_searched.then(|| Arc::clone(&self.catalog))
    }

    /// The files that this client may read, if results are kept at all.
    pub(super) fn files_of(&self, client: ClientId) -> Option<OwnedFiles> {
        Some(OwnedFiles {
            store: Arc::clone(self.settings.spill.store.as_ref()?),
            owner: self.clients.get(&client)?.spill_owner(client),
        })
    }

    fn files_for(
        &self,
        client: ClientId,
        parameter: DispatchParameter,
    ) -> Result<OwnedFiles, DispatchToolError> {
        let files = self.files_of(client);
        files.ok_or_else(|| file_refusal(&SpillError::NoSuchFile, parameter))
    }

    /// What there is to say about the servers that a client sees, or about one of them.
    fn connections(&self, client: ClientId, only: Option<&str>) -> Vec<ListedConnection> {
        let view = self.view(client);
        let only = only.and_then(|name| view.find_server(name));
        let servers = view
            .servers()
            .filter(|(index, _)| only.is_none_or(|only| only == *index));
        servers
            .map(|(index, server)| self.listed_connection(index, server))
            .collect()
    }

    /// The servers that a client sees and whose tools are not known, of all or of one.
    fn missing_connections(&self, client: ClientId, only: Option<&str>) -> Vec<MissingConnection> {
        let connections = self.connections(client, only).into_iter();
        connections
            .filter_map(|connection| connection.missing(only.is_some()))
            .collect()
    }
}

impl DispatchForm {
    fn error(&self, answer: &Message) -> DispatchToolError {
        let code = answer.error_code().unwrap_or(ErrorCode::INTERNAL.get());
        let message = error_text(answer);
        if code != ErrorCode::SERVER_UNAVAILABLE.get() {
            return DispatchToolError::ServerError { code, message };
        }
        let named = format!("server {}: ", self.connection.1);
        DispatchToolError::ConnectionUnavailable {
            connection: self.connection.1.clone(),
            reason: message.strip_prefix(&named).unwrap_or(&message).to_owned(),
        }
    }

    /// A server's answer as an answer of the tool.
    pub(super) fn answer(&self, answer: Message, id: &Id, spill: &SpillOutcome) -> Message {
        let Some(span) = answer.result() else {
            let error = self.error(&answer);
            let result = dispatch_tool::render_error(&error, Some(DispatchAction::Call));
            return result_message(id, &result);
        };
        let call = DispatchedCall {
            alias: &self.connection.0,
            connection: &self.connection.1,
            tool: &self.tool,
            arguments: &self.arguments,
            not_stored: spill.failure(),
        };
        if let Some(spilled) = spill.spilled() {
            let result = without_content(&answer, span);
            let result = dispatch_tool::render_spilled_call(&result, &call, spilled);
            return result_message(id, &result);
        }
        let edits = dispatch_tool::call_edits(&answer, span, &call);
        let (Some(mut edits), Some(own_id)) = (edits, answer.span(Field::Id)) else {
            return answer_under(answer, id);
        };
        edits.replace(own_id, id.token());
        let edits = edits.into_sorted();
        let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
        answer.splice(&edits).unwrap_or(answer)
    }
}

impl FileCall {
    /// Reads the arguments, and makes the request that the server gets.
    pub(super) fn load(
        self,
        files: &OwnedFiles,
        now: Instant,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<RoutedFileCall, DispatchToolError> {
        let arguments = match &self.call.arguments {
            DispatchArguments::None => None,
            DispatchArguments::Inline(arguments) => {
                Some(with_results(arguments, files, now, is_wanted)?)
            }
            DispatchArguments::File(file) => {
                let arguments = files.store.arguments(files.owner, file, now);
                Some(arguments.map_err(|error| match error {
                    SpillError::NotAnObject => {
                        let file = file.clone();
                        DispatchToolError::ArgumentsFileNotAnObject { file }
                    }
                    error => file_refusal(&error, DispatchParameter::ArgumentsFile),
                })?)
            }
        };
        let (target, sent) = routed(&self.view, &self.request, &self.call, arguments.as_deref())?;
        Ok(RoutedFileCall {
            view: self.view,
            call: self.call,
            target,
            sent,
        })
    }
}

/// A result with nothing in its `content`, which is in a file now and would only be read once more.
fn without_content(answer: &Message, result: Span) -> Bytes {
    let Some(content) = answer.member(result, "content") else {
        return answer.raw().slice(result.range());
    };
    let mut rest = answer.raw()[result.start..content.start].to_vec();
    rest.extend_from_slice(b"[]");
    rest.extend_from_slice(&answer.raw()[content.end..result.end]);
    rest.into()
}

/// Where a call leads, and the request that the server gets.
fn routed(
    view: &CatalogView,
    message: &Message,
    call: &DispatchCall,
    arguments: Option<&[u8]>,
) -> Result<(CallTarget, Message), DispatchToolError> {
    let native = match &call.meta {
        None => tool_request(message, &call.tool, arguments),
        Some(added) => {
            let meta = message.span(Field::Param("_meta"));
            let meta = merged_meta(meta.map(|span| message.slice(span)), added);
            server_request(message, ItemKind::Tool, &call.tool, arguments, Some(&meta))
        }
    };
    let connection = call.connection.as_deref();
    requests::route(view, ItemKind::Tool, connection, &call.tool, &native)
        .map_err(|error| refusal(view, &error, connection, &call.tool))
}

/// The `_meta` of the client's request with what the call adds to it. What the request itself says wins, in any spelling that a
/// server may read: it tells who asks, and which call progress belongs to.
fn merged_meta(request: Option<&[u8]>, added: &[u8]) -> Vec<u8> {
    let read = |text: &[u8]| serde_json::from_slice::<serde_json::Map<_, _>>(text).ok();
    let request = request.unwrap_or(b"{}");
    let (Some(mut merged), Some(request_members)) = (read(added), read(request)) else {
        return request.to_vec();
    };
    let is_of_request = |name: &str| {
        let mut members = request_members.keys();
        members.any(|member| fold_name(member) == fold_name(name))
    };
    merged.retain(|name, _| !is_of_request(name) && !is_misspelt_meta(name));
    merged.extend(request_members);
    serde_json::Value::Object(merged).to_string().into_bytes()
}

/// The error for a name that means nothing, or more than one thing.
fn refusal(
    view: &CatalogView,
    error: &LookupError,
    connection: Option<&str>,
    name: &str,
) -> DispatchToolError {
    match error {
        LookupError::UnknownServer { server, near } => DispatchToolError::UnknownConnection {
            connection: server.clone(),
            near: near.clone(),
        },
        LookupError::Ambiguous { candidates, .. } => DispatchToolError::AmbiguousTool {
            tool: name.to_owned(),
            candidates: aliases(view, candidates),
        },
        LookupError::NotFound { near, .. } => DispatchToolError::ToolNotFound {
            tool: name.to_owned(),
            connection: connection.map(str::to_owned),
            near: near.clone(),
            missing: Vec::new(),
        },
        LookupError::ArgumentsNotAnObject { .. } => ArgumentError::not_an_object().into(),
    }
}

/// The aliases of the connections that have these tools, which are given by their public names.
fn aliases(view: &CatalogView, tools: &[String]) -> Vec<String> {
    let catalog = view.catalog();
    let servers = tools.iter().filter_map(|public| {
        let entry = catalog.entry(catalog.find_public(ItemKind::Tool, public)?);
        Some(catalog.server(entry.server)?.naming().alias.clone())
    });
    servers.collect()
}

/// The error for a file that cannot be used.
pub(super) fn file_refusal(error: &SpillError, parameter: DispatchParameter) -> DispatchToolError {
    match error {
        SpillError::BadFilter(_) => DispatchToolError::FilterFailed {
            reason: error.to_string(),
        },
        SpillError::PatternTooLarge => DispatchToolError::PatternTooLarge {
            reason: error.to_string(),
        },
        error => DispatchToolError::FileRefused {
            parameter,
            reason: error.to_string(),
        },
    }
}
