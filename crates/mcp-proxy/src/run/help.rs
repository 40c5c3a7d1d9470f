//! `help TOPIC`: pages about what several commands share.
//!
//! The pages are those of `docs/`, as they are, so that a user who has only the program can read them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_tui::keys_page;

use crate::cli::HelpTopic;
use crate::printer;

const FILTERS: &str = include_str!("../../../../docs/filters.md");
const RULES: &str = include_str!("../../../../docs/rules.md");

/// Prints a page.
pub fn run(topic: HelpTopic) -> Result<ExitCode> {
    let page = match topic {
        HelpTopic::Filters => FILTERS.to_owned(),
        HelpTopic::Rules => RULES.to_owned(),
        HelpTopic::Keys => keys(),
    };
    let mut out = printer::stdout_writer();
    out.write_all(page.as_bytes()).and_then(|()| out.flush())?;
    Ok(ExitCode::SUCCESS)
}

/// The tables of keys, without what the page says about itself.
fn keys() -> String {
    let page = keys_page();
    let (title, tables) = page.split_once("\n## ").unwrap_or((&page, ""));
    let title = title.lines().next().unwrap_or_default();
    let typed = "A command with a `:` can also be typed: `:name`.";
    format!("{title}\n\n{typed}\n\n## {tables}").replace("\\|", "|")
}
