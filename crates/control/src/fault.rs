//! Why a request was refused: the error object of JSON-RPC, and the codes that are the protocol's own.

use mcp_proxy_wire::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A refusal. Codes that are not listed here are those of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its code.
    #[serde(default)]
    pub code: i64,
    /// Its text.
    #[serde(rename = "message")]
    pub text: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    /// There is no such hold.
    pub const NO_SUCH_HOLD: i64 = -31101;
    /// Another viewer decided first.
    pub const RESOLVED: i64 = -31102;
    /// The run does not keep what was asked for.
    pub const NOT_KEPT: i64 = -31103;
    /// It was tried and did not work.
    pub const FAILED: i64 = -31104;

    /// The parameters are wrong.
    pub fn params(text: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::INVALID_PARAMS.get(), text)
    }

    /// The same with a word for its cause in `data.reason`, for programs: docs/control.md lists them.
    #[must_use]
    pub fn because(self, reason: &str) -> Fault {
        Fault {
            data: Some(json!({"reason": reason})),
            ..self
        }
    }

    /// The word for its cause.
    pub fn reason(&self) -> Option<&str> {
        self.data.as_ref()?.get("reason")?.as_str()
    }

    /// A refusal without details.
    pub fn new(code: i64, text: impl Into<String>) -> Fault {
        Fault {
            code,
            text: text.into(),
            data: None,
        }
    }
}
