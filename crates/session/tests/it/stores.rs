//! The folder of records: names, lists, pruning.

use crate::sample::*;
use mcp_proxy_session::store::{PruneSelection, list, prune, prune_to_size};
use mcp_proxy_session::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn record_in(folder: &Path, number: u64) -> Recorder {
    let mut header = header();
    header.id = format!("019a8888-0000-7000-8000-00000000000{number}");
    header.started_at = start() + Duration::from_secs(number);
    let mut recorder = Recorder::create(
        RecordLocation::Folder(folder.to_path_buf()),
        options(),
        &header,
    )
    .unwrap();
    recorder.record_event(
        start(),
        &RecordEvent::Note {
            text: &"n".repeat(1000),
        },
    );
    recorder.flush().unwrap();
    recorder
}

fn names(folder: &Path) -> Vec<String> {
    list(folder)
        .unwrap()
        .iter()
        .map(|record| {
            record
                .path()
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn a_name_that_is_taken_gets_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/for/it/session.jsonl");
    let create =
        || Recorder::create(RecordLocation::File(path.clone()), options(), &header()).unwrap();
    let first = create();
    let second = create();
    drop(first);
    let third = create();
    assert_eq!(second.path(), path.with_file_name("session.2.jsonl"));
    assert_eq!(third.path(), path.with_file_name("session.3.jsonl"));
}

#[test]
fn lists_are_newest_first_and_say_what_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = record_in(folder.path(), 1);
    let two = record_in(folder.path(), 2);
    one.end(start() + Duration::from_secs(9), "done").unwrap();
    drop(one);
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let listed = list(folder.path()).unwrap();
    assert_eq!(
        names(folder.path()),
        [
            "20261115T180002Z-00000002.jsonl",
            "20261115T180001Z-00000001.jsonl"
        ]
    );
    assert!(listed[0].live && !listed[1].live);
    assert_eq!(listed[1].ended_at, Some(start() + Duration::from_secs(9)));
    assert_eq!(listed[1].target, "python server.py");
    assert!(listed[1].bytes > 1000);
    assert_eq!(listed[0].path(), two.path());
    assert_eq!(list(&folder.path().join("none")).unwrap().len(), 0);
}

fn bodies_of(record: &Path) -> PathBuf {
    record.with_extension("jsonl.d")
}

#[test]
fn the_oldest_finished_ones_go_first_and_live_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let live = record_in(folder.path(), 1);
    for number in 2..=4 {
        let mut recorder = record_in(folder.path(), number);
        // As a record of format 2 has it.
        let bodies = bodies_of(recorder.path());
        std::fs::create_dir(&bodies).unwrap();
        std::fs::write(bodies.join("1.raw"), "body").unwrap();
        recorder.end(start(), "done").unwrap();
    }
    let each = list(folder.path()).unwrap()[0].bytes;
    let pruned = prune_to_size(folder.path(), each * 3).unwrap();
    assert_eq!((pruned.removed.len(), pruned.live.len()), (1, 1));
    assert_eq!(pruned.bytes, each);
    assert_eq!(names(folder.path()).len(), 3);
    let gone = &pruned.removed[0];
    assert!(gone.to_string_lossy().contains("180002Z") && !bodies_of(gone).exists());
    assert!(!gone.with_extension("jsonl.idx").exists());
    let pruned = prune(
        folder.path(),
        &PruneSelection::StartedBefore(start() + Duration::from_secs(4)),
    )
    .unwrap();
    assert_eq!(
        (pruned.removed.len(), pruned.live),
        (1, vec![live.path().to_path_buf()])
    );
    let last = list(folder.path()).unwrap()[0].path().to_path_buf();
    assert_eq!(
        prune(folder.path(), &PruneSelection::Records(vec![last]))
            .unwrap()
            .removed
            .len(),
        1
    );
    drop(live);
    assert_eq!(
        prune(folder.path(), &PruneSelection::All)
            .unwrap()
            .removed
            .len(),
        1
    );
    assert_eq!(names(folder.path()).len(), 0);
}

#[test]
fn what_stands_beside_a_record_is_counted_and_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = record_in(folder.path(), 1);
    recorder.end(start(), "done").unwrap();
    let path = recorder.path().to_path_buf();
    drop(recorder);
    let before = list(folder.path()).unwrap()[0].bytes;
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let write = |ending: &str| {
        std::fs::write(
            folder.path().join(format!("{name}{ending}")),
            "x".repeat(10_000),
        )
        .unwrap();
    };
    let companions = [
        ".json",
        ".json.2",
        ".har",
        ".md",
        ".jsonl.torn",
        ".jsonl.torn.2",
        ".jsonl.idx.77.part",
    ];
    companions.into_iter().for_each(write);
    // Nobody knows whose these are, and a copy of the record is a record.
    let others = ["-copy.json", ".json.old", ".txt"];
    others.into_iter().for_each(write);
    std::fs::copy(&path, folder.path().join(format!("{name}.jsonl.2"))).unwrap();
    let listed = list(folder.path()).unwrap();
    assert_eq!(listed.len(), 2);
    let own = listed.iter().find(|record| record.path() == path).unwrap();
    assert_eq!(own.bytes, before + 10_000 * companions.len() as u64);
    let pruned = prune(folder.path(), &PruneSelection::All).unwrap();
    assert_eq!(pruned.removed.len(), 2);
    let mut left: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let mut expected = others.map(|ending| format!("{name}{ending}"));
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn the_newest_finished_session_is_never_pruned_to_size() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        let mut recorder = record_in(folder.path(), number);
        recorder.end(start(), "done").unwrap();
    }
    let live = record_in(folder.path(), 4);
    let pruned = prune_to_size(folder.path(), 1).unwrap();
    assert_eq!((pruned.removed.len(), pruned.live.len()), (2, 1));
    assert!(pruned.bytes > 0);
    drop(live);
    let kept = names(folder.path());
    assert_eq!(kept.len(), 2);
    assert!(kept[1].contains("180003Z"), "{kept:?}");
}

/// A running session in several files, of which it writes the last.
fn running_in_files(folder: &Path, number: u64) -> SampleRecord {
    let options = RecordOptions {
        max_size: Some(1_500),
        ..options()
    };
    let mut header = header();
    header.id = format!("019a8888-0000-7000-8000-00000000000{number}");
    header.started_at = start() + Duration::from_secs(number);
    let mut record = SampleRecord::with(options.clone(), &header);
    let place = RecordLocation::Folder(folder.to_path_buf());
    record.recorder = Recorder::create(place, options, &header).unwrap();
    for id in 1..=10 {
        record.call(id, "tool", "{}");
        record.flush();
    }
    assert!(record.recorder.paths().len() > 2);
    record
}

#[test]
fn no_file_of_a_running_session_is_pruned_nor_taken_for_the_newest_finished_one() {
    let folder = tempfile::tempdir().unwrap();
    let one = running_in_files(folder.path(), 1);
    for number in 2..=3 {
        let mut recorder = record_in(folder.path(), number);
        recorder.end(start(), "done").unwrap();
    }
    let four = running_in_files(folder.path(), 4);
    let pruned = prune_to_size(folder.path(), 1).unwrap();
    assert_eq!(pruned.removed.len(), 1);
    assert!(pruned.removed[0].to_string_lossy().contains("180002Z"));
    assert!(names(folder.path()).contains(&"20261115T180003Z-00000003.jsonl".to_owned()));
    let pruned = prune(folder.path(), &PruneSelection::All).unwrap();
    assert_eq!(pruned.removed.len(), 1);
    let running = [&one, &four].map(|record| record.recorder.paths());
    assert_eq!(pruned.live, running.map(|paths| paths[0].clone()));
    assert!(running.concat().iter().all(|path| path.exists()));
}
