//! Records that the scenes begin with.

use std::time::Duration;

use mcp_proxy_session::PeerInfo;
use mcp_proxy_session::testing::{self, SamplePace, SampleRecord, SampleVerdict};
use mcp_proxy_wire::Transport;

/// A record without messages, of HTTP clients of a stdio server.
pub fn empty() -> SampleRecord {
    let mut header = testing::header();
    header.client = PeerInfo::new(Transport::StreamableHttp);
    SampleRecord::with(testing::options(), &header).paced(SamplePace {
        step: Duration::from_millis(17),
        latency: Duration::from_micros(17_300),
    })
}

/// An ordinary session: a tool that works, and one that does not.
pub fn ordinary() -> SampleRecord {
    let mut record = empty();
    open_session(&mut record);
    let call = record.call(2, "search", r#"{"query":"rust proxies"}"#);
    let found = r#"{"content":[{"type":"text","text":"3 results"}],"isError":false}"#;
    record.result(2, call, found);
    let call = record.call(3, "read_file", r#"{"path":"/srv/notes/plan.txt"}"#);
    record.stderr("WARNING reader: /srv/notes/plan.txt does not exist");
    let failed = r#"{"content":[{"type":"text","text":"no such file: /srv/notes/plan.txt"}],"isError":true}"#;
    record.result(3, call, failed);
    record.flush();
    record
}

/// What every session begins with: messages 1 to 5.
pub fn open_session(record: &mut SampleRecord) {
    let first = record.client(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"editor","version":"1.4.0"}}}"#,
    );
    record.result(
        0,
        first,
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"0.9"}}"#,
    );
    record.client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let list = record.client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    record.result(
        1,
        list,
        r#"{"tools":[{"name":"search","inputSchema":{"type":"object"}},{"name":"read_file","inputSchema":{"type":"object"}}]}"#,
    );
}

/// A verdict by the person at the screen.
pub fn decide<'a>(
    record: &'a mut SampleRecord,
    kind: &'static str,
    sequence: u64,
) -> SampleVerdict<'a> {
    let verdict = record.verdict(kind, sequence);
    verdict.by("user (tui, pid 4711)").why("breakpoint 1")
}
