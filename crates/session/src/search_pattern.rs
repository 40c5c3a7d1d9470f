//! Regular expressions over what peers send, within a time limit.
//!
//! A search takes time in proportion to the text and to the pattern, and cannot be interrupted: a large pattern needs minutes
//! for some texts. So only what is known to be quick is searched where the caller is. All else is searched on a thread of its
//! own, and the caller waits for it no longer than its budget allows. A search that was given up ends by itself; until then its
//! pattern is not searched for again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use regex::bytes::{Regex, RegexBuilder};

use crate::budget::Stopwatch;

/// Bytes of text, times bytes of the compiled pattern, that are searched without a thread: some milliseconds at most.
const QUICK: usize = 64 << 20;
/// Sizes of compiled patterns that are told apart.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// The budget is computing time, but the caller has only the clock: a busy machine may be this many times slower.
const SLOWER: u32 = 5;

/// The places of a match and of its groups.
pub(crate) type MatchPlaces = Vec<Option<Range<usize>>>;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct SearchPattern {
    regex: Regex,
    /// About how large it is.
    size: usize,
    /// Searches that were given up and are still running.
    given_up: Arc<AtomicUsize>,
}

/// What a search found, and the computing time of another thread that it took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<T> {
    pub(crate) what: T,
    pub(crate) elsewhere: Duration,
}

/// How a pattern is written.
pub(crate) struct PatternOptions<'a> {
    pub(crate) pattern: &'a str,
    /// Memory for the compiled pattern.
    pub(crate) largest: usize,
    pub(crate) configure: &'a dyn Fn(&mut RegexBuilder),
}

/// Which matches are wanted.
#[derive(Clone, Copy)]
pub(crate) enum WantedMatches {
    First,
    /// All, but no more than this many.
    All(usize),
}

/// A search on a thread of its own, as its thread and its caller know it. The second of the two to finish corrects the count.
#[derive(Default)]
struct SearchProgress {
    /// It has ended, or was given up.
    settled: AtomicBool,
}

impl SearchPattern {
    pub(crate) fn new(options: &PatternOptions<'_>) -> Result<SearchPattern, regex::Error> {
        let build = |limit: usize| {
            let mut builder = RegexBuilder::new(options.pattern);
            (options.configure)(&mut builder);
            builder.size_limit(limit).build()
        };
        // The crate does not tell a pattern's size, only whether it is larger than some size.
        let smaller = SIZES.into_iter().filter(|size| *size < options.largest);
        for size in smaller {
            match build(size) {
                Err(regex::Error::CompiledTooBig(_)) => {}
                built => return built.map(|regex| SearchPattern::compiled(regex, size)),
            }
        }
        let regex = build(options.largest)?;
        Ok(SearchPattern::compiled(regex, options.largest))
    }

    fn compiled(regex: Regex, size: usize) -> SearchPattern {
        SearchPattern {
            regex,
            size,
            given_up: Arc::default(),
        }
    }

    /// The pattern itself, where nobody waits.
    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Whether it is in a text. `None`: that takes longer than `time`.
    pub(crate) fn is_in(&self, text: &Bytes, time: Duration) -> Option<Found<bool>> {
        self.within(text, time, |regex, text| regex.is_match(text))
    }

    /// Its matches in a text. `None`: that takes longer than `time`.
    pub(crate) fn matches(
        &self,
        text: &Bytes,
        wanted: WantedMatches,
        time: Duration,
    ) -> Option<Found<Vec<MatchPlaces>>> {
        let most = match wanted {
            WantedMatches::First => 1,
            WantedMatches::All(most) => most,
        };
        self.within(text, time, move |regex, text| {
            let found = regex.captures_iter(text).take(most);
            let places = found.map(|groups| {
                let groups = groups.iter();
                groups
                    .map(|group| group.map(|group| group.range()))
                    .collect()
            });
            places.collect()
        })
    }

    fn within<T: Send + 'static>(
        &self,
        text: &Bytes,
        time: Duration,
        search: impl FnOnce(&Regex, &[u8]) -> T + Send + 'static,
    ) -> Option<Found<T>> {
        if self.size.saturating_mul(text.len()) <= QUICK {
            return Some(Found {
                what: search(&self.regex, text),
                elsewhere: Duration::ZERO,
            });
        }
        if self.given_up.load(Ordering::Acquire) > 0 {
            return None;
        }
        let (regex, text) = (self.regex.clone(), text.clone());
        let (given_up, progress) = (Arc::clone(&self.given_up), Arc::<SearchProgress>::default());
        let known = Arc::clone(&progress);
        let (tell, found) = sync_channel(1);
        let searching = move || {
            let watch = Stopwatch::start();
            let what = search(&regex, &text);
            let elsewhere = watch.elapsed();
            drop(text);
            if known.settled.swap(true, Ordering::AcqRel) {
                given_up.fetch_sub(1, Ordering::AcqRel);
            }
            // The caller may have given up.
            drop(tell.send(Found { what, elsewhere }));
        };
        let thread = std::thread::Builder::new().name("search".to_owned());
        thread.spawn(searching).ok()?;
        let found = found.recv_timeout(time.saturating_mul(SLOWER)).ok();
        if found.is_none() {
            self.given_up.fetch_add(1, Ordering::AcqRel);
            if progress.settled.swap(true, Ordering::AcqRel) {
                // It has ended just now.
                self.given_up.fetch_sub(1, Ordering::AcqRel);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::time::Instant;

    fn pattern(pattern: &str) -> SearchPattern {
        let options = PatternOptions {
            pattern,
            largest: 4 << 20,
            configure: &|_| {},
        };
        SearchPattern::new(&options).unwrap()
    }

    #[test]
    fn a_quick_search_in_a_large_text_finds_what_is_there() {
        let mut text = vec![b'.'; 8 << 20];
        text.extend_from_slice(b"a needle");
        let text = Bytes::from(text);
        let time = Budget::OFFLINE.time;
        let is_in = |text_of: &str| pattern(text_of).is_in(&text, time).unwrap().what;
        assert!(is_in("n.{1,3}dle"));
        assert!(!is_in("n.{1,3}dles"));
        let matches = |text_of: &str, wanted| pattern(text_of).matches(&text, wanted, time);
        let found = matches("(ne)+(x)?", WantedMatches::First).unwrap();
        let at = 8 << 20;
        let places = vec![Some(at + 2..at + 4), Some(at + 2..at + 4), None];
        assert_eq!(found.what, [places]);
        let dots = matches(r"\.", WantedMatches::All(7)).unwrap();
        assert_eq!(dots.what.len(), 7);
    }

    #[test]
    fn a_search_that_is_hard_only_far_inside_is_given_up_in_time() {
        let mut text = vec![b'x'; 1 << 20];
        let mut random = 1u32;
        text.extend((0..2 << 20).map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b'a' + u8::from(random >> 31 == 1)
        }));
        let text = Bytes::from(text);
        let slow = pattern("[ab]*a[ab]{900}[^abx]");
        let begun = Instant::now();
        assert_eq!(slow.is_in(&text, Budget::LIVE.time), None);
        // It runs on, so it is not even tried.
        assert_eq!(slow.is_in(&text, Duration::from_secs(60)), None);
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{:?}",
            begun.elapsed()
        );
        // Others are not concerned.
        let quick = pattern("b.a");
        assert!(quick.is_in(&text, Budget::OFFLINE.time).unwrap().what);
    }
}
