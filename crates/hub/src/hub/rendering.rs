//! A server's answer in the form that its client gets.
//!
//! Making it takes time in proportion to the answer's length. A large one is made apart from the hub, which continues with
//! other messages.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_core::answer_under;
use mcp_proxy_wire::{Era, Kind, Message, Span, json_string};

use super::CallOutcome;
use super::answers::{completed, result_message};
use super::calls::{AnswerForm, Call};
use super::eras;
use super::expected_arguments::with_signature;
use super::proxy_calls::proxy_tool_result;
use super::spilling::{PlannedSpill, SpillOutcome, shortened_result};
use super::tasks::task_of;
use crate::catalog::Catalog;
use crate::names::ServerNaming;
use crate::proxy_tool::{self, CapabilityType};

/// A longer answer takes about a millisecond or more.
const LARGE: usize = 256 * 1024;

/// An answer that is to be made ready for its client.
#[derive(Debug)]
pub struct AnswerRendering {
    pub(super) call: Call,
    /// Under the id that the server knows the call by.
    pub(super) answer: Message,
    pub(super) client_era: Era,
    pub(super) server_era: Era,
    pub(super) catalog: Arc<Catalog>,
    pub(super) server_info: Bytes,
    /// How the result is kept in a file, if it is.
    pub(super) spill: Option<PlannedSpill>,
    /// The servers may have other places when the answer is ready.
    pub(super) naming: Arc<ServerNaming>,
}

/// An answer that is ready.
#[derive(Debug)]
pub struct RenderedAnswer {
    pub(super) call: Call,
    pub(super) content: RenderedContent,
    pub(super) outcome: CallOutcome,
    pub(super) naming: Arc<ServerNaming>,
    /// Why the result is not in a file although it should be.
    pub(super) spill_failure: Option<String>,
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
    /// Whether making it ready takes long: it is large, or written to a file.
    pub(super) fn takes_long(&self) -> bool {
        self.answer.len() > LARGE || self.spill.is_some()
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
            spill,
            naming,
        } = self;
        let answer = eras::answer(answer, client_era, server_era, &naming.name);
        let names = ["isError", "taskId", "task"];
        let found = answer.result().map(|result| answer.members(result, names));
        let [is_error, task_id, task] = found.unwrap_or_default();
        let (outcome, size) = (outcome(&call, &answer, is_error), answer.len());
        let task = task_of(&answer, task_id, task);
        let answer = match &call.form {
            AnswerForm::Plain | AnswerForm::TaskPage(_) | AnswerForm::Subscribe { .. } => answer,
            _ => {
                let answer = with_public_uris(&catalog, &call, answer);
                with_signature(&catalog, &call, answer)
            }
        };
        let reader = spill.as_ref().map(PlannedSpill::reader);
        let spill = spill.map_or(SpillOutcome::Inline, |spill| spill.keep(&answer));
        let shortened =
            || shortened_result(spill.spilled()?, reader.as_ref()?, &catalog, &call, &answer);
        let proxied = |kind: CapabilityType, path: &str| match shortened() {
            Some(result) => proxy_tool::render_items(&result, kind, path),
            None => proxy_tool_result(&answer, kind, path),
        };
        let complete = |answer| completed(client_era, answer, &server_info);
        let own = |result: &Bytes| complete(result_message(&call.id, result));
        let content = match &call.form {
            AnswerForm::Native => RenderedContent::Answer(match shortened() {
                Some(result) => own(&result),
                None => answer_under(answer, &call.id),
            }),
            AnswerForm::Plain | AnswerForm::TaskPage(_) | AnswerForm::Subscribe { .. } => {
                RenderedContent::Answer(answer_under(answer, &call.id))
            }
            AnswerForm::ProxyTool { kind, path } => {
                RenderedContent::Answer(own(&proxied(*kind, path)))
            }
            AnswerForm::Part { kind, path, .. } => RenderedContent::Part(proxied(*kind, path)),
            AnswerForm::Dispatch(form) => {
                RenderedContent::Answer(complete(form.answer(answer, &call.id, &spill)))
            }
        };
        RenderedAnswer {
            spill_failure: spill.failure().map(str::to_owned),
            naming,
            call,
            content,
            outcome,
            size,
            task,
        }
    }
}

fn outcome(call: &Call, answer: &Message, is_error: Option<Span>) -> CallOutcome {
    match answer.kind() {
        _ if call.is_cached => CallOutcome::Cached,
        Kind::Error => CallOutcome::Failed,
        _ if is_error.is_some_and(|span| answer.slice(span) == b"true") => CallOutcome::ToolFailed,
        _ => CallOutcome::Succeeded,
    }
}

/// A server's answer in which clients can read back the URIs.
fn with_public_uris(catalog: &Catalog, call: &Call, answer: Message) -> Message {
    let edits = match answer.result() {
        Some(result) => catalog.result_edits(call.server, &answer, result),
        None => error_edits(catalog, call, &answer).into_iter().collect(),
    };
    if edits.is_empty() {
        return answer;
    }
    let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, new)| (*span, &**new)).collect();
    answer.splice(&edits).unwrap_or(answer)
}

/// An error about a resource names it in `data.uri`.
fn error_edits(catalog: &Catalog, call: &Call, answer: &Message) -> Option<(Span, Vec<u8>)> {
    let data = answer.member(answer.error()?, "data")?;
    let span = answer.member(data, "uri")?;
    let public = catalog.publish_uri(call.server, &answer.text_at(span)?)?;
    Some((span, json_string(&public).into_bytes()))
}
