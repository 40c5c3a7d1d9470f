//! The control protocol as types: what a viewer can ask a running proxy, and what it gets back.
//!
//! The protocol is newline-delimited JSON-RPC 2.0; `docs/control.md` describes it for people. [`METHODS`] is the one list
//! of methods: dispatch, `ctl --help` and the check of the document are made from it. Each method has a request type that
//! implements [`ControlRequest`], which names the method and the type of its result.
//!
//! The proxy, the terminal UI and `ctl` share these types and nothing else, so this crate knows no socket, no
//! runtime and no record.

#![warn(unreachable_pub)]

mod direction;
mod fault;
mod header_patch;
mod held;
mod hold;
mod method;
mod mode;
mod notice;
mod page;
mod relay;
mod request;
mod result;
mod scope;

pub use fault::Fault;
pub use header_patch::{HeaderChange, HeaderPatch};
pub use held::{
    DecidedHold, HeldRow, HoldClock, HoldClockResult, HoldListResult, HoldNumber, HoldPolicy,
};
pub use hold::{HoldAction, HoldResolveRequest, Replacement};
pub use method::{METHODS, Method, MethodInfo, Param, ParamKind};
pub use mode::{InterceptMode, ModeChange, ModeOverride};
pub use notice::Notice;
pub use page::{GetResult, PageWriter, with_member};
pub use relay::{RelayPairRequest, RelayPairResult, RelayStats};
pub use request::{
    BreakpointsAddRequest, BreakpointsListRequest, BreakpointsRemoveRequest,
    ConnectionsListRequest, ContinueRequest, ControlRequest, ExportRequest, GetRequest,
    HelloRequest, HoldEditRequest, HoldExtendRequest, HoldListRequest, InterceptGetRequest,
    InterceptSetRequest, MarkChange, NoteRequest, ReplayRequest, ReplaySession, RulesListRequest,
    RulesReloadRequest, SaveRequest, ServersDisableRequest, ServersEnableRequest,
    ServersListRequest, ServersReloadRequest, ServersRestartRequest, ShutdownRequest, StatsRequest,
    StepRequest, SubscribeRequest, read_params,
};
pub use result::{
    BreakpointNumber, BreakpointRow, BreakpointsListResult, ConnectionRow, ConnectionsListResult,
    FileResult, HelloResult, HubLoad, InterceptResult, NoResult, PeerRow, ReplayResult, RuleRow,
    RulesListResult, RulesReloadResult, ServerHealth, ServerRow, ServersListResult, SignInHealth,
    StatsResult, SubscribeResult,
};
pub use scope::{ConnectionNumber, Scope};

/// The version of the protocol. It is raised when something that was there before changes its meaning.
///
/// Since 2, `mode` alone does not say whether a message is held: a connection or a server can have a mode of its own.
pub const PROTOCOL: u32 = 2;
