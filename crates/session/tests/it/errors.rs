//! A disk that fails, as far as it shows from outside. (`/dev/full` is tested beside the recorder.)

use crate::sample::*;
use mcp_proxy_session::*;

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
        sample.client(vec![b'x'; 100_000]);
        sample.recorder.end(start(), "done").unwrap();
        assert_eq!(sample.open().len(), 2);
    }
}
