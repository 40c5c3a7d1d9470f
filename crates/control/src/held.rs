//! Held messages as viewers see them: what is held, how long it still waits, and what was decided.

use mcp_proxy_wire::Direction;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::direction;
use crate::{ConnectionNumber, InterceptMode};

/// What happens to a message that nobody decides about in time, or for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldPolicy {
    /// It is forwarded.
    #[default]
    Forward,
    /// It is dropped.
    Drop,
    /// It is dropped, and a request is answered with an error.
    Error,
}

/// Whether the time of a hold is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldClock {
    /// It counts down.
    #[default]
    Running,
    /// A viewer has the message open in an editor.
    Stopped,
    /// It starts when the first viewer attaches (`--require-viewer`).
    AwaitingViewer,
    /// There is no time limit (`--hold-timeout never`).
    Off,
}

/// `hold.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HoldListResult {
    /// The mode of the run.
    pub mode: InterceptMode,
    /// What is held, the oldest first.
    pub holds: Vec<HeldRow>,
}

/// A held message. Times are relative: viewers have clocks of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeldRow {
    /// The hold.
    pub hold: u64,
    /// The message's number in the record.
    pub sequence: u64,
    /// Its connection.
    #[serde(default, serialize_with = "ConnectionNumber::write_text")]
    pub conn: ConnectionNumber,
    /// The name of the connection's server.
    #[serde(default)]
    pub server: String,
    /// Which way it goes.
    #[serde(
        serialize_with = "direction::write",
        deserialize_with = "direction::read"
    )]
    pub direction: Direction,
    /// What holds it.
    #[serde(default)]
    pub by: String,
    /// For how long it has been held.
    #[serde(default)]
    pub held_ms: u64,
    /// How long until the proxy decides by itself.
    #[serde(default)]
    pub left_ms: Option<u64>,
    /// Whether that time is running.
    #[serde(default)]
    pub clock: HoldClock,
    /// The viewers that have it open in an editor.
    #[serde(default)]
    pub editors: Vec<String>,
    /// What the proxy does when the time is up.
    #[serde(default)]
    pub on_timeout: HoldPolicy,
    /// Its HTTP head is forwarded with it and can be changed. The record shows the head.
    #[serde(default)]
    pub head_editable: bool,
    /// The proxy makes the HTTP request that it is forwarded in: headers can be set. The record does not have them.
    #[serde(default)]
    pub head_made: bool,
    /// Its method; of a response, that of the request.
    #[serde(default)]
    pub method: Option<String>,
    /// Its tool, prompt or resource; of a response, that of the request.
    #[serde(default)]
    pub name: Option<String>,
    /// Its id.
    #[serde(default)]
    pub jsonrpc_id: Option<Value>,
    /// Its length.
    #[serde(default)]
    pub len: usize,
    /// Its bytes, if they were asked for and are JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawValue>>,
    /// Its bytes, if they were asked for and are another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
    /// Its bytes in base64, if they were asked for and are not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_b64: Option<String>,
}

/// `hold.resolve`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldNumber {
    /// The hold that was decided.
    pub hold: u64,
    /// What the decision means for a peer that waits, if it gets nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `hold.edit`, `hold.extend`: the time of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldClockResult {
    /// The hold.
    pub hold: u64,
    /// Whether its time is running.
    pub clock: HoldClock,
    /// How long until the proxy decides by itself, once the clock runs.
    #[serde(default)]
    pub left_ms: Option<u64>,
    /// The viewers that have it open in an editor.
    #[serde(default)]
    pub editors: Vec<String>,
}

/// A decision about a message that was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedHold {
    /// The hold.
    pub hold: u64,
    /// The message's number in the record.
    pub sequence: u64,
    /// `forward`, `modify`, `drop` or `error`.
    pub action: String,
    /// A viewer, `timeout`, `limit` or `proxy`.
    pub by: String,
    /// Why, unless that is the will of a viewer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
