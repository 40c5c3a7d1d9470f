//! Nothing stays behind, and nothing that is in use is removed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use mcp_proxy_spill::{ReadLimit, ReadRequest, SpillError, SpillFormat, SpillStore};

use crate::test_store::{OWNER, STRANGER, TTL, TestStore, options, records};

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// The directory of the only run.
fn run_directory(parent: &Path) -> PathBuf {
    let runs: Vec<_> = entries(parent)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(runs.len(), 1);
    runs[0].clone()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn nothing_is_created_before_the_first_result() {
    let store = TestStore::new();
    assert!(!store.directory().exists());
    let home = store.end();
    assert!(!home.path().join("spill").exists());
}

#[test]
fn files_are_private() {
    let store = TestStore::new();
    store.spill(&records(3));
    let run = run_directory(&store.directory());
    assert_eq!(mode(&store.directory()), 0o700);
    assert_eq!(mode(&run), 0o700);
    for path in entries(&run) {
        assert_eq!(mode(&path), 0o600);
    }
    assert_eq!(mode(&run.with_extension("lock")), 0o600);
}

#[test]
fn ten_thousand_results_leave_nothing_behind() {
    let store = TestStore::new();
    let result = br#"{"content":[{"type":"text","text":"[1,2,3]"}]}"#;
    for _ in 0..10_000 {
        let spilled = store
            .store
            .spill(OWNER, result, SpillFormat::Json, store.now);
        assert_eq!(spilled.unwrap().byte_size, 7);
    }
    let directory = store.directory();
    assert_eq!(entries(&run_directory(&directory)).len(), 10_000);
    let _home = store.end();
    assert_eq!(entries(&directory), [] as [PathBuf; 0]);
}

#[test]
fn results_go_with_their_owner_and_their_time() {
    let mut store = TestStore::new();
    store.spill(&records(3));
    let theirs = store.spill_as(STRANGER, &records(3)).unwrap();
    let run = run_directory(&store.directory());
    store.store.forget_owner(OWNER);
    assert_eq!(entries(&run).len(), 1);
    let read = store.store.read(
        STRANGER,
        &theirs.handle,
        &ReadRequest::Stat,
        ReadLimit::MOST,
        store.now,
    );
    assert!(read.is_ok());
    store.now += TTL;
    store.store.sweep_expired(store.now);
    assert_eq!(entries(&run), [] as [PathBuf; 0]);
}

#[test]
fn a_run_that_was_killed_is_swept_and_a_live_one_is_kept() {
    let live = TestStore::new();
    let spilled = live.spill(&records(3));
    let directory = live.directory();
    // What a killed run leaves: the directory, and a lock file that nobody holds.
    let killed = directory.join("run-00000000000000000000000000");
    std::fs::create_dir(&killed).unwrap();
    std::fs::write(killed.join("1.json"), "[]").unwrap();
    std::fs::write(killed.with_extension("lock"), "").unwrap();
    // And one that was killed before it had made its directory.
    std::fs::write(directory.join("run-00000000000000000000000001.lock"), "").unwrap();
    let other = directory.join("other.lock");
    std::fs::write(&other, "").unwrap();

    let home = directory.parent().unwrap();
    let second = SpillStore::open(options(home, 1 << 20)).unwrap();
    assert!(!killed.exists());
    let run = run_directory(&directory);
    assert_eq!(
        entries(&directory),
        [other, run.clone(), run.with_extension("lock")]
    );
    assert!(live.read(&spilled.handle, &ReadRequest::Stat).is_ok());

    drop(second);
    assert!(live.read(&spilled.handle, &ReadRequest::Stat).is_ok());
}

#[test]
fn a_sweep_follows_no_link() {
    let store = TestStore::new();
    let precious = store.outside("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("file"), "x").unwrap();
    std::fs::create_dir(store.directory()).unwrap();
    std::fs::set_permissions(store.directory(), PermissionsExt::from_mode(0o700)).unwrap();
    let run = store.directory().join("run-00000000000000000000000000");
    symlink(&precious, &run).unwrap();
    std::fs::write(run.with_extension("lock"), "").unwrap();
    let home = store.end();
    SpillStore::open(options(home.path(), 1)).unwrap();
    assert!(home.path().join("precious/file").exists());
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let store = TestStore::new();
    std::fs::create_dir(store.directory()).unwrap();
    std::fs::set_permissions(store.directory(), PermissionsExt::from_mode(0o777)).unwrap();
    let spilled = store.spill_as(OWNER, &records(3));
    assert!(matches!(spilled, Err(SpillError::NotPrivate)));
    let home = store.end();
    let opened = SpillStore::open(options(home.path(), 1));
    assert!(matches!(opened, Err(SpillError::NotPrivate)));
}

#[test]
fn stores_that_start_and_end_at_once_do_not_disturb_each_other() {
    let home = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let store = SpillStore::open(options(home.path(), 1 << 20)).unwrap();
                    let now = std::time::Instant::now();
                    let spilled = store.spill(OWNER, b"{}", SpillFormat::Json, now).unwrap();
                    let read = store.read(
                        OWNER,
                        &spilled.handle,
                        &ReadRequest::Stat,
                        ReadLimit::MOST,
                        now,
                    );
                    assert_eq!(read.unwrap().byte_size, 2);
                }
            });
        }
    });
    assert_eq!(entries(&home.path().join("spill")), [] as [PathBuf; 0]);
}
