//! Adding a member to an object inside a message, by a splice.

use mcp_proxy_wire::{Message, Span};

/// Where the object is that a member is added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Params,
    ParamsMeta,
    Result,
    ResultMeta,
}

/// The message with `name` set to `value`, which is JSON, in the object at `place`. The object, and those around it, are
/// made if they are missing. A member that is there already is left as it is.
pub(crate) fn with_member(message: &Message, place: Place, name: &str, value: &str) -> Message {
    let member = format!("\"{name}\":{value}");
    match place {
        Place::Params => in_part(message, message.params(), "params", name, &member),
        Place::Result => in_part(message, message.result(), "result", name, &member),
        Place::ParamsMeta => in_meta(message, message.params(), Place::Params, name, &member),
        Place::ResultMeta => in_meta(message, message.result(), Place::Result, name, &member),
    }
}

fn in_meta(
    message: &Message,
    outer: Option<Span>,
    place: Place,
    name: &str,
    member: &str,
) -> Message {
    match outer.and_then(|outer| message.member(outer, "_meta")) {
        Some(meta) => insert(message, meta, name, member),
        None => with_member(message, place, "_meta", &format!("{{{member}}}")),
    }
}

fn in_part(
    message: &Message,
    part: Option<Span>,
    part_name: &str,
    name: &str,
    member: &str,
) -> Message {
    match part {
        Some(part) => insert(message, part, name, member),
        None => {
            let member = format!("\"{part_name}\":{{{member}}}");
            insert(message, Span::new(0, message.len()), part_name, &member)
        }
    }
}

fn insert(message: &Message, object: Span, name: &str, member: &str) -> Message {
    let text = message.slice(object);
    let Some(brace) = text.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return message.clone();
    };
    if text[brace] != b'{' || message.member(object, name).is_some() {
        return message.clone();
    }
    let is_empty = text[brace + 1..]
        .iter()
        .find(|byte| !byte.is_ascii_whitespace())
        == Some(&b'}');
    let comma = if is_empty { "" } else { "," };
    let at = object.start + brace + 1;
    let inserted = format!("{member}{comma}");
    let edit = [(Span::new(at, at), inserted.as_bytes())];
    message.splice(&edit).unwrap_or_else(|_| message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, place: Place) -> String {
        let message = Message::parse(text.to_owned());
        let changed = with_member(&message, place, "a", "1");
        String::from_utf8(changed.raw().to_vec()).unwrap()
    }

    #[test]
    fn a_member_is_put_first_and_its_object_is_made() {
        let cases = [
            (
                r#"{"id":1,"result":{ }}"#,
                Place::Result,
                r#"{"id":1,"result":{"a":1 }}"#,
            ),
            (
                r#"{"id":1,"result":{"b":2}}"#,
                Place::Result,
                r#"{"id":1,"result":{"a":1,"b":2}}"#,
            ),
            (
                r#"{"id":1,"result":{"a":2}}"#,
                Place::Result,
                r#"{"id":1,"result":{"a":2}}"#,
            ),
            (
                r#"{"method":"x","id":1}"#,
                Place::ParamsMeta,
                r#"{"params":{"_meta":{"a":1}},"method":"x","id":1}"#,
            ),
            (
                r#"{"method":"x","params":{"_meta":{"b":2}}}"#,
                Place::ParamsMeta,
                r#"{"method":"x","params":{"_meta":{"a":1,"b":2}}}"#,
            ),
            (
                r#"{"method":"x","params":[1]}"#,
                Place::Params,
                r#"{"method":"x","params":[1]}"#,
            ),
        ];
        for (text, place, expected) in cases {
            assert_eq!(added(text, place), expected);
        }
    }
}
