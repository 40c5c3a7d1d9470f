//! What a record tells of a server's tools: which arguments it wants in headers.
//!
//! A client of 2026-07-28 knows that from `tools/list`. What is played may leave the list out, or the client asked for it
//! before the record began; so all lists and calls of the record are read, whatever is played.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_proxy_session::{ProxyMessage, SessionRecord};
use mcp_proxy_transport::http::ToolHeaders;
use mcp_proxy_wire::{Direction, Message};

/// Reads the record. What of it cannot be read teaches nothing, and is told of elsewhere.
pub fn learn(tools: &ToolHeaders, session: &SessionRecord) {
    let asked = session
        .rows()
        .iter()
        .enumerate()
        .filter(|(_, row)| row.direction() == Direction::ClientToServer);
    for (index, row) in asked {
        match session.method(row) {
            Some("tools/list") => {
                let answer = row.peer().and_then(|peer| session.message(peer).ok());
                if let Some(answer) = answer.map(|answer| first_bytes(&answer)) {
                    tools.note(&answer);
                }
            }
            Some("tools/call") => {
                let call = session.message(index).ok();
                if let Some(call) = call.filter(|call| call.http.is_some()) {
                    tools.note_call(&headers(&call), &first_bytes(&call));
                }
            }
            _ => {}
        }
    }
}

/// The message as its sender wrote it: its headers were made for that.
fn first_bytes(recorded: &ProxyMessage) -> Message {
    let raw = recorded.original_raw.as_ref().unwrap_or(&recorded.raw);
    Message::parse(raw.to_bytes())
}

fn headers(recorded: &ProxyMessage) -> HeaderMap {
    let all = recorded.http.iter().flat_map(|http| &http.headers);
    let known = all.filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    known.collect()
}
