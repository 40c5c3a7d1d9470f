//! From the arguments of a call to the operation that is meant.
//!
//! `null` counts as not given. Where the action does not take a parameter, a value that says nothing passes
//! (`parameter_defaults.rs` of the crate tool).

mod given;

use mcp_proxy_spill::{ReadLimit, ReadRequest};
use mcp_proxy_wire::{Message, Span};

use self::given::GivenParameters;
use super::suggestion::suggest_parameter;
use super::{
    AnnotationUse, DEFAULT_LINES, DEFAULT_LIST_LIMIT, DispatchAction, DispatchArguments,
    DispatchCall, DispatchFormat, DispatchListQuery, DispatchOperation, DispatchParameter,
    DispatchSearchQuery, DispatchSpill, DispatchToolError, DispatchToolOptions, MAX_LIST_LIMIT,
    MAX_SEARCH_LIMIT, ReadResultOperation, Refresh,
};
use crate::proxy_tool::CapabilityType;
use crate::tool_values::on_one_line;

/// What the `arguments` at a place in `message` ask for. `refresh` may be given with any action.
pub fn parse_arguments(
    message: &Message,
    arguments: Option<Span>,
    options: &DispatchToolOptions,
) -> Result<(DispatchOperation, Refresh), DispatchToolError> {
    let mut given = GivenParameters::read(message, arguments, options)?;
    let operation = match given.take_action(options)? {
        DispatchAction::Status => {
            given.refuse_others()?;
            DispatchOperation::Status {
                connection: given.text(DispatchParameter::Connection)?,
            }
        }
        DispatchAction::List => {
            given.refuse_others()?;
            DispatchOperation::List(list_query(&given)?)
        }
        DispatchAction::Search => {
            given.refuse_others()?;
            DispatchOperation::Search(search_query(&given, options)?)
        }
        DispatchAction::Call => DispatchOperation::Call(call(&given)?),
        DispatchAction::ReadResult => {
            given.flatten_nested()?;
            given.refuse_others()?;
            read_result(&given)?
        }
    };
    let refresh = match given.flag(DispatchParameter::Refresh)? {
        Some(true) => Refresh::Yes,
        Some(false) | None => Refresh::No,
    };
    Ok((operation, refresh))
}

fn list_query(given: &GivenParameters) -> Result<DispatchListQuery, DispatchToolError> {
    let format = format(given)?;
    Ok(DispatchListQuery {
        connection: given.text(DispatchParameter::Connection)?,
        include_tools: given.flag(DispatchParameter::IncludeTools)?.unwrap_or(true),
        include_input_schema: include_input_schema(given)?,
        include_annotations: include_annotations(given, format)?,
        format,
        limit: given
            .number(DispatchParameter::Limit, 1)?
            .unwrap_or(DEFAULT_LIST_LIMIT)
            .min(MAX_LIST_LIMIT),
        offset: given.number(DispatchParameter::Offset, 0)?.unwrap_or(0),
    })
}

fn search_query(
    given: &GivenParameters,
    options: &DispatchToolOptions,
) -> Result<DispatchSearchQuery, DispatchToolError> {
    let format = format(given)?;
    let query = given
        .text(DispatchParameter::Query)?
        .filter(|query| !query.trim().is_empty())
        .ok_or(DispatchToolError::MissingQuery)?;
    let kind = given.word(DispatchParameter::Type, |word| {
        CapabilityType::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
    })?;
    let limit = given
        .number(DispatchParameter::Limit, 1)?
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

fn format(given: &GivenParameters) -> Result<DispatchFormat, DispatchToolError> {
    let format = given.word(DispatchParameter::Format, |word| {
        DispatchFormat::ALL
            .into_iter()
            .find(|format| format.as_str() == word)
    })?;
    Ok(format.unwrap_or_default())
}

fn include_input_schema(given: &GivenParameters) -> Result<bool, DispatchToolError> {
    let included = given.flag(DispatchParameter::IncludeInputSchema)?;
    Ok(included.unwrap_or(false))
}

fn include_annotations(
    given: &GivenParameters,
    format: DispatchFormat,
) -> Result<AnnotationUse, DispatchToolError> {
    let included = given.flag(DispatchParameter::IncludeAnnotations)?;
    Ok(match (included, format) {
        (Some(false), _) => AnnotationUse::None,
        (Some(true), _) | (None, DispatchFormat::Detail) => AnnotationUse::All,
        (None, DispatchFormat::Text | DispatchFormat::Compact) => AnnotationUse::Notable,
    })
}

fn call(given: &GivenParameters) -> Result<DispatchCall, DispatchToolError> {
    let instead = || given.meant_as(DispatchParameter::Tool);
    let tool = given
        .text(DispatchParameter::Tool)?
        .ok_or_else(|| DispatchToolError::MissingTool { instead: instead() })?;
    refuse_inputs(given, &tool)?;
    let arguments = given
        .object(DispatchParameter::Arguments)
        .map_err(|_| DispatchToolError::CallArgumentsNotAnObject)?;
    let file = given.text(DispatchParameter::ArgumentsFile)?;
    let arguments = match (arguments, file) {
        (Some(object), Some(file)) if is_empty_object(&object) => DispatchArguments::File(file),
        (Some(_), Some(_)) => return Err(DispatchToolError::ArgumentsTwice),
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

fn is_empty_object(object: &[u8]) -> bool {
    matches!(object.trim_ascii(), [b'{', inner @ .., b'}'] if inner.trim_ascii().is_empty())
}

/// Whatever a call does not take is probably an input of the tool, even if it has the name of a parameter of some other
/// action, such as `query`, unless it says nothing.
fn refuse_inputs(given: &GivenParameters, tool: &str) -> Result<(), DispatchToolError> {
    let names = given.names_not_for(DispatchAction::Call);
    if names.is_empty() {
        return Ok(());
    }
    let missing = || {
        DispatchParameter::ALL.into_iter().filter(|parameter| {
            parameter.actions().contains(&DispatchAction::Call) && given.get(*parameter).is_none()
        })
    };
    Err(DispatchToolError::InputsOutsideArguments {
        suggestion: names
            .iter()
            .find_map(|name| suggest_parameter(name, missing())),
        names,
        tool: tool.to_owned(),
    })
}

fn spill(given: &GivenParameters) -> Result<DispatchSpill, DispatchToolError> {
    let threshold = given.number(DispatchParameter::ResultSizeThreshold, 0)?;
    Ok(
        match (given.flag(DispatchParameter::ResultToFile)?, threshold) {
            (Some(true), _) => DispatchSpill::Always,
            (_, Some(0)) => DispatchSpill::Never,
            (_, Some(bytes)) => DispatchSpill::Above(bytes),
            (_, None) => DispatchSpill::Configured,
        },
    )
}

fn read_result(given: &GivenParameters) -> Result<DispatchOperation, DispatchToolError> {
    let operation = given.word(DispatchParameter::Op, |word| {
        ReadResultOperation::ALL
            .into_iter()
            .find(|operation| operation.as_str() == word)
    })?;
    let operation = operation.unwrap_or(ReadResultOperation::Stat);
    given.refuse_of_other_operations(operation)?;
    let file = given
        .text(DispatchParameter::ResultFile)?
        .ok_or(DispatchToolError::MissingResultFile)?;
    let request = read_request(given, operation)?;
    let limit = match given.number(DispatchParameter::MaxBytes, 0)? {
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

fn read_request(
    given: &GivenParameters,
    operation: ReadResultOperation,
) -> Result<ReadRequest, DispatchToolError> {
    let lines = || {
        let lines = given.number(DispatchParameter::Lines, 1)?;
        Ok(lines.unwrap_or(DEFAULT_LINES))
    };
    let required = |parameter| {
        let missing = DispatchToolError::MissingForOperation {
            operation,
            parameter,
        };
        given.text(parameter)?.ok_or(missing)
    };
    Ok(match operation {
        ReadResultOperation::Stat => ReadRequest::Stat,
        ReadResultOperation::Head => ReadRequest::Head { lines: lines()? },
        ReadResultOperation::Tail => ReadRequest::Tail { lines: lines()? },
        ReadResultOperation::Slice => {
            let from_line = given.number(DispatchParameter::FromLine, 1)?;
            let least = from_line.unwrap_or(1);
            ReadRequest::Slice {
                from_line,
                to_line: given.number(DispatchParameter::ToLine, least)?,
                from_column: given.number(DispatchParameter::FromColumn, 1)?,
            }
        }
        ReadResultOperation::Grep => ReadRequest::Grep {
            pattern: required(DispatchParameter::Pattern)?,
            context: given.number(DispatchParameter::Context, 0)?.unwrap_or(0),
        },
        ReadResultOperation::Read => ReadRequest::Read,
        ReadResultOperation::Jq => ReadRequest::Jq {
            filter: required(DispatchParameter::Filter)?,
        },
    })
}
