//! From the arguments of a call to the operation that is meant.
//!
//! `null` counts as not given. Values are checked first, then combinations, in the order in which the reference
//! implementation does it. Where a parameter is not allowed, a value that says nothing passes (`parameter_defaults.rs`).

mod server_arguments;

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span};

use self::server_arguments::server_arguments;
use super::suggestion::{suggest_action, suggest_parameter, suggest_type};
use super::{
    CapabilityType, DEFAULT_SEARCH_LIMIT, ListDetail, ListFilter, ListQuery, MAX_LIMIT,
    MAX_OPERATIONS, ProxyAction, ProxyOperation, ProxyParameter, ProxyToolError, ProxyToolOptions,
    SearchWords, says_nothing,
};
use crate::json;
use crate::tool_values::whole_number;

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    InBatch,
}

/// The arguments of one operation.
struct Arguments<'a> {
    value: &'a Message,
    /// Where the value of each parameter stands, in the order of [`ProxyParameter::ALL`].
    given: [Option<Span>; ProxyParameter::ALL.len()],
    options: &'a ProxyToolOptions,
}

/// What the `arguments` of a call ask for.
pub fn parse_arguments(
    arguments: Option<&Bytes>,
    options: &ProxyToolOptions,
) -> Result<ProxyOperation, ProxyToolError> {
    let arguments = arguments.cloned().unwrap_or(Bytes::from_static(b"{}"));
    let value = json::parse(arguments).ok_or(ProxyToolError::ArgumentsNotAnObject)?;
    parse_operation(&value, value.root(), Place::Alone, options)
}

fn parse_operation(
    value: &Message,
    object: Span,
    place: Place,
    options: &ProxyToolOptions,
) -> Result<ProxyOperation, ProxyToolError> {
    if value.slice(object).first() != Some(&b'{') {
        return Err(ProxyToolError::ArgumentsNotAnObject);
    }
    if place == Place::InBatch {
        refuse_outside_batch(value, object)?;
    }
    let arguments = Arguments::of(value, object, options)?;
    match arguments.action()? {
        ProxyAction::Search => Ok(ProxyOperation::Search(arguments.search_words()?)),
        ProxyAction::List => Ok(ProxyOperation::List(arguments.query()?)),
        ProxyAction::Info => {
            let (kind, path) = arguments.target(ProxyAction::Info)?;
            Ok(ProxyOperation::Info { kind, path })
        }
        ProxyAction::Call => {
            let (kind, path) = arguments.target(ProxyAction::Call)?;
            let arguments = arguments.args(kind)?;
            Ok(ProxyOperation::Call {
                kind,
                path,
                arguments,
            })
        }
        ProxyAction::Batch if place == Place::InBatch => Err(ProxyToolError::NestedBatch),
        ProxyAction::Batch => arguments.batch(),
    }
}

/// Refuses an action of another tool, which `proxy-read` takes alone, before its parameters are unknown.
fn refuse_outside_batch(value: &Message, object: Span) -> Result<(), ProxyToolError> {
    let action = value.member(object, ProxyParameter::Action.as_str());
    let Some(action) = action.and_then(|span| value.text_at(span)) else {
        return Ok(());
    };
    let is_known = ProxyAction::ALL
        .iter()
        .any(|known| known.as_str() == action);
    if is_known || suggest_action(&action).is_some() {
        return Ok(());
    }
    Err(ProxyToolError::NotInBatch {
        action: action.into_owned(),
    })
}

impl<'a> Arguments<'a> {
    /// The members of the object at `object`, all of which must be parameters.
    fn of(
        value: &'a Message,
        object: Span,
        options: &'a ProxyToolOptions,
    ) -> Result<Arguments<'a>, ProxyToolError> {
        let mut given = [None; ProxyParameter::ALL.len()];
        for (key, member) in json::members(value, object) {
            let name = value.text_at(key).unwrap_or_default();
            let mut known = ProxyParameter::ALL.iter();
            let Some(place) = known.position(|known| known.as_str() == name) else {
                if says_nothing(
                    &name,
                    &value.raw().slice(member.range()),
                    options.default_limit,
                ) {
                    continue;
                }
                return Err(ProxyToolError::UnknownParameter {
                    suggestion: suggest_parameter(&name),
                    name: name.into_owned(),
                });
            };
            given[place] = Some(member).filter(|member| value.slice(*member) != b"null");
        }
        Ok(Arguments {
            value,
            given,
            options,
        })
    }

    /// Where the value of a parameter stands, if it is given.
    fn get(&self, parameter: ProxyParameter) -> Option<Span> {
        self.given[parameter as usize]
    }

    fn refuse_misplaced(&self, action: ProxyAction) -> Result<(), ProxyToolError> {
        let in_order = [
            ProxyParameter::Args,
            ProxyParameter::Path,
            ProxyParameter::Type,
            ProxyParameter::Limit,
            ProxyParameter::Offset,
            ProxyParameter::FilterServer,
            ProxyParameter::Filter,
            ProxyParameter::Query,
            ProxyParameter::Detail,
            ProxyParameter::Operations,
        ];
        let misplaced = in_order.into_iter().find(|parameter| {
            !parameter.actions().contains(&action)
                && self
                    .get(*parameter)
                    .is_some_and(|span| !self.says_nothing(*parameter, span))
        });
        match misplaced {
            Some(parameter) => Err(ProxyToolError::ParameterNotAllowed { parameter, action }),
            None => Ok(()),
        }
    }

    fn says_nothing(&self, parameter: ProxyParameter, span: Span) -> bool {
        let value = self.value.raw().slice(span.range());
        says_nothing(parameter.as_str(), &value, self.default_limit())
    }

    fn default_limit(&self) -> u32 {
        self.options.default_limit.clamp(1, MAX_LIMIT)
    }

    fn action(&self) -> Result<ProxyAction, ProxyToolError> {
        let given = self.word(ProxyParameter::Action, None)?;
        let mut actions = ProxyAction::ALL.into_iter();
        actions
            .find(|action| action.as_str() == given)
            .ok_or_else(|| ProxyToolError::InvalidValue {
                parameter: ProxyParameter::Action,
                suggestion: suggest_action(&given),
            })
    }

    fn kind(&self, action: ProxyAction) -> Result<CapabilityType, ProxyToolError> {
        let given = self.word(ProxyParameter::Type, Some(action))?;
        let mut kinds = CapabilityType::ALL.into_iter();
        kinds
            .find(|kind| kind.as_str() == given)
            .ok_or_else(|| ProxyToolError::InvalidValue {
                parameter: ProxyParameter::Type,
                suggestion: suggest_type(&given),
            })
    }

    /// The text of a required parameter; empty if it is not a string.
    fn word(
        &self,
        parameter: ProxyParameter,
        action: Option<ProxyAction>,
    ) -> Result<Cow<'a, str>, ProxyToolError> {
        let span = self
            .get(parameter)
            .ok_or(ProxyToolError::MissingParameter { parameter, action })?;
        Ok(self.value.text_at(span).unwrap_or_default())
    }

    /// A string that is not empty.
    fn text(&self, parameter: ProxyParameter) -> Result<Option<String>, ProxyToolError> {
        let Some(span) = self.get(parameter) else {
            return Ok(None);
        };
        let text = self.value.text_at(span).ok_or(invalid(parameter))?;
        Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
    }

    /// What `info` and `call` are about.
    fn target(&self, action: ProxyAction) -> Result<(CapabilityType, String), ProxyToolError> {
        let kind = self.kind(action)?;
        let path = self
            .text(ProxyParameter::Path)?
            .ok_or(ProxyToolError::MissingParameter {
                parameter: ProxyParameter::Path,
                action: Some(action),
            })?;
        self.refuse_misplaced(action)?;
        Ok((kind, path))
    }

    fn search_words(&self) -> Result<SearchWords, ProxyToolError> {
        let kind = match self.get(ProxyParameter::Type) {
            Some(_) => self.kind(ProxyAction::Search)?,
            None => CapabilityType::Tool,
        };
        let query = self.text(ProxyParameter::Query)?;
        let query = query.filter(|query| !query.trim().is_empty()).ok_or(
            ProxyToolError::MissingParameter {
                parameter: ProxyParameter::Query,
                action: Some(ProxyAction::Search),
            },
        )?;
        let limit = self.whole_number(ProxyParameter::Limit, 1, i64::from(MAX_LIMIT))?;
        let filter_server = self.text(ProxyParameter::FilterServer)?;
        self.refuse_misplaced(ProxyAction::Search)?;
        Ok(SearchWords {
            query,
            kind,
            limit: limit
                .and_then(|limit| u32::try_from(limit).ok())
                .unwrap_or(DEFAULT_SEARCH_LIMIT),
            filter_server,
        })
    }

    fn detail(&self) -> Result<ListDetail, ProxyToolError> {
        match self.text(ProxyParameter::Detail)?.as_deref() {
            None | Some("full") => Ok(ListDetail::Full),
            Some("brief") => Ok(ListDetail::Brief),
            Some(_) => Err(invalid(ProxyParameter::Detail)),
        }
    }

    fn query(&self) -> Result<ListQuery, ProxyToolError> {
        let kind = self.kind(ProxyAction::List)?;
        let limit = self.whole_number(ProxyParameter::Limit, 1, i64::from(MAX_LIMIT))?;
        let offset = self.whole_number(ProxyParameter::Offset, 0, i64::MAX)?;
        let filter_server = self.text(ProxyParameter::FilterServer)?;
        let filter = self.filter()?;
        let detail = self.detail()?;
        self.refuse_misplaced(ProxyAction::List)?;
        Ok(ListQuery {
            kind,
            limit: limit
                .and_then(|limit| u32::try_from(limit).ok())
                .unwrap_or(self.default_limit()),
            offset: offset.unwrap_or(0).unsigned_abs(),
            filter_server,
            filter,
            detail,
        })
    }

    /// A whole number, or a string that holds one.
    fn whole_number(
        &self,
        parameter: ProxyParameter,
        least: i64,
        most: i64,
    ) -> Result<Option<i64>, ProxyToolError> {
        let Some(span) = self.get(parameter) else {
            return Ok(None);
        };
        match whole_number(self.value.slice(span)) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(invalid(parameter)),
        }
    }

    fn filter(&self) -> Result<ListFilter, ProxyToolError> {
        let mut filter = ListFilter::default();
        let given = self.get(ProxyParameter::Filter);
        let Some(object) = given.filter(|span| !self.says_nothing(ProxyParameter::Filter, *span))
        else {
            return Ok(filter);
        };
        let wrong = || invalid(ProxyParameter::Filter);
        if self.value.slice(object).first() != Some(&b'{') {
            return Err(wrong());
        }
        for (key, member) in json::members(self.value, object) {
            let text = self.value.slice(member);
            match &*self.value.text_at(key).unwrap_or_default() {
                "prefix" | "tags" if text == b"null" => {}
                "prefix" => {
                    let prefix = self.value.text_at(member).ok_or_else(wrong)?;
                    filter.prefix = Some(prefix.into_owned()).filter(|prefix| !prefix.is_empty());
                }
                "tags" if text.first() == Some(&b'[') => {
                    let tags = json::elements(self.value, member).into_iter();
                    let tags = tags.map(|tag| Some(self.value.text_at(tag)?.into_owned()));
                    filter.tags = tags.collect::<Option<_>>().ok_or_else(wrong)?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(filter)
    }

    fn args(&self, kind: CapabilityType) -> Result<Option<Bytes>, ProxyToolError> {
        let Some(span) = self.get(ProxyParameter::Args) else {
            return Ok(None);
        };
        let given = self.value.raw().slice(span.range());
        server_arguments(&given, kind)
    }

    fn batch(&self) -> Result<ProxyOperation, ProxyToolError> {
        let array =
            self.get(ProxyParameter::Operations)
                .ok_or(ProxyToolError::MissingParameter {
                    parameter: ProxyParameter::Operations,
                    action: Some(ProxyAction::Batch),
                })?;
        self.refuse_misplaced(ProxyAction::Batch)?;
        let operations = json::elements(self.value, array);
        if operations.is_empty() || operations.len() > MAX_OPERATIONS {
            return Err(invalid(ProxyParameter::Operations));
        }
        let operations = operations
            .into_iter()
            .enumerate()
            .map(|(index, operation)| {
                parse_operation(self.value, operation, Place::InBatch, self.options).map_err(
                    |error| match error {
                        ProxyToolError::ArgumentsNotAnObject => {
                            ProxyToolError::OperationNotAnObject { index }
                        }
                        error => error,
                    },
                )
            });
        Ok(ProxyOperation::Batch(operations.collect()))
    }
}

fn invalid(parameter: ProxyParameter) -> ProxyToolError {
    ProxyToolError::InvalidValue {
        parameter,
        suggestion: None,
    }
}
