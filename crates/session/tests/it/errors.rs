//! A disk that fails, as far as it shows from outside. (`/dev/full` is tested beside the recorder.)

use crate::sample::*;
use mcp_proxy_session::*;

#[test]
fn a_side_file_that_cannot_be_stored_is_a_warning_once_and_the_message_stays() {
    let mut sample = SampleRecord::with(
        RecordOptions {
            on_error: RecordErrorPolicy::Warn,
            ..options()
        },
        &header(),
    );
    // A file where the folder should be.
    std::fs::write(side_folder(sample.path()), "in the way").unwrap();
    for _ in 0..2 {
        sample.client(vec![b'x'; SIDE_LIMIT + 1]);
        sample.flush();
    }
    assert!(
        sample
            .recorder
            .warning()
            .unwrap()
            .contains("session.jsonl.d")
    );
    assert_eq!(sample.recorder.warning(), None);
    let session = sample.open();
    assert_eq!(session.len(), 2);
    assert_eq!(
        session.message(0).unwrap().raw,
        RawBody::Lost {
            len: SIDE_LIMIT as u64 + 1
        }
    );
}

#[test]
fn the_same_under_stop_is_an_error() {
    let mut sample = SampleRecord::new();
    std::fs::write(side_folder(sample.path()), "in the way").unwrap();
    sample.client(vec![b'x'; SIDE_LIMIT + 1]);
    assert!(sample.recorder.flush().is_err());
}

#[test]
fn a_place_that_cannot_be_written_says_which() {
    let error = Recorder::create(
        RecordLocation::File("/proc/nothing/here.jsonl".into()),
        options(),
        &header(),
    )
    .unwrap_err();
    assert!(error.chain().contains("/proc/nothing"), "{}", error.chain());
}

#[test]
fn every_durability_records() {
    for durability in [Durability::None, Durability::Interval, Durability::Fsync] {
        let mut sample = SampleRecord::with(
            RecordOptions {
                durability,
                ..options()
            },
            &header(),
        );
        sample.client("{}");
        sample.client(vec![b'x'; SIDE_LIMIT + 1]);
        sample.recorder.end(start(), "done").unwrap();
        assert_eq!(sample.open().len(), 2);
    }
}
