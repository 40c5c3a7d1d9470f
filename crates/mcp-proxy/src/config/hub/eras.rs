//! Which protocol eras the hub offers to clients, and which its servers are known to speak.

use mcp_proxy_hub::KnownEras;
use mcp_proxy_hub::config::{EraOffer, HubOptions, ServerConfig, ServerTarget};

use crate::cli::serve::{EraArg, ServeArgs};

/// What clients are told about 2026-07-28. The flag wins over the file.
pub(super) fn era_offer(args: &ServeArgs, options: &HubOptions) -> EraOffer {
    let flag = args.era.map(|arg| match arg {
        EraArg::Auto => EraOffer::Auto,
        EraArg::Modern => EraOffer::Modern,
        EraArg::Legacy => EraOffer::Legacy,
    });
    flag.or(options.era).unwrap_or_default()
}

/// Our own servers speak both eras. What others speak is found out.
pub(super) fn known_eras(server: &ServerConfig) -> KnownEras {
    match server.state.as_ref().map(|spec| &spec.target) {
        Ok(ServerTarget::Builtin(_)) => KnownEras::Both,
        Ok(ServerTarget::Command { .. } | ServerTarget::Url { .. }) | Err(_) => KnownEras::None,
    }
}
