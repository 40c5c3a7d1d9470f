//! The flags of `relay` about the protocol between clients and extensions.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mcp_proxy_relay::{CommandIdMode, RelaySettings};

/// How the relay speaks where the protocol leaves a choice, and what it allows to whom.
#[derive(Clone, Debug, clap::Args)]
pub struct RelayProtocolArgs {
    /// Under which ids extensions get commands: `conn-…:7` (map), the client's own for one connection at a time
    /// (preserve), or as the extension asks for (auto)
    #[arg(
        long,
        value_parser = id_mode_parser(),
        value_name = "MODE",
        default_value = CommandIdMode::default().name(),
        help_heading = "Protocol"
    )]
    pub id_mode: CommandIdMode,

    /// Let a client have several connections; its commands then name one with `connectionId`
    #[arg(long, help_heading = "Protocol")]
    pub multi_connection: bool,

    /// Treat every extension as one that attaches to a single tab for all clients: select the caller's tab before its
    /// commands [default: only extensions that send `build_info`]
    #[arg(long, help_heading = "Protocol")]
    pub shared_debugger: bool,

    /// What clients may do, for everybody and for single users, in a TOML file instead of the flags
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["allow_method", "deny_method", "allow_cdp", "deny_cdp", "allow_url", "deny_url"],
        help_heading = "What clients may do"
    )]
    pub policy: Option<PathBuf>,
}

/// Reads a name of the relay's own list.
fn id_mode_parser() -> impl TypedValueParser<Value = CommandIdMode> {
    let names = PossibleValuesParser::new(CommandIdMode::ALL.map(CommandIdMode::name));
    names.try_map(|name| CommandIdMode::named(&name).ok_or("unknown mode"))
}

impl RelayProtocolArgs {
    /// The settings with these choices.
    pub fn apply(&self, settings: RelaySettings) -> RelaySettings {
        RelaySettings {
            id_mode: self.id_mode,
            multi_connection: self.multi_connection,
            shared_debugger: self.shared_debugger,
            ..settings
        }
    }
}
