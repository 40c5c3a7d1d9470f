//! Options of the `proxy-dispatch` tool and of results that are kept in files.

use std::time::Duration;

use super::error::ConfigError;
use super::hub_options::read_tool_name;
use super::node::{Fields, Node};
use super::roots::RootFolder;
use super::server_options::read_roots;

/// What is set about `proxy-dispatch` and large results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchOptions {
    /// What the tool is called.
    pub tool_name: Option<String>,
    /// Results of more bytes are kept in a file; 0 turns that off.
    pub spill_threshold: Option<u64>,
    /// Whether objects and arrays are kept as TOON where that is smaller.
    pub spill_toon: Option<bool>,
    /// The most bytes that all files together may have.
    pub spill_quota: Option<u64>,
    /// How long a file is kept.
    pub spill_ttl: Option<Duration>,
    /// Folders whose files can be read like kept results.
    pub spill_roots: Option<Vec<RootFolder>>,
}

impl DispatchOptions {
    pub(super) fn read(fields: &Fields<'_>) -> Result<DispatchOptions, ConfigError> {
        Ok(DispatchOptions {
            tool_name: fields.read("dispatch-tool-name", read_tool_name)?,
            spill_threshold: fields.read_either(
                "spill-threshold",
                "mcpproxythreshold",
                Node::size,
            )?,
            spill_toon: fields.read_either("spill-toon", "mcpproxytoon", Node::boolean)?,
            spill_quota: fields.read("spill-quota", Node::size)?,
            spill_ttl: fields.read("spill-ttl", Node::positive_duration)?,
            spill_roots: fields.read("spill-roots", read_roots)?,
        })
    }

    pub(super) fn merged_with(self, later: DispatchOptions) -> DispatchOptions {
        DispatchOptions {
            tool_name: later.tool_name.or(self.tool_name),
            spill_threshold: later.spill_threshold.or(self.spill_threshold),
            spill_toon: later.spill_toon.or(self.spill_toon),
            spill_quota: later.spill_quota.or(self.spill_quota),
            spill_ttl: later.spill_ttl.or(self.spill_ttl),
            spill_roots: later.spill_roots.or(self.spill_roots),
        }
    }
}
