//! Results that are kept in a file instead of being sent.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_spill::SpillFormat;
use mcp_proxy_wire::{Field, Message, json_string};

use super::calls::{AnswerForm, Call};
use super::work::OwnedFiles;
use super::{ClientId, Hub};
use crate::catalog::{Catalog, ItemKind};
use crate::dispatch_tool::{DispatchSpill, DispatchSpillReason, DispatchSpilledCall};
use crate::json;
use crate::read_tool::READ_TOOL_NAME;
use crate::settings::{OwnToolUse, SpillThreshold};

/// Where a result says that it is in a file.
const META_KEY: &str = "mcp-proxy/spill";

/// A result that is to be kept in a file.
#[derive(Clone, Debug)]
pub(super) struct PlannedSpill {
    files: OwnedFiles,
    format: SpillFormat,
    reason: DispatchSpillReason,
    reader: SpillReader,
}

/// With what a client reads on that did not call the dispatcher: a tool, if its profile offers one, because models have
/// no `resources/read`.
#[derive(Clone, Debug)]
pub(super) enum SpillReader {
    /// A tool of this name that has `readresult`.
    Parts(String),
    /// The `proxy` tool, which has this name and reads the whole as a resource.
    Proxy(String),
    /// The client itself.
    Client,
}

impl SpillReader {
    fn hint(&self, handle: &str) -> String {
        let handle = json_string(handle);
        match self {
            SpillReader::Parts(tool) => format!(
                r#"Read parts of it with `{tool}` {{"action":"readresult","resultFile":{handle},"op":"head"}}."#
            ),
            SpillReader::Proxy(tool) => format!(
                r#"Read the whole result with `{tool}` {{"action":"call","type":"resource","path":{handle}}}."#
            ),
            SpillReader::Client => {
                "The whole result is a resource: read it with resources/read.".to_owned()
            }
        }
    }
}

/// Where a result is.
pub(super) enum SpillOutcome {
    /// In the answer, as it is meant to be.
    Inline,
    /// In a file.
    Spilled(DispatchSpilledCall),
    /// In the answer, because it could not be written to a file.
    Failed(String),
}

impl Hub {
    /// Where the result of this call is kept, if it is kept in a file.
    pub(super) fn plan_spill(&self, call: &Call, answer: &Message) -> Option<PlannedSpill> {
        let reason = self.spill_reason(call, answer)?;
        Some(PlannedSpill {
            files: self.files_of(call.client)?,
            format: self.settings.spill.format,
            reason,
            reader: self.spill_reader(call.client),
        })
    }

    fn spill_reader(&self, client: ClientId) -> SpillReader {
        let profile = self.profile(client);
        let offered = OwnToolUse::Offered;
        if profile.read_tool == offered {
            SpillReader::Parts(READ_TOOL_NAME.to_owned())
        } else if profile.dispatch_tool == offered {
            SpillReader::Parts(self.settings.dispatch_tool.name.clone())
        } else if profile.proxy_tool == offered {
            SpillReader::Proxy(self.proxy_tool.name.clone())
        } else {
            SpillReader::Client
        }
    }

    fn spill_reason(&self, call: &Call, answer: &Message) -> Option<DispatchSpillReason> {
        let size = answer.result()?.range().len() as u64;
        let exceeds = |bytes: u64| {
            (size > bytes).then_some(DispatchSpillReason::Exceeded { bytes, sent: size })
        };
        let threshold = self.settings.spill.threshold;
        let configured = || match threshold {
            SpillThreshold::Above(bytes) => exceeds(bytes),
            SpillThreshold::ByClient | SpillThreshold::Never => None,
        };
        match &call.form {
            AnswerForm::Dispatch(form) => match form.spill {
                DispatchSpill::Always => Some(DispatchSpillReason::Requested),
                DispatchSpill::Above(bytes) => exceeds(bytes),
                DispatchSpill::Configured if threshold == SpillThreshold::ByClient => {
                    exceeds(self.whole_result_bytes(call.client))
                }
                DispatchSpill::Configured => configured(),
                DispatchSpill::Never => None,
            },
            AnswerForm::ProxyTool { .. } | AnswerForm::Part { .. } => configured(),
            AnswerForm::Native if call.message.method().as_deref() == Some("tools/call") => {
                configured()
            }
            AnswerForm::Native
            | AnswerForm::Plain
            | AnswerForm::Subscribe { .. }
            | AnswerForm::TaskPage(_) => None,
        }
    }
}

impl PlannedSpill {
    /// With what its client reads on.
    pub(super) fn reader(&self) -> SpillReader {
        self.reader.clone()
    }

    /// Writes the result to a file, if it is finished and there is room.
    pub(super) fn keep(self, answer: &Message) -> SpillOutcome {
        let Some(result) = answer.result() else {
            return SpillOutcome::Inline;
        };
        let is_finished = ["content", "contents", "messages"]
            .iter()
            .any(|member| answer.member(result, member).is_some());
        if !is_finished {
            return SpillOutcome::Inline;
        }
        let files = &self.files;
        let spilled = files.store.spill(
            files.owner,
            answer.slice(result),
            self.format,
            Instant::now(),
        );
        match spilled {
            Ok(result) => SpillOutcome::Spilled(DispatchSpilledCall {
                result,
                reason: self.reason,
            }),
            // The client gets the whole result when there is no room for it on disk: better large than lost.
            Err(error) => SpillOutcome::Failed(error.to_string()),
        }
    }
}

impl SpillOutcome {
    pub(super) fn spilled(&self) -> Option<&DispatchSpilledCall> {
        match self {
            SpillOutcome::Spilled(spilled) => Some(spilled),
            SpillOutcome::Inline | SpillOutcome::Failed(_) => None,
        }
    }

    /// Why it could not be kept.
    pub(super) fn failure(&self) -> Option<&str> {
        match self {
            SpillOutcome::Failed(reason) => Some(reason),
            SpillOutcome::Inline | SpillOutcome::Spilled(_) => None,
        }
    }
}

/// The result for a client that did not call the dispatcher: a preview, and a link to the whole.
pub(super) fn shortened_result(
    spilled: &DispatchSpilledCall,
    reader: &SpillReader,
    catalog: &Catalog,
    call: &Call,
    answer: &Message,
) -> Option<Bytes> {
    let result = answer.result()?;
    let handle = json_string(&spilled.result.handle);
    let mut text = br#"{"content":"#.to_vec();
    text.extend_from_slice(&spilled.content(&reader.hint(&spilled.result.handle)));
    if let Some(is_error) = answer.member(result, "isError") {
        text.extend_from_slice(br#","isError":"#);
        text.extend_from_slice(answer.slice(is_error));
    }
    let mut about = format!(
        r#""resultFile":{handle},"byteSize":{}"#,
        spilled.result.byte_size
    );
    if let Some(structured) = answer.member(result, "structuredContent") {
        if declares_output(catalog, call) {
            text.extend_from_slice(br#","structuredContent":"#);
            text.extend_from_slice(answer.slice(structured));
        } else {
            about.push_str(r#","structuredContent":"left out because the result is large; it is in the resource""#);
        }
    }
    let meta = answer
        .member(result, "_meta")
        .map(|span| answer.slice(span));
    let rest = meta.and_then(|meta| meta.trim_ascii().strip_prefix(b"{"));
    let rest = rest.map(|rest| rest.trim_ascii_start());
    text.extend_from_slice(format!(r#","_meta":{{"{META_KEY}":{{{about}}}"#).as_bytes());
    match rest {
        Some(rest) if rest != b"}" => {
            text.push(b',');
            text.extend_from_slice(rest);
        }
        _ => text.push(b'}'),
    }
    text.push(b'}');
    Some(text.into())
}

/// Whether the called tool says what its `structuredContent` looks like.
///
/// It is kept for a tool that does, because clients refuse a result of such a tool without it. Otherwise it is left out,
/// since it may be as large as the rest.
fn declares_output(catalog: &Catalog, call: &Call) -> bool {
    if let AnswerForm::ProxyTool { .. } | AnswerForm::Part { .. } = call.form {
        // To the client this is a result of the tool `proxy`, which declares nothing.
        return false;
    }
    let name = call.message.text(Field::Name);
    let entry = name.and_then(|name| catalog.find_of_server(ItemKind::Tool, call.server, &name));
    let Some(entry) = entry else {
        return false;
    };
    let definition = json::parse(catalog.entry(entry).definition.to_bytes());
    definition.is_some_and(|definition| {
        let whole = json::object(&definition);
        whole.is_some_and(|whole| definition.member(whole, "outputSchema").is_some())
    })
}
