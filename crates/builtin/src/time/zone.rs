//! Time zones by name, and the names that somebody may have meant.

use jiff::tz::{self, TimeZone};

use crate::tool::{ToolFailure, clip};

/// Names less similar than this are not worth suggesting.
const SIMILAR: f64 = 0.85;
/// And so are names that are so much less similar than the best one.
const FAR_FROM_BEST: f64 = 0.05;
const SUGGESTIONS: usize = 3;
/// Longer than the name of any zone.
const NAME_LIMIT: usize = 64;

/// The system's zone. A zone without a name cannot be told to a model, so it counts as unknown.
pub(super) fn local_zone() -> TimeZone {
    TimeZone::try_system()
        .ok()
        .filter(|zone| zone.iana_name().is_some())
        .unwrap_or(TimeZone::UTC)
}

pub(super) fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

/// The zone called `name`, whatever its capitals.
pub(super) fn find_zone(parameter: &str, name: &str) -> Result<TimeZone, ToolFailure> {
    let known = (name.len() <= NAME_LIMIT)
        .then(|| tz::db().get(name).ok())
        .flatten();
    known.ok_or_else(|| {
        let name = clip(name, NAME_LIMIT);
        let similar = similar_names(name);
        let hint = if similar.is_empty() {
            "use an IANA name such as Europe/London".to_owned()
        } else {
            format!("did you mean {}?", similar.join(", "))
        };
        ToolFailure::new(format!(
            "`{parameter}` names no known time zone: `{name}`; {hint}"
        ))
    })
}

/// People often know the city but not the continent, so the last part of a name counts as much as the whole.
fn similar_names(name: &str) -> Vec<String> {
    let wanted = simplify(name);
    let similarity = |candidate: &str| {
        let candidate = simplify(candidate);
        let city = candidate.rsplit('/').next().unwrap_or_default();
        strsim::jaro_winkler(&wanted, &candidate).max(strsim::jaro_winkler(&wanted, city))
    };
    let mut names: Vec<(f64, String)> = tz::db()
        .available()
        .map(|candidate| (similarity(candidate.as_str()), candidate.to_string()))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    names.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    let best = names.first().map_or(0.0, |(similarity, _)| *similarity);
    names
        .into_iter()
        .take_while(|(similarity, _)| best - similarity < FAR_FROM_BEST)
        .take(SUGGESTIONS)
        .map(|(_, name)| name)
        .collect()
}

fn simplify(name: &str) -> String {
    name.trim().replace(' ', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_whatever_their_capitals() {
        let zone = find_zone("timezone", "america/new_york").unwrap();
        assert_eq!(zone_name(&zone), "America/New_York");
    }

    #[test]
    fn near_names_are_suggested() {
        let table = [
            ("Berlin", "Europe/Berlin"),
            ("new york", "America/New_York"),
            ("Europe/Pariss", "Europe/Paris"),
            ("Amerika/Los_Angeles", "America/Los_Angeles"),
        ];
        for (given, expected) in table {
            let similar = similar_names(given);
            assert!(
                similar.iter().any(|name| name == expected),
                "{given}: {similar:?}"
            );
        }
    }

    #[test]
    fn a_name_is_not_a_path() {
        for name in [
            "",
            "../../../etc/passwd",
            "/etc/localtime",
            "Europe/../UTC",
            "Europe",
            "x\0y",
        ] {
            let failure = find_zone("timezone", name).unwrap_err().to_string();
            assert!(failure.contains("`timezone`"), "{failure}");
        }
        let failure = find_zone("timezone", &"x".repeat(10_000)).unwrap_err();
        assert!(failure.to_string().len() < 300);
    }
}
