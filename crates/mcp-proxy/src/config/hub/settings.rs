//! How the hub behaves.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use mcp_proxy_hub::config::{EraOffer, ExposeMode, HubOptions, HubProfile};
use mcp_proxy_hub::dispatch_tool::DispatchToolOptions;
use mcp_proxy_hub::proxy_tool::ProxyToolOptions;
use mcp_proxy_hub::{
    HubSettings, ListExposure, OwnTool, OwnToolUse, ProfileSettings, READ_TOOL_NAME,
    ReadToolOptions, ToolExposure, ViewFilter,
};
use mcp_proxy_spill::SpillStore;
use serde_json::json;

use super::spill::spill_settings;
use super::{FIRST_LIST, NO_PROFILE, SETTLE, START_PATIENCE};
use crate::cli::serve::{EraArg, ExposeArg};

/// The settings of the whole hub; `profile` is that of clients that ask for none.
pub(super) fn settings(
    profile: Option<&str>,
    options: &HubOptions,
    store: &Arc<SpillStore>,
) -> Result<HubSettings> {
    // A tool is listed once, where it is named first.
    let mut expose: Vec<ExposeMode> = Vec::new();
    for mode in options.expose.iter().flatten() {
        if !expose.contains(mode) {
            expose.push(*mode);
        }
    }
    if expose.is_empty() {
        expose.push(ExposeMode::Proxy);
    }
    let defaults = ProxyToolOptions::default();
    let limit = options
        .list_limit
        .and_then(|limit| u32::try_from(limit.get()).ok());
    let proxy_tool = ProxyToolOptions {
        name: options.proxy_tool_name.clone().unwrap_or(defaults.name),
        default_limit: limit.unwrap_or(defaults.default_limit),
    };
    let dispatch_tool = DispatchToolOptions {
        name: (options.dispatch_tool_name.clone()).unwrap_or(DispatchToolOptions::default().name),
        ..DispatchToolOptions::default()
    };
    if dispatch_tool.name == proxy_tool.name {
        bail!(
            "proxy-tool-name and dispatch-tool-name are both {:?}",
            proxy_tool.name
        );
    }
    if [&proxy_tool.name, &dispatch_tool.name].contains(&&READ_TOOL_NAME.to_owned()) {
        bail!("{READ_TOOL_NAME:?} is the name of a tool of its own (`--expose read`)");
    }
    let own_tools = OwnTools {
        proxy: &proxy_tool,
        dispatch: &dispatch_tool,
    };
    let everything = HubProfile::default();
    let main = match profile {
        None => &everything,
        Some(name) => options.profiles.get(name).with_context(|| {
            let names: Vec<&str> = options.profiles.keys().map(String::as_str).collect();
            match names[..] {
                [] => format!("--profile {name}: the config has no profiles"),
                _ => format!("--profile {name}: the profiles are {}", names.join(", ")),
            }
        })?,
    };
    let named = options
        .profiles
        .iter()
        .map(|(name, profile)| (name.as_str(), profile));
    let profiles = std::iter::once((NO_PROFILE, main)).chain(named);
    Ok(HubSettings {
        profiles: profiles
            .map(|(name, profile)| profile_settings(name, profile, &expose, options, own_tools))
            .collect(),
        proxy_tool,
        dispatch_tool,
        spill: spill_settings(options, store),
        server_info: info("mcp-proxy"),
        client_info: info("mcp-proxy"),
        settle: SETTLE,
        first_list: FIRST_LIST,
        start_patience: START_PATIENCE,
        era: options.era.unwrap_or_default(),
    })
}

/// The options of the hub's own tools.
#[derive(Clone, Copy)]
struct OwnTools<'a> {
    proxy: &'a ProxyToolOptions,
    dispatch: &'a DispatchToolOptions,
}

impl OwnTools<'_> {
    /// The tool of this mode, as it is listed with all these modes.
    fn listed(&self, mode: ExposeMode, expose: &[ExposeMode]) -> Option<OwnTool> {
        let with_dispatch = expose.contains(&ExposeMode::Dispatch);
        match mode {
            ExposeMode::Proxy => Some(OwnTool::Proxy(self.proxy.clone())),
            ExposeMode::Dispatch => Some(OwnTool::Dispatch(self.dispatch.clone())),
            ExposeMode::Read => Some(OwnTool::Read(ReadToolOptions {
                with_proxy: expose.contains(&ExposeMode::Proxy),
                dispatch: with_dispatch.then(|| self.dispatch.name.clone()),
                ..ReadToolOptions::alone(self.proxy.clone())
            })),
            ExposeMode::All => None,
        }
    }
}

fn info(name: &str) -> Bytes {
    let info =
        json!({"name": name, "title": "mcp-proxy hub", "version": env!("CARGO_PKG_VERSION")});
    info.to_string().into()
}

fn profile_settings(
    name: &str,
    profile: &HubProfile,
    expose: &[ExposeMode],
    options: &HubOptions,
    own_tools: OwnTools<'_>,
) -> ProfileSettings {
    let expose = profile.expose.as_deref().unwrap_or(expose);
    let offered = |mode: ExposeMode| match expose.contains(&mode) {
        true => OwnToolUse::Offered,
        false => OwnToolUse::Absent,
    };
    let listed_tools = expose
        .iter()
        .filter_map(|mode| own_tools.listed(*mode, expose));
    let listed = |wanted: Option<bool>| match wanted {
        Some(false) => ListExposure::Empty,
        Some(true) | None => ListExposure::Listed,
    };
    let defaults = ViewFilter::default();
    ProfileSettings {
        name: name.to_owned(),
        filter: ViewFilter {
            servers: profile.servers.clone(),
            allow: profile.tools.allow.clone(),
            deny: profile.tools.deny.clone(),
            tools: match expose.contains(&ExposeMode::All) {
                true => ToolExposure::All,
                false => ToolExposure::None,
            },
            pinned: profile.pin.clone(),
            resources: listed(options.native_resources),
            prompts: listed(options.native_prompts),
            own_tools: listed_tools.collect(),
            page_size: options
                .page_size
                .map_or(defaults.page_size, NonZeroUsize::get),
        },
        proxy_tool: offered(ExposeMode::Proxy),
        dispatch_tool: offered(ExposeMode::Dispatch),
        read_tool: offered(ExposeMode::Read),
    }
}

impl From<ExposeArg> for ExposeMode {
    fn from(arg: ExposeArg) -> ExposeMode {
        match arg {
            ExposeArg::Proxy => ExposeMode::Proxy,
            ExposeArg::Dispatch => ExposeMode::Dispatch,
            ExposeArg::All => ExposeMode::All,
            ExposeArg::Read => ExposeMode::Read,
        }
    }
}

impl From<EraArg> for EraOffer {
    fn from(arg: EraArg) -> EraOffer {
        match arg {
            EraArg::Auto => EraOffer::Auto,
            EraArg::Modern => EraOffer::Modern,
            EraArg::Legacy => EraOffer::Legacy,
        }
    }
}
