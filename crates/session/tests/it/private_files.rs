//! Files that somebody else put next to a record, or in the place of one: links, pipes, devices, and folders of others.

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{
    Error, RecordErrorPolicy, RecordLocation, RecordOptions, Recorder, SIDE_LIMIT, SessionRecord,
    export, is_live, side_folder, store,
};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

fn large_call() -> String {
    let text = "x".repeat(2 * SIDE_LIMIT);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{text}"}}}}"#)
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn json_of(session: &SessionRecord) -> (serde_json::Value, u64) {
    let mut out = Vec::new();
    let exporter = export::exporter("json").unwrap();
    let exported = exporter.export(session, &mut out, &mut |_, _| {}).unwrap();
    (serde_json::from_slice(&out).unwrap(), exported.missing)
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used_for_side_files() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = folder.path().join("r.jsonl");
    let planted = side_folder(&wanted);
    std::fs::create_dir(&planted).unwrap();
    std::fs::set_permissions(&planted, Permissions::from_mode(0o777)).unwrap();
    // The name counts as taken.
    let place = RecordLocation::File(wanted.clone());
    let mut record = SampleRecord::at_place(place, &header());
    assert_eq!(record.path(), folder.path().join("r.2.jsonl"));
    record.client(large_call());
    record.flush();
    let own = side_folder(record.path());
    assert_eq!(
        std::fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let body = std::fs::metadata(own.join("1.raw")).unwrap();
    assert_eq!(body.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(&planted).unwrap().count(), 0);
}

#[test]
fn a_folder_planted_during_the_run_loses_the_body_or_stops_the_run() {
    for (policy, stops) in [
        (RecordErrorPolicy::Warn, false),
        (RecordErrorPolicy::Stop, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        let options = RecordOptions {
            on_error: policy,
            ..options()
        };
        let mut record = SampleRecord::with(options, &header());
        symlink(&victim, side_folder(record.path())).unwrap();
        record.client(large_call());
        assert_eq!(record.recorder.flush().is_err(), stops);
        assert_eq!(record.recorder.warning().is_some(), !stops);
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
    }
}

#[test]
fn a_planted_part_file_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    let mut record = SampleRecord::new();
    let sides = side_folder(record.path());
    DirBuilder::new().mode(0o700).create(&sides).unwrap();
    symlink(&victim, sides.join(".1.part")).unwrap();
    let call = large_call();
    record.client(&call);
    record.flush();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(sides.join("1.raw")).unwrap(), call);
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
fn a_link_a_pipe_or_a_device_in_place_of_a_body_is_a_missing_body() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "s3cret".repeat(50_000)).unwrap();
    for kind in ["link", "device", "pipe", "folder of links"] {
        let mut record = SampleRecord::new();
        record.client(large_call());
        record.flush();
        let sides = side_folder(record.path());
        let body = sides.join("1.raw");
        std::fs::remove_file(&body).unwrap();
        match kind {
            "link" => symlink(secret.path(), &body).unwrap(),
            "device" => symlink("/dev/zero", &body).unwrap(),
            "pipe" => pipe(&body),
            _ => {
                std::fs::remove_dir(&sides).unwrap();
                let elsewhere = record.beside("elsewhere");
                std::fs::create_dir(&elsewhere).unwrap();
                std::fs::copy(secret.path(), elsewhere.join("1.raw")).unwrap();
                symlink(&elsewhere, &sides).unwrap();
            }
        }
        let session = record.open();
        let message = session.message(0).unwrap();
        assert!(message.raw.is_gone(), "{kind}");
        assert!(message.raw.load().is_err(), "{kind}");
        let (document, missing) = json_of(&session);
        assert_eq!(missing, 1, "{kind}");
        assert!(document["messages"][0]["raw"].is_null(), "{kind}");
        assert!(!document.to_string().contains("s3cret"), "{kind}");
    }
}

#[test]
fn no_more_of_a_body_is_read_than_the_record_says() {
    let mut record = SampleRecord::new();
    let call = large_call();
    record.client(&call);
    record.flush();
    let body = side_folder(record.path()).join("1.raw");
    let mut file = OpenOptions::new().append(true).open(body).unwrap();
    file.write_all(b"and more").unwrap();
    let message = record.open().message(0).unwrap();
    assert_eq!(message.raw.load().unwrap(), call);
}

#[test]
fn a_pipe_or_a_device_is_refused_as_a_record_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    pipe(&path);
    for refused in [&path, Path::new("/dev/zero")] {
        let error = SessionRecord::open(refused).unwrap_err();
        assert!(matches!(error, Error::NotARecord { .. }), "{error:?}");
        assert!(store::RecordListing::read(refused).is_err());
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
