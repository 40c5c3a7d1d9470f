//! The conformance suite's results, and how two runs differ. A check is known by its scenario, its id and, because
//! a scenario may make the same check several times, its place among those.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// `(scenario, check id, index) → status`.
pub struct Checks(BTreeMap<(String, String, usize), String>);

impl Checks {
    /// Reads every `checks.json` below a run's output directory.
    pub fn read(directory: &Path) -> Checks {
        let mut checks = BTreeMap::new();
        for entry in std::fs::read_dir(directory).expect("the suite wrote its results") {
            let entry = entry.expect("a readable directory").path();
            let scenario = scenario(&entry.file_name().expect("it has a name").to_string_lossy());
            let text =
                std::fs::read(entry.join("checks.json")).expect("each scenario has its checks");
            let results: Vec<Value> = serde_json::from_slice(&text).expect("checks are a list");
            for result in results {
                let (id, status) = (
                    result["id"].as_str().unwrap_or("?"),
                    result["status"].as_str().unwrap_or("?"),
                );
                // INFO lines are the suite's log of requests, whose number depends on timing.
                if status == "INFO" {
                    continue;
                }
                let index = checks
                    .keys()
                    .filter(|(s, i, _)| *s == scenario && i == id)
                    .count();
                checks.insert((scenario.clone(), id.to_owned(), index), status.to_owned());
            }
        }
        assert!(!checks.is_empty(), "no checks in {}", directory.display());
        Checks(checks)
    }

    /// Panics with every check that failed.
    pub fn assert_all_pass(&self) {
        let failed: Vec<_> = self
            .0
            .iter()
            .filter(|(_, status)| *status == "FAILURE")
            .collect();
        assert!(
            failed.is_empty(),
            "without the proxy these fail: {failed:?}"
        );
    }

    /// Panics with every check that has another status in `through`, or is in one of the two only.
    pub fn assert_same(&self, through: &Checks) {
        let keys = self
            .0
            .keys()
            .chain(through.0.keys().filter(|key| !self.0.contains_key(*key)));
        let lines: Vec<String> = keys
            .filter_map(|key| difference(key, self.0.get(key), through.0.get(key)))
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
    pub fn assert_passes_kept(&self, through: &Checks, except: &[&str]) {
        let passes = self.0.iter().filter(|((scenario, ..), status)| {
            *status == "SUCCESS" && !except.contains(&&**scenario)
        });
        let lines: Vec<String> = passes
            .filter_map(|(key, status)| difference(key, Some(status), through.0.get(key)))
            .collect();
        assert!(
            lines.is_empty(),
            "{} checks pass direct only:\n{}",
            lines.len(),
            lines.join("\n")
        );
    }
}

fn difference(
    key: &(String, String, usize),
    direct: Option<&String>,
    through: Option<&String>,
) -> Option<String> {
    let (scenario, id, index) = key;
    let shown = |status: Option<&String>| status.map_or("absent", String::as_str).to_owned();
    (direct != through).then(|| {
        format!(
            "{scenario} {id} #{index}: direct {}, proxy {}",
            shown(direct),
            shown(through)
        )
    })
}

/// `server-ping-2026-11-15T21-42-05-483Z` is a run of `ping`; a client scenario's directory has no prefix.
fn scenario(directory: &str) -> String {
    const TIME: usize = "-2026-11-15T21-42-05-483Z".len();
    directory[..directory.len() - TIME].to_owned()
}

#[test]
fn a_directory_names_its_scenario() {
    assert_eq!(scenario("sse-retry-2026-11-15T21-42-05-483Z"), "sse-retry");
}
