//! Parts of arguments that stand for stored results: `{"$resultFile": "spill:…", "jq": ".rows"}`.

use mcp_proxy_wire::{Message, Span};

use super::DispatchToolError;
use crate::json;
use crate::wording::shorten;

/// The member that makes an object a reference, and the other one that it may have.
const RESULT_FILE: &str = "$resultFile";
const JQ: &str = "jq";
/// Each may take seconds.
const MOST_REFERENCES: usize = 16;

/// A part of the arguments that stands for what is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultReference {
    /// Where the object stands.
    pub span: Span,
    /// The same for people, such as `arguments.rows[0]`.
    pub place: String,
    /// The handle or path of the file.
    pub file: String,
    /// A jq filter for what is in it.
    pub filter: Option<String>,
}

impl ResultReference {
    /// The error for one that cannot be replaced.
    pub fn refused(&self, reason: impl ToString) -> DispatchToolError {
        refusal(&self.place, reason)
    }
}

/// Whether it is worth looking for references in these arguments.
pub fn may_have_references(arguments: &[u8]) -> bool {
    memchr::memmem::find(arguments, RESULT_FILE.as_bytes()).is_some()
}

/// The references in arguments, in order.
pub fn find_references(arguments: &Message) -> Result<Vec<ResultReference>, DispatchToolError> {
    let mut found = Vec::new();
    collect(arguments, arguments.root(), "arguments", &mut found)?;
    match found.get(MOST_REFERENCES) {
        Some(reference) => {
            Err(reference.refused(format!("A call can use at most {MOST_REFERENCES} results")))
        }
        None => Ok(found),
    }
}

fn collect(
    arguments: &Message,
    value: Span,
    place: &str,
    found: &mut Vec<ResultReference>,
) -> Result<(), DispatchToolError> {
    match arguments.slice(value).first() {
        Some(b'{') => {
            let members = json::members(arguments, value);
            if let Some(reference) = reference(arguments, value, &members, place)? {
                found.push(reference);
                return Ok(());
            }
            members.into_iter().try_for_each(|(key, member)| {
                let place = format!("{place}.{}", json::key_text(arguments, key));
                collect(arguments, member, &place, found)
            })
        }
        Some(b'[') => {
            let elements = json::elements(arguments, value).into_iter().enumerate();
            elements
                .map(|(at, element)| (format!("{place}[{at}]"), element))
                .try_for_each(|(place, element)| collect(arguments, element, &place, found))
        }
        _ => Ok(()),
    }
}

/// The reference that an object with these members is. Only `jq` may stand next to the file: an object that has more would
/// reach the server as it is, and its caller would not know.
fn reference(
    arguments: &Message,
    span: Span,
    members: &[(Span, Span)],
    place: &str,
) -> Result<Option<ResultReference>, DispatchToolError> {
    let (mut file, mut filter, mut other) = (None, None, None);
    for (key, value) in members {
        match json::key_text(arguments, *key) {
            key if key == RESULT_FILE => file = Some(*value),
            key if key == JQ => filter = Some(*value),
            key => other = other.or(Some(key)),
        }
    }
    let Some(file) = file else {
        return Ok(None);
    };
    if let Some(other) = other {
        let meant = match filter {
            None => " Did you mean 'jq'?",
            Some(_) => "",
        };
        let reason = format!(
            "'{RESULT_FILE}' takes only '{JQ}' next to it, not '{}'.{meant}",
            shorten(&other)
        );
        return Err(refusal(place, reason));
    }
    let text = |value: Span, name: &str| {
        let text = arguments.text_at(value).map(|text| text.into_owned());
        text.ok_or_else(|| refusal(place, format!("'{name}' must be a text")))
    };
    let filter = filter.filter(|value| arguments.slice(*value) != b"null");
    Ok(Some(ResultReference {
        span,
        place: place.to_owned(),
        file: text(file, RESULT_FILE)?,
        filter: filter.map(|value| text(value, JQ)).transpose()?,
    }))
}

fn refusal(place: &str, reason: impl ToString) -> DispatchToolError {
    DispatchToolError::BadReference {
        place: place.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &str) -> Result<Vec<(String, String, Option<String>)>, DispatchToolError> {
        let arguments = json::parse(arguments.to_owned()).unwrap();
        let found = find_references(&arguments)?.into_iter();
        Ok(found
            .map(|reference| (reference.place, reference.file, reference.filter))
            .collect())
    }

    #[test]
    fn m3_references_are_found_anywhere() {
        let arguments = r#"{"content": {"$resultFile": "spill:a.txt"}, "n": 1,
            "list": [1, {"rows": {"jq": ".rows", "$resultFile": "spill:b.json"}}],
            "null": {"$resultFile": "c", "jq": null}}"#;
        let reference = |place: &str, file: &str, filter: Option<&str>| {
            (place.to_owned(), file.to_owned(), filter.map(str::to_owned))
        };
        assert_eq!(
            found(arguments).unwrap(),
            [
                reference("arguments.content", "spill:a.txt", None),
                reference("arguments.list[1].rows", "spill:b.json", Some(".rows")),
                reference("arguments.null", "c", None),
            ]
        );
        assert_eq!(
            found(r#"{"$resultFile":"a"}"#).unwrap(),
            [reference("arguments", "a", None)]
        );
    }

    #[test]
    fn m3_other_objects_are_no_references() {
        for arguments in [
            r#"{"a":{"jq":".rows"}}"#,
            r#"{"a":"{\"$resultFile\":\"spill:a\"}"}"#,
            r#"{"a":[]}"#,
        ] {
            assert_eq!(found(arguments), Ok(Vec::new()), "{arguments}");
        }
    }

    #[test]
    fn m3_wrong_references_are_errors_that_name_the_place() {
        let many = vec![r#"{"$resultFile":"a"}"#; MOST_REFERENCES + 1].join(",");
        for (arguments, wrong) in [
            (r#"{"a":{"$resultFile":1}}"#.to_owned(), "arguments.a"),
            (
                r#"{"b":{"$resultFile":"a","jq":[]}}"#.to_owned(),
                "arguments.b",
            ),
            (format!(r#"{{"c":[{many}]}}"#), "arguments.c[16]"),
            (
                r#"{"d":{"filter":".[0]","$resultFile":"a"}}"#.to_owned(),
                "arguments.d",
            ),
            (
                r#"{"e":[{"$resultFile":"a","jq":".","other":1}]}"#.to_owned(),
                "arguments.e[0]",
            ),
        ] {
            let Err(DispatchToolError::BadReference { place, .. }) = found(&arguments) else {
                panic!("no error: {arguments}");
            };
            assert_eq!(place, wrong);
        }
    }
}
