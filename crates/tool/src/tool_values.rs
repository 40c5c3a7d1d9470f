//! Values as models write them, and results as servers send them, for the tools that the hub itself offers.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use crate::json;
use mcp_proxy_wire::json::push_compact;

/// What a parameter holds that takes an object.
pub enum ObjectValue {
    /// An object, or a string that holds one, which models tend to send.
    Object(Bytes),
    /// An empty string.
    Nothing,
    /// Something else.
    Other,
}

/// The object that `given`, a value of a message, stands for.
pub fn object_value(given: &Bytes) -> ObjectValue {
    let text = match string_content(given) {
        Some(content) if content.trim_ascii().is_empty() => return ObjectValue::Nothing,
        Some(content) => content.into_owned(),
        None if given.first() == Some(&b'{') => return ObjectValue::Object(given.clone()),
        None => return ObjectValue::Other,
    };
    match json::parse(text) {
        Some(object) if is_object(&object, object.root()) => ObjectValue::Object(object.into_raw()),
        _ => ObjectValue::Other,
    }
}

/// A stdio server gets one message a line, and a client may have spread its own over several.
pub fn on_one_line(object: Bytes) -> Bytes {
    if memchr::memchr2(b'\r', b'\n', &object).is_none() {
        return object;
    }
    let mut compact = Vec::new();
    push_compact(&mut compact, &object);
    compact.into()
}

/// The whole number that the JSON value `token` is, or that it holds as a string: `2`, `2.0` and `" 2 "` are 2. What is
/// too large for an `i64` is the largest.
pub fn whole_number(token: &[u8]) -> Option<i64> {
    let digits = string_content(token).unwrap_or(token.into());
    let digits = std::str::from_utf8(&digits).ok()?.trim();
    if let Ok(number) = digits.parse() {
        return Some(number);
    }
    let is_numeral = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let number: f64 = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(is_numeral))?;
    (number.fract() == 0.0).then_some(number as i64)
}

/// The result and its array `name`, if it is a result that has one and is not on its way to something else.
pub fn finished(result: &Bytes, name: &str) -> Option<(Message, Span)> {
    let value = json::parse(result.clone())?;
    let root = value.root();
    if !is_object(&value, root) {
        return None;
    }
    let [kind, array] = value.members(root, ["resultType", name]);
    let array = array.filter(|array| is_finished(&value, kind, *array))?;
    Some((value, array))
}

/// Whether a result with this `resultType` and this array is finished.
pub fn is_finished(value: &Message, kind: Option<Span>, array: Span) -> bool {
    let is_complete = |kind| value.text_at(kind).is_some_and(|kind| kind == "complete");
    kind.is_none_or(is_complete) && value.slice(array).first() == Some(&b'[')
}

/// Whether the value at `span` is an object.
pub fn is_object(value: &Message, span: Span) -> bool {
    value.slice(span).first() == Some(&b'{')
}
