//! The requests of the load.

use memchr::memmem;

use super::{BenchEra, DISPATCHER, FIRST_ID, LEGACY_VERSION, MODERN_VERSION, VERSION_KEY};

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

/// A `tools/call` with `FIRST_ID`; `id_offset` finds the digits to change.
pub fn call(era: BenchEra, name: &str) -> String {
    let meta = match era {
        BenchEra::Legacy => String::new(),
        BenchEra::Modern => format!(",{}", modern_meta()),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{name}","arguments":{{"text":"hello"}}{meta}}}}}"#
    )
}

/// The same call through the tool `proxy` of a hub.
pub fn call_through_proxy_tool(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"proxy","arguments":{{"action":"call","type":"tool","path":"{name}","args":{{"text":"hello"}}}}}}}}"#
    )
}

/// The same call through the tool `proxy-dispatch` of a hub.
pub fn dispatched_call(name: &str) -> String {
    dispatched(&format!(
        r#""action":"call","tool":"{name}","arguments":{{"text":"hello"}}"#
    ))
}

/// The same, and its result is kept in a file.
pub fn dispatched_call_to_file(name: &str) -> String {
    dispatched(&format!(
        r#""action":"call","tool":"{name}","arguments":{{"text":"hello"}},"resultToFile":true"#
    ))
}

/// Reads a part of the result in `file`; `part` are the members that say which.
pub fn read_result(file: &str, part: &str) -> String {
    dispatched(&format!(
        r#""action":"readresult","resultFile":"{file}",{part}"#
    ))
}

fn dispatched(members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{DISPATCHER}","arguments":{{{members}}}}}}}"#
    )
}

/// A `tools/list` with `FIRST_ID`, for the page at `cursor` (escaped as it came) or the first.
pub fn list(cursor: Option<&str>) -> String {
    let cursor = cursor.map_or_else(String::new, |cursor| format!(r#""cursor":"{cursor}""#));
    format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/list","params":{{{cursor}}}}}"#)
}

fn modern_meta() -> String {
    format!(
        r#""_meta":{{"{VERSION_KEY}":"{MODERN_VERSION}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}}}}"#
    )
}

/// Where the seven digits of the id stand in `message`.
pub fn id_offset(message: &[u8]) -> Option<usize> {
    memmem::find(message, br#""id":"#).map(|at| at + 5)
}

/// Writes `id` over the seven digits at `at`.
pub fn write_id(message: &mut [u8], at: usize, id: u32) {
    let mut rest = id;
    for digit in message[at..at + 7].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}
