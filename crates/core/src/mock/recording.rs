//! What a recorded server answered, by place in the record.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use mcp_proxy_session::redact;
use mcp_proxy_session::{Error, ProxyMessage, SessionRecord, subject_name};
use mcp_proxy_wire::{Direction, Kind, Message};
use rustc_hash::{FxHashMap, FxHasher};
use serde_json::Value;

use super::calls::RecordedCalls;

/// A record, read for its requests.
pub struct MockRecording {
    session: SessionRecord,
    asked: Vec<RecordedRequest>,
    by_method: FxHashMap<u64, Vec<usize>>,
    by_params: FxHashMap<u64, Vec<usize>>,
}

/// A recorded request and the rows of what the server said to it.
struct RecordedRequest {
    method: u64,
    params: u64,
    said: Vec<usize>,
}

/// What the server said to a request: notifications, its own requests, the answer.
pub struct RecordedReply {
    /// In the order in which it was said.
    pub said: Vec<Message>,
    /// The number of the first message with marks in the place of redacted values.
    pub redacted: Option<u64>,
}

impl MockRecording {
    /// Reads a record. What was changed on its way counts as the client or the server saw it last.
    pub fn read(session: SessionRecord) -> Result<MockRecording, Error> {
        let mut asked: Vec<RecordedRequest> = Vec::new();
        let mut calls = RecordedCalls::default();
        for (row, message) in session.messages(0).enumerate() {
            let message = message?;
            let Some(read) = whole(&message) else {
                continue;
            };
            match (message.direction, read.kind()) {
                (Direction::ClientToServer, Kind::Request) => {
                    calls.add_request(&message, &read);
                    asked.push(RecordedRequest {
                        method: method_key(&read),
                        params: params_key(&read),
                        said: Vec::new(),
                    });
                }
                (Direction::ClientToServer, _) => calls.add_client_message(&message, &read),
                (Direction::ServerToClient, _) if message.is_from_peer() => {
                    calls.add_server_message(row, &message, &read);
                }
                _ => {}
            }
        }
        for (asked, said) in asked.iter_mut().zip(calls.finish()) {
            asked.said = said;
        }
        // A request that was never answered is none that can be played.
        let answered = |asked: &&mut RecordedRequest| !asked.said.is_empty();
        let (mut by_method, mut by_params) = (FxHashMap::default(), FxHashMap::default());
        for (place, asked) in asked.iter_mut().enumerate().filter(|(_, a)| answered(a)) {
            let of_method: &mut Vec<usize> = by_method.entry(asked.method).or_default();
            of_method.push(place);
            let of_params: &mut Vec<usize> = by_params.entry(asked.params).or_default();
            of_params.push(place);
        }
        Ok(MockRecording {
            session,
            asked,
            by_method,
            by_params,
        })
    }

    /// How many requests it can answer.
    pub fn len(&self) -> usize {
        self.by_method.values().map(Vec::len).sum()
    }

    /// Whether it can answer none.
    pub fn is_empty(&self) -> bool {
        self.by_method.is_empty()
    }

    pub(super) fn of_method(&self, key: u64) -> &[usize] {
        self.by_method.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_params(&self, key: u64) -> &[usize] {
        self.by_params.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether the request at `place` has this key.
    pub(super) fn is_at(&self, place: usize, key: u64, by_method: bool) -> bool {
        self.asked.get(place).is_some_and(|asked| match by_method {
            true => asked.method == key,
            false => asked.params == key,
        })
    }

    /// Reads what was said to the request at `place`.
    pub(super) fn played(&self, place: usize) -> Option<RecordedReply> {
        let rows = &self.asked.get(place)?.said;
        let mut played = RecordedReply {
            said: Vec::new(),
            redacted: None,
        };
        for row in rows {
            let Ok(recorded) = self.session.message(*row) else {
                continue;
            };
            let Some(message) = whole(&recorded) else {
                continue;
            };
            if played.redacted.is_none() && self.has_marks(&recorded, &message) {
                played.redacted = Some(recorded.sequence);
            }
            played.said.push(message);
        }
        Some(played)
    }

    /// Whether values of the message were redacted. The record counts those in HTTP heads too, so the body is looked at.
    fn has_marks(&self, recorded: &ProxyMessage, message: &Message) -> bool {
        let facts = self.session.redaction().filter(|_| recorded.redacted > 0);
        facts
            .is_some_and(|facts| redact::fill_redactions(message, facts, &BTreeMap::new()).is_err())
    }
}

/// The message, if its bytes are there and were not made unreadable.
fn whole(message: &ProxyMessage) -> Option<Message> {
    let bytes = message.raw.to_bytes();
    (!bytes.is_empty()).then(|| Message::parse(bytes))
}

/// One key a method, and the tool, prompt or resource that it is about.
pub(super) fn method_key(request: &Message) -> u64 {
    let mut hasher = FxHasher::default();
    request.method().unwrap_or_default().hash(&mut hasher);
    subject_name(request).hash(&mut hasher);
    hasher.finish()
}

/// One key a method and parameters. The order of members does not count, `_meta` does not at all, and parameters or
/// `arguments` without members are the same as none.
pub(crate) fn params_key(request: &Message) -> u64 {
    let mut hasher = FxHasher::default();
    request.method().unwrap_or_default().hash(&mut hasher);
    let Some(params) = request.params() else {
        return hasher.finish();
    };
    match serde_json::from_slice::<Value>(request.slice(params)) {
        Ok(Value::Null) => {}
        Ok(mut value) => {
            if let Value::Object(members) = &mut value {
                members.remove("_meta");
                if members.get("arguments").is_some_and(is_empty) {
                    members.remove("arguments");
                }
            }
            if !is_empty(&value) {
                hash(&value, &mut hasher);
            }
        }
        Err(_) => request.slice(params).hash(&mut hasher),
    }
    hasher.finish()
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn hash(value: &Value, hasher: &mut FxHasher) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            members.len().hash(hasher);
            for (key, value) in members {
                key.hash(hasher);
                hash(value, hasher);
            }
        }
        Value::Array(values) => {
            values.len().hash(hasher);
            values.iter().for_each(|value| hash(value, hasher));
        }
        scalar => scalar.to_string().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d35_absent_parameters_and_those_with_meta_only_are_the_same() {
        let key = |params: &str| {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{params}}}"#);
            params_key(&Message::parse(request))
        };
        let none = key("");
        for same in [
            "{}",
            "null",
            r#"{"_meta":{"progressToken":0}}"#,
            r#"{"arguments":{}}"#,
        ] {
            assert_eq!(key(&format!(r#","params":{same}"#)), none, "{same}");
        }
        for other in [r#"{"cursor":"1"}"#, r#"{"arguments":{"a":1}}"#, "[]"] {
            assert_ne!(key(&format!(r#","params":{other}"#)), none, "{other}");
        }
    }
}
