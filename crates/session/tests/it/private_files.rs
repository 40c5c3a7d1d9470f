//! Files that somebody else put next to a record, or in the place of one: links, pipes and devices.

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{Error, RecordLocation, Recorder, SessionRecord, is_live, store};
use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_planted_index_is_neither_read_nor_written_through() {
    let mut record = SampleRecord::new();
    record.calls(20);
    record.end();
    let index = record.beside("session.jsonl.idx");
    let other = record.beside("other");
    std::fs::write(&other, "mine").unwrap();
    std::fs::remove_file(&index).unwrap();
    symlink(&other, &index).unwrap();
    let session = record.open();
    assert_eq!(session.len(), 20);
    session.store_index().unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
    assert!(index.symlink_metadata().unwrap().is_file());
    std::fs::remove_file(&index).unwrap();
    pipe(&index);
    assert_eq!(record.open().len(), 20);
}

#[test]
fn a_pipe_or_a_device_is_refused_as_a_record_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    pipe(&path);
    for refused in [&path, Path::new("/dev/zero")] {
        let error = SessionRecord::open(refused).unwrap_err();
        assert!(matches!(error, Error::NotARecord { .. }), "{error:?}");
        assert!(store::check_record(refused).is_err());
        assert!(mcp_proxy_session::repair(refused).is_err());
        assert!(!is_live(refused));
    }
    assert_eq!(store::list(folder.path()).unwrap().len(), 0);
}

#[test]
fn a_file_without_a_line_is_refused_after_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    // Sparse: it takes no room on the disk, and reading all of it would take long.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .unwrap();
    file.write_all(br#"{"t":"session","#).unwrap();
    file.seek(SeekFrom::Start(1 << 40)).unwrap();
    file.write_all(b"}").unwrap();
    let error = SessionRecord::open(&path).unwrap_err();
    assert!(matches!(error, Error::NotARecord { .. }), "{error:?}");
    assert_eq!(store::list(folder.path()).unwrap().len(), 0);
}

#[test]
fn a_folder_or_a_device_is_refused_as_a_place_for_a_record() {
    let folder = tempfile::tempdir().unwrap();
    for refused in [folder.path(), Path::new("/dev/full")] {
        let place = RecordLocation::File(refused.to_path_buf());
        let error = Recorder::create(place, options(), &header()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
    }
    assert!(!Path::new("/dev/full.2").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
