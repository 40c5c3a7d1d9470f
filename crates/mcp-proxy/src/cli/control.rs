//! The flags of the commands that speak to a running proxy: `ls`, `attach` and `ctl`.

use mcp_proxy_control::METHODS;

use super::tui::TuiArgs;

/// How a proxy is named, wherever one is asked for.
const PROXY: &str = "A running proxy: its id from `mcp-proxy ls`, its session id, or a prefix of either [default: the only one; of several it asks which]";

const LS: &str = "\
Examples:
  mcp-proxy ls               the proxies of this user, the newest first
  mcp-proxy ls --json        one JSON object a line, with the path of the record";

/// List the proxies that run now.
#[derive(Debug, clap::Args)]
#[command(after_help = LS)]
pub struct LsArgs {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,

    /// Only the ids, one on a line, and after a tab the server
    #[arg(long, hide = true, conflicts_with = "json")]
    pub ids: bool,

    /// List hubs only
    #[arg(long, hide = true)]
    pub hubs: bool,
}

const STATUS: &str = "\
Examples:
  mcp-proxy status                            the hub's servers: tools, restarts, errors
  mcp-proxy status --json                     the same as one JSON object
  mcp-proxy ctl servers.restart server=git    restart a server; also .enable, .disable, .reload";

/// Show how the servers of a running hub are doing.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS)]
pub struct StatusArgs {
    /// A running hub: its id from `mcp-proxy ls` [default: the only one]
    #[arg(value_name = "ID")]
    pub id: Option<String>,

    /// A running hub, by its id
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    pub hub: Option<String>,

    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

const ATTACH: &str = "\
Examples:
  mcp-proxy attach                       the running proxy in the terminal UI; asks if several run
  mcp-proxy attach 5e550001              a specific proxy

Without a terminal, `mcp-proxy inspect ID --follow` prints messages as they come, and `ctl` decides
about held ones. Quitting does not affect the proxy. If messages would stay held, q asks first.";

/// Open the terminal UI on a running proxy, and decide about the messages it holds.
#[derive(Debug, clap::Args)]
#[command(after_help = ATTACH)]
pub struct AttachArgs {
    #[arg(value_name = "ID", help = PROXY)]
    pub id: Option<String>,

    #[command(flatten)]
    pub tui: TuiArgs,
}

/// Query or control a running proxy: JSON in, JSON out.
#[derive(Debug, clap::Args)]
#[command(after_help = ctl_help(), override_usage = "mcp-proxy ctl [--hub ID | ID] <VERB> [JSON|NAME=VALUE…]")]
pub struct CtlArgs {
    /// A running hub, by its id from `mcp-proxy ls` [default for servers.…: the only one]
    #[arg(long, value_name = "ID")]
    pub hub: Option<String>,

    /// The proxy (default: the newest), the verb, and its parameters: a JSON object, NAME=VALUE words, or - for JSON on
    /// stdin
    #[arg(
        value_name = "WORDS",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<String>,
}

/// The list of verbs, out of the protocol's own.
fn ctl_help() -> String {
    let mut text = "\
Examples:
  mcp-proxy ctl stats
  mcp-proxy ctl 5e550001 get last=5 raw=true
  mcp-proxy ctl intercept.set mode=intercept
  mcp-proxy ctl hold.list raw=true
  mcp-proxy ctl hold.resolve '{\"hold\": 3, \"action\": \"drop\"}'
  mcp-proxy ctl breakpoints.add filter=tools/call hits=1
  mcp-proxy ctl replay sequence=12            send message 12 to the server again
  mcp-proxy ctl subscribe                     notices, one a line, until the proxy ends

Verbs:\n"
        .to_owned();
    for info in METHODS {
        text.push_str(&format!("  {:<19} {}\n", info.name, info.about));
        for param in info.params {
            text.push_str(&format!("      {:<11}   {}\n", param.name, param.about));
        }
    }
    text.push_str(
        "
replay session=live sends on the session of the client. Its answer and its progress do not reach
the client; but other requests and notifications that the server sends because of it cannot be told
apart, and do; only from HTTP to HTTP they have a stream of their own.

Exit code:
  0  success
  1  the proxy refused (its error is printed as JSON), or cannot be reached
  2  usage error

The protocol is described in docs/control.md.",
    );
    text
}
