//! Which record a person means: a path, the id that lists show, a session id or its beginning, or `LAST`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use mcp_proxy_session::store::{self, RecordListing};

use super::formatting;
use crate::cli::sessions::LAST;
use crate::run::control;
use mcp_proxy_transport::control::running_proxies;
use mcp_proxy_wire::terminal_text::sanitize;

/// How many records an error names.
const SHOWN: usize = 5;

/// The path of the record called `name`. Every command that opens a record finds it here, so this is where a torn one is repaired.
pub fn find(name: &str) -> Result<PathBuf> {
    let path = path_of(name)?;
    super::repair_torn_end(&path);
    Ok(path)
}

fn path_of(name: &str) -> Result<PathBuf> {
    if name != LAST && Path::new(name).exists() {
        return Ok(PathBuf::from(name));
    }
    let folder = store::state_dir();
    let stored = folder.as_ref().map(|folder| folder.join(name));
    if let Ok(stored) = stored
        && !name.contains('/')
        && stored.is_file()
    {
        return Ok(stored);
    }
    if looks_like_a_path(name) {
        bail!(
            "{}: no such file; `mcp-proxy sessions` lists the records",
            sanitize(name)
        );
    }
    let folder = folder?;
    let records = store::list(&folder)?;
    let chosen = choose(name, &folder, &records).map(|record| last_file(record).to_path_buf());
    // One that is written elsewhere is known by its proxy.
    match (chosen, name) {
        (Err(unknown), name) if name != LAST => record_of_running_proxy(name)?.ok_or(unknown),
        (chosen, _) => chosen,
    }
}

/// The record of the running proxy that `ls` shows under this id.
fn record_of_running_proxy(name: &str) -> Result<Option<PathBuf>> {
    let found = running_proxies();
    let mut wanted = found.iter().filter(|one| {
        let session = &one.descriptor.session;
        begins(&one.descriptor.id, name) || session.eq_ignore_ascii_case(name)
    });
    match (wanted.next(), wanted.next()) {
        (Some(one), None) => match &one.descriptor.record {
            Some(record) => Ok(Some(record.clone())),
            None => bail!(
                "{} runs without a record (--no-record); mcp-proxy attach {0} shows it",
                sanitize(&one.descriptor.id)
            ),
        },
        _ => Ok(None),
    }
}

/// The one of `records`, newest first, that `name` means.
fn choose<'a>(
    name: &str,
    folder: &Path,
    records: &'a [RecordListing],
) -> Result<&'a RecordListing> {
    let Some(newest) = records.first() else {
        let folder = folder.display();
        let unknown = match name {
            LAST => String::new(),
            name => format!("{}: no such file, and ", sanitize(name)),
        };
        bail!(
            "{unknown}no records in {folder} yet; every run of the proxy makes one (try mcp-proxy demo)"
        );
    };
    if name == LAST {
        return Ok(newest);
    }
    let called = |is_called: fn(&RecordListing, &str) -> bool| -> Vec<&RecordListing> {
        let records = records.iter();
        records.filter(|record| is_called(record, name)).collect()
    };
    let mut wanted = called(is_called);
    if wanted.is_empty() {
        wanted = called(has_shown_id);
    }
    match wanted.as_slice() {
        [record] => Ok(record),
        [] => bail!(
            "{}: no such file, and no such record in {}:{}",
            sanitize(name),
            folder.display(),
            lines(records.iter())
        ),
        several => bail!(
            "{} matches {} records; give one of these ids, or the path:{}",
            sanitize(name),
            several.len(),
            lines(several.iter().copied())
        ),
    }
}

/// By session id or the start of it; by file name, which tells two records of one session apart.
fn is_called(record: &RecordListing, name: &str) -> bool {
    let is_file = |path: &PathBuf| file_name(path) == name;
    begins(&record.id, name) || (!name.is_empty() && record.paths.iter().any(is_file))
}

/// The records of sessions whose ids start with `name`, or else of those that lists show by such an id; case-insensitive.
pub fn with_id<'a>(name: &str, records: &'a [RecordListing]) -> Vec<&'a RecordListing> {
    let started: Vec<_> = records
        .iter()
        .filter(|record| begins(&record.id, name))
        .collect();
    match started.is_empty() {
        true => records
            .iter()
            .filter(|record| has_shown_id(record, name))
            .collect(),
        false => started,
    }
}

/// By the id that lists show, and that its proxy had in `ls` while it ran: the end of the session's.
fn has_shown_id(record: &RecordListing, name: &str) -> bool {
    let is_longer = || name.eq_ignore_ascii_case(&control::end_of_id(&record.id, name.len()));
    begins(&control::short_id(&record.id), name) || (name.len() > control::ID_WIDTH && is_longer())
}

fn begins(id: &str, name: &str) -> bool {
    let start = id.get(..name.len());
    !name.is_empty() && start.is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// How many letters at the end of the ids tell `records` apart; at least eight.
pub fn id_width(records: &[RecordListing]) -> usize {
    let backwards = |record: &RecordListing| -> String {
        let letters = record.id.chars().rev();
        letters.filter(char::is_ascii_alphanumeric).collect()
    };
    let mut ids: Vec<String> = records.iter().map(backwards).collect();
    ids.sort_unstable();
    // Copies of a record have one id.
    ids.dedup();
    let shared = |pair: &[String]| {
        pair[0]
            .bytes()
            .zip(pair[1].bytes())
            .take_while(|(one, other)| one == other)
            .count()
    };
    ids.windows(2)
        .map(shared)
        .max()
        .map_or(control::ID_WIDTH, |shared| {
            (shared + 1).max(control::ID_WIDTH)
        })
}

fn lines<'a>(records: impl ExactSizeIterator<Item = &'a RecordListing>) -> String {
    let more = records.len().saturating_sub(SHOWN);
    let mut text = String::new();
    for record in records.take(SHOWN) {
        let started = formatting::day_and_time(record.started_at);
        let target = formatting::cut(&sanitize(&record.target), 60);
        text.push_str(&format!(
            "\n  {}  {}  {started}  {target}",
            control::short_id(&record.id),
            file_name(record.path())
        ));
    }
    if more > 0 {
        text.push_str(&format!("\n  and {more} more: mcp-proxy sessions"));
    }
    text
}

/// The file of a record that may have a torn end. The others are found from it.
fn last_file(record: &RecordListing) -> &Path {
    record.paths.last().map_or(record.path(), PathBuf::as_path)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    sanitize(&name.to_string_lossy())
}

fn looks_like_a_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use mcp_proxy_session::PeerInfo;
    use mcp_proxy_wire::Transport;

    use super::*;

    fn record(id: &str, file: &str) -> RecordListing {
        RecordListing {
            paths: vec![PathBuf::from("/s").join(file)],
            id: id.to_owned(),
            started_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_765_600),
            ended_at: None,
            live: false,
            server: PeerInfo::new(Transport::Stdio),
            target: "python server.py".to_owned(),
            bytes: 0,
        }
    }

    #[test]
    fn ids_prefixes_file_names_and_last() {
        let records = [
            record("019a8888-1", "b.jsonl"),
            record("019a8888-2", "a.jsonl"),
            record("019a9999-3", "c.jsonl"),
        ];
        let found =
            |name: &str| choose(name, Path::new("/s"), &records).map(|record| record.id.clone());
        assert_eq!(found("LAST").unwrap(), "019a8888-1");
        assert_eq!(found("019A8888-2").unwrap(), "019a8888-2");
        assert_eq!(found("019a9").unwrap(), "019a9999-3");
        assert_eq!(found("a.jsonl").unwrap(), "019a8888-2");
        // As `ls` calls it: the end of the id.
        assert_eq!(found("19a9").unwrap(), "019a9999-3");
        assert_eq!(found("19A99993").unwrap(), "019a9999-3");
        let text = found("019a8").unwrap_err().to_string();
        for named in ["019a8", "a.jsonl", "b.jsonl"] {
            assert!(text.contains(named), "{text}");
        }
        assert!(!text.contains("c.jsonl"), "{text}");
        for wrong in ["", "zz", "019a8888-12345", "\u{1b}[2J"] {
            let text = found(wrong).unwrap_err().to_string();
            // All that there are.
            assert!(
                text.contains("c.jsonl") && !text.contains('\u{1b}'),
                "{text}"
            );
        }
    }

    #[test]
    fn a_record_of_several_files_is_found_by_each_of_them() {
        let mut several = record("019a8888-1", "a.jsonl");
        several.paths.push("/s/a.2.jsonl".into());
        let records = [several, record("019a9999-2", "b.jsonl")];
        for name in ["LAST", "019a8888-1", "a.jsonl", "a.2.jsonl"] {
            let chosen = choose(name, Path::new("/s"), &records).unwrap();
            assert_eq!(last_file(chosen), Path::new("/s/a.2.jsonl"), "{name}");
        }
        // Two copies of one record are two records.
        let copies = [
            record("019a8888-1", "a.jsonl"),
            record("019a8888-1", "b.jsonl"),
        ];
        assert!(choose("019a8888-1", Path::new("/s"), &copies).is_err());
    }

    #[test]
    fn short_ids_tell_records_apart() {
        let pair = |one: &str, other: &str| id_width(&[record(one, "a"), record(other, "b")]);
        assert_eq!(id_width(&[]), 8);
        assert_eq!(pair("1-019a8888", "1-02000000"), 8);
        assert_eq!(pair("1-019a8888", "2-019a8888"), 9);
        assert_eq!(pair("1-019a8888", "1-019a8888"), 8);
    }

    #[test]
    fn d18_both_ids_of_a_run_find_it() {
        let records = [
            record("01a1eed3-67d0-7000-8000-0000f0d2dda9", "a.jsonl"),
            record("01a1eed3-ffff-7000-8000-0000f0d2ddaa", "b.jsonl"),
        ];
        let width = id_width(&records);
        for one in &records {
            let shown = control::end_of_id(&one.id, width);
            assert_eq!(shown, control::short_id(&one.id));
            for name in [
                shown.as_str(),
                &one.id[..11],
                &one.id[..23],
                &one.id,
                &one.id[24..],
            ] {
                let chosen = choose(name, Path::new("/s"), &records).unwrap();
                let pruned = with_id(name, &records);
                assert_eq!((&chosen.id, pruned.len()), (&one.id, 1), "{name}");
                assert_eq!(pruned[0].id, one.id, "{name}");
            }
        }
    }
}
