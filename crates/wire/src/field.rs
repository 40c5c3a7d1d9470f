//! Names for the places inside a message that the proxy looks at or splices.
//!
//! The head knows only the outermost members. Everything below is looked up when asked for, by scanning the member
//! that holds it. With duplicate keys the last one counts, as in JavaScript, Python and serde.

use std::borrow::Cow;

use crate::{Kind, Message, Span, json, scan, text};

/// A place inside a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field<'a> {
    /// `id`
    Id,
    /// `method`
    Method,
    /// `params`
    Params,
    /// `result`
    Result,
    /// `error`
    Error,
    /// `params.name`
    Name,
    /// `params.uri`
    Uri,
    /// `params.progressToken`, in a progress notification. The token in a request is `Meta("progressToken")`.
    ProgressToken,
    /// `params.requestId`, in a cancelled notification
    RequestId,
    /// `params.X`
    Param(&'a str),
    /// `params._meta.X`
    Meta(&'a str),
    /// `result.X`
    ResultField(&'a str),
    /// `result._meta.X`
    ResultMeta(&'a str),
}

impl Message {
    /// Where the value of `field` stands, if it is there.
    pub fn span(&self, field: Field<'_>) -> Option<Span> {
        match field {
            Field::Id => self.id_span(),
            Field::Method => self.method_span(),
            Field::Params => self.params(),
            Field::Result => self.result(),
            Field::Error => self.error(),
            Field::Name => self.member(self.params()?, "name"),
            Field::Uri => self.member(self.params()?, "uri"),
            Field::ProgressToken => self.member(self.params()?, "progressToken"),
            Field::RequestId => self.member(self.params()?, "requestId"),
            Field::Param(name) => self.member(self.params()?, name),
            Field::Meta(name) => self.member(self.member(self.params()?, "_meta")?, name),
            Field::ResultField(name) => self.member(self.result()?, name),
            Field::ResultMeta(name) => self.member(self.member(self.result()?, "_meta")?, name),
        }
    }

    /// The string that stands at `field`, escapes resolved and U+FFFD for what is not text. Nothing if it is not a string.
    pub fn text(&self, field: Field<'_>) -> Option<Cow<'_, str>> {
        self.text_at(self.span(field)?)
    }

    /// The string that stands at `span`, likewise.
    pub fn text_at(&self, span: Span) -> Option<Cow<'_, str>> {
        text::quoted(self.slice(span)).map(text::text)
    }

    /// The value of the member `name` of the object at `object`, for what has no [`Field`] of its own.
    pub fn member(&self, object: Span, name: &str) -> Option<Span> {
        let text = self.slice(object);
        let found = match self.kind() {
            Kind::Malformed => scan::find(text, name),
            _ => json::find(text, name),
        };
        found.map(|span| span.shift(object.start))
    }

    /// Each member of the object at `object`, in order: its name, escapes resolved, and where its value stands.
    pub fn each_member(&self, object: Span) -> Vec<(Cow<'_, str>, Span)> {
        let mut members = Vec::new();
        if self.kind() != Kind::Malformed {
            json::members(self.slice(object), |key, value| {
                members.push((text::text(key.raw), value.shift(object.start)));
            });
        }
        members
    }

    /// The values of several members of the object at `object`, found in one pass.
    pub fn members<const N: usize>(&self, object: Span, names: [&str; N]) -> [Option<Span>; N] {
        let text = self.slice(object);
        if self.kind() == Kind::Malformed {
            return names.map(|name| self.member(object, name));
        }
        let mut found = [None; N];
        json::members(text, |key, value| {
            for (name, found) in names.iter().zip(&mut found) {
                if key.is(name) {
                    *found = Some(value.shift(object.start));
                }
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_with_their_names() {
        let message = Message::parse(r#"{"result":{"a":1,"\u0061":[2]}}"#);
        let members = message.each_member(message.result().unwrap());
        let shown: Vec<_> = members
            .iter()
            .map(|(name, value)| (&**name, message.slice(*value)))
            .collect();
        assert_eq!(shown, [("a", &b"1"[..]), ("a", &b"[2]"[..])]);
    }

    #[test]
    fn several_members_are_those_found_one_by_one() {
        let names = ["a", "b", "none"];
        for text in [
            r#"{"result":{"b":[1],"\u0061":{"b":2},"b":3}}"#.to_owned(),
            r#"{"result":{}}"#.to_owned(),
            r#"{"result":[1]}"#.to_owned(),
            r#"{"result":{"a":1,"b":2}"#.to_owned(),
        ] {
            let message = Message::parse(text.clone());
            let object = message.result().unwrap_or(Span::new(10, text.len()));
            let one_by_one = names.map(|name| message.member(object, name));
            assert_eq!(message.members(object, names), one_by_one, "{text:.80}");
        }
    }
}
