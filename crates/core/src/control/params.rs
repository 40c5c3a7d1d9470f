//! The parameters of each method. What is not known here is refused by name, so that a mistake in a script is seen.

use mcp_proxy_session::Bodies;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::desk::Fault;

/// A method without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// `hello`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub name: Option<String>,
}

/// `get`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    #[serde(default = "one")]
    pub from: u64,
    pub to: Option<u64>,
    pub last: Option<u64>,
    pub limit: Option<u64>,
    #[serde(default)]
    pub raw: bool,
}

/// `intercept.set`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    pub mode: String,
}

/// `hold.list`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    pub hold: Option<u64>,
    #[serde(default)]
    pub raw: bool,
}

/// `hold.resolve`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve<'a> {
    pub hold: u64,
    pub action: String,
    #[serde(borrow)]
    pub raw: Option<&'a RawValue>,
    pub raw_text: Option<String>,
    pub raw_b64: Option<String>,
    #[serde(default)]
    pub as_is: bool,
    pub code: Option<i64>,
    pub message: Option<String>,
}

/// `breakpoints.add`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewBreak {
    pub filter: String,
    pub direction: Option<String>,
    pub hits: Option<u64>,
}

/// `breakpoints.remove`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    pub id: u32,
}

/// `note`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    #[serde(default)]
    pub text: String,
    pub sequence: Option<u64>,
    pub mark: Option<String>,
}

/// `export`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    pub format: String,
    pub output: String,
    #[serde(default)]
    pub force: bool,
}

/// `save`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Save {
    pub output: String,
}

/// `replay`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay<'a> {
    pub sequence: u64,
    #[serde(borrow)]
    pub raw: Option<&'a RawValue>,
    #[serde(default)]
    pub as_is: bool,
    pub session: Option<String>,
    pub timeout_ms: Option<u64>,
}

/// Reads them. No parameters at all are an empty object.
pub fn read<'a, T: Deserialize<'a>>(params: Option<&'a [u8]>) -> Result<T, Fault> {
    let params = params.unwrap_or(b"{}");
    if params.first() != Some(&b'{') {
        return Err(Fault::params("params must be an object"));
    }
    serde_json::from_slice(params).map_err(|error| {
        let text = error.to_string();
        // The place within our own parse says nothing to whoever wrote the request.
        let text = text.split(" at line ").next().unwrap_or_default();
        Fault::params(text)
    })
}

/// What `raw` means.
pub fn bodies(raw: bool) -> Bodies {
    if raw { Bodies::Given } else { Bodies::Left }
}

fn one() -> u64 {
    1
}
