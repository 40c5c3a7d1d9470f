//! From the arguments of a call to the operation that is meant.

use mcp_proxy_spill::{ReadLimit, ReadRequest};
use mcp_proxy_wire::{Message, Span};

use super::{
    AnnotationUse, DEFAULT_LINES, DEFAULT_LIST_LIMIT, DispatchAction, DispatchArguments,
    DispatchCall, DispatchFormat, DispatchListQuery, DispatchOperation, DispatchParameter,
    DispatchSearchQuery, DispatchSpill, DispatchToolOptions, MAX_LIST_LIMIT, MAX_SEARCH_LIMIT,
    ReadResultOperation, Refresh,
};
use crate::proxy_tool::{ArgumentError, CapabilityType, GivenParameters, ToolParameter, ToolWord};
use crate::tool_values::on_one_line;
use crate::wording::{enumerate, shorten};

type Given = GivenParameters<DispatchParameter>;

// The texts of the reference implementation.
const MISSING_QUERY: &str = "Search action requires a non-empty 'query' value.";
const MISSING_TOOL: &str = "Call action requires a 'tool' name.";
const MISSING_RESULT_FILE: &str =
    "readresult requires 'resultFile' parameter with the path returned by a prior call.";
const CALL_ARGUMENTS_NOT_AN_OBJECT: &str =
    "Call action requires 'arguments' to be an object when supplied.";

/// Other names that `readresult` takes for its parameters.
const LINE_ALIASES: [(&str, DispatchParameter); 2] = [
    ("start", DispatchParameter::FromLine),
    ("end", DispatchParameter::ToLine),
];

/// What the `arguments` at a place in `message` ask for. `refresh` may be given with any action.
pub fn parse_arguments(
    message: &Message,
    arguments: Option<Span>,
    options: &DispatchToolOptions,
) -> Result<(DispatchOperation, Refresh), ArgumentError> {
    let none = Message::parse("{}");
    let (message, arguments) = match arguments {
        Some(arguments) => (message, arguments),
        None => (&none, none.root()),
    };
    let mut given = Given::read(message, arguments, options.default_search_limit)?;
    let action = action(&given, options)?;
    given.action = Some(action);
    if action == DispatchAction::ReadResult {
        flatten_nested(&mut given)?;
    }
    // What a call does not take is probably meant for the tool, which `call` says.
    if action != DispatchAction::Call {
        given.refuse_unknown()?;
        given.refuse_misplaced()?;
    }
    let operation = match action {
        DispatchAction::Status => DispatchOperation::Status {
            connection: given.text(DispatchParameter::Connection)?,
        },
        DispatchAction::List => DispatchOperation::List(list_query(&given)?),
        DispatchAction::Search => DispatchOperation::Search(search_query(&given, options)?),
        DispatchAction::Call => DispatchOperation::Call(call(&given)?),
        DispatchAction::ReadResult => read_result(&given)?,
    };
    let refresh = match given.flag(DispatchParameter::Refresh)? {
        Some(true) => Refresh::Yes,
        Some(false) | None => Refresh::No,
    };
    Ok((operation, refresh))
}

fn action(given: &Given, options: &DispatchToolOptions) -> Result<DispatchAction, ArgumentError> {
    let actions = DispatchAction::texts().join(", ");
    let did_you_mean = |meant: Option<DispatchAction>| {
        let meant = meant.map(|action| format!(" Did you mean '{action}'?"));
        meant.unwrap_or_default()
    };
    let error = match given.text(DispatchParameter::Action)? {
        Some(word) => match DispatchAction::named(&word) {
            Some(action) => return Ok(action),
            None => given.error(
                "unsupported-action",
                format!(
                    "Unsupported {} action '{}'. Valid actions are: {actions}.{}",
                    shorten(&options.name),
                    shorten(&word),
                    did_you_mean(DispatchAction::meant_by(&word))
                ),
            ),
        },
        None => {
            // The action that the other parameters are for.
            let meant = given.known().find_map(|(known, _)| match known.actions() {
                [action] => Some(*action),
                _ => None,
            });
            given.error(
                "missing-parameter",
                format!(
                    "Parameter 'action' is required. Valid actions are: {actions}.{}",
                    did_you_mean(meant)
                ),
            )
        }
    };
    Err(error.about(DispatchParameter::Action))
}

/// Takes the parameters of `readresult` out of `arguments`, where some models put them, and calls them by their own
/// names. What stands outside counts more.
fn flatten_nested(given: &mut Given) -> Result<(), ArgumentError> {
    if let Some(nested) = given.object(DispatchParameter::Arguments)? {
        let nested = Message::parse(nested);
        let outer: Vec<_> = given
            .known()
            .map(|(parameter, value)| (parameter, value.clone()))
            .collect();
        given.add(&nested, nested.root());
        for (parameter, value) in outer {
            given.set(parameter, value);
        }
    }
    given.remove(DispatchParameter::Arguments);
    for (alias, parameter) in LINE_ALIASES {
        if let Some(value) = given.take_unknown(alias)
            && given.get(parameter).is_none()
        {
            given.set(parameter, value);
        }
    }
    Ok(())
}

fn list_query(given: &Given) -> Result<DispatchListQuery, ArgumentError> {
    let format = format(given)?;
    Ok(DispatchListQuery {
        connection: given.text(DispatchParameter::Connection)?,
        include_tools: given.flag(DispatchParameter::IncludeTools)?.unwrap_or(true),
        include_input_schema: include_input_schema(given)?,
        include_annotations: include_annotations(given, format)?,
        format,
        limit: given
            .number(DispatchParameter::Limit, 1..=u64::MAX)?
            .unwrap_or(DEFAULT_LIST_LIMIT)
            .min(MAX_LIST_LIMIT),
        offset: given
            .number(DispatchParameter::Offset, 0..=u64::MAX)?
            .unwrap_or(0),
    })
}

fn search_query(
    given: &Given,
    options: &DispatchToolOptions,
) -> Result<DispatchSearchQuery, ArgumentError> {
    let format = format(given)?;
    let query = given
        .text(DispatchParameter::Query)?
        .filter(|query| !query.trim().is_empty())
        .ok_or_else(|| missing(given, DispatchParameter::Query, MISSING_QUERY))?;
    let kind = given.word(DispatchParameter::Type)?;
    let limit = given
        .number(DispatchParameter::Limit, 1..=u64::MAX)?
        .map_or(options.default_search_limit, |limit| {
            u32::try_from(limit).unwrap_or(MAX_SEARCH_LIMIT)
        });
    Ok(DispatchSearchQuery {
        query,
        connection: given.text(DispatchParameter::Connection)?,
        kind: kind.unwrap_or(CapabilityType::Tool),
        limit: limit.clamp(1, MAX_SEARCH_LIMIT),
        include_input_schema: include_input_schema(given)?,
        include_annotations: include_annotations(given, format)?,
        format,
    })
}

fn format(given: &Given) -> Result<DispatchFormat, ArgumentError> {
    Ok(given.word(DispatchParameter::Format)?.unwrap_or_default())
}

fn include_input_schema(given: &Given) -> Result<bool, ArgumentError> {
    let included = given.flag(DispatchParameter::IncludeInputSchema)?;
    Ok(included.unwrap_or(false))
}

fn include_annotations(
    given: &Given,
    format: DispatchFormat,
) -> Result<AnnotationUse, ArgumentError> {
    let included = given.flag(DispatchParameter::IncludeAnnotations)?;
    Ok(match (included, format) {
        (Some(false), _) => AnnotationUse::None,
        (Some(true), _) | (None, DispatchFormat::Detail) => AnnotationUse::All,
        (None, DispatchFormat::Text | DispatchFormat::Compact) => AnnotationUse::Notable,
    })
}

fn call(given: &Given) -> Result<DispatchCall, ArgumentError> {
    let tool = given
        .text(DispatchParameter::Tool)?
        .ok_or_else(|| missing_tool(given))?;
    refuse_inputs(given, &tool)?;
    let arguments = given
        .object(DispatchParameter::Arguments)
        .map_err(|error| ArgumentError {
            text: CALL_ARGUMENTS_NOT_AN_OBJECT.to_owned(),
            ..error
        })?;
    let file = given.text(DispatchParameter::ArgumentsFile)?;
    let arguments = match (arguments, file) {
        (Some(object), Some(file)) if is_empty_object(&object) => DispatchArguments::File(file),
        (Some(_), Some(_)) => {
            let text = "Use either 'arguments' or 'argumentsFile', not both.";
            return Err(given.error("arguments-twice", text));
        }
        (Some(object), None) => DispatchArguments::Inline(on_one_line(object)),
        (None, Some(file)) => DispatchArguments::File(file),
        (None, None) => DispatchArguments::None,
    };
    Ok(DispatchCall {
        tool,
        connection: given.text(DispatchParameter::Connection)?,
        arguments,
        meta: given.object(DispatchParameter::Meta)?.map(on_one_line),
        spill: spill(given)?,
    })
}

fn missing_tool(given: &Given) -> ArgumentError {
    let mut unknown = given.unknown_names();
    let instead = unknown.find(|name| {
        let tool = [DispatchParameter::Tool].into_iter();
        DispatchParameter::meant_among(name, tool).is_some()
    });
    let instead =
        instead.map(|name| format!(" Did you mean 'tool' instead of '{}'?", shorten(name)));
    let text = format!("{MISSING_TOOL}{}", instead.unwrap_or_default());
    missing(given, DispatchParameter::Tool, &text)
}

fn missing(given: &Given, parameter: DispatchParameter, text: &str) -> ArgumentError {
    given.error("missing-parameter", text).about(parameter)
}

fn is_empty_object(object: &[u8]) -> bool {
    matches!(object.trim_ascii(), [b'{', inner @ .., b'}'] if inner.trim_ascii().is_empty())
}

/// Whatever a call does not take is probably an input of the tool, even if it has the name of a parameter of some other
/// action, such as `query`, unless it says nothing.
fn refuse_inputs(given: &Given, tool: &str) -> Result<(), ArgumentError> {
    let misplaced = given
        .misplaced(DispatchAction::Call)
        .map(|name| name.as_str());
    let names: Vec<&str> = misplaced.chain(given.unknown_names()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let missing = || {
        let all = DispatchParameter::all().iter().copied();
        all.filter(|parameter| {
            parameter.actions().contains(&DispatchAction::Call) && given.get(*parameter).is_none()
        })
    };
    let meant = names
        .iter()
        .find_map(|name| DispatchParameter::meant_among(name, missing()));
    let text = format!(
        "Call action received downstream input(s) at the proxy level: {}. Put downstream tool inputs in 'arguments', for example {{ action: 'call', tool: '{}', arguments: {{ ... }} }}.{}",
        some_names(&names),
        shorten(tool),
        meant.map_or_else(String::new, |word| format!(" Did you mean '{word}'?"))
    );
    Err(given.error("inputs-outside-arguments", text))
}

/// The first names, and how many more there are.
fn some_names(names: &[&str]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| shorten(name)).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

fn spill(given: &Given) -> Result<DispatchSpill, ArgumentError> {
    let threshold = given.number(DispatchParameter::ResultSizeThreshold, 0..=u64::MAX)?;
    Ok(
        match (given.flag(DispatchParameter::ResultToFile)?, threshold) {
            (Some(true), _) => DispatchSpill::Always,
            (_, Some(0)) => DispatchSpill::Never,
            (_, Some(bytes)) => DispatchSpill::Above(bytes),
            (_, None) => DispatchSpill::Configured,
        },
    )
}

fn read_result(given: &Given) -> Result<DispatchOperation, ArgumentError> {
    let operation = given.word(DispatchParameter::Op)?;
    let operation = operation.unwrap_or(ReadResultOperation::Stat);
    refuse_of_other_operations(given, operation)?;
    let file = given
        .text(DispatchParameter::ResultFile)?
        .ok_or_else(|| missing(given, DispatchParameter::ResultFile, MISSING_RESULT_FILE))?;
    let request = read_request(given, operation)?;
    let limit = match given.number(DispatchParameter::MaxBytes, 0..=u64::MAX)? {
        None => None,
        Some(0) => Some(ReadLimit::MOST),
        Some(bytes) => Some(ReadLimit::bytes(bytes)),
    };
    Ok(DispatchOperation::ReadResult {
        file,
        request,
        limit,
    })
}

/// Refuses what only other operations on a result take.
fn refuse_of_other_operations(
    given: &Given,
    operation: ReadResultOperation,
) -> Result<(), ArgumentError> {
    let misplaced = given.known().find(|(known, value)| {
        // The size is the same however many lines somebody wants to see.
        let is_harmless =
            operation == ReadResultOperation::Stat && *known == DispatchParameter::Lines;
        !known.operations().contains(&operation)
            && !is_harmless
            && !given.says_nothing(known.as_str(), value)
    });
    let Some((parameter, _)) = misplaced else {
        return Ok(());
    };
    let operations = parameter.operations().iter().map(|other| other.as_str());
    let text = format!(
        "Parameter '{parameter}' should not be provided for op='{operation}'; it is only for {}",
        enumerate(operations, "and")
    );
    Err(given.error("parameter-not-allowed", text).about(parameter))
}

fn read_request(
    given: &Given,
    operation: ReadResultOperation,
) -> Result<ReadRequest, ArgumentError> {
    let lines = || {
        let lines = given.number(DispatchParameter::Lines, 1..=u64::MAX)?;
        Ok(lines.unwrap_or(DEFAULT_LINES))
    };
    let required = |parameter| {
        let text = format!("readresult op='{operation}' requires a '{parameter}' parameter.");
        let missing = || missing(given, parameter, &text);
        given.text(parameter)?.ok_or_else(missing)
    };
    Ok(match operation {
        ReadResultOperation::Stat => ReadRequest::Stat,
        ReadResultOperation::Head => ReadRequest::Head { lines: lines()? },
        ReadResultOperation::Tail => ReadRequest::Tail { lines: lines()? },
        ReadResultOperation::Slice => {
            let from_line = given.number(DispatchParameter::FromLine, 1..=u64::MAX)?;
            let least = from_line.unwrap_or(1);
            ReadRequest::Slice {
                from_line,
                to_line: given.number(DispatchParameter::ToLine, least..=u64::MAX)?,
                from_column: given.number(DispatchParameter::FromColumn, 1..=u64::MAX)?,
            }
        }
        ReadResultOperation::Grep => ReadRequest::Grep {
            pattern: required(DispatchParameter::Pattern)?,
            context: given
                .number(DispatchParameter::Context, 0..=u64::MAX)?
                .unwrap_or(0),
        },
        ReadResultOperation::Read => ReadRequest::Read,
        ReadResultOperation::Jq => ReadRequest::Jq {
            filter: required(DispatchParameter::Filter)?,
        },
    })
}
