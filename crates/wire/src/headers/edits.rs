//! Changes to the head of a message on its way, by a rule or by a person.

use std::fmt;

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};

use super::{HOP_BY_HOP, remove_in_order};

/// Changes to headers, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderEdits(Vec<HeaderEdit>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum HeaderEdit {
    Set(HeaderName, Vec<HeaderValue>),
    Remove(HeaderName),
}

/// Why a header cannot be changed so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderEditError {
    /// No header can have this name.
    Name(String),
    /// No header can have the value that was given.
    Value(HeaderName),
    /// The proxy needs it for the connection or the length of the body.
    Framing(HeaderName),
}

impl fmt::Display for HeaderEditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderEditError::Name(name) => write!(f, "{name:?} is not the name of a header"),
            HeaderEditError::Value(name) => {
                write!(
                    f,
                    "the value of {name} has characters that a header cannot have"
                )
            }
            HeaderEditError::Framing(name) => {
                write!(f, "{name} belongs to the connection and cannot be changed")
            }
        }
    }
}

impl std::error::Error for HeaderEditError {}

impl HeaderEdits {
    /// The header gets these values in the place of those it has.
    ///
    /// # Errors
    /// The name or a value is not possible, or the header is the proxy's own.
    pub fn set<'a>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), HeaderEditError> {
        let name = checked(name)?;
        let values = values.into_iter().map(|value| {
            HeaderValue::from_str(value).map_err(|_| HeaderEditError::Value(name.clone()))
        });
        let values = values.collect::<Result<_, _>>()?;
        self.0.push(HeaderEdit::Set(name, values));
        Ok(())
    }

    /// The header goes.
    ///
    /// # Errors
    /// The name is not possible, or the header is the proxy's own.
    pub fn remove(&mut self, name: &str) -> Result<(), HeaderEditError> {
        self.0.push(HeaderEdit::Remove(checked(name)?));
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, and then those.
    pub fn extend(&mut self, later: &HeaderEdits) {
        self.0.extend(later.0.iter().cloned());
    }

    /// Changes the headers.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for edit in &self.0 {
            match edit {
                HeaderEdit::Remove(name) => remove_in_order(headers, |it| it == name),
                HeaderEdit::Set(name, values) => {
                    let mut values = values.iter();
                    match values.next() {
                        Some(first) => drop(headers.insert(name, first.clone())),
                        None => remove_in_order(headers, |it| it == name),
                    }
                    for value in values {
                        headers.append(name, value.clone());
                    }
                }
            }
        }
    }
}

/// Without values, which may be secret: `sets x-trace, removes cookie`.
impl fmt::Display for HeaderEdits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, edit) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            match edit {
                HeaderEdit::Set(name, _) => write!(f, "{comma}sets the header {name}")?,
                HeaderEdit::Remove(name) => write!(f, "{comma}removes the header {name}")?,
            }
        }
        Ok(())
    }
}

fn checked(name: &str) -> Result<HeaderName, HeaderEditError> {
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| HeaderEditError::Name(name.to_owned()))?;
    match HOP_BY_HOP.contains(&name) || name == CONTENT_LENGTH || name == HOST {
        true => Err(HeaderEditError::Framing(name)),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_set_and_removed() {
        let mut headers = HeaderMap::new();
        let before = [
            ("x-a", "1"),
            ("cookie", "c"),
            ("x-a", "2"),
            ("x-b", "3"),
            ("x-c", "7"),
        ];
        for (name, value) in before {
            headers.append(name, HeaderValue::from_static(value));
        }
        let mut edits = HeaderEdits::default();
        edits.set("X-A", ["4"]).unwrap();
        edits.set("x-new", ["5", "6"]).unwrap();
        edits.remove("Cookie").unwrap();
        edits.apply(&mut headers);
        let now: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        // The others keep their order.
        let wanted = [
            ("x-a", "4"),
            ("x-b", "3"),
            ("x-c", "7"),
            ("x-new", "5"),
            ("x-new", "6"),
        ];
        assert_eq!(now, wanted);
        let said = "sets the header x-a, sets the header x-new, removes the header cookie";
        assert_eq!(edits.to_string(), said);
    }

    #[test]
    fn what_belongs_to_the_connection_stays() {
        let mut edits = HeaderEdits::default();
        for name in [
            "Content-Length",
            "transfer-encoding",
            "Host",
            "Connection",
            "TE",
        ] {
            let refused = edits.remove(name);
            assert!(
                matches!(refused, Err(HeaderEditError::Framing(_))),
                "{name}"
            );
        }
        assert!(matches!(
            edits.set("a b", ["1"]),
            Err(HeaderEditError::Name(_))
        ));
        assert!(matches!(
            edits.set("a", ["1\n2"]),
            Err(HeaderEditError::Value(_))
        ));
        assert!(edits.is_empty());
    }
}
