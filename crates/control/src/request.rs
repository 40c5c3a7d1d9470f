//! The parameters of each method. A parameter that is not known here is refused by name, so that a mistake in a script
//! is seen.

mod holding;
mod messages;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use holding::{
    BreakpointsAddRequest, BreakpointsListRequest, BreakpointsRemoveRequest, ContinueRequest,
    HoldEditRequest, HoldExtendRequest, HoldListRequest, InterceptGetRequest, InterceptSetRequest,
    StepRequest,
};
pub use messages::{
    ExportRequest, GetRequest, MarkChange, NoteRequest, ReplayRequest, ReplaySession, SaveRequest,
};

use crate::{
    ConnectionNumber, ConnectionsListResult, Fault, HelloResult, Method, NoResult, RulesListResult,
    RulesReloadResult, ServersListResult, StatsResult, SubscribeResult,
};

/// The parameters of a method. They know the method and the type of its result, so a caller names neither.
pub trait ControlRequest: Serialize {
    /// The method.
    const METHOD: Method;
    /// What it is answered with.
    type Result: Serialize + DeserializeOwned;

    /// The parameters as they are sent: a JSON object.
    fn params(&self) -> String {
        // Members are strings, numbers, booleans and JSON: writing these cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the result as it was received.
    ///
    /// # Errors
    /// It is something else.
    fn result(bytes: &[u8]) -> Result<Self::Result, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// Reads the parameters of a request. No parameters at all are an empty object.
///
/// # Errors
/// What is wrong with them; the text names the parameter where that is known.
pub fn read_params<T: DeserializeOwned>(params: Option<&[u8]>) -> Result<T, Fault> {
    let params = params.unwrap_or(b"{}");
    if params.first() != Some(&b'{') {
        return Err(Fault::params("params must be an object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(params);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let text = error.inner().to_string();
        // The position within the parameters means nothing to the author of the request.
        let text = text.split(" at line ").next().unwrap_or_default();
        Fault::params(match error.path().iter().next() {
            Some(_) => format!("{}: {text}", error.path()),
            None => text.to_owned(),
        })
    })
}

/// `hello`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelloRequest {
    /// What the viewer calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ControlRequest for HelloRequest {
    const METHOD: Method = Method::Hello;
    type Result = HelloResult;
}

/// `subscribe`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribeRequest {}

impl ControlRequest for SubscribeRequest {
    const METHOD: Method = Method::Subscribe;
    type Result = SubscribeResult;
}

/// `servers.list`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersListRequest {}

impl ControlRequest for ServersListRequest {
    const METHOD: Method = Method::ServersList;
    type Result = ServersListResult;
}

/// `servers.restart`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersRestartRequest {
    /// The server.
    pub server: String,
}

impl ControlRequest for ServersRestartRequest {
    const METHOD: Method = Method::ServersRestart;
    type Result = NoResult;
}

/// `servers.enable`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersEnableRequest {
    /// The server.
    pub server: String,
}

impl ControlRequest for ServersEnableRequest {
    const METHOD: Method = Method::ServersEnable;
    type Result = NoResult;
}

/// `servers.disable`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersDisableRequest {
    /// The server.
    pub server: String,
}

impl ControlRequest for ServersDisableRequest {
    const METHOD: Method = Method::ServersDisable;
    type Result = NoResult;
}

/// `servers.reload`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersReloadRequest {}

impl ControlRequest for ServersReloadRequest {
    const METHOD: Method = Method::ServersReload;
    type Result = NoResult;
}

/// `connections.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionsListRequest {
    /// Only connections to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// At most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

impl ControlRequest for ConnectionsListRequest {
    const METHOD: Method = Method::ConnectionsList;
    type Result = ConnectionsListResult;
}

/// `stats`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatsRequest {}

impl ControlRequest for StatsRequest {
    const METHOD: Method = Method::Stats;
    type Result = StatsResult;
}

/// `rules.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesListRequest {
    /// Only rules that apply to the server of this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionNumber>,
    /// Only rules that apply to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ControlRequest for RulesListRequest {
    const METHOD: Method = Method::RulesList;
    type Result = RulesListResult;
}

/// `rules.reload`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesReloadRequest {}

impl ControlRequest for RulesReloadRequest {
    const METHOD: Method = Method::RulesReload;
    type Result = RulesReloadResult;
}

/// `shutdown`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownRequest {}

impl ControlRequest for ShutdownRequest {
    const METHOD: Method = Method::Shutdown;
    type Result = NoResult;
}

fn is_false(flag: &bool) -> bool {
    !flag
}
