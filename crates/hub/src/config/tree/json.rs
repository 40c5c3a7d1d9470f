//! JSON with comments and trailing commas, and nothing else of what people call JSON.

use jsonc_parser::ast::Value;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::{Member, SyntaxError, Tree};

pub(super) fn parse(text: &str) -> Result<Tree, SyntaxError> {
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
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    let parsed = parsed.map_err(|error| SyntaxError {
        line: error.line_display(),
        why: describe(error.kind()),
    })?;
    parsed.value.as_ref().map(tree).ok_or(SyntaxError {
        line: 1,
        why: "the file is empty".to_owned(),
    })
}

/// The parser has a limit for nesting, so this cannot go too deep.
fn tree(parsed: &Value<'_>) -> Tree {
    match parsed {
        Value::NullKeyword(_) => Tree::Null,
        Value::BooleanLit(boolean) => Tree::Boolean(boolean.value),
        Value::NumberLit(number) => Tree::Number(number.value.to_owned()),
        Value::StringLit(text) => Tree::Text(text.value.to_string()),
        Value::Array(list) => Tree::List(list.elements.iter().map(tree).collect()),
        Value::Object(object) => {
            let members = object.properties.iter();
            let members = members.map(|it| Member::new(it.name.as_str(), tree(&it.value)));
            Tree::Table(members.collect())
        }
    }
}

/// The parser's words, where they do not quote the text and say enough.
fn describe(kind: &ParseErrorKind) -> String {
    match kind {
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "a string is not closed".to_owned()
        }
        ParseErrorKind::String(_) => {
            "a string has an invalid escape; write `\\\\` for a backslash".to_owned()
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => "strings take double quotes".to_owned(),
        ParseErrorKind::ExpectedStringObjectProperty => "a key is not in double quotes".to_owned(),
        ParseErrorKind::ExpectedColonAfterObjectKey => "a key is not followed by `:`".to_owned(),
        kind => kind.to_string(),
    }
}
