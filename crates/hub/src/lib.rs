//! The hub: many MCP servers behind one endpoint.
//!
//! The hub stands where a server stands: for each client session it is a server in this process. Towards each server it
//! is a client like any other. What happens in between is state without I/O.
//!
//! It must not know HTTP or processes. Links to servers come from functions that are passed in.

#![warn(unreachable_pub)]

mod catalog;
pub mod config;
mod driver;
mod edit;
mod hub;
mod json;
mod names;
pub mod proxy_tool;
mod resolve;
mod server_link;
mod settings;
mod template;
mod uri;

pub use catalog::{
    Catalog, CatalogEntry, CatalogPage, CatalogServer, CatalogView, CatalogWarning, ChangedKinds,
    CursorError, Hints, ItemKind, ListExposure, ListingState, ServerIndex, ServerListing,
    ToolExposure, UnusableDefinition, ViewFilter, changed_kinds,
};
pub use driver::{HubDriver, HubReports, HubServer};
pub use hub::{
    AnswerRendering, AuditRecord, BuiltCatalog, CallOutcome, CatalogBuild, Hub, HubAction,
    LinkClosed, NewServer, RenderedAnswer, ServerChange, ServerState, ServerStatus, UnknownServer,
    WrittenUpTo,
};
pub use names::{AllowedNames, MAX_NAME_LENGTH, ServerNaming, default_prefix};
pub use resolve::{LookupError, ResolvedItem};
pub use server_link::{ClientId, LinkId};
pub use settings::{HubSettings, ProfileSettings, ProxyToolUse, ServerSettings};
