//! What may not be read is refused with one text, whatever it is.

use std::os::unix::fs::symlink;
use std::time::Duration;

use mcp_proxy_spill::{ReadLimit, ReadRequest, SpillError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::test_store::{OWNER, STRANGER, TTL, TestStore, records};

fn assert_refused(store: &TestStore, file: &str) {
    let read = store.read(file, &ReadRequest::Stat);
    assert!(
        matches!(read, Err(SpillError::NoSuchFile)),
        "{file}: {read:?}"
    );
    let arguments = store.store.arguments(OWNER, file, store.now);
    assert!(matches!(arguments, Err(SpillError::NoSuchFile)), "{file}");
    let contents = store.store.contents(OWNER, file, store.now);
    assert!(matches!(contents, Err(SpillError::NoSuchFile)), "{file}");
}

#[test]
fn unknown_handles() {
    let store = TestStore::new();
    let before = "spill:00000000000000000000000000.json";
    assert_refused(&store, before);
    let spilled = store.spill(&records(3));
    for handle in [
        before.to_owned(),
        "spill:".to_owned(),
        "spill:../1.json".to_owned(),
        "spill:1.json".to_owned(),
        spilled.handle.to_uppercase(),
        spilled.handle.replace(".json", ""),
        format!("{}/../1.json", spilled.handle),
        format!(" {}", spilled.handle),
    ] {
        assert_refused(&store, &handle);
    }
}

#[test]
fn the_handle_of_somebody_else() {
    let store = TestStore::new();
    let theirs = store.spill_as(STRANGER, &records(3)).unwrap();
    assert_refused(&store, &theirs.handle);
    let read = store.store.read(
        STRANGER,
        &theirs.handle,
        &ReadRequest::Stat,
        ReadLimit::MOST,
        store.now,
    );
    assert!(read.is_ok());
}

#[test]
fn a_handle_after_its_time() {
    let mut store = TestStore::new();
    let spilled = store.spill(&records(3));
    store.now += TTL - Duration::from_millis(1);
    assert!(store.read(&spilled.handle, &ReadRequest::Stat).is_ok());
    store.now += Duration::from_millis(1);
    assert_refused(&store, &spilled.handle);
    store.store.sweep_expired(store.now);
    assert_refused(&store, &spilled.handle);
}

#[test]
fn the_stores_own_files_by_path() {
    let store = TestStore::new();
    store.spill(&records(3));
    let mut seen = 0;
    for run in std::fs::read_dir(store.directory()).unwrap() {
        let run = run.unwrap().path();
        assert_refused(&store, run.to_str().unwrap());
        for file in std::fs::read_dir(&run).into_iter().flatten() {
            assert_refused(&store, file.unwrap().path().to_str().unwrap());
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
}

#[test]
fn paths_out_of_the_roots() {
    let store = TestStore::new();
    std::fs::write(store.outside("secret.json"), "{\"secret\":1}").unwrap();
    std::fs::create_dir(store.in_root("inner")).unwrap();
    std::fs::write(store.in_root("inner/ok.json"), "{\"a\":1}").unwrap();
    symlink(store.outside("secret.json"), store.in_root("link.json")).unwrap();
    symlink(store.outside(""), store.in_root("up")).unwrap();
    symlink(store.in_root("inner/ok.json"), store.in_root("inside.json")).unwrap();
    let in_root = |name: &str| store.in_root(name).to_str().unwrap().to_owned();
    for file in [
        store.outside("secret.json").to_str().unwrap().to_owned(),
        "/etc/passwd".to_owned(),
        "secret.json".to_owned(),
        "inner/ok.json".to_owned(),
        String::new(),
        "/".to_owned(),
        in_root(""),
        in_root("missing.json"),
        in_root("inner"),
        in_root("inner/ok.json/x"),
        in_root("../secret.json"),
        in_root("inner/../../secret.json"),
        in_root("inner/../inner/ok.json"),
        in_root("link.json"),
        in_root("up/secret.json"),
        in_root("up/shared/inner/ok.json"),
        in_root("inside.json"),
        format!("{}2/inner/ok.json", in_root("").trim_end_matches('/')),
        format!("file://{}", in_root("inner/ok.json")),
        "\0".to_owned(),
        in_root("a\0b"),
    ] {
        assert_refused(&store, &file);
    }
    let file = in_root("inner/ok.json");
    assert_eq!(store.text(&file, &ReadRequest::Read), "{\"a\":1}");
    let contents = store.store.contents(OWNER, &file, store.now);
    assert!(matches!(contents, Err(SpillError::NoSuchFile)));
}

#[test]
fn pipes_and_devices_do_not_block() {
    let store = TestStore::new();
    let pipe = store.in_root("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_refused(&store, pipe.to_str().unwrap());
    symlink("/dev/zero", store.in_root("zero")).unwrap();
    assert_refused(&store, store.in_root("zero").to_str().unwrap());
    assert_refused(&store, "/dev/zero");
}

#[test]
fn a13_a_pipe_in_place_of_a_result_does_not_block() {
    let store = TestStore::new();
    let spilled = store.spill(&records(3));
    let runs = std::fs::read_dir(store.directory()).unwrap();
    let run = runs
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let file = std::fs::read_dir(run).unwrap().next().unwrap();
    let file = file.unwrap().path();
    std::fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_refused(&store, &spilled.handle);
}

#[test]
fn texts() {
    let errors = [
        SpillError::NoSuchFile,
        SpillError::NotAnObject,
        SpillError::QuotaExceeded { quota: 1 << 30 },
        SpillError::TooLarge {
            operation: "op='jq'",
            size: 100_000_000,
            limit: 64 << 20,
        },
        SpillError::BadFilter("`.a |`: it ends where term is expected".to_owned()),
        SpillError::NotJson,
        SpillError::NotPrivate,
        SpillError::Io(std::io::ErrorKind::StorageFull.into()),
    ];
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
}
