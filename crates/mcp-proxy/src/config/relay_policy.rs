//! The policy file of a relay: what clients may do, for everybody and for single users.
//!
//! ```toml
//! [default]
//! deny-method = ["reloadExtensions"]
//!
//! [users."ada@example.com"]
//! allow-url = ["https://intranet.example.com/*"]
//! read-only = true
//! ```
//!
//! A user has the keys of `default`, and own keys replace them one by one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use mcp_proxy_relay::{PolicyList, RelayPolicy, RelaySettings};
use toml::de::{DeTable, DeValue};

/// The keys of a table. They are named like the flags.
const KEYS: &str =
    "allow-method, deny-method, allow-cdp, deny-cdp, allow-url, deny-url and read-only";

/// The settings with the policies of a file.
pub fn with_policy_file(settings: RelaySettings, path: &Path) -> Result<RelaySettings> {
    let read = std::fs::read_to_string(path);
    let text = read.with_context(|| format!("--policy: cannot read {}", path.display()))?;
    let (default, users) = parse(&text).with_context(|| format!("--policy: {}", path.display()))?;
    Ok(RelaySettings {
        policy: Arc::new(default),
        user_policies: Arc::new(users),
        ..settings
    })
}

type UserPolicies = BTreeMap<String, Arc<RelayPolicy>>;

fn parse(text: &str) -> Result<(RelayPolicy, UserPolicies)> {
    let document = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        anyhow!("line {}: {}", line(text, place), error.message())
    })?;
    let tables = document.get_ref();
    for (key, _) in tables {
        if !["default", "users"].contains(&&**key.get_ref()) {
            let line = line(text, key.span().start);
            let key = key.get_ref();
            bail!("line {line}: `{key}`: unknown table; there are [default] and [users.NAME]");
        }
    }
    let default = match tables.get("default") {
        Some(value) => read_table(text, "default", value.get_ref(), RelayPolicy::standard())?,
        None => RelayPolicy::standard(),
    };
    let mut users = UserPolicies::new();
    if let Some(value) = tables.get("users") {
        let DeValue::Table(table) = value.get_ref() else {
            bail!("`users` must be a table: write [users.NAME]");
        };
        for (user, value) in table {
            let user = user.get_ref();
            let name = format!("users.{user}");
            let policy = read_table(text, &name, value.get_ref(), default.clone())?;
            users.insert(user.to_string(), Arc::new(policy));
        }
    }
    Ok((default, users))
}

/// A policy with the keys of a table.
fn read_table(
    text: &str,
    name: &str,
    table: &DeValue<'_>,
    mut policy: RelayPolicy,
) -> Result<RelayPolicy> {
    let DeValue::Table(table) = table else {
        bail!("`{name}` must be a table: write [{name}]");
    };
    for (key, value) in table {
        let place = || {
            let line = line(text, key.span().start);
            format!("line {line}: `{name}.{}`", key.get_ref())
        };
        policy = read_key(key.get_ref(), value.get_ref(), policy).with_context(place)?;
    }
    Ok(policy)
}

fn read_key(key: &str, value: &DeValue<'_>, policy: RelayPolicy) -> Result<RelayPolicy> {
    let key = key.replace('_', "-");
    if key == "read-only" {
        let DeValue::Boolean(is_read_only) = value else {
            bail!("must be true or false");
        };
        return Ok(policy.read_only(*is_read_only));
    }
    let (kind, list) = match key.split_once('-') {
        Some((kind @ ("allow" | "deny"), "method")) => (kind, PolicyList::Methods),
        Some((kind @ ("allow" | "deny"), "cdp")) => (kind, PolicyList::Cdp),
        Some((kind @ ("allow" | "deny"), "url")) => (kind, PolicyList::Urls),
        _ => bail!("unknown key; the keys are {KEYS}"),
    };
    let patterns = texts(value)?;
    let policy = match kind {
        "allow" if patterns.is_empty() => {
            bail!("the list is empty: name what is allowed, or say [\"*\"] for everything")
        }
        "allow" => policy.with(list, Some(&patterns), None),
        _ => policy.with(list, None, Some(&patterns)),
    };
    policy.map_err(|error| anyhow!("the pattern {error}"))
}

fn texts(value: &DeValue<'_>) -> Result<Vec<String>> {
    let DeValue::Array(elements) = value else {
        bail!("must be a list of texts, such as [\"a*\", \"b\"]");
    };
    let text = |element: &DeValue<'_>| match element {
        DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
        _ => bail!("every entry of the list must be a text that is not empty"),
    };
    elements
        .iter()
        .map(|element| text(element.get_ref()))
        .collect()
}

/// The line of a place in the file.
fn line(text: &str, place: usize) -> usize {
    let before = text.as_bytes().get(..place).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_line_and_key() {
        let wrong = [
            "[default",
            "[defaults]",
            "default = 1",
            "users = 1",
            "[users]\nada = 1",
            "[default]\ndeny-methods = []",
            "[users.ada]\n\nread_only = 1",
            "[users.\"ada@example.com\"]\nallow-url = \"https://a.test\"",
            "[users.ada]\ndeny-cdp = [1]",
            "[users.ada]\nallow-method = []",
            "[users.ada]\nread-only = true\nread-only = false",
        ];
        let told = wrong.map(|text| {
            let error = parse(text).expect_err(text);
            format!("{text}\n=> {error:#}\n")
        });
        insta::assert_snapshot!("policy_file_mistakes", told.join("\n"));
    }

    #[test]
    fn users_are_read_by_their_ids() {
        let text = "[default]\nread-only = true\n[users.ada]\nread_only = false\n[users.\"b c\"]";
        let (_, users) = parse(text).unwrap();
        assert_eq!(users.keys().collect::<Vec<_>>(), ["ada", "b c"]);
        assert!(parse("").unwrap().1.is_empty());
    }
}
