//! What a misspelt word was probably meant to be.

use super::{CapabilityType, ProxyAction, ProxyParameter};
use crate::wording::suggest;

/// Words that models use for our parameters. `cursor` and the like have no counterpart.
const PARAMETER_SYNONYMS: &[(&str, &str)] = &[
    ("arguments", "args"),
    ("params", "args"),
    ("parameters", "args"),
    ("input", "args"),
    ("name", "path"),
    ("tool", "path"),
    ("uri", "path"),
    ("url", "path"),
    ("resource", "path"),
    ("prompt", "path"),
    ("kind", "type"),
    ("a_type", "type"),
    ("server", "filter_server"),
    ("connection", "filter_server"),
    ("prefix", "filter"),
    ("tags", "filter"),
    ("q", "query"),
    ("text", "query"),
    ("keywords", "query"),
    ("format", "detail"),
    ("count", "limit"),
    ("skip", "offset"),
    ("calls", "operations"),
    ("batch", "operations"),
];

/// Words that models use for our actions.
const ACTION_SYNONYMS: &[(&str, &str)] = &[
    ("ls", "list"),
    ("find", "search"),
    ("query", "search"),
    ("discover", "search"),
    ("describe", "info"),
    ("show", "info"),
    ("schema", "info"),
    ("help", "info"),
    ("read", "call"),
    ("get", "call"),
    ("run", "call"),
    ("use", "call"),
    ("invoke", "call"),
    ("execute", "call"),
];

/// Words that models use for our types.
const TYPE_SYNONYMS: &[(&str, &str)] = &[
    ("function", "tool"),
    ("template", "resource"),
    ("resource_template", "resource"),
    ("file", "resource"),
];

/// The parameter that `given` was meant to be.
pub(super) fn suggest_parameter(given: &str) -> Option<ProxyParameter> {
    let names = ProxyParameter::ALL.map(ProxyParameter::as_str);
    let meant = suggest(given, &names, PARAMETER_SYNONYMS)?;
    ProxyParameter::ALL
        .into_iter()
        .find(|parameter| parameter.as_str() == meant)
}

/// The action that `given` was meant to be.
pub(super) fn suggest_action(given: &str) -> Option<&'static str> {
    let names = ProxyAction::ALL.map(ProxyAction::as_str);
    suggest(given, &names, ACTION_SYNONYMS)
}

/// The type that `given` was meant to be.
pub(super) fn suggest_type(given: &str) -> Option<&'static str> {
    let names = CapabilityType::ALL.map(CapabilityType::as_str);
    suggest(given, &names, TYPE_SYNONYMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_close_or_mean_the_same() {
        assert_eq!(suggest_action("LIST"), Some("list"));
        assert_eq!(suggest_action("inof"), Some("info"));
        assert_eq!(suggest_action("Read "), Some("call"));
        assert_eq!(suggest_action("delete"), None);
        assert_eq!(suggest_action(""), None);
        assert_eq!(suggest_action(&"l".repeat(1000)), None);
        assert_eq!(suggest_type("prompts"), Some("prompt"));
        assert_eq!(suggest_parameter("OFFSET "), Some(ProxyParameter::Offset));
    }

    #[test]
    fn synonyms_lead_to_words_that_exist() {
        for (synonym, _) in PARAMETER_SYNONYMS {
            assert!(suggest_parameter(synonym).is_some(), "{synonym}");
        }
        let actions = ProxyAction::ALL.map(ProxyAction::as_str);
        assert!(
            ACTION_SYNONYMS
                .iter()
                .all(|(_, word)| actions.contains(word))
        );
        let types = CapabilityType::ALL.map(CapabilityType::as_str);
        assert!(TYPE_SYNONYMS.iter().all(|(_, word)| types.contains(word)));
    }
}
