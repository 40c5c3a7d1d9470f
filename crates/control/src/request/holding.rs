//! Requests about holding: modes, held messages and breakpoints.

use mcp_proxy_wire::Direction;
use serde::{Deserialize, Serialize};

use super::{ControlRequest, is_false};
use crate::direction;
use crate::{
    BreakpointNumber, BreakpointsListResult, ConnectionNumber, HoldClockResult, HoldListResult,
    HoldNumber, HoldResolveRequest, InterceptResult, Method, ModeChange,
};

/// `intercept.get`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterceptGetRequest {
    /// Of this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionNumber>,
    /// Of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ControlRequest for InterceptGetRequest {
    const METHOD: Method = Method::InterceptGet;
    type Result = InterceptResult;
}

/// `intercept.set`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterceptSetRequest {
    /// The new mode.
    pub mode: ModeChange,
    /// Of this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionNumber>,
    /// Of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl InterceptSetRequest {
    /// Sets the mode of the run.
    pub fn run(mode: ModeChange) -> InterceptSetRequest {
        InterceptSetRequest {
            mode,
            connection: None,
            server: None,
        }
    }
}

impl ControlRequest for InterceptSetRequest {
    const METHOD: Method = Method::InterceptSet;
    type Result = InterceptResult;
}

/// `hold.list`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldListRequest {
    /// Only this hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// With their bodies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub raw: bool,
}

impl ControlRequest for HoldListRequest {
    const METHOD: Method = Method::HoldList;
    type Result = HoldListResult;
}

/// `hold.edit`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldEditRequest {
    /// The hold.
    pub hold: u64,
    /// This viewer has opened the message in an editor, or has closed that.
    pub open: bool,
}

impl ControlRequest for HoldEditRequest {
    const METHOD: Method = Method::HoldEdit;
    type Result = HoldClockResult;
}

/// `hold.extend`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldExtendRequest {
    /// The hold.
    pub hold: u64,
    /// How much time to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl HoldExtendRequest {
    /// What is added unless the request says otherwise.
    pub const DEFAULT_SECONDS: u64 = 60;
    /// The most that can be added at once: a day.
    pub const MOST_SECONDS: u64 = 86_400;
}

impl ControlRequest for HoldExtendRequest {
    const METHOD: Method = Method::HoldExtend;
    type Result = HoldClockResult;
}

impl ControlRequest for HoldResolveRequest {
    const METHOD: Method = Method::HoldResolve;
    type Result = HoldNumber;
}

/// `step`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {}

impl ControlRequest for StepRequest {
    const METHOD: Method = Method::Step;
    type Result = InterceptResult;
}

/// `continue`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinueRequest {}

impl ControlRequest for ContinueRequest {
    const METHOD: Method = Method::Continue;
    type Result = InterceptResult;
}

/// `breakpoints.list`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointsListRequest {}

impl ControlRequest for BreakpointsListRequest {
    const METHOD: Method = Method::BreakpointsList;
    type Result = BreakpointsListResult;
}

/// `breakpoints.add`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointsAddRequest {
    /// Which messages, in the filter language.
    pub filter: String,
    /// Only messages in this direction.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "direction::optional"
    )]
    pub direction: Option<Direction>,
    /// It is removed after this many hits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Only messages of this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionNumber>,
    /// Only messages of connections to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ControlRequest for BreakpointsAddRequest {
    const METHOD: Method = Method::BreakpointsAdd;
    type Result = BreakpointNumber;
}

/// `breakpoints.remove`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointsRemoveRequest {
    /// The breakpoint's number.
    pub id: u32,
}

impl ControlRequest for BreakpointsRemoveRequest {
    const METHOD: Method = Method::BreakpointsRemove;
    type Result = BreakpointNumber;
}
