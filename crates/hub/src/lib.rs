//! The hub: many MCP servers behind one endpoint.
//!
//! The hub stands where a server stands: for each client session it is a server in this process. Towards each server it
//! is a client like any other. What happens in between is state without I/O.
//!
//! It must not know HTTP or processes. Links to servers come from functions that are passed in.

#![warn(unreachable_pub)]

mod backoff;
mod catalog;
pub mod config;
pub mod dispatch_tool;
mod driver;
mod edit;
mod hub;
mod names;
mod one_reading;
mod own_tool;
mod read_tool;
mod resolve;
pub mod savings;
mod server_link;
mod settings;
mod sign_in_need;
mod template;
mod uri;

pub use catalog::{
    Catalog, CatalogEntry, CatalogPage, CatalogServer, CatalogView, CatalogWarning, ChangedKinds,
    CursorError, FoundEntries, FoundEntry, Hints, ItemKind, ListExposure, ListingState,
    PublicDefinition, ServerIndex, ServerListing, ToolExposure, UnusableDefinition, ViewFilter,
    changed_kinds,
};
pub use driver::{
    BeginSignIn, HubBacklog, HubDriver, HubReports, HubServer, MemoryLoad, ServerRoute, SignInPage,
};
pub use hub::{
    AnswerRendering, AuditRecord, BuiltCatalog, BuiltConfiguration, CallOutcome, CallerKey,
    CatalogBuild, FinishedWork, Hub, HubAction, HubWork, LinkClosed, NewConfiguration, NewServer,
    RenderedAnswer, ServerChange, ServerChangeError, ServerState, ServerStatus, SignInChange,
    SignInId, WrittenUpTo,
};
pub use mcp_proxy_tool as proxy_tool;
pub(crate) use mcp_proxy_tool::{json, tool_values, wording};
pub use names::{AllowedNames, MAX_NAME_LENGTH, ServerNaming, default_prefix};
pub use own_tool::OwnTool;
pub use read_tool::{READ_TOOL_NAME, ReadToolOptions};
pub use resolve::{LookupError, ResolvedItem};
pub use server_link::{ClientId, LinkId};
pub use settings::{
    HubSettings, KnownEras, OwnToolUse, ProfileSettings, ServerSettings, SpillSettings,
    SpillThreshold,
};
pub use sign_in_need::SignInNeed;
