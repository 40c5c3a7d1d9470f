//! What a request is about: the whole run, one of its connections or one of its servers.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::Fault;

/// The number of a connection. The record writes it as `c1`; requests may use either form.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "NumberOrText")]
pub struct ConnectionNumber(pub u32);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "not the number of a connection, such as 1 or \"c1\""
)]
enum NumberOrText {
    Number(u32),
    Text(String),
}

/// The part of a run that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    #[default]
    Run,
    /// One connection.
    Connection(ConnectionNumber),
    /// All connections to one server, by the server's name.
    Server(String),
}

impl Scope {
    /// The scope that the two optional parameters name.
    ///
    /// # Errors
    /// Both are given: a connection has one server, so one of the two is superfluous or wrong.
    pub fn new(connection: Option<ConnectionNumber>, server: Option<&str>) -> Result<Scope, Fault> {
        match (connection, server) {
            (None, None) => Ok(Scope::Run),
            (Some(connection), None) => Ok(Scope::Connection(connection)),
            (None, Some(server)) => Ok(Scope::Server(server.to_owned())),
            (Some(_), Some(_)) => Err(Fault::params(
                "connection, server: give one of them, not both",
            )),
        }
    }
}

impl ConnectionNumber {
    /// Writes it as the record does, `"c1"`.
    pub(crate) fn write_text<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ConnectionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl TryFrom<NumberOrText> for ConnectionNumber {
    type Error = String;

    fn try_from(written: NumberOrText) -> Result<ConnectionNumber, String> {
        let text = match written {
            NumberOrText::Number(number) => return Ok(ConnectionNumber(number)),
            NumberOrText::Text(text) => text,
        };
        let digits = text.strip_prefix('c').unwrap_or(&text);
        // `parse` alone would take `+1`.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number) if is_number => Ok(ConnectionNumber(number)),
            _ => Err(format!(
                "`{text}` is not the number of a connection, such as 1 or c1"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_by_its_number_or_as_in_the_record() {
        for text in ["1", "\"1\"", "\"c1\""] {
            let number: ConnectionNumber = serde_json::from_str(text).unwrap();
            assert_eq!(number, ConnectionNumber(1), "{text}");
        }
        for text in [
            "-1",
            "1.5",
            "\"d1\"",
            "\"c\"",
            "\"c+1\"",
            "4294967296",
            "[]",
        ] {
            let read = serde_json::from_str::<ConnectionNumber>(text);
            assert!(
                read.unwrap_err().to_string().contains("connection"),
                "{text}"
            );
        }
        assert_eq!(serde_json::to_string(&ConnectionNumber(1)).unwrap(), "1");
        assert_eq!(ConnectionNumber(1).to_string(), "c1");
    }

    #[test]
    fn a_scope_is_one_thing() {
        let number = Some(ConnectionNumber(2));
        assert_eq!(Scope::new(None, None), Ok(Scope::Run));
        assert!(Scope::new(number, Some("db")).is_err());
        assert_eq!(
            Scope::new(number, None),
            Ok(Scope::Connection(ConnectionNumber(2)))
        );
        assert_eq!(
            Scope::new(None, Some("db")),
            Ok(Scope::Server("db".to_owned()))
        );
    }
}
