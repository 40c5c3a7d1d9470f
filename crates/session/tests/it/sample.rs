//! A session with one of everything, made with the crate's sample records.

pub use mcp_proxy_session::testing::{
    SampleRecord, answers, at, event, id, new_message, options, response, start,
};

use mcp_proxy_session::*;
use mcp_proxy_wire::{Direction, Transport, TransportEnvelope};
use std::path::PathBuf;

pub fn header() -> SessionHeader {
    let mut header = testing::header();
    header.argv = ["mcp-proxy", "--", "python", "server.py"]
        .map(str::to_owned)
        .into();
    header.cwd = Some("/home/user".to_owned());
    header
        .metadata
        .insert("target".to_owned(), "sample | server".into());
    header
}

/// A POST with secrets in it.
pub fn post() -> TransportEnvelope {
    testing::post(
        "/mcp?api_key=abc&x=1",
        &[
            ("host", "127.0.0.1:8888"),
            ("content-type", "application/json"),
            ("authorization", "Bearer very-secret"),
            ("mcp-session-id", "s-1"),
        ],
    )
}

/// One of everything: a handshake on stdio, a changed call, a drop, noise, a batch, broken bytes, and an HTTP exchange.
pub fn everything() -> (SampleRecord, PathBuf) {
    let mut sample = SampleRecord::with(options(), &header());
    let one = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    sample.answer(
        one,
        r#"{"result":{"capabilities":{}},"jsonrpc":"2.0","id":1}"#,
    );
    let call = sample
        .client(r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc"}}}"#);
    let changed = r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/tmp"}}}"#;
    sample.verdict("modify", call).raw(changed).write();
    sample.answer(
        call,
        r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"```no``` <b>|"}}"#,
    );
    let dropped = sample
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    sample.verdict("drop", dropped).write();
    sample.stderr("warning: |pipe|");
    sample.exit(3, "exited");
    sample.client("not json\nat all");
    sample.client(b"\xff\xfe");
    sample.client("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 12345678901234567890123456789,\n  \"method\": \"ping\"\n}");
    let list = sample
        .from_client(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#)
        .carried_by(&post())
        .in_exchange(5)
        .write();
    let head = response(
        200,
        &[("content-type", "text/event-stream"), ("set-cookie", "a=b")],
    );
    let head = RecordEvent::Http {
        connection: 1,
        exchange: 5,
        direction: Direction::ServerToClient,
        transport: Transport::StreamableHttp,
        envelope: &head,
    };
    sample.recorder.record_event(at(list), &head);
    sample
        .from_server(r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#)
        .carried_by(&event("e-1"))
        .in_exchange(5)
        .answering(list)
        .write();
    sample.end();
    let path = sample.path().to_path_buf();
    (sample, path)
}
