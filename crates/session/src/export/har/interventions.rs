//! What the proxy did with a message, next to the message: a `comment` for people, and a member for each thing that was done.

use super::entry::put;
use super::timings::millis;
use crate::export::body::{form, write_string};
use crate::{Error, MessageWithContext};
use mcp_proxy_wire::json_string;
use std::io::Write;

/// Members of a request, a response or an event. Nothing for a message that passed as it was.
pub(super) fn write(told: &MessageWithContext, out: &mut dyn Write) -> Result<(), Error> {
    let message = &told.message;
    if !message.is_from_peer() {
        put(
            out,
            &format!(",\"_origin\":\"{}\"", message.origin.as_str()),
        )?;
    }
    for (is, name) in [
        (message.modified, "_modified"),
        (message.dropped, "_dropped"),
        (message.refused, "_refused"),
        (message.answered, "_answered"),
        (message.undecided, "_undecided"),
        (message.delayed, "_delayed"),
        (message.redirected, "_redirected"),
        (message.late, "_late"),
        (message.duplicate, "_duplicate"),
        (told.undelivered, "_undelivered"),
    ] {
        if is {
            put(out, &format!(",\"{name}\":true"))?;
        }
    }
    if let Some(origin) = message.replay_of {
        put(out, &format!(",\"_replayOf\":{}", origin.sequence))?;
        if origin.is_edited {
            put(out, ",\"_edited\":true")?;
        }
    }
    if let Some(held) = message.held {
        put(out, &format!(",\"_heldMs\":{}", millis(held)))?;
    }
    if let Some(original) = &message.original_raw {
        put(out, ",\"_original\":")?;
        write_string(out, original, form(original), "base64:")?;
    }
    let comment = comment(told);
    match comment.is_empty() {
        true => Ok(()),
        false => put(out, &format!(",\"comment\":{}", json_string(&comment))),
    }
}

/// What was done, who decided it and why.
fn comment(told: &MessageWithContext) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(problem) = told.problem() {
        parts.push(problem.what);
    }
    parts.extend(told.remarks());
    for verdict in &told.message.verdicts {
        let why = match verdict.why.is_empty() {
            true => String::new(),
            false => format!(" ({})", verdict.why),
        };
        parts.push(format!("{} by {}{why}", verdict.kind, verdict.by));
    }
    parts.join("; ")
}
