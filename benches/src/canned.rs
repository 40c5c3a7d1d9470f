//! What is said on the wire: the canned server's answers and the load's requests, both made once as bytes.
//!
//! The server reads the envelope and looks one answer up, so that its own cost is small and the same for all contenders.

mod records;
mod requests;
mod tools;

use std::borrow::Cow;
use std::cell::OnceCell;

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use records::{ABSENT_PATTERN, SCARCE_PATTERN, record_count, record_id, scarce_count};
pub use requests::{
    call, call_through_proxy_tool, dispatched_call, dispatched_call_to_file, id_offset,
    initialized, list, opening, read_result, write_id,
};
pub use tools::{ToolSet, definition_bytes, tool_name};

/// The revision that legacy requests name: the newest that every peer measured here accepts.
pub const LEGACY_VERSION: &str = "2025-06-18";
/// The revision that modern requests name.
pub const MODERN_VERSION: &str = "2026-07-28";
/// Ids start here and so keep seven digits: a request is changed in place and an answer's length is constant.
pub const FIRST_ID: u32 = 1_000_000;
/// How every answer begins, up to its id.
pub const ANSWER_START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// The tool of a hub that calls others and keeps their results in files.
pub const DISPATCHER: &str = "proxy-dispatch";
/// What the answer to a call has in it whose result is in a file, up to the part of the handle that differs.
pub const IN_A_FILE: &str = r#""resultFile":"spill:"#;
/// How the text of a small answer begins, as it is escaped.
pub const LINE_START: &str = r#"{\"row\":17,"#;
/// How many tools a canned server has that is not told a number.
pub const SHORT_TOOLS: usize = TOOLS.len();

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const TOOLS: [&str; 10] = [
    "answer-small",
    "answer-1mb",
    "answer-10mb",
    "records-10mb",
    "records-100mb",
    "weather",
    "calendar",
    "search",
    "translate",
    "mail",
];

/// The two ways MCP is spoken: with sessions, or with everything in each request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchEra {
    Legacy,
    Modern,
}

/// How long the text of an answer is, and of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerSize {
    Small,
    OneMegabyte,
    TenMegabytes,
    /// One JSON array of short records.
    TenMegabytesOfRecords,
    HundredMegabytesOfRecords,
}

/// How many sizes there are.
const SIZES: usize = 5;

impl AnswerSize {
    const ALL: [AnswerSize; SIZES] = [
        AnswerSize::Small,
        AnswerSize::OneMegabyte,
        AnswerSize::TenMegabytes,
        AnswerSize::TenMegabytesOfRecords,
        AnswerSize::HundredMegabytesOfRecords,
    ];

    /// The tool that answers with this much.
    pub fn tool(self) -> &'static str {
        TOOLS[self as usize]
    }

    /// Bytes of escaped text in the answer.
    pub fn bytes(self) -> usize {
        match self {
            AnswerSize::Small => 100,
            AnswerSize::OneMegabyte => 1_000_000,
            AnswerSize::TenMegabytes | AnswerSize::TenMegabytesOfRecords => 10_000_000,
            AnswerSize::HundredMegabytesOfRecords => 100_000_000,
        }
    }
}

/// All answers of the canned server, without the ids. Texts are made when first asked for: a start must not wait for them.
pub struct CannedAnswers {
    legacy: [OnceCell<Bytes>; SIZES],
    modern: [OnceCell<Bytes>; SIZES],
    initialize: Bytes,
    discover: Bytes,
    tools: Bytes,
    unknown: Bytes,
}

/// One answer: `ANSWER_START`, the id's token, then `rest`.
pub struct CannedAnswer<'a> {
    pub id: &'a str,
    pub rest: Bytes,
    pub opens_session: bool,
}

#[derive(Deserialize)]
struct CannedRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl CannedAnswers {
    pub fn new(tools: &ToolSet) -> CannedAnswers {
        CannedAnswers {
            legacy: Default::default(),
            modern: Default::default(),
            initialize: format!(
                r#","result":{{"protocolVersion":"{LEGACY_VERSION}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"canned","version":"1"}}}}}}"#
            )
            .into(),
            discover: format!(
                r#","result":{{"resultType":"complete","supportedVersions":["{MODERN_VERSION}"],"capabilities":{{"tools":{{}}}},"ttlMs":0,"cacheScope":"public"}}}}"#
            )
            .into(),
            tools: tools::answer(&tools.definitions()),
            unknown: Bytes::from_static(br#","error":{"code":-32601,"message":"method not found"}}"#),
        }
    }

    /// The answer to one message; `None` for a notification or for what is not a request at all.
    pub fn answer<'a>(&self, message: &'a [u8]) -> Option<CannedAnswer<'a>> {
        let request: CannedRequest<'a> = serde_json::from_slice(message).ok()?;
        let id = request.id?.get();
        let rest = match request.method.as_ref() {
            "initialize" => &self.initialize,
            "server/discover" => &self.discover,
            "tools/list" => &self.tools,
            "tools/call" => self.call(request.params),
            _ => &self.unknown,
        };
        Some(CannedAnswer {
            id,
            rest: rest.clone(),
            opens_session: request.method == "initialize",
        })
    }

    fn call(&self, params: Option<&RawValue>) -> &Bytes {
        let text = params.map_or("{}", RawValue::get);
        let Ok(call) = serde_json::from_str::<ToolCall<'_>>(text) else {
            return &self.unknown;
        };
        let modern = memmem::find(text.as_bytes(), VERSION_KEY.as_bytes()).is_some();
        let (answers, extra) = if modern {
            (&self.modern, r#""resultType":"complete","#)
        } else {
            (&self.legacy, "")
        };
        // The tools that are there only to make ten answer as the small one does.
        let size = AnswerSize::ALL
            .into_iter()
            .find(|size| size.tool() == call.name)
            .unwrap_or(AnswerSize::Small);
        answers[size as usize].get_or_init(|| text_answer(size, extra))
    }
}

fn text_answer(size: AnswerSize, extra: &str) -> Bytes {
    let text = match size {
        AnswerSize::Small | AnswerSize::OneMegabyte | AnswerSize::TenMegabytes => {
            lines(size.bytes())
        }
        AnswerSize::TenMegabytesOfRecords | AnswerSize::HundredMegabytesOfRecords => {
            records::array(size.bytes())
        }
    };
    format!(
        r#","result":{{{extra}"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
    .into()
}

fn lines(bytes: usize) -> String {
    const LINE: &str = r#"{\"row\":17,\"name\":\"a value\",\"note\":\"two\ttabs\tand an end\"}\n"#;
    let mut text = LINE.repeat(bytes / LINE.len());
    text.push_str(&"x".repeat(bytes - text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_json_and_has_the_id_of_its_request() {
        let answers = CannedAnswers::new(&ToolSet::default());
        for era in [BenchEra::Legacy, BenchEra::Modern] {
            for size in [
                AnswerSize::Small,
                AnswerSize::OneMegabyte,
                AnswerSize::TenMegabytes,
            ] {
                let mut request = call(era, size.tool()).into_bytes();
                let at = id_offset(&request).unwrap();
                write_id(&mut request, at, 7_654_321);
                let answer = answers.answer(&request).unwrap();
                let text = [ANSWER_START, answer.id.as_bytes(), &answer.rest].concat();
                let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(value["id"], 7_654_321);
                assert_eq!(
                    value["result"]["resultType"] == "complete",
                    era == BenchEra::Modern
                );
            }
            let opening = opening(era);
            assert_eq!(
                answers.answer(opening.as_bytes()).unwrap().opens_session,
                era == BenchEra::Legacy
            );
        }
        assert!(answers.answer(initialized().as_bytes()).is_none());
    }
}
