//! The conformance suite's results, and how two runs differ. A check is known by its scenario, its id and, because
//! a scenario may make the same check several times, its place among those.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// Scenario, check id, index among the checks of that id.
type CheckKey = (String, String, usize);

/// One check's outcome, and the suite's words about it if it did not pass.
#[derive(Debug)]
struct CheckOutcome {
    status: String,
    words: String,
}

/// Every check of one run.
pub struct ConformanceChecks(BTreeMap<CheckKey, CheckOutcome>);

impl ConformanceChecks {
    /// Reads every `checks.json` below a run's output directory.
    pub fn read(directory: &Path) -> ConformanceChecks {
        let mut checks = BTreeMap::new();
        for entry in std::fs::read_dir(directory).expect("the suite wrote its results") {
            let entry = entry.expect("a readable directory").path();
            let scenario = scenario(&entry.file_name().expect("it has a name").to_string_lossy());
            let text =
                std::fs::read(entry.join("checks.json")).expect("each scenario has its checks");
            let results: Vec<Value> = serde_json::from_slice(&text).expect("checks are a list");
            let mut places = BTreeMap::<String, usize>::new();
            for result in results {
                let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
                // INFO lines are the suite's log of requests, whose number depends on timing.
                if text("status") == "INFO" {
                    continue;
                }
                let place = places.entry(text("id")).or_default();
                let check = CheckOutcome {
                    status: text("status"),
                    words: text("errorMessage"),
                };
                checks.insert((scenario.clone(), text("id"), *place), check);
                *place += 1;
            }
        }
        assert!(!checks.is_empty(), "no checks in {}", directory.display());
        ConformanceChecks(checks)
    }

    /// Panics with every check that failed.
    pub fn assert_all_pass(&self) {
        let failed: Vec<_> = self
            .0
            .iter()
            .filter(|(_, check)| check.status == "FAILURE")
            .collect();
        assert!(
            failed.is_empty(),
            "without the proxy these fail: {failed:#?}"
        );
    }

    /// Panics with every check that has another status in `through`, or is in one of the two only.
    pub fn assert_same(&self, through: &ConformanceChecks) {
        let keys: BTreeSet<&CheckKey> = self.0.keys().chain(through.0.keys()).collect();
        let lines: Vec<String> = keys
            .into_iter()
            .filter_map(|key| self.difference(through, key))
            .collect();
        assert!(
            lines.is_empty(),
            "{} of {} checks differ:\n{}",
            lines.len(),
            self.0.len(),
            lines.join("\n")
        );
    }

    /// Panics with every check that passes here and not in `through`, the scenarios in `except` left out.
    pub fn assert_passes_kept(&self, through: &ConformanceChecks, except: &[&str]) {
        let passes = self.0.iter().filter(|((scenario, ..), check)| {
            check.status == "SUCCESS" && !except.contains(&scenario.as_str())
        });
        let lines: Vec<String> = passes
            .filter_map(|(key, _)| self.difference(through, key))
            .collect();
        assert!(
            lines.is_empty(),
            "{} checks pass direct only:\n{}",
            lines.len(),
            lines.join("\n")
        );
    }

    /// Panics unless `through` differs in the known checks only, and in all of them: one that no longer differs has to
    /// be taken off the list. Each line of `known` is a scenario and a check id; `#` begins a comment.
    pub fn assert_known_differences(&self, through: &ConformanceChecks, known: &str) {
        let known: BTreeSet<(&str, &str)> = known
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(' '))
            .collect();
        let keys: BTreeSet<&CheckKey> = self.0.keys().chain(through.0.keys()).collect();
        let mut met = BTreeSet::new();
        let mut unknown = Vec::new();
        for key in keys {
            let Some(line) = self.difference(through, key) else {
                continue;
            };
            let name = (key.0.as_str(), key.1.as_str());
            if known.contains(&name) {
                met.insert(name);
            } else {
                unknown.push(line);
            }
        }
        assert!(
            unknown.is_empty(),
            "these checks differ:\n{}",
            unknown.join("\n")
        );
        let gone: Vec<_> = known.difference(&met).collect();
        assert!(
            gone.is_empty(),
            "these no longer differ and must leave the list of known differences: {gone:#?}"
        );
    }

    fn difference(&self, through: &ConformanceChecks, key: &CheckKey) -> Option<String> {
        let (direct, proxy) = (self.0.get(key), through.0.get(key));
        let status =
            |check: Option<&CheckOutcome>| check.map_or("absent", |check| &check.status).to_owned();
        let words = proxy.map(|check| check.words.as_str()).unwrap_or_default();
        let (scenario, id, place) = key;
        (status(direct) != status(proxy)).then(|| {
            format!(
                "{scenario} {id} #{place}: direct {}, proxy {} {words}",
                status(direct),
                status(proxy)
            )
        })
    }
}

/// `sse-retry-2026-11-15T21-42-05-483Z` holds a run of `sse-retry`; a server scenario's name begins with `server-`.
fn scenario(directory: &str) -> String {
    const TIME: usize = "-2026-11-15T21-42-05-483Z".len();
    directory[..directory.len() - TIME].to_owned()
}

#[test]
fn a_directory_names_its_scenario() {
    assert_eq!(scenario("sse-retry-2026-11-15T21-42-05-483Z"), "sse-retry");
}
