//! Tasks: work that a server continues after it has answered the call.
//!
//! A client asks for a task by its id alone, so the hub remembers which server gave out which id, and to whom. Clients that
//! share a server do not see each other's tasks.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Era, ErrorCode, Field, Message, Span, error_response, json_string};

use super::batches::{Batch, BatchId, BatchProgress, BatchPurpose};
use super::calls::{AnswerForm, Call, NewCall, error_text};
use super::clients::OpenRequest;
use super::rendering::RenderedContent;
use super::requests::ClientRequest;
use super::task_table::{PublicTask, ServerTask, TaskOwner};
use super::{Hub, HubAction};
use crate::catalog::{Hints, ServerIndex};
use crate::json::elements;
use crate::server_link::{ClientId, LinkId, TASK_EXTENSION};

/// The member of `_meta` that names the task that a message is about.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

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
        let public = PublicTask {
            owner: self.task_owner(client),
            id: (&*id).into(),
        };
        let task = self.tasks.find_original(&public);
        let Some(task) = task.filter(|task| self.view(client).shows_server(task.server)) else {
            let text = format!("unknown task {id:?}");
            return self.invalid_params(client, message, &text);
        };
        self.forward(NewCall {
            request,
            sent: with_task_id(message, message.params(), &id, &task.id),
            server: task.server,
            form: AnswerForm::Native,
            what: id.into_owned(),
            hints: Hints::default(),
            unlisted: None,
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
            progress: BatchProgress::default(),
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
            unlisted: None,
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
            page.tasks.extend(self.listed_task(call, answer, task));
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

    fn task_owner(&self, client: ClientId) -> TaskOwner {
        match self.is_modern(client) {
            true => TaskOwner::Modern,
            false => TaskOwner::Session(client),
        }
    }

    /// A task of a server's list as the client sees it, if a call of that client created it.
    fn listed_task(&self, call: &Call, answer: &Message, task: Span) -> Option<Bytes> {
        let id = answer.text_at(answer.member(task, "taskId")?)?;
        let public = self.tasks.find_public(&self.task_of_call(call, &id))?;
        if public.owner != self.task_owner(call.client) {
            return None;
        }
        let task = answer.raw().slice(task.range());
        if *public.id == *id {
            return Some(task);
        }
        let task = Message::parse(task);
        let whole = Some(Span::new(0, task.len()));
        Some(with_task_id(&task, whole, &id, &public.id).into_raw())
    }

    /// A task in the conversation that this call was sent in.
    fn task_of_call(&self, call: &Call, id: &str) -> ServerTask {
        let server = call.server;
        let link = call.link.and_then(|link| self.links.get(&link));
        let (owner, era) = match (link, self.clients.get(&call.client)) {
            (Some(link), _) => (link.owner, link.state.era),
            (None, client) => {
                let era = client.map_or(Era::Legacy, |client| client.era());
                let owner = self.owner_for(call.client, server);
                (owner, self.server(server).era_for(era))
            }
        };
        ServerTask {
            server,
            owner,
            era,
            id: id.into(),
        }
    }

    /// An answer that creates a task, or is about one, with the id that the client knows the task by.
    pub(super) fn publish_task(
        &mut self,
        call: &Call,
        created: Option<String>,
        content: RenderedContent,
    ) -> RenderedContent {
        let is_about_task = call
            .message
            .method()
            .is_some_and(|method| method.starts_with("tasks/"));
        let asked = || Some(call.message.text(Field::Param("taskId"))?.into_owned());
        let id = match is_about_task {
            true => asked(),
            false => created,
        };
        let Some(id) = id else {
            return content;
        };
        let task = self.task_of_call(call, &id);
        let public = match is_about_task {
            true => self.tasks.find_public(&task).cloned(),
            false => {
                let owner = self.task_owner(call.client);
                let name = self.servers[usize::from(call.server.0)].name();
                Some(self.tasks.add(task, owner, name))
            }
        };
        let Some(public) = public.filter(|public| *public.id != *id) else {
            return content;
        };
        match content {
            RenderedContent::Answer(answer) => {
                let result = answer.result();
                RenderedContent::Answer(with_task_id(&answer, result, &id, &public.id))
            }
            RenderedContent::Part(part) => {
                let part = Message::parse(part);
                let whole = Some(Span::new(0, part.len()));
                RenderedContent::Part(with_task_id(&part, whole, &id, &public.id).into_raw())
            }
        }
    }

    /// The session that a server's message about a task is for, and the message as that client has to see it.
    pub(super) fn message_about_task(
        &self,
        link: LinkId,
        message: &Message,
    ) -> Option<(ClientId, Message)> {
        let link = self.links.get(&link)?;
        let params = message.params()?;
        let mut spans = task_id_spans(message, params).into_iter().flatten();
        let span = spans.next()?;
        let id = message.text_at(span)?;
        let task = ServerTask {
            server: link.server,
            owner: link.owner,
            era: link.state.era,
            id: (&*id).into(),
        };
        let public = self.tasks.find_public(&task)?;
        match public.owner {
            TaskOwner::Session(client) => {
                let message = with_task_id(message, Some(params), &id, &public.id);
                Some((client, message))
            }
            TaskOwner::Modern => None,
        }
    }
}

/// The id of the task that an answer gives out, in the form of either era: `result.taskId` or `result.task.taskId`.
pub(super) fn task_of(
    answer: &Message,
    task_id: Option<Span>,
    task: Option<Span>,
) -> Option<String> {
    let legacy = || answer.member(task?, "taskId");
    let span = task_id.or_else(legacy);
    Some(answer.text_at(span?)?.into_owned())
}

/// Where the id of a task can stand in a result, in parameters or in a task.
fn task_id_spans(message: &Message, object: Span) -> [Option<Span>; 3] {
    let inner = |object: Option<Span>, name: &str| message.member(object?, name);
    let related = inner(inner(Some(object), "_meta"), RELATED_TASK);
    [
        message.member(object, "taskId"),
        inner(message.member(object, "task"), "taskId"),
        inner(related, "taskId"),
    ]
}

/// The message with another id for the task `id` in this object.
fn with_task_id(message: &Message, object: Option<Span>, id: &str, new: &str) -> Message {
    let Some(object) = object.filter(|_| id != new) else {
        return message.clone();
    };
    let new = json_string(new);
    let spans = task_id_spans(message, object).into_iter().flatten();
    let mut edits: Vec<(Span, &[u8])> = spans
        .filter(|span| message.text_at(*span).as_deref() == Some(id))
        .map(|span| (span, new.as_bytes()))
        .collect();
    edits.sort_unstable_by_key(|(span, _)| span.range().start);
    message.splice(&edits).unwrap_or_else(|_| message.clone())
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
