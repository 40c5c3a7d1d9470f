//! `prune`: removes records from the state directory. It shows what will go and asks first.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_session::store::{self, PruneSelection, RecordListing};

use super::{count_of, formatting, ignore_broken_pipe, record_lookup};
use crate::cli::sessions::PruneArgs;
use crate::printer;
use crate::run::{UsageError, control};
use mcp_proxy_wire::terminal_text::sanitize;

/// Removes records.
pub fn run(args: &PruneArgs) -> Result<ExitCode> {
    ignore_broken_pipe(prune(args))
}

fn prune(args: &PruneArgs) -> Result<ExitCode> {
    if args.ids.is_empty() && args.older_than.is_none() && args.keep_under.is_none() && !args.all {
        bail!(UsageError(
            "prune removes nothing unless told what: --older-than 30d, --keep-under 1G, session ids, or --all\n\
             `mcp-proxy prune --all --dry-run` shows what there is; `mcp-proxy prune --help` has examples"
                .to_owned()
        ));
    }
    let folder = store::state_dir()?;
    let records = store::list(&folder)?;
    let wanted = wanted(args, &records, SystemTime::now())?;
    let (staying, chosen): (Vec<&RecordListing>, Vec<&RecordListing>) =
        wanted.into_iter().partition(|record| record.live);
    let mut out = printer::stdout_writer();
    for record in staying {
        printer::say(&format!(
            "mcp-proxy: {} is being written and stays",
            control::short_id(&record.id)
        ));
    }
    if chosen.is_empty() {
        writeln!(out, "Nothing to remove.")?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for record in &chosen {
        let started = formatting::day_and_time(record.started_at);
        let target = formatting::cut(&sanitize(&record.target), 60);
        writeln!(
            out,
            "{}  {started}  {:>8}  {target}",
            control::short_id(&record.id),
            formatting::size(record.bytes)
        )?;
    }
    out.flush()?;
    let count = count_of(chosen.len() as u64, "record", "records");
    let size = formatting::size(chosen.iter().map(|record| record.bytes).sum());
    if args.dry_run {
        writeln!(out, "\nWould remove {count} ({size}).")?;
    } else if args.yes || agreed(&format!("Remove {count} ({size})?"))? {
        let paths = chosen.iter().map(|record| record.path().to_path_buf());
        let paths = paths.collect();
        let pruned = store::prune(&folder, &PruneSelection::Records(paths))?;
        for path in &pruned.live {
            printer::say(&format!(
                "mcp-proxy: {} is being written and stays",
                path.display()
            ));
        }
        let count = count_of(pruned.removed.len() as u64, "record", "records");
        writeln!(
            out,
            "\nRemoved {count} ({}).",
            formatting::size(pruned.bytes)
        )?;
    } else {
        writeln!(out, "Nothing was removed.")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The records that are meant, oldest first. `records` come newest first.
fn wanted<'a>(
    args: &PruneArgs,
    records: &'a [RecordListing],
    now: SystemTime,
) -> Result<Vec<&'a RecordListing>> {
    let ids = args
        .ids
        .iter()
        .map(|name| full_id(name, records))
        .collect::<Result<Vec<_>>>()?;
    let old = args
        .older_than
        .map(|age| now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH));
    let limit = args.keep_under.unwrap_or(u64::MAX);
    let mut total: u64 = records.iter().map(|record| record.bytes).sum();
    let mut wanted = Vec::new();
    for record in records.iter().rev() {
        let is_old = old.is_some_and(|old| record.started_at < old);
        if args.all || is_old || total > limit || ids.contains(&record.id.as_str()) {
            // What stays is not made smaller by meaning it.
            if !record.live {
                total = total.saturating_sub(record.bytes);
            }
            wanted.push(record);
        }
    }
    Ok(wanted)
}

/// The one session id that `name` means.
fn full_id<'a>(name: &str, records: &'a [RecordListing]) -> Result<&'a str> {
    match record_lookup::with_id(name, records).as_slice() {
        [record] => Ok(&record.id),
        [] => bail!(
            "unknown record {}: `mcp-proxy sessions` lists them",
            sanitize(name)
        ),
        several => bail!(
            "{} matches {} records: give more of the id",
            sanitize(name),
            several.len()
        ),
    }
}

fn agreed(question: &str) -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!(UsageError(
            "cannot ask for confirmation without a terminal: use -y to remove without asking, or --dry-run to only show"
                .to_owned()
        ));
    }
    printer::ask(&format!("\n{question} [y/N] "));
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use mcp_proxy_session::PeerInfo;
    use mcp_proxy_wire::Transport;

    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_765_600)
    }

    /// Newest first, an hour apart, 100 bytes each.
    fn records(ids: &[&str]) -> Vec<RecordListing> {
        let listed = ids.iter().zip(1..).map(|(id, hours)| RecordListing {
            paths: vec![PathBuf::from(id)],
            id: (*id).to_owned(),
            started_at: now() - Duration::from_secs(hours * 3600),
            ended_at: None,
            live: id.ends_with("live"),
            server: PeerInfo::new(Transport::Stdio),
            target: String::new(),
            bytes: 100,
        });
        listed.collect()
    }

    fn args() -> PruneArgs {
        PruneArgs {
            ids: Vec::new(),
            older_than: None,
            keep_under: None,
            all: false,
            dry_run: true,
            yes: false,
        }
    }

    fn chosen(args: &PruneArgs, ids: &[&str]) -> Vec<String> {
        wanted(args, &records(ids), now())
            .unwrap()
            .iter()
            .map(|record| record.id.clone())
            .collect()
    }

    #[test]
    fn by_age_by_size_by_id() {
        let ids = ["aa", "ab", "ac-live", "ad"];
        assert_eq!(
            chosen(
                &PruneArgs {
                    older_than: Some(Duration::from_secs(9000)),
                    ..args()
                },
                &ids
            ),
            ["ad", "ac-live"]
        );
        assert_eq!(
            chosen(
                &PruneArgs {
                    keep_under: Some(200),
                    ..args()
                },
                &ids
            ),
            ["ad", "ac-live", "ab"]
        );
        assert_eq!(
            chosen(
                &PruneArgs {
                    keep_under: Some(400),
                    ..args()
                },
                &ids
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            chosen(
                &PruneArgs {
                    ids: vec!["AB".into(), "ad".into()],
                    ..args()
                },
                &ids
            ),
            ["ad", "ab"]
        );
        assert_eq!(
            chosen(
                &PruneArgs {
                    all: true,
                    ..args()
                },
                &ids
            )
            .len(),
            4
        );
        for wrong in ["a", "b", "", "aaa"] {
            assert!(
                wanted(
                    &PruneArgs {
                        ids: vec![wrong.into()],
                        ..args()
                    },
                    &records(&ids),
                    now()
                )
                .is_err(),
                "{wrong}"
            );
        }
    }
}
