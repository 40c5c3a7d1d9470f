//! The flags of the terminal UI, wherever it opens.

use super::sessions::{LAST, RECORD};

/// How the terminal UI looks and behaves.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct TuiArgs {
    /// Colours of the terminal UI (default: dark; mono where NO_COLOR is set)
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Terminal UI")]
    pub theme: Option<ThemeName>,

    /// Leave the mouse to the terminal, for selecting text
    #[arg(long, help_heading = "Terminal UI")]
    pub no_mouse: bool,
}

/// Which colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ThemeName {
    /// For dark backgrounds
    Dark,
    /// For light backgrounds
    Light,
    /// None
    Mono,
}

const OPEN: &str = "\
Examples:
  mcp-proxy open                         the newest record in the terminal UI
  mcp-proxy open session.jsonl           a specific record; a million messages open at once
  mcp-proxy open LAST tools/call         only what matches, as with `inspect`

Without a terminal use `mcp-proxy inspect`.";

/// Look at a record in the terminal UI.
#[derive(Debug, clap::Args)]
#[command(after_help = OPEN)]
pub struct OpenArgs {
    #[arg(value_name = "RECORD", default_value = LAST, help = RECORD)]
    pub record: String,

    /// Show only what matches: words, /regex/ or jq (`mcp-proxy help filters`)
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,

    #[command(flatten)]
    pub tui: TuiArgs,
}
