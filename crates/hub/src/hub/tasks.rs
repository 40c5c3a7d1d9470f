//! Tasks: work that a server continues after it has answered the call.
//!
//! A client asks for a task by its id alone, so the hub remembers which server gave out which id.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{ErrorCode, Field, Message, Span, error_response, json_string};
use rustc_hash::FxHashMap;

use super::calls::{AnswerForm, Batch, BatchId, BatchPurpose, Call, NewCall, error_text};
use super::clients::OpenRequest;
use super::requests::ClientRequest;
use super::{Hub, HubAction};
use crate::catalog::{Hints, ServerIndex};
use crate::json::elements;
use crate::server_link::{ClientId, TASK_EXTENSION};

/// Tasks that are remembered. The oldest are forgotten first.
const TASKS_MAX: usize = 10_000;

/// Pages that are read of one server's tasks. One that pages for ever is cut off here.
const PAGES_MAX: usize = 100;

/// A part of `tasks/list`: what one server has said so far.
#[derive(Clone, Debug)]
pub(super) struct TaskPage {
    pub(super) batch: BatchId,
    place: usize,
    /// The tasks of earlier pages, as they are.
    tasks: Vec<Bytes>,
    /// The cursors of earlier pages. A server that gives one twice would be read for ever.
    cursors: Vec<String>,
}

/// Which server has which task.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    servers: FxHashMap<Box<str>, ServerIndex>,
    oldest_first: VecDeque<Box<str>>,
}

impl Tasks {
    fn note(&mut self, id: &str, server: ServerIndex) {
        if self.servers.insert(id.into(), server).is_none() {
            self.oldest_first.push_back(id.into());
        }
        if self.oldest_first.len() > TASKS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.servers.remove(&oldest);
        }
    }

    /// Servers have other places in a new configuration, and some are gone.
    pub(super) fn move_servers(&mut self, moved: &FxHashMap<ServerIndex, ServerIndex>) {
        self.servers.retain(|_, server| match moved.get(server) {
            Some(place) => {
                *server = *place;
                true
            }
            None => false,
        });
    }
}

impl Hub {
    /// `tasks/get` and the like go to the server that has the task.
    pub(super) fn forward_task(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        if self.is_modern(client) && !self.declares_tasks(client) {
            let data = format!(
                r#"{{"requiredCapabilities":{{"extensions":{{"{TASK_EXTENSION}":{{}}}}}}}}"#
            );
            let text = "the client did not declare the tasks extension";
            let code = ErrorCode::MISSING_CAPABILITY;
            let answer = error_response(message.id().as_ref(), code, text, Some(&data));
            return self.send_to_client(client, answer);
        }
        let Some(id) = message.text(Field::Param("taskId")) else {
            return self.invalid_params(client, message, "params.taskId is missing");
        };
        let Some(server) = self.tasks.servers.get(&*id).copied() else {
            let text = format!("there is no task {id:?}");
            return self.invalid_params(client, message, &text);
        };
        self.forward(NewCall {
            request,
            sent: message.clone(),
            server,
            form: AnswerForm::Native,
            what: id.into_owned(),
            hints: Hints::default(),
        });
    }

    /// Whether `tasks/list` has somebody to ask.
    pub(super) fn offers_task_list(&self, client: ClientId) -> bool {
        !self.servers_with_task_list(client).is_empty()
    }

    fn servers_with_task_list(&self, client: ClientId) -> Vec<ServerIndex> {
        let view = self.view(client);
        let servers = view.servers().map(|(index, _)| index);
        servers
            .filter(|index| self.server(*index).description.offers.task_list)
            .collect()
    }

    /// `tasks/list`: every server that offers it is asked for all of its pages, and the client gets one page. So there are no
    /// cursors of ours, and no state that one could outlive.
    pub(super) fn list_tasks(&mut self, request: ClientRequest<'_>) {
        let ClientRequest {
            client, message, ..
        } = request;
        let Some(id) = message.id() else {
            return;
        };
        if message.span(Field::Param("cursor")).is_some() {
            let text = "params.cursor is not one of the hub's: all tasks are on the first page";
            return self.invalid_params(client, message, text);
        }
        let servers = self.servers_with_task_list(client);
        let batch = BatchId(self.next_id());
        let state = Batch {
            purpose: BatchPurpose::TaskList,
            client,
            id: id.clone(),
            results: vec![None; servers.len()],
            calls: Vec::new(),
        };
        self.batches.insert(batch, state);
        if let Some(client) = self.clients.get_mut(&client) {
            client.open.insert(id.key(), OpenRequest::Batch(batch));
        }
        for (place, server) in servers.into_iter().enumerate() {
            let page = TaskPage {
                batch,
                place,
                tasks: Vec::new(),
                cursors: Vec::new(),
            };
            self.request_tasks(request, server, page);
        }
    }

    fn request_tasks(&mut self, request: ClientRequest<'_>, server: ServerIndex, page: TaskPage) {
        let token = request.message.id_token().unwrap_or(b"null");
        let token = String::from_utf8_lossy(token);
        let params = page.cursors.last().map_or_else(String::new, |cursor| {
            format!(r#","params":{{"cursor":{}}}"#, json_string(cursor))
        });
        let sent = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"tasks/list"{params}}}"#);
        self.forward(NewCall {
            request,
            sent: Message::parse(sent),
            server,
            what: format!("page {}", page.cursors.len() + 1),
            form: AnswerForm::TaskPage(page),
            // Looking at tasks changes nothing.
            hints: Hints {
                read_only: true,
                ..Hints::default()
            },
        });
    }

    /// A page of a server's tasks. A server that fails is left out.
    pub(super) fn task_page_answered(
        &mut self,
        call: &Call,
        mut page: TaskPage,
        answer: &Message,
        now: Instant,
    ) {
        let found = answer.span(Field::ResultField("tasks"));
        if found.is_none() {
            let name = self.server(call.server).name();
            let why = match answer.error() {
                Some(_) => error_text(answer),
                None => "its answer has no tasks".to_owned(),
            };
            let text = format!("server {name}: its tasks are left out of a list: {why}");
            self.actions.push(HubAction::Log(text));
            page.tasks.clear();
        }
        for task in found.into_iter().flat_map(|span| elements(answer, span)) {
            let id = answer.member(task, "taskId");
            if let Some(id) = id.and_then(|span| answer.text_at(span)) {
                self.tasks.note(&id, call.server);
            }
            page.tasks.push(answer.raw().slice(task.range()));
        }
        let cursor = answer.text(Field::ResultField("nextCursor"));
        if let Some(cursor) = cursor.filter(|cursor| {
            page.cursors.len() + 1 < PAGES_MAX && !page.cursors.iter().any(|known| known == cursor)
        }) {
            page.cursors.push(cursor.into_owned());
            let request = ClientRequest {
                client: call.client,
                message: &call.message,
                sequence: call.parent,
                now,
            };
            return self.request_tasks(request, call.server, page);
        }
        self.part_done(page.batch, page.place, page.tasks.join(&b","[..]).into());
    }

    fn declares_tasks(&self, client: ClientId) -> bool {
        let declared = self
            .clients
            .get(&client)
            .map(|client| client.capabilities());
        let declared = Message::parse(declared.unwrap_or_default());
        let extensions = declared.member(Span::new(0, declared.len()), "extensions");
        extensions.is_some_and(|span| declared.member(span, TASK_EXTENSION).is_some())
    }

    /// Remembers which server has a task.
    pub(super) fn note_task(&mut self, server: ServerIndex, id: &str) {
        self.tasks.note(id, server);
    }
}

/// The id of the task that an answer gives out, in the form of either era.
pub(super) fn task_of(answer: &Message) -> Option<String> {
    let legacy = || answer.member(answer.span(Field::ResultField("task"))?, "taskId");
    let span = answer.span(Field::ResultField("taskId")).or_else(legacy);
    Some(answer.text_at(span?)?.into_owned())
}

/// The parts of all servers as one result.
pub(super) fn task_list(parts: &[Bytes]) -> Bytes {
    let parts: Vec<&[u8]> = parts
        .iter()
        .map(|part| &part[..])
        .filter(|part| !part.is_empty())
        .collect();
    let mut text = br#"{"tasks":["#.to_vec();
    text.extend_from_slice(&parts.join(&b","[..]));
    text.extend_from_slice(b"]}");
    text.into()
}
