//! A question to a JSON document: jq, and all that it gives.

use bytes::Bytes;
use mcp_proxy_wire::Message;

use crate::filter::FilterError;
use crate::jq::{self, JqError, JqProgram};
use crate::program_thread::WaitingCaller;

/// A compiled question.
#[derive(Debug)]
pub struct JqQuery {
    program: JqProgram,
}

/// The values that a program gave, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JqAnswer {
    /// One for each value.
    pub values: Vec<String>,
    /// Whether the program had more to give.
    pub truncated: bool,
}

/// How much a program may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JqRoom {
    /// Of all values together.
    pub bytes: usize,
    /// Values.
    pub values: usize,
}

impl JqQuery {
    /// Compiles a jq program.
    pub fn parse(program: &str) -> Result<JqQuery, FilterError> {
        let program = JqProgram::compile(program.trim(), &[])?;
        Ok(JqQuery { program })
    }

    /// Runs it on a document, until it has given more than there is room for. Nothing but its caller limits its time and memory.
    ///
    /// # Errors
    /// When the document is not JSON or nested too deep, or the program fails.
    pub fn run(&self, document: Bytes, most: JqRoom) -> Result<JqAnswer, JqError> {
        let input = jq::whole(&Message::parse(document)).ok_or_else(|| {
            JqError::Failed("the document is not JSON, or nested too deep".to_owned())
        })?;
        let caller = WaitingCaller::default();
        let mut values = Vec::new();
        let mut room = most.bytes;
        let truncated = self.program.run(input, &caller, |value| {
            let value = value.to_string();
            // With the line break that will stand behind it.
            match room.checked_sub(value.len() + 1) {
                Some(left) if values.len() < most.values => {
                    room = left;
                    values.push(value);
                    None
                }
                _ => Some(()),
            }
        })?;
        Ok(JqAnswer {
            values,
            truncated: truncated.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(bytes: usize) -> JqRoom {
        JqRoom {
            bytes,
            values: usize::MAX,
        }
    }

    fn run(program: &str, document: &'static str, most_bytes: usize) -> Result<JqAnswer, JqError> {
        let query = JqQuery::parse(program).unwrap();
        query.run(document.into(), room(most_bytes))
    }

    #[test]
    fn all_values_are_given_as_json() {
        let answer = run(
            ".a[]",
            r#"{"a":[1.50,"x",{"b":123456789012345678901}]}"#,
            100,
        )
        .unwrap();
        assert_eq!(
            answer.values,
            ["1.50", "\"x\"", "{\"b\":123456789012345678901}"]
        );
        assert!(!answer.truncated);
    }

    #[test]
    fn no_more_is_given_than_asked_for() {
        let answer = run(".[]", "[1,2,3]", 4).unwrap();
        assert_eq!(answer.values, ["1", "2"]);
        assert!(answer.truncated);
    }

    #[test]
    fn d24_an_error_keeps_its_reason_however_large_the_value() {
        let rows: String = (0..100_000)
            .map(|row| format!(r#"{{"id":{row}}},"#))
            .collect();
        let document = format!("[{}0]", rows).leak();
        for (program, reason) in [
            (".rows[]", r#"cannot index an array with "rows""#),
            ("{a: .} | test(\"x\")", "cannot use an object as string"),
            ("test(\"x\")", "cannot use an array as string"),
        ] {
            let failed = run(program, document, 100);
            assert_eq!(failed, Err(JqError::Failed(reason.to_owned())), "{program}");
        }
        let short = run(".a", "[1]", 100);
        let reason = r#"cannot index [1] with "a""#;
        assert_eq!(short, Err(JqError::Failed(reason.to_owned())));
        let own = run(r#"error("my reason")"#, "1", 100);
        assert_eq!(own, Err(JqError::Failed("my reason".to_owned())));
    }

    #[test]
    fn a_match_counts_letters() {
        let replaced = run(r#"gsub("é(?<x>.)"; .x) | length"#, r#""aébéc""#, 100);
        assert_eq!(replaced.unwrap().values, ["3"]);
        let places = run(
            r#"[match("é(.)"; "g") | .offset, .captures[].offset]"#,
            r#""aébéc""#,
            100,
        );
        assert_eq!(places.unwrap().values, ["[1,2,3,4]"]);
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        assert!(matches!(run(".a", "[", 100), Err(JqError::Failed(_))));
        assert!(matches!(run(".a", "[]", 100), Err(JqError::Failed(_))));
        assert!(JqQuery::parse(".a | | .b").is_err());
    }
}
