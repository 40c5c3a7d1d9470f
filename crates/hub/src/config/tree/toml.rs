//! TOML, as Codex has it.

use toml::de::{DeTable, DeValue};

use super::{Member, SyntaxError, Tree};

pub(super) fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let parsed = DeTable::parse(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        SyntaxError {
            line: before.unwrap_or_default().matches('\n').count() + 1,
            why: error.message().to_owned(),
        }
    })?;
    Ok(table(parsed.get_ref()))
}

fn table(table: &DeTable<'_>) -> Tree {
    let members = table.iter();
    let members =
        members.map(|(key, value)| Member::new(key.get_ref().to_string(), tree(value.get_ref())));
    Tree::Table(members.collect())
}

/// The parser has a limit for nesting, so this cannot go too deep.
fn tree(parsed: &DeValue<'_>) -> Tree {
    match parsed {
        DeValue::String(text) => Tree::Text(text.to_string()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            let written = || number.as_str().to_owned();
            Tree::Number(decimal.map_or_else(|_| written(), |value| value.to_string()))
        }
        DeValue::Float(number) => Tree::Number(number.as_str().to_owned()),
        DeValue::Boolean(boolean) => Tree::Boolean(*boolean),
        DeValue::Datetime(time) => Tree::Text(time.to_string()),
        DeValue::Array(list) => Tree::List(list.iter().map(|item| tree(item.get_ref())).collect()),
        DeValue::Table(members) => table(members),
    }
}
