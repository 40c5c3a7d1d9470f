//! `${VAR}` in strings.
//!
//! Besides `${VAR}` and `${VAR:-default}`, the forms of editors that an environment can answer are understood:
//! `${env:VAR}`, `${userHome}`, `${pathSeparator}` and `${/}`, and for files in a project `${workspaceFolder}`. `$${` is a
//! literal `${`.

use super::error::ConfigFault;
use super::inherited::names_a_secret;

/// Looks up an environment variable.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A piece of a string.
enum Piece<'a> {
    Literal(&'a str),
    Variable {
        name: &'a str,
        default: Option<&'a str>,
    },
}

/// Fills in the variables of a string.
pub fn expand(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ConfigFault> {
    let mut expanded = String::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Piece::Literal(literal) => expanded.push_str(literal),
            Piece::Variable { name, default } => {
                expanded.push_str(&value(name, default, environment)?);
            }
        }
    }
    Ok(expanded)
}

/// The values of the variables of a string whose names sound like credentials.
pub(super) fn credentials(text: &str, environment: Environment<'_>) -> Vec<String> {
    let pieces = pieces(text).unwrap_or_default();
    let credential = |piece| match piece {
        Piece::Variable { name, default } if names_a_secret(name) => {
            value(name, default, environment).ok()
        }
        _ => None,
    };
    pieces.into_iter().filter_map(credential).collect()
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, ConfigFault> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        let reference = &reference[2..];
        if let Some(before) = before.strip_suffix('$') {
            pieces.extend([Piece::Literal(before), Piece::Literal("${")]);
            rest = reference;
            continue;
        }
        let (inside, after) = reference
            .split_once('}')
            .ok_or_else(|| bad("`${` without a closing `}`; write `$${` for a literal `${`"))?;
        pieces.extend([Piece::Literal(before), variable(inside)?]);
        rest = after;
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

fn variable(inside: &str) -> Result<Piece<'_>, ConfigFault> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if name.starts_with("file:") {
        return Err(bad(
            "`{file:…}` is not read here; put the text into an environment variable and use `${env:NAME}`",
        ));
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || "_:./-".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) || name.len() > 200 {
        return Err(bad(
            "`${…}` takes a variable's name; write `$${` for a literal `${`",
        ));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(bad("a default cannot contain another `${…}`"));
    }
    Ok(Piece::Variable { name, default })
}

fn bad(why: &str) -> ConfigFault {
    ConfigFault::BadValue(why.to_owned())
}

fn value(
    name: &str,
    default: Option<&str>,
    environment: Environment<'_>,
) -> Result<String, ConfigFault> {
    let value = match name {
        "userHome" => environment("HOME").or_else(|| environment("USERPROFILE")),
        "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR_STR.to_owned()),
        name => environment(name.strip_prefix("env:").unwrap_or(name)),
    };
    match (value, default) {
        // As in a shell, `:-` also replaces an empty value.
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ConfigFault::MissingVariable(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "NAME" => Some("ada".into()),
            "EMPTY" => Some(String::new()),
            "API_TOKEN" => Some("${NAME}".into()),
            "HOME" => Some("/people/ada".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, expanded) in [
            ("plain", "plain"),
            ("${NAME}", "ada"),
            ("a${NAME}b${NAME}", "aadabada"),
            ("${NONE:-x y}", "x y"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("${NONE:-}", ""),
            ("$${NAME}", "${NAME}"),
            ("$NAME $5 $$", "$NAME $5 $$"),
            ("${env:NAME}", "ada"),
            ("${userHome}${/}x", "/people/ada/x"),
            // A value is not looked at again.
            ("${API_TOKEN}", "${NAME}"),
        ] {
            assert_eq!(
                expand(text, &environment).as_deref(),
                Ok(expanded),
                "{text}"
            );
        }
    }

    #[test]
    fn what_nobody_set_is_missing() {
        for name in ["NONE", "input:token", "workspaceFolder", "env:NONE"] {
            let fault = expand(&format!("x${{{name}}}"), &environment).unwrap_err();
            assert_eq!(fault, ConfigFault::MissingVariable(name.into()));
        }
        for text in ["${", "${NAME", "${}", "${a b}", "${X%.*}", "${A:-${NAME}}"] {
            let fault = expand(text, &environment).unwrap_err();
            assert!(matches!(fault, ConfigFault::BadValue(_)), "{text}");
        }
    }

    #[test]
    fn credentials_are_known_by_their_names() {
        assert_eq!(
            credentials("${API_TOKEN} ${NAME}", &environment),
            ["${NAME}"]
        );
        assert!(credentials("${HOME} ${EMPTY} ${", &environment).is_empty());
    }
}
