//! JSON with comments and trailing commas, and nothing else of what people call JSON.

use jsonc_parser::ast::{ObjectProp, ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::{DocumentContent, DocumentMember, DocumentValue, SyntaxError};

pub(super) fn parse(text: &str) -> Result<DocumentValue, SyntaxError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let (at, why) = match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(result) => match &result.value {
            Some(parsed) => return Ok(value(parsed)),
            None => (text.len(), "the file is empty"),
        },
        Err(error) => (error.range().start, describe(error.kind())),
    };
    let why = why.to_owned();
    Err(SyntaxError { at, why })
}

/// The parser has a limit for nesting, so this cannot go too deep.
fn value(parsed: &Value<'_>) -> DocumentValue {
    let content = match parsed {
        Value::NullKeyword(_) => DocumentContent::Null,
        Value::BooleanLit(boolean) => DocumentContent::Boolean(boolean.value),
        Value::NumberLit(number) => DocumentContent::Number(number.value.to_owned()),
        Value::StringLit(text) => DocumentContent::Text(text.value.to_string()),
        Value::Array(list) => DocumentContent::List(list.elements.iter().map(value).collect()),
        Value::Object(object) => {
            DocumentContent::Table(object.properties.iter().map(member).collect())
        }
    };
    let start = parsed.start();
    DocumentValue { start, content }
}

fn member(property: &ObjectProp<'_>) -> DocumentMember {
    let (key, key_start) = match &property.name {
        ObjectPropName::String(name) => (name.value.to_string(), name.range.start),
        ObjectPropName::Word(name) => (name.value.to_owned(), name.range.start),
    };
    DocumentMember {
        written: key.clone(),
        key,
        key_start,
        value: value(&property.value),
    }
}

/// In our own words: the parser's can quote the text.
fn describe(kind: &ParseErrorKind) -> &'static str {
    match kind {
        ParseErrorKind::ExpectedColonAfterObjectKey => "a key is not followed by `:`",
        ParseErrorKind::ExpectedObjectValue => "a key has no value",
        ParseErrorKind::ExpectedStringObjectProperty => "a key is not in double quotes",
        ParseErrorKind::ExpectedComma => "a comma is missing",
        ParseErrorKind::MultipleRootJsonValues => {
            "there is text after the end of the outermost value"
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => "strings take double quotes",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "a string is not closed"
        }
        ParseErrorKind::String(_) => "a string has an invalid escape; write `\\\\` for a backslash",
        ParseErrorKind::UnterminatedArray => "a list is not closed",
        ParseErrorKind::UnterminatedObject => "an object is not closed",
        ParseErrorKind::UnterminatedCommentBlock => "a comment is not closed",
        ParseErrorKind::NestingDepthExceeded => "values are nested too deeply",
        ParseErrorKind::UnexpectedComma => "unexpected comma",
        ParseErrorKind::UnexpectedColon => "unexpected colon",
        ParseErrorKind::UnexpectedCloseBrace => "unexpected `}`",
        ParseErrorKind::UnexpectedCloseBracket => "unexpected `]`",
        ParseErrorKind::UnexpectedWord => "a word is not in double quotes",
        _ => "unexpected character",
    }
}
