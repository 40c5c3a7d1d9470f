//! Changes to the HTTP head of a held message, as a viewer gives them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What becomes of each header that is named; all others stay. On the wire it is an object: a string or a list of strings
/// sets a header, `null` removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeaderPatch(pub BTreeMap<String, HeaderChange>);

/// What becomes of one header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "write a string, a list of strings, or null to remove the header"
)]
pub enum HeaderChange {
    /// It has this value.
    Value(String),
    /// It has these values, one line each.
    Values(Vec<String>),
    /// It is removed.
    Removed,
}

impl HeaderPatch {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What makes `edited` of `shown`, both as names and values. A header that is the same in both is not part of the patch, so
    /// one whose value is shown masked keeps its value.
    pub fn between(shown: &[(String, String)], edited: &[(String, String)]) -> HeaderPatch {
        let (before, after) = (by_name(shown), by_name(edited));
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        let removed = removed.map(|name| (name.clone(), HeaderChange::Removed));
        let changed = after
            .iter()
            .filter(|(name, values)| before.get(*name) != Some(values));
        let changed = changed.map(|(name, values)| {
            let change = match values.as_slice() {
                [value] => HeaderChange::Value(value.clone()),
                values => HeaderChange::Values(values.to_vec()),
            };
            (name.clone(), change)
        });
        HeaderPatch(removed.chain(changed).collect())
    }
}

fn by_name(headers: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let name = name.trim().to_ascii_lowercase();
        named.entry(name).or_default().push(value.trim().to_owned());
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HoldResolveRequest, read_params};

    #[test]
    fn a_patch_is_what_differs() {
        let list = |lines: &[(&str, &str)]| -> Vec<(String, String)> {
            let lines = lines.iter();
            lines
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let shown = list(&[
            ("authorization", "[masked]"),
            ("x-a", "1"),
            ("x-b", "2"),
            ("x-c", "3"),
        ]);
        let edited = list(&[
            ("Authorization", "[masked]"),
            ("x-a", "9"),
            ("x-c", "3"),
            ("x-c", "4"),
        ]);
        let patch = HeaderPatch::between(&shown, &edited);
        let json = r#"{"x-a":"9","x-b":null,"x-c":["3","4"]}"#;
        assert_eq!(serde_json::to_string(&patch).unwrap(), json);
        assert_eq!(serde_json::from_str::<HeaderPatch>(json).unwrap(), patch);
        assert!(HeaderPatch::between(&shown, &shown).is_empty());
    }

    #[test]
    fn a_value_that_is_not_text_is_named() {
        for headers in [r#"{"x-a":5}"#, r#"{"x-a":["1",{}]}"#] {
            let params = format!(r#"{{"hold":1,"action":"forward","headers":{headers}}}"#);
            let fault = read_params::<HoldResolveRequest>(Some(params.as_bytes())).unwrap_err();
            let text =
                "headers.x-a: write a string, a list of strings, or null to remove the header";
            assert_eq!(fault.text, text);
        }
    }
}
