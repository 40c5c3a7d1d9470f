//! What a word that the tool does not know was probably meant to be.

use super::{DispatchAction, DispatchFormat, DispatchParameter, ReadResultOperation};
use crate::proxy_tool::CapabilityType;
use crate::wording::suggest;

/// Words that models use for our parameters.
const PARAMETER_SYNONYMS: &[(&str, &str)] = &[
    ("args", "arguments"),
    ("params", "arguments"),
    ("parameters", "arguments"),
    ("input", "arguments"),
    ("inputs", "arguments"),
    ("name", "tool"),
    ("toolname", "tool"),
    ("tool_name", "tool"),
    ("function", "tool"),
    ("server", "connection"),
    ("server_name", "connection"),
    ("alias", "connection"),
    ("q", "query"),
    ("text", "query"),
    ("search", "query"),
    ("keywords", "query"),
    ("kind", "type"),
    ("count", "limit"),
    ("max_results", "limit"),
    ("detail", "format"),
    ("schema", "includeInputSchema"),
    ("file", "resultFile"),
    ("path", "resultFile"),
    ("handle", "resultFile"),
    ("uri", "resultFile"),
    ("operation", "op"),
    ("regex", "pattern"),
    ("start_line", "fromLine"),
    ("end_line", "toLine"),
    ("jq", "filter"),
    ("_meta", "meta"),
];

/// Words that models use for our actions.
const ACTION_SYNONYMS: &[(&str, &str)] = &[
    ("ls", "list"),
    ("tools", "list"),
    ("find", "search"),
    ("query", "search"),
    ("discover", "search"),
    ("run", "call"),
    ("use", "call"),
    ("invoke", "call"),
    ("exec", "call"),
    ("execute", "call"),
    ("shell", "call"),
    ("bash", "call"),
    ("read", "readresult"),
    ("result", "readresult"),
    ("health", "status"),
    ("info", "list"),
];

/// Words that models use for our operations.
const OPERATION_SYNONYMS: &[(&str, &str)] = &[
    ("info", "stat"),
    ("size", "stat"),
    ("cat", "read"),
    ("range", "slice"),
    ("lines", "slice"),
    ("search", "grep"),
    ("find", "grep"),
    ("filter", "jq"),
    ("query", "jq"),
];

/// Words that models use for our types.
const TYPE_SYNONYMS: &[(&str, &str)] = &[("function", "tool"), ("template", "resource")];

/// Words that models use for our formats.
const FORMAT_SYNONYMS: &[(&str, &str)] = &[
    ("full", "detail"),
    ("verbose", "detail"),
    ("short", "compact"),
    ("brief", "compact"),
];

/// The one of `parameters` that `given` was meant to be.
pub(super) fn suggest_parameter(
    given: &str,
    parameters: impl Iterator<Item = DispatchParameter>,
) -> Option<DispatchParameter> {
    let names: Vec<_> = parameters.map(DispatchParameter::as_str).collect();
    let meant = suggest(given, &names, PARAMETER_SYNONYMS)?;
    names
        .contains(&meant)
        .then(|| DispatchParameter::named(meant))?
}

/// The action that `given` was meant to be.
pub(super) fn suggest_action(given: &str) -> Option<DispatchAction> {
    let names = DispatchAction::ALL.map(DispatchAction::as_str);
    let meant = suggest(given, &names, ACTION_SYNONYMS)?;
    DispatchAction::ALL
        .into_iter()
        .find(|action| action.as_str() == meant)
}

/// The value of `parameter` that `given` was meant to be.
pub(super) fn suggest_value(parameter: DispatchParameter, given: &str) -> Option<&'static str> {
    match parameter {
        DispatchParameter::Op => {
            let names = ReadResultOperation::ALL.map(ReadResultOperation::as_str);
            suggest(given, &names, OPERATION_SYNONYMS)
        }
        DispatchParameter::Type => {
            let names = CapabilityType::ALL.map(CapabilityType::as_str);
            suggest(given, &names, TYPE_SYNONYMS)
        }
        DispatchParameter::Format => {
            let names = DispatchFormat::ALL.map(DispatchFormat::as_str);
            suggest(given, &names, FORMAT_SYNONYMS)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_lead_to_words_that_exist() {
        for (synonym, _) in PARAMETER_SYNONYMS {
            let all = DispatchParameter::ALL.into_iter();
            assert!(suggest_parameter(synonym, all).is_some(), "{synonym}");
        }
        for (synonym, _) in ACTION_SYNONYMS {
            assert!(suggest_action(synonym).is_some(), "{synonym}");
        }
        let values = [
            (DispatchParameter::Op, OPERATION_SYNONYMS),
            (DispatchParameter::Type, TYPE_SYNONYMS),
            (DispatchParameter::Format, FORMAT_SYNONYMS),
        ];
        for (parameter, synonyms) in values {
            for (_, word) in synonyms {
                assert_eq!(suggest_value(parameter, word), Some(*word));
            }
        }
    }

    #[test]
    fn separators_and_case_do_not_matter() {
        let all = || DispatchParameter::ALL.into_iter();
        let result_file = Some(DispatchParameter::ResultFile);
        assert_eq!(suggest_parameter("result_file", all()), result_file);
        assert_eq!(suggest_parameter("RESULTFILE", all()), result_file);
        assert_eq!(suggest_parameter("colour", all()), None);
        assert_eq!(
            suggest_parameter("args", [DispatchParameter::Tool].into_iter()),
            None
        );
    }
}
