//! From the arguments of a call to the operation that is meant.
//!
//! Values are checked first, then combinations, in the order in which the reference implementation does it.

mod server_arguments;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span};

use self::server_arguments::server_arguments;
use crate::given::{ArgumentError, GivenParameters};
use crate::word::ToolWord;
use crate::wording::{enumerate, shorten};
use crate::{
    CapabilityType, DEFAULT_SEARCH_LIMIT, ListFilter, ListQuery, MAX_LIMIT, MAX_OPERATIONS,
    ProxyAction, ProxyOperation, ProxyParameter, ProxyToolError, ProxyToolOptions, SearchWords,
    json,
};

type Given = GivenParameters<ProxyParameter>;

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    InBatch,
}

/// What the `arguments` of a call ask for. `more_actions` are those that the tool has besides, which others have parsed.
pub fn parse_arguments(
    arguments: Option<&Bytes>,
    options: &ProxyToolOptions,
    more_actions: &[&'static str],
) -> Result<ProxyOperation, ArgumentError> {
    let arguments = arguments.cloned().unwrap_or(Bytes::from_static(b"{}"));
    let value = Message::parse(arguments);
    parse_operation(&value, value.root(), Place::Alone, options, more_actions)
}

fn parse_operation(
    value: &Message,
    object: Span,
    place: Place,
    options: &ProxyToolOptions,
    more_actions: &[&'static str],
) -> Result<ProxyOperation, ArgumentError> {
    let mut given = Given::read(value, object, options.default_limit())?;
    let action = action(&given, place, more_actions)?;
    given.action = Some(action);
    given.refuse_unknown()?;
    let operation = match action {
        ProxyAction::Search => ProxyOperation::Search(search_words(&given)?),
        ProxyAction::List => ProxyOperation::List(list_query(&given, options)?),
        ProxyAction::Info => ProxyOperation::Info {
            kind: kind(&given)?,
            path: given.required(ProxyParameter::Path)?,
        },
        ProxyAction::Call => {
            let kind = kind(&given)?;
            ProxyOperation::Call {
                kind,
                path: given.required(ProxyParameter::Path)?,
                arguments: server_arguments(given.object(ProxyParameter::Args)?, kind),
            }
        }
        ProxyAction::Batch if place == Place::InBatch => {
            return Err(not_in_batch("nested-batch", "batch"));
        }
        ProxyAction::Batch => batch(&given, options)?,
    };
    given.refuse_misplaced()?;
    Ok(operation)
}

fn action(
    given: &Given,
    place: Place,
    more_actions: &[&'static str],
) -> Result<ProxyAction, ArgumentError> {
    let word = given.text(ProxyParameter::Action)?;
    if let Some(action) = word.as_deref().and_then(ProxyAction::named) {
        return Ok(action);
    }
    let meant = word.as_deref().and_then(ProxyAction::meant_by);
    // An action of another tool, which `proxy-read` takes alone.
    if let (Some(word), Place::InBatch, None) = (&word, place, meant) {
        return Err(not_in_batch("not-in-batch", word));
    }
    let actions = ProxyAction::texts().into_iter();
    let actions = enumerate(actions.chain(more_actions.iter().copied()), "or");
    let error = match word {
        Some(_) => {
            let meant = meant.map(|action| format!("; did you mean '{action}'?"));
            let meant = meant.unwrap_or_default();
            let text = format!("Parameter 'action' must be {actions}{meant}");
            given.error("invalid-value", text)
        }
        None => given.error(
            "missing-parameter",
            format!("Parameter 'action' is required: {actions}"),
        ),
    };
    Err(error.about(ProxyParameter::Action))
}

fn not_in_batch(code: &'static str, action: &str) -> ArgumentError {
    let action = shorten(action);
    let text = format!(
        "Action '{action}' is not allowed inside a batch; use 'search', 'list', 'info' or 'call'"
    );
    ArgumentError::new(code, text).about(ProxyParameter::Action)
}

fn kind(given: &Given) -> Result<CapabilityType, ArgumentError> {
    let kind = given.word(ProxyParameter::Type)?;
    kind.ok_or_else(|| given.missing(ProxyParameter::Type))
}

fn search_words(given: &Given) -> Result<SearchWords, ArgumentError> {
    let kind = given.word(ProxyParameter::Type)?;
    let query = given.text(ProxyParameter::Query)?;
    let query = query.filter(|query| !query.trim().is_empty());
    Ok(SearchWords {
        query: query.ok_or_else(|| given.missing(ProxyParameter::Query))?,
        kind: kind.unwrap_or(CapabilityType::Tool),
        limit: limit(given)?.unwrap_or(DEFAULT_SEARCH_LIMIT),
        filter_server: given.text(ProxyParameter::FilterServer)?,
    })
}

fn list_query(given: &Given, options: &ProxyToolOptions) -> Result<ListQuery, ArgumentError> {
    Ok(ListQuery {
        kind: kind(given)?,
        limit: limit(given)?.unwrap_or(options.default_limit()),
        offset: given
            .number(ProxyParameter::Offset, 0..=u64::MAX)?
            .unwrap_or(0),
        filter_server: given.text(ProxyParameter::FilterServer)?,
        filter: filter(given)?,
        detail: given.word(ProxyParameter::Detail)?.unwrap_or_default(),
    })
}

fn limit(given: &Given) -> Result<Option<u32>, ArgumentError> {
    let limit = given.number(ProxyParameter::Limit, 1..=u64::from(MAX_LIMIT))?;
    Ok(limit.and_then(|limit| u32::try_from(limit).ok()))
}

fn filter(given: &Given) -> Result<ListFilter, ArgumentError> {
    let mut filter = ListFilter::default();
    let value = given.get(ProxyParameter::Filter);
    let is_empty = |value: &&Bytes| given.says_nothing(ProxyParameter::Filter.as_str(), value);
    let Some(value) = value.filter(|value| !is_empty(value)) else {
        return Ok(filter);
    };
    let wrong = || given.invalid(ProxyParameter::Filter);
    if value.first() != Some(&b'{') {
        return Err(wrong());
    }
    let value = Message::parse(value.clone());
    for (key, member) in json::members(&value, value.root()) {
        let text = value.slice(member);
        match &*json::key_text(&value, key) {
            "prefix" | "tags" if text == b"null" => {}
            "prefix" => {
                let prefix = value.text_at(member).ok_or_else(wrong)?;
                filter.prefix = Some(prefix.into_owned()).filter(|prefix| !prefix.is_empty());
            }
            "tags" if text.first() == Some(&b'[') => {
                let tags = json::elements(&value, member).into_iter();
                let tags = tags.map(|tag| Some(value.text_at(tag)?.into_owned()));
                filter.tags = tags.collect::<Option<_>>().ok_or_else(wrong)?;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(filter)
}

fn batch(given: &Given, options: &ProxyToolOptions) -> Result<ProxyOperation, ArgumentError> {
    let value = given
        .get(ProxyParameter::Operations)
        .ok_or_else(|| given.missing(ProxyParameter::Operations))?;
    let value = Message::parse(value.clone());
    let operations = json::elements(&value, value.root());
    if operations.is_empty() || operations.len() > MAX_OPERATIONS {
        return Err(given.invalid(ProxyParameter::Operations));
    }
    let operations = operations
        .into_iter()
        .enumerate()
        .map(|(index, operation)| {
            if value.slice(operation).first() != Some(&b'{') {
                let text = format!("Parameter 'operations[{index}]' must be a JSON object");
                return Err(
                    ArgumentError::new("invalid-value", text).about(ProxyParameter::Operations)
                );
            }
            parse_operation(&value, operation, Place::InBatch, options, &[])
        });
    let operations = operations.map(|parsed| parsed.map_err(ProxyToolError::from));
    Ok(ProxyOperation::Batch(operations.collect()))
}
