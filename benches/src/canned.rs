//! What is said on the wire: the answers of the canned server and the requests of the load, both made once as bytes.
//!
//! The server reads the envelope and looks an answer up, so that its own cost is small and the same for all contenders.

mod requests;

use std::borrow::Cow;
use std::cell::OnceCell;

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use requests::{BenchEra, LEGACY_VERSION, MODERN_VERSION, Request, initialized, list, opening};

/// How every answer begins, up to its id.
pub const ANSWER_START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

const VERBS: [&str; 10] = [
    "list", "search", "read", "create", "update", "archive", "export", "compare", "count", "share",
];
const NOUNS: [&str; 10] = [
    "orders", "invoices", "tickets", "branches", "messages", "contacts", "events", "reports",
    "tables", "folders",
];

/// The length of a result's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultSize {
    Small,
    OneMegabyte,
    TenMegabytes,
}

impl ResultSize {
    const LARGE: [ResultSize; 2] = [ResultSize::OneMegabyte, ResultSize::TenMegabytes];

    /// The tool whose result is this long, behind the server's prefix. Every other tool has a small result.
    pub fn tool(self) -> &'static str {
        match self {
            ResultSize::Small => "answer-small",
            ResultSize::OneMegabyte => "answer-1mb",
            ResultSize::TenMegabytes => "answer-10mb",
        }
    }

    /// Bytes of escaped text in the result.
    pub fn bytes(self) -> usize {
        match self {
            ResultSize::Small => 100,
            ResultSize::OneMegabyte => 1_000_000,
            ResultSize::TenMegabytes => 10_000_000,
        }
    }
}

/// All answers of the canned server, without the ids. Results are made when first asked for: a start must not wait for
/// them.
pub struct CannedAnswers {
    results: [[OnceCell<Bytes>; 3]; 2],
    initialize: Bytes,
    discover: Bytes,
    tools: Bytes,
    unknown: Bytes,
}

/// One answer: `ANSWER_START`, the id as the request has it, then `rest`.
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
    /// A server with this many tools, whose names begin with `prefix`.
    pub fn new(tools: usize, prefix: &str) -> CannedAnswers {
        let definitions: Vec<String> = (0..tools).map(|index| definition(prefix, index)).collect();
        CannedAnswers {
            results: Default::default(),
            initialize: format!(
                r#","result":{{"protocolVersion":"{}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"canned","version":"1"}}}}}}"#,
                requests::LEGACY_VERSION
            )
            .into(),
            discover: format!(
                r#","result":{{"resultType":"complete","supportedVersions":["{MODERN_VERSION}"],"capabilities":{{"tools":{{}}}},"ttlMs":0,"cacheScope":"public"}}}}"#
            )
            .into(),
            tools: format!(
                r#","result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{}]}}}}"#,
                definitions.join(",")
            )
            .into(),
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
            "tools/call" => self.result(request.params),
            _ => &self.unknown,
        };
        Some(CannedAnswer {
            id,
            rest: rest.clone(),
            opens_session: request.method == "initialize",
        })
    }

    fn result(&self, params: Option<&RawValue>) -> &Bytes {
        let text = params.map_or("{}", RawValue::get);
        let Ok(call) = serde_json::from_str::<ToolCall<'_>>(text) else {
            return &self.unknown;
        };
        let is_modern = memmem::find(text.as_bytes(), requests::VERSION_KEY.as_bytes()).is_some();
        let size = ResultSize::LARGE
            .into_iter()
            .find(|size| call.name.ends_with(size.tool()))
            .unwrap_or(ResultSize::Small);
        let extra = if is_modern {
            r#""resultType":"complete","#
        } else {
            ""
        };
        self.results[usize::from(is_modern)][size as usize].get_or_init(|| {
            let text = records(size.bytes());
            format!(r#","result":{{{extra}"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#).into()
        })
    }
}

/// A JSON array of short records as the escaped text of a result, exactly `bytes` long.
fn records(bytes: usize) -> String {
    const RECORD: &str =
        r#"{\"row\":17,\"name\":\"a value\",\"note\":\"two words, \\\"one\\\" quoted\"},"#;
    const LAST: (&str, &str) = (r#"{\"note\":\""#, r#"\"}]"#);
    let room = bytes - "[".len() - LAST.0.len() - LAST.1.len();
    let repeated = RECORD.repeat(room / RECORD.len());
    let filling = "x".repeat(room % RECORD.len());
    ["[", &repeated, LAST.0, &filling, LAST.1].concat()
}

/// The name of a server's tool. Two of them have large results.
pub fn tool_name(prefix: &str, index: usize) -> String {
    if let Some(size) = index
        .checked_sub(1)
        .and_then(|at| ResultSize::LARGE.get(at))
    {
        return format!("{prefix}{}", size.tool());
    }
    let (verb, noun) = words(index);
    format!("{prefix}{verb}_{noun}_{index:04}")
}

fn words(index: usize) -> (&'static str, &'static str) {
    (VERBS[index % 10], NOUNS[index / 10 % 10])
}

/// About 600 bytes, as those of real servers have.
fn definition(prefix: &str, index: usize) -> String {
    let name = tool_name(prefix, index);
    let (verb, noun) = words(index);
    format!(
        r#"{{"name":"{name}","title":"{verb} {noun}","description":"{verb} the {noun} of the current workspace. Takes the filter that the web interface takes, returns at most `limit` of them with the newest first, and says in `next` where to continue.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to look for in the {noun}, as words or as a quoted phrase"}},"limit":{{"type":"integer","minimum":1,"maximum":500,"default":50}},"sort":{{"type":"string","enum":["newest","oldest","name"]}}}},"required":["text"]}},"annotations":{{"readOnlyHint":false,"openWorldHint":true}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_answer_is_json_and_has_the_id_of_its_request() {
        let answers = CannedAnswers::new(10, "a_");
        for era in [BenchEra::Legacy, BenchEra::Modern] {
            for size in [ResultSize::Small, ResultSize::OneMegabyte] {
                let request = Request::call(era, size.tool(), size.bytes()).with_id(7_654_321);
                let answer = answers.answer(&request).unwrap();
                let text = [ANSWER_START, answer.id.as_bytes(), &answer.rest].concat();
                let value: Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(value["id"], 7_654_321);
                assert_eq!(
                    value["result"]["resultType"] == "complete",
                    era == BenchEra::Modern
                );
                let text = value["result"]["content"][0]["text"].as_str().unwrap();
                assert!(serde_json::from_str::<Vec<Value>>(text).is_ok());
            }
            let opens_session = answers
                .answer(opening(era).as_bytes())
                .unwrap()
                .opens_session;
            assert_eq!(opens_session, era == BenchEra::Legacy);
        }
        assert!(answers.answer(initialized().as_bytes()).is_none());
    }

    #[test]
    fn definitions_are_json_of_about_600_bytes() {
        let text = definition("a_", 17);
        let tool: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(tool["name"], tool_name("a_", 17));
        assert!((550..700).contains(&text.len()));
    }
}
