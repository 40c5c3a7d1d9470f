//! What the hub does for a client's request apart from its other messages: files, and lists that take milliseconds.

use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_spill::{ReadLimit, ReadRequest, SpillOwner, SpillStore};
use mcp_proxy_wire::{Era, ErrorCode, Id, Message, error_response};

use super::Hub;
use super::HubAction;
use super::answers::{completed, result_message};
use super::clients::{CallerKey, OpenRequest};
use super::dispatch_answers::{self, ListedConnection};
use super::dispatch_calls::{FileCall, RoutedFileCall};
use super::requests::ClientRequest;
use crate::catalog::CatalogView;
use crate::dispatch_tool::{
    self, DispatchAction, DispatchListQuery, DispatchOperation, DispatchSearchQuery,
    DispatchToolError, MissingConnection,
};
use crate::driver::WorkLength;
use crate::server_link::ClientId;

/// A piece of work that was begun for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WorkId(u64);

/// Whose work takes turns with that of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkClient {
    /// A session.
    Session(ClientId),
    /// A client without sessions: each of its requests is a client of its own.
    Caller(CallerKey),
}

/// Work for a thread that may wait for files.
#[derive(Debug)]
pub struct HubWork {
    id: WorkId,
    task: WorkTask,
    client: WorkClient,
    /// Gone when nobody waits for an answer any more.
    wish: Weak<()>,
    /// What an answer is made with.
    request: Id,
    era: Era,
    server_info: Bytes,
}

/// What came of it.
#[derive(Debug)]
pub struct FinishedWork {
    id: WorkId,
    outcome: WorkOutcome,
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum WorkTask {
    /// `status` of the `proxy-dispatch` tool.
    Status {
        view: Arc<CatalogView>,
        connections: Vec<ListedConnection>,
    },
    /// `list` of the `proxy-dispatch` tool.
    List {
        view: Arc<CatalogView>,
        connections: Vec<ListedConnection>,
        query: DispatchListQuery,
    },
    /// `search` of the `proxy-dispatch` tool.
    Search {
        view: Arc<CatalogView>,
        query: DispatchSearchQuery,
        missing: Vec<MissingConnection>,
    },
    /// `readresult` of the `proxy-dispatch` tool.
    ReadResult {
        files: OwnedFiles,
        file: String,
        request: ReadRequest,
        limit: ReadLimit,
    },
    /// `resources/read` of a result in a file.
    ReadResource {
        files: OwnedFiles,
        uri: String,
        era: Era,
    },
    /// The same through the `proxy` tool.
    ProxyResource { files: OwnedFiles, uri: String },
    /// A call whose arguments are in a file.
    LoadArguments {
        files: OwnedFiles,
        call: Box<FileCall>,
    },
}

#[derive(Debug)]
pub(super) enum WorkOutcome {
    /// The answer for the client.
    Answer(Message),
    /// There is no such resource.
    NoResource(String),
    /// The call can be sent.
    Call(Box<RoutedFileCall>),
    /// Something is wrong with the hub.
    Failed,
}

/// The files that a client may read.
#[derive(Clone, Debug)]
pub(super) struct OwnedFiles {
    pub(super) store: Arc<SpillStore>,
    pub(super) owner: SpillOwner,
}

/// A request that the hub itself is busy with.
#[derive(Debug)]
pub(super) struct PendingWork {
    client: ClientId,
    id: Id,
    request: Message,
    sequence: Option<u64>,
    /// Tells the work for it that somebody waits.
    wish: Arc<()>,
}

impl HubWork {
    /// Whether somebody still waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wish.strong_count() > 0
    }

    /// Whose work it is. Clients without sessions are told apart by their tokens and profiles.
    pub(crate) fn client(&self) -> WorkClient {
        self.client
    }

    /// How long it may take.
    pub(crate) fn length(&self) -> WorkLength {
        match &self.task {
            WorkTask::ReadResult {
                request: ReadRequest::Grep { .. } | ReadRequest::Jq { .. },
                ..
            }
            | WorkTask::LoadArguments { .. } => WorkLength::Long,
            _ => WorkLength::Short,
        }
    }

    /// What to report if the work could not be done at all.
    pub fn failure(&self) -> FinishedWork {
        FinishedWork {
            id: self.id,
            outcome: WorkOutcome::Failed,
        }
    }

    /// Does the work.
    pub fn run(self, now: Instant) -> FinishedWork {
        // A large answer is read once more to find its members, and not while others wait for the hub.
        let answer = |result: &Bytes| {
            let answer = result_message(&self.request, result);
            WorkOutcome::Answer(completed(self.era, answer, &self.server_info))
        };
        let outcome = match self.task {
            WorkTask::Status { view, connections } => {
                answer(&dispatch_answers::status(&view, &connections))
            }
            WorkTask::List {
                view,
                connections,
                query,
            } => answer(&dispatch_answers::list(&view, &connections, &query)),
            WorkTask::Search {
                view,
                query,
                missing,
            } => answer(&dispatch_answers::search(&view, &query, &missing)),
            WorkTask::ReadResult {
                files,
                file,
                request,
                limit,
            } => answer(&dispatch_answers::read_result(
                &files, &file, &request, limit, now,
            )),
            WorkTask::ReadResource { files, uri, era } => {
                match dispatch_answers::resource(&files, &uri, era, now) {
                    Some(result) => answer(&result),
                    None => WorkOutcome::NoResource(uri),
                }
            }
            WorkTask::ProxyResource { files, uri } => {
                answer(&dispatch_answers::proxy_resource(&files, uri, now))
            }
            WorkTask::LoadArguments { files, call } => {
                match call.load(&files, now, &|| self.wish.strong_count() > 0) {
                    Ok(routed) => WorkOutcome::Call(Box::new(routed)),
                    Err(error) => answer(&call_error(&error)),
                }
            }
        };
        FinishedWork {
            id: self.id,
            outcome,
        }
    }
}

impl Hub {
    /// Has something done for a request, which stays open until then.
    pub(super) fn begin_work(&mut self, request: ClientRequest<'_>, task: WorkTask) {
        let request_client = request.client;
        if let Some(id) = self.keep_open(request) {
            let Some(pending) = self.works.get(&id) else {
                return;
            };
            let Some(client) = self.clients.get(&request_client) else {
                return;
            };
            let work = HubWork {
                id,
                task,
                client: client.work_client(request_client),
                wish: Arc::downgrade(&pending.wish),
                request: pending.id.clone(),
                era: client.era(),
                server_info: self.settings.server_info.clone(),
            };
            self.actions.push(HubAction::Work(Box::new(work)));
        }
    }

    /// Keeps a request that is answered later. `None` if nobody waits for an answer.
    pub(super) fn keep_open(&mut self, request: ClientRequest<'_>) -> Option<WorkId> {
        let id = request.message.id()?;
        let work = WorkId(self.next_id());
        let client = self.clients.get_mut(&request.client)?;
        client.open.insert(id.key(), OpenRequest::Work(work));
        let pending = PendingWork {
            client: request.client,
            id,
            request: request.message.clone(),
            sequence: request.sequence,
            wish: Arc::default(),
        };
        self.works.insert(work, pending);
        Some(work)
    }

    /// Runs an operation of the `proxy-dispatch` tool that waited for lists.
    pub(super) fn resume(&mut self, work: WorkId, operation: DispatchOperation, now: Instant) {
        let Some(pending) = self.take_work(work) else {
            return;
        };
        let request = ClientRequest {
            client: pending.client,
            message: &pending.request,
            sequence: pending.sequence,
            now,
        };
        if let Some(result) = self.run_dispatch(request, operation) {
            self.send_result(pending.client, &pending.id, &result);
            self.release(pending.client);
        }
    }

    fn take_work(&mut self, work: WorkId) -> Option<PendingWork> {
        let pending = self.works.remove(&work)?;
        if let Some(client) = self.clients.get_mut(&pending.client) {
            client.open.remove(&pending.id.key());
        }
        Some(pending)
    }

    /// The request that this work was begun for fails. What comes of the work does not matter any more.
    pub(super) fn fail_work(&mut self, work: WorkId, code: ErrorCode, text: &str) {
        if let Some(PendingWork { client, id, .. }) = self.take_work(work) {
            self.send_to_client(client, error_response(Some(&id), code, text, None));
            self.release(client);
        }
    }

    /// Work is done. If its client still waits, it gets the result.
    pub fn work_finished(&mut self, finished: FinishedWork, now: Instant) {
        let Some(pending) = self.take_work(finished.id) else {
            return;
        };
        let PendingWork {
            client,
            id,
            request,
            sequence,
            wish: _,
        } = pending;
        match finished.outcome {
            WorkOutcome::Answer(answer) => self.send_to_client(client, answer),
            WorkOutcome::Failed => {
                let text = "internal error in the hub";
                let answer = error_response(Some(&id), ErrorCode::INTERNAL, text, None);
                self.send_to_client(client, answer);
            }
            WorkOutcome::NoResource(uri) => {
                let answer = error_response(
                    Some(&id),
                    ErrorCode::INVALID_PARAMS,
                    "the resource does not exist or has expired",
                    Some(&format!(
                        r#"{{"uri":{}}}"#,
                        mcp_proxy_wire::json_string(&uri)
                    )),
                );
                self.send_to_client(client, answer);
            }
            WorkOutcome::Call(call) => {
                let request = ClientRequest {
                    client,
                    message: &request,
                    sequence,
                    now,
                };
                match self.forward_file_call(request, *call) {
                    Ok(()) => return,
                    Err(error) => self.send_result(client, &id, &call_error(&error)),
                }
            }
        }
        self.release(client);
    }
}

fn call_error(error: &DispatchToolError) -> Bytes {
    dispatch_tool::render_error(error, Some(DispatchAction::Call))
}
