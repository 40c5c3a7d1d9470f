//! TOML, as Codex has it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DocumentContent, DocumentMember, DocumentValue, SyntaxError};

pub(super) fn parse(text: &str) -> Result<DocumentValue, SyntaxError> {
    match DeTable::parse(text) {
        Ok(parsed) => Ok(DocumentValue {
            start: parsed.span().start,
            content: DocumentContent::Table(members(parsed.get_ref())),
        }),
        Err(error) => Err(SyntaxError {
            at: error.span().map_or(0, |span| span.start),
            why: error.message().to_owned(),
        }),
    }
}

fn members(table: &DeTable<'_>) -> Vec<DocumentMember> {
    let member = |(key, parsed): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        DocumentMember {
            key: name.to_string(),
            written: name.to_string(),
            key_start: key.span().start,
            value: value(parsed),
        }
    };
    table.iter().map(member).collect()
}

/// The parser has a limit for nesting, so this cannot go too deep.
fn value(parsed: &Spanned<DeValue<'_>>) -> DocumentValue {
    let content = match parsed.get_ref() {
        DeValue::String(text) => DocumentContent::Text(text.to_string()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            let written = || number.as_str().to_owned();
            DocumentContent::Number(decimal.map_or_else(|_| written(), |value| value.to_string()))
        }
        DeValue::Float(number) => DocumentContent::Number(number.as_str().to_owned()),
        DeValue::Boolean(boolean) => DocumentContent::Boolean(*boolean),
        DeValue::Datetime(time) => DocumentContent::Text(time.to_string()),
        DeValue::Array(list) => DocumentContent::List(list.iter().map(value).collect()),
        DeValue::Table(table) => DocumentContent::Table(members(table)),
    };
    let start = parsed.span().start;
    DocumentValue { start, content }
}
