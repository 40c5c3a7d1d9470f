//! Requests of a client that become several calls: a batch of the `proxy` tool, or `tasks/list`.

use bytes::Bytes;
use mcp_proxy_wire::{Field, Id, Message};

use super::Hub;
use super::tasks::task_list;
use crate::proxy_tool;
use crate::server_link::{CallId, ClientId};

/// A batch of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchId(pub(super) u64);

/// What several calls of one client's request are made for.
#[derive(Clone, Copy, Debug)]
pub(super) enum BatchPurpose {
    /// A batch of the `proxy` tool.
    ProxyTool,
    /// `tasks/list`, with one part for each server.
    TaskList,
}

/// Results of a batch that have come.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) purpose: BatchPurpose,
    pub(super) client: ClientId,
    pub(super) id: Id,
    pub(super) results: Vec<Option<Bytes>>,
    pub(super) calls: Vec<CallId>,
    pub(super) progress: BatchProgress,
}

/// The progress of a batch: how many of its operations are done, with fractions of those that say how far they are.
#[derive(Debug, Default)]
pub(super) struct BatchProgress {
    /// The client's token, if it wants to know.
    token: Option<Bytes>,
    /// From 0 to 1, for each operation.
    parts: Vec<f64>,
    /// What the client was told last.
    told: f64,
}

impl BatchProgress {
    /// The progress of the operations of this request.
    pub(super) fn of(request: &Message, operations: usize) -> BatchProgress {
        let token = request.span(Field::Meta("progressToken"));
        BatchProgress {
            token: token.map(|span| request.raw().slice(span.range())),
            parts: vec![0.0; operations],
            told: 0.0,
        }
    }

    /// One operation has come so far. What the client is told about it: progress never goes back, and each message says more
    /// than the one before.
    fn advance(&mut self, place: usize, fraction: f64, text: Option<&[u8]>) -> Option<Message> {
        let part = self.parts.get_mut(place)?;
        *part = part.max(fraction.clamp(0.0, 1.0));
        let sum = (self.parts.iter().sum::<f64>() * 1000.0).round() / 1000.0;
        let token = self.token.as_ref().filter(|_| sum > self.told)?;
        self.told = sum;
        let token = String::from_utf8_lossy(token);
        let total = self.parts.len();
        let text = text.map_or_else(String::new, |text| {
            format!(r#","message":{}"#, String::from_utf8_lossy(text))
        });
        Some(Message::parse(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{sum},"total":{total}{text}}}}}"#
        )))
    }
}

impl Hub {
    /// A server reports the progress of a call in a batch.
    pub(super) fn part_progressed(&mut self, id: BatchId, place: usize, message: &Message) {
        let Some(batch) = self.batches.get_mut(&id) else {
            return;
        };
        let text = message.span(Field::Param("message"));
        let text = text.map(|span| message.slice(span));
        let told = batch.progress.advance(place, fraction_of(message), text);
        let client = batch.client;
        if let Some(told) = told {
            self.send_to_client(client, told);
        }
    }

    pub(super) fn part_done(&mut self, id: BatchId, place: usize, result: Bytes) {
        let Some(batch) = self.batches.get_mut(&id) else {
            return;
        };
        if let Some(slot) = batch.results.get_mut(place) {
            *slot = Some(result);
        }
        if batch.results.iter().any(Option::is_none) {
            let (told, client) = (batch.progress.advance(place, 1.0, None), batch.client);
            if let Some(told) = told {
                self.send_to_client(client, told);
            }
            return;
        }
        let Some(batch) = self.batches.remove(&id) else {
            return;
        };
        if let Some(client) = self.clients.get_mut(&batch.client) {
            client.open.remove(&batch.id.key());
        }
        let results: Vec<Bytes> = batch.results.into_iter().flatten().collect();
        match batch.purpose {
            BatchPurpose::ProxyTool => {
                let result = proxy_tool::render_batch(&results);
                self.send_result(batch.client, &batch.id, &result);
            }
            BatchPurpose::TaskList => {
                self.send_result(batch.client, &batch.id, &task_list(&results));
            }
        }
        self.release(batch.client);
    }
}

/// How far a call is. Without a total it comes closer to the end with each step, and never reaches it.
fn fraction_of(message: &Message) -> f64 {
    let number = |name: &'static str| {
        let text = message.slice(message.span(Field::Param(name))?);
        std::str::from_utf8(text).ok()?.parse::<f64>().ok()
    };
    let progress = number("progress").filter(|progress| *progress > 0.0);
    match (progress, number("total")) {
        (Some(progress), Some(total)) if total > 0.0 => progress / total,
        (Some(progress), _) => progress / (progress + 1.0),
        (None, _) => 0.0,
    }
}
