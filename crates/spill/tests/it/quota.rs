//! What happens when there is no room left.

use std::time::Duration;

use mcp_proxy_spill::{ReadLimit, ReadRequest, SpillError, SpillOwner};
use serde_json::{Value, json};

use crate::test_store::{OWNER, STRANGER, TTL, TestStore, records};

fn is_readable(store: &TestStore, owner: SpillOwner, handle: &str) -> bool {
    store
        .store
        .read(
            owner,
            handle,
            &ReadRequest::Read,
            ReadLimit::MOST,
            store.now,
        )
        .is_ok()
}

/// What a result takes up on disk.
fn size_on_disk(value: &Value) -> u64 {
    let size = TestStore::new().spill(value).byte_size;
    size.next_multiple_of(4096)
}

#[test]
fn the_owners_oldest_go_first() {
    let size = size_on_disk(&records(100));
    let store = TestStore::with_quota(size * 3);
    let handles: Vec<_> = (0..4).map(|_| store.spill(&records(100)).handle).collect();
    let readable: Vec<_> = handles
        .iter()
        .map(|handle| is_readable(&store, OWNER, handle))
        .collect();
    assert_eq!(readable, [false, true, true, true]);
}

#[test]
fn expired_ones_of_anybody_go_before() {
    let size = size_on_disk(&records(100));
    let mut store = TestStore::with_quota(size * 3);
    let theirs = store.spill_as(STRANGER, &records(100)).unwrap().handle;
    store.now += Duration::from_secs(1);
    let first = store.spill(&records(100)).handle;
    store.now += TTL - Duration::from_secs(1);
    let second = store.spill(&records(100)).handle;
    let third = store.spill(&records(100)).handle;
    assert!(!is_readable(&store, STRANGER, &theirs));
    for handle in [first, second, third] {
        assert!(is_readable(&store, OWNER, &handle));
    }
}

#[test]
fn what_somebody_else_keeps_stays() {
    let size = size_on_disk(&records(100));
    let store = TestStore::with_quota(size * 2);
    let theirs = store.spill_as(STRANGER, &records(100)).unwrap().handle;
    let mine = store.spill(&records(100)).handle;
    let too_large = store.spill_as(OWNER, &records(300));
    assert!(matches!(too_large, Err(SpillError::QuotaExceeded { quota }) if quota == size * 2));
    assert!(is_readable(&store, STRANGER, &theirs));
    assert!(
        is_readable(&store, OWNER, &mine),
        "nothing is removed in vain"
    );

    store.store.forget_owner(STRANGER);
    assert!(store.spill_as(OWNER, &records(150)).is_ok());
}

#[test]
fn a_result_that_does_not_fit_leaves_nothing_behind() {
    let store = TestStore::with_quota(5000);
    for _ in 0..3 {
        let refused = store.spill_as(OWNER, &records(200));
        assert!(matches!(refused, Err(SpillError::QuotaExceeded { .. })));
    }
    let files = walk(&store.directory());
    assert_eq!(files, 0);
    assert!(store.spill_as(OWNER, &records(10)).is_ok());
}

#[test]
fn room_is_counted_in_blocks() {
    let size = size_on_disk(&records(100));
    assert!(
        TestStore::with_quota(size)
            .spill_as(OWNER, &records(100))
            .is_ok()
    );
    let store = TestStore::with_quota(size - 1);
    assert!(store.spill_as(OWNER, &records(100)).is_err());
    assert_eq!(walk(&store.directory()), 0);

    let store = TestStore::with_quota(10 * 4096);
    for _ in 0..100 {
        store.spill(&json!(1));
    }
    assert_eq!(walk(&store.directory()), 10, "small files count too");
}

#[test]
fn who_has_more_than_a_share_makes_room_for_who_has_less() {
    let size = size_on_disk(&records(100));
    let store = TestStore::with_quota(size * 4);
    let theirs: Vec<_> = (0..4)
        .map(|_| store.spill_as(STRANGER, &records(100)).unwrap().handle)
        .collect();
    let mine: Vec<_> = (0..3).map(|_| store.spill(&records(100)).handle).collect();
    let readable = |owner, handles: &[String]| -> Vec<bool> {
        let readable = handles
            .iter()
            .map(|handle| is_readable(&store, owner, handle));
        readable.collect()
    };
    assert_eq!(readable(STRANGER, &theirs), [false, false, true, true]);
    assert_eq!(readable(OWNER, &mine), [false, true, true]);
}

/// How many files are in the directories of runs.
fn walk(directory: &std::path::Path) -> usize {
    let runs = std::fs::read_dir(directory).unwrap();
    runs.filter_map(|run| std::fs::read_dir(run.unwrap().path()).ok())
        .map(Iterator::count)
        .sum()
}
