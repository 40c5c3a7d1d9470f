//! Tasks: work that a server continues after it has answered the call.
//!
//! A client asks for a task by its id alone, so the hub remembers which server gave out which id.

use mcp_proxy_wire::{ErrorCode, Field, Message, Span, error_response};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

use super::Hub;
use super::calls::{AnswerForm, NewCall};
use super::requests::ClientRequest;
use crate::catalog::{Hints, ServerIndex};
use crate::server_link::{ClientId, TASK_EXTENSION};

/// Tasks that are remembered. The oldest are forgotten first.
const TASKS_MAX: usize = 10_000;

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

    fn declares_tasks(&self, client: ClientId) -> bool {
        let declared = self
            .clients
            .get(&client)
            .map(|client| client.capabilities());
        let declared = Message::parse(declared.unwrap_or_default());
        let extensions = declared.member(Span::new(0, declared.len()), "extensions");
        extensions.is_some_and(|span| declared.member(span, TASK_EXTENSION).is_some())
    }

    /// Remembers the task that an answer gives out, in the form of either era.
    pub(super) fn note_task(&mut self, server: ServerIndex, answer: &Message) {
        let legacy = || answer.member(answer.span(Field::ResultField("task"))?, "taskId");
        let span = answer.span(Field::ResultField("taskId")).or_else(legacy);
        if let Some(id) = span.and_then(|span| answer.text_at(span)) {
            self.tasks.note(&id, server);
        }
    }
}
