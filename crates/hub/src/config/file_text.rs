//! The text of a config file, parsed with the place of every value.

use jsonc_parser::ast::Value;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::error::{ConfigError, ConfigFault, TextPosition};
use super::variables::Environment;

/// A config file while it is read.
#[derive(Clone, Copy)]
pub(super) struct FileText<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) environment: Environment<'a>,
}

impl<'a> FileText<'a> {
    /// Parses JSON with comments and trailing commas, and nothing else of what people call JSON.
    pub(super) fn parse(&self) -> Result<Value<'a>, ConfigError> {
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
        let parsed = parse_to_ast(self.text, &CollectOptions::default(), &options);
        let (at, why) = match parsed {
            Ok(result) => match result.value {
                Some(value) => return Ok(value),
                None => (self.text.len(), "the file is empty"),
            },
            Err(error) => (error.range().start, describe(error.kind())),
        };
        Err(self.error(at, String::new(), ConfigFault::Syntax(why)))
    }

    /// An error at a byte of the text.
    pub(super) fn error(&self, at: usize, key: String, fault: ConfigFault) -> ConfigError {
        ConfigError {
            file: self.name.to_owned(),
            position: TextPosition::of(self.text, at),
            key,
            fault,
        }
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
