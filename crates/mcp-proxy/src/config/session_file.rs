//! What `--session-file` means.
//!
//! A record is JSON Lines. People who write `--session-file session.json` want a JSON document under that name, so they get one:
//! the record is `session.jsonl`, and the export at the end of the run is `session.json`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use mcp_proxy_session::{RecordLocation, exporters};

/// The ending of records.
const RECORD_ENDING: &str = "jsonl";

/// Where the record goes, and the format of the export at the end. `format` is that of `--output-format`.
pub(super) fn place(path: &Path, format: Option<&str>) -> Result<(RecordLocation, Option<String>)> {
    let path = std::path::absolute(path).context("cannot find the working directory")?;
    let shown = path.display();
    match std::fs::metadata(&path) {
        Ok(facts) if facts.is_dir() => {
            bail!("--session-file: {shown} is a folder; name a file in it")
        }
        Ok(facts) if !facts.is_file() => {
            bail!("--session-file: {shown} is not a regular file; a record cannot be written to it")
        }
        _ => {}
    }
    let ending = path.extension().and_then(|ending| ending.to_str());
    let named = exporters()
        .iter()
        .map(|exporter| (exporter.name(), exporter.extension()))
        .find(|(_, extension)| *extension != RECORD_ENDING && Some(*extension) == ending);
    let record = |path: PathBuf, export: Option<&str>| {
        Ok((RecordLocation::File(path), export.map(str::to_owned)))
    };
    match (named, format) {
        (None, format) => record(path, format),
        (Some((name, _)), Some(format)) if name != format => bail!(
            "--session-file: {shown} has the ending of a {name} export, but --output-format is {format}; use {}",
            path.with_extension(RECORD_ENDING).display()
        ),
        (Some((name, _)), _) => record(path.with_extension(RECORD_ENDING), Some(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(path: &str, format: Option<&str>) -> (PathBuf, Option<String>) {
        match place(Path::new(path), format).unwrap() {
            (RecordLocation::File(path), export) => (path, export),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_json_file_is_the_export_and_the_record_is_next_to_it() {
        let record = |path: &str| PathBuf::from(path);
        let json = Some("json".to_owned());
        assert_eq!(placed("/r/x.jsonl", None), (record("/r/x.jsonl"), None));
        assert_eq!(placed("/r/x", None), (record("/r/x"), None));
        assert_eq!(
            placed("/r/x.jsonl", Some("json")),
            (record("/r/x.jsonl"), json.clone())
        );
        assert_eq!(
            placed("/r/x.json", None),
            (record("/r/x.jsonl"), json.clone())
        );
        assert_eq!(
            placed("/r/x.json", Some("json")),
            (record("/r/x.jsonl"), json)
        );
        assert_eq!(
            placed("/r/x.har", None),
            (record("/r/x.jsonl"), Some("har".to_owned()))
        );
        assert!(place(Path::new("/r/x.json"), Some("har")).is_err());
    }

    #[test]
    fn folders_and_devices_are_refused() {
        for refused in ["/", "/dev/null"] {
            assert!(place(Path::new(refused), None).is_err(), "{refused}");
        }
    }
}
