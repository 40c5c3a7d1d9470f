//! `har`: HAR 1.2, as browsers' network panels read it.
//!
//! One entry per HTTP exchange; the events of its stream are its body, and stand one by one under `_eventSourceMessages`.
//! Messages that no HTTP carried (stdio), or none that the record has a number for, become one synthetic entry per request
//! and its answer; `_transport` says so. What the proxy did with a message stands in a `comment` and in members that begin with
//! `_`, next to the message; how long it was held is apart from `wait`, which is the server's own time. What people noted stands
//! in the `comment` and the `_notes` of the log. A first pass sorts the record's lines into entries and keeps only their places, a
//! second writes the entries in the order in which they began.

mod entry;
mod plan;

use super::SessionExporter;
use crate::{Error, SessionNote, SessionRecord};
use mcp_proxy_wire::json_string;
use serde_json::Value;
use std::io::Write;

pub(super) const HAR: SessionExporter = SessionExporter {
    name: "har",
    extension: "har",
    about: "HAR 1.2 for browsers' network panels and HTTP tools",
    write,
};

fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let planned = plan::plan(session)?;
    write!(
        out,
        "{{\"log\":{{\"version\":\"1.2\",\"creator\":{{\"name\":\"mcp-proxy\",\"version\":{}}},\"_session\":{},\"entries\":[",
        json_string(&session.header().version),
        json_string(&session.header().id),
    )
    .map_err(Error::Output)?;
    let mut separator = "\n";
    for (index, lines) in planned.iter().enumerate() {
        if let Some(entry) = entry::entry(session, lines)? {
            write!(out, "{separator}{entry}").map_err(Error::Output)?;
            separator = ",\n";
        }
        super::report_progress(index + 1, planned.len(), progress);
    }
    out.write_all(b"\n]").map_err(Error::Output)?;
    let notes = session.notes()?;
    if !notes.is_empty() {
        let sentences: Vec<String> = notes.iter().map(SessionNote::sentence).collect();
        let comment = json_string(&sentences.join("; "));
        let notes: Value = notes.iter().map(SessionNote::to_json).collect();
        write!(out, ",\"comment\":{comment},\"_notes\":{notes}").map_err(Error::Output)?;
    }
    out.write_all(b"}}\n").map_err(Error::Output)
}
