//! A server's answer in the form that its client gets.
//!
//! Making it takes time in proportion to the answer's length. A large one is made apart from the hub, which goes on with
//! other messages.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_wire::{Era, Field, Kind, Message, Span};

use super::CallOutcome;
use super::answers::completed;
use super::calls::{AnswerForm, Call};
use super::eras;
use super::proxy_calls::proxy_tool_result;
use super::tasks::task_of;
use crate::catalog::Catalog;

/// A longer answer takes about a millisecond or more.
const LARGE: usize = 256 * 1024;

/// An answer that is to be made ready for its client.
#[derive(Debug)]
pub struct AnswerRendering {
    pub(super) call: Call,
    pub(super) answer: Message,
    pub(super) client_era: Era,
    pub(super) server_era: Era,
    pub(super) catalog: Arc<Catalog>,
    pub(super) server_info: Bytes,
}

/// An answer that is ready.
#[derive(Debug)]
pub struct RenderedAnswer {
    pub(super) call: Call,
    pub(super) content: RenderedContent,
    pub(super) outcome: CallOutcome,
    /// Bytes of the server's answer.
    pub(super) size: usize,
    /// The task that the server continues.
    pub(super) task: Option<String>,
}

#[derive(Debug)]
pub(super) enum RenderedContent {
    /// What the client gets.
    Answer(Message),
    /// A result of the `proxy` tool that is one of several.
    Part(Bytes),
}

impl AnswerRendering {
    pub(super) fn is_large(&self) -> bool {
        self.answer.len() > LARGE
    }

    /// Makes the answer ready.
    pub fn run(self) -> RenderedAnswer {
        let AnswerRendering {
            call,
            answer,
            client_era,
            server_era,
            catalog,
            server_info,
        } = self;
        let answer = eras::answer(answer, client_era, server_era);
        let (outcome, size, task) = (outcome(&call, &answer), answer.len(), task_of(&answer));
        let published = |answer| with_public_uris(&catalog, &call, answer);
        let content = match &call.form {
            AnswerForm::Native => RenderedContent::Answer(published(answer)),
            AnswerForm::Plain | AnswerForm::TaskPage(_) | AnswerForm::Subscribe { .. } => {
                RenderedContent::Answer(answer)
            }
            AnswerForm::ProxyTool { kind, path } => {
                let result = proxy_tool_result(&published(answer), *kind, path);
                RenderedContent::Answer(completed(client_era, &call.id, &result, &server_info))
            }
            AnswerForm::Part { kind, path, .. } => {
                RenderedContent::Part(proxy_tool_result(&published(answer), *kind, path))
            }
        };
        RenderedAnswer {
            call,
            content,
            outcome,
            size,
            task,
        }
    }
}

fn outcome(call: &Call, answer: &Message) -> CallOutcome {
    let failed = || answer.span(Field::ResultField("isError"));
    match answer.kind() {
        _ if call.is_cached => CallOutcome::Cached,
        Kind::Error => CallOutcome::Failed,
        _ if failed().is_some_and(|span| answer.slice(span) == b"true") => CallOutcome::ToolFailed,
        _ => CallOutcome::Succeeded,
    }
}

/// A server's answer in which clients can read back the URIs.
fn with_public_uris(catalog: &Catalog, call: &Call, answer: Message) -> Message {
    let Some(result) = answer.result() else {
        return answer;
    };
    let edits = catalog.result_edits(call.server, &answer, result);
    if edits.is_empty() {
        return answer;
    }
    let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
    answer.splice(&edits).unwrap_or(answer)
}
