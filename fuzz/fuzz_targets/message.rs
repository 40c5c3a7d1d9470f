//! Any bytes as a message, as lines and as an event stream.
//!
//! `mkdir -p fuzz/corpus/message && cargo fuzz run -s none message fuzz/corpus/message crates/wire/tests/corpus -- -max_total_time=60`
//! (new inputs go to the first folder, the second is only read)
//!
//! What must hold is written once, in the tests of the crate.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| {
    invariants::message(bytes);
    // The last bytes choose chunking and the limit, so that a file of the corpus is also an input as it stands.
    let choice = |back: usize| {
        bytes
            .len()
            .checked_sub(back)
            .and_then(|at| bytes.get(at))
            .map_or(0, |&byte| usize::from(byte))
    };
    let sizes = [choice(1) % 17 + 1, choice(2) % 5 + 1, choice(3) % 64 + 1];
    for max in [choice(4), usize::MAX] {
        invariants::lines(bytes, &sizes, max);
        invariants::events(bytes, &sizes, max);
    }
});
