//! The requests of the load.

use memchr::memmem;

/// The revision that legacy requests name: the newest that every peer measured here accepts.
pub const LEGACY_VERSION: &str = "2025-06-18";
/// The revision that modern requests name.
pub const MODERN_VERSION: &str = "2026-07-28";
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A result that is an error is not longer than this.
const LONGEST_ERROR: usize = 16 * 1024;

/// Ids have seven digits, so that a request is changed in place.
const FIRST_ID: u32 = 1_000_000;

/// The two ways MCP is spoken: with sessions, or with everything in each request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchEra {
    Legacy,
    Modern,
}

/// A `tools/call` that is sent again and again, each time with another id.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tool that the HTTP headers of a modern request name.
    pub tool: String,
    body: Vec<u8>,
    id_at: usize,
    /// What its answer has at least.
    least_bytes: usize,
}

impl Request {
    /// A call whose result has `least_bytes`.
    pub fn call(era: BenchEra, tool: &str, least_bytes: usize) -> Request {
        let meta = match era {
            BenchEra::Legacy => String::new(),
            BenchEra::Modern => format!(",{}", modern_meta()),
        };
        let params = format!(r#""name":"{tool}","arguments":{{"text":"hello"}}{meta}"#);
        Request::new(tool, &params, least_bytes)
    }

    /// A small call through a tool of a hub that calls others; `arguments` is the JSON of its arguments.
    pub fn through(tool: &str, arguments: &str) -> Request {
        let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
        Request::new(tool, &params, 0)
    }

    fn new(tool: &str, params: &str, least_bytes: usize) -> Request {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{{params}}}}}"#
        );
        Request {
            tool: tool.to_owned(),
            id_at: r#"{"jsonrpc":"2.0","id":"#.len(),
            body: body.into_bytes(),
            least_bytes,
        }
    }

    pub fn with_id(&self, id: u32) -> Vec<u8> {
        let mut body = self.body.clone();
        write_id(&mut body, self.id_at, id);
        body
    }

    /// Whether `answer` is the whole result for this id. Text inside a result is escaped, so it cannot be mistaken.
    pub fn is_answered_by(&self, answer: &[u8], id: u32) -> bool {
        let mut key = *br#""id":0000000"#;
        write_id(&mut key, 5, id);
        let start = &answer[..answer.len().min(LONGEST_ERROR)];
        answer.len() > self.least_bytes
            && memmem::find(answer, &key).is_some()
            && memmem::find(answer, br#""result":"#).is_some()
            && memmem::find(start, br#""isError":true"#).is_none()
    }
}

/// The first request of a connection: it opens a legacy session, or asks a modern server what it is.
pub fn opening(era: BenchEra) -> String {
    match era {
        BenchEra::Legacy => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"initialize","params":{{"protocolVersion":"{LEGACY_VERSION}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        ),
        BenchEra::Modern => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"server/discover","params":{{{}}}}}"#,
            modern_meta()
        ),
    }
}

/// What a legacy client says after `initialize` is answered.
pub fn initialized() -> &'static str {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
}

/// A `tools/list` for the page at `cursor` (escaped as it came) or the first.
pub fn list(cursor: Option<&str>) -> String {
    let cursor = cursor.map_or_else(String::new, |cursor| format!(r#""cursor":"{cursor}""#));
    format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/list","params":{{{cursor}}}}}"#)
}

fn modern_meta() -> String {
    format!(
        r#""_meta":{{"{VERSION_KEY}":"{MODERN_VERSION}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}}}}"#
    )
}

/// Writes `id` over the seven digits at `at`.
fn write_id(message: &mut [u8], at: usize, id: u32) {
    let mut rest = id;
    for digit in message[at..at + 7].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}
