//! `completions` and `man`: both made from the one list of commands.

mod record_ids;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap_complete::Shell;

use crate::cli::{self, CompletionsArgs, ManArgs};
use crate::printer;
use crate::run::sessions::ignore_broken_pipe;

const PROGRAM: &str = "mcp-proxy";

/// Prints a completion script.
pub fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    let mut commands = typed();
    clap_complete::generate(args.shell, &mut commands, PROGRAM, &mut script);
    let mut script = String::from_utf8(script).context("the script is not text")?;
    if args.shell == Shell::Bash {
        // clap_complete writes the hyphen of a program's name in two ways, and then does not find its commands again.
        script = script.replace("mcp__subcmd__proxy", "mcp__proxy");
    }
    let script = record_ids::offer(args.shell, script, &commands);
    ignore_broken_pipe(print(&script))
}

fn print(script: &str) -> Result<ExitCode> {
    let mut out = printer::stdout_writer();
    out.write_all(script.as_bytes())
        .and_then(|()| out.flush())?;
    Ok(ExitCode::SUCCESS)
}

/// The command line as people type it: without hidden commands, and with the flags of `proxy` where that word is left out.
fn typed() -> clap::Command {
    let all = cli::command();
    let mut typed = clap::Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true);
    let proxy = all.find_subcommand("proxy");
    let flags = proxy.into_iter().flat_map(clap::Command::get_arguments);
    for flag in flags.filter(|flag| !flag.is_positional()) {
        typed = typed.arg(flag.clone());
    }
    let visible = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    typed.subcommands(visible.cloned())
}

/// Prints the man page, or writes it and a page for each command into a folder.
pub fn man(args: &ManArgs) -> Result<ExitCode> {
    match &args.folder {
        Some(folder) => {
            let shown = folder.display();
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {shown}"))?;
            clap_mangen::generate_to(cli::command(), folder)
                .with_context(|| format!("cannot write man pages into {shown}"))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli::command()).render(&mut page)?;
            let mut out = printer::stdout_writer();
            out.write_all(&page).and_then(|()| out.flush())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
