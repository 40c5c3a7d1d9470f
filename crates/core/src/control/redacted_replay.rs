//! Replays of messages with values that the record hides.
//!
//! A mark stands for a value that the proxy may still know: then that is sent. Otherwise the viewer is told which values it
//! has to give.

use bytes::Bytes;
use mcp_proxy_control::Fault;
use mcp_proxy_session::redact::{self, RedactedPlace};
use mcp_proxy_session::{ProxyMessage, Redaction};
use mcp_proxy_wire::Message;
use serde_json::{Value, json};

use super::ProxyControl;
use super::replay_request::{ReplaySource, bytes_of};

/// A recorded message as it was sent, if the record hides something of it and it is still known. What a rule or a person
/// changed it to is not.
pub(super) fn original(control: &ProxyControl, recorded: &ProxyMessage) -> Option<Bytes> {
    let is_hidden = recorded.redacted > 0 && !recorded.modified;
    is_hidden.then(|| control.run.unredacted(recorded.sequence))?
}

/// The message, or its edit, without marks.
pub(super) fn whole_message(
    control: &ProxyControl,
    found: &ReplaySource,
    edit: Option<Bytes>,
) -> Result<Message, Fault> {
    let recorded = &found.message;
    let original = original(control, recorded);
    let shown = match (edit, original) {
        (None, Some(original)) => return Ok(Message::parse(original)),
        (None, None) => bytes_of(recorded)?,
        (Some(edit), Some(original)) => {
            let hidden = control.summary.redaction.as_ref();
            put_values_back(edit, &Message::parse(original), found, hidden)?
        }
        (Some(edit), None) => Message::parse(edit),
    };
    let places = match &found.redaction {
        Some(facts) if recorded.redacted > 0 => redact::redacted_places(&shown, facts),
        _ => Vec::new(),
    };
    match places.is_empty() {
        true => Ok(shown),
        false => Err(missing(recorded.sequence, &places)),
    }
}

/// Marks that were left as they are become the values they stand for. The record must hide these values again, so they must
/// be where a rule hides them.
fn put_values_back(
    edit: Bytes,
    original: &Message,
    found: &ReplaySource,
    hidden: Option<&Redaction>,
) -> Result<Message, Fault> {
    let shown = Message::parse(edit.clone());
    let (Some(hidden), Some(facts)) = (hidden, &found.redaction) else {
        return Ok(shown);
    };
    let marks = redact::redacted_places(&shown, facts).len();
    let restored = hidden.restore(&edit, original);
    let restored =
        restored.map_err(|unknown| Fault::params(format!("raw: {unknown}")).because("redacted"))?;
    let restored = Message::parse(restored);
    let hides = hidden
        .message(&restored)
        .map_or(0, |redacted| redacted.count as usize);
    if hides < marks {
        let text = "raw: a redacted value was moved to a place where the record would show it";
        return Err(Fault::params(text).because("redacted"));
    }
    Ok(restored)
}

/// Which values are not known any more.
fn missing(sequence: u64, places: &[RedactedPlace]) -> Fault {
    let names: Vec<String> = places
        .iter()
        .map(|place| match place.path.as_str() {
            "" => format!("mark {}", place.mark),
            path => path.to_owned(),
        })
        .collect();
    let text = format!(
        "values of #{sequence} were redacted and are not known any more: {}. Edit the message and fill them in (raw)",
        names.join(", ")
    );
    let missing: Vec<Value> = places
        .iter()
        .map(|place| json!({"mark": place.mark, "path": place.path}))
        .collect();
    Fault {
        data: Some(json!({"reason": "redacted", "missing": missing})),
        ..Fault::new(Fault::NOT_KEPT, text)
    }
}
