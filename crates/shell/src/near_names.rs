//! The names that a misspelt one may have been meant to be.

/// Names that are less alike are not meant for each other.
const ALIKE: f64 = 0.78;
/// Names that are suggested at once.
const MOST: usize = 3;

/// The names most like `given`, the best first.
pub(crate) fn near_names<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (likeness(given, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.dedup_by(|one, other| one.1 == other.1);
    scored
        .into_iter()
        .take(MOST)
        .map(|(_, name)| name)
        .collect()
}

/// `did you mean a or b?`, if anything is near.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let near = near_names(given, names);
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        [rest @ .., last] => Some(format!("did you mean `{}` or `{last}`?", rest.join("`, `"))),
    }
}

/// From 0 to 1. A name without the prefix of its server is as good as the name.
fn likeness(given: &str, name: &str) -> f64 {
    let (given, name) = (given.to_lowercase(), name.to_lowercase());
    let whole = strsim::jaro_winkler(&given, &name)
        .max(strsim::normalized_damerau_levenshtein(&given, &name));
    let ends_alike = given.len() >= 3 && name.ends_with(&given);
    let own = name.rsplit(['_', '.', '/', ':']).next().unwrap_or(&name);
    match ends_alike || (own == given && !own.is_empty()) {
        true => whole.max(0.95),
        false => whole,
    }
}
