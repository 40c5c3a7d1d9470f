//! Values as models write them, and results as servers send them, for the tools that the hub itself offers.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use crate::json;
use crate::json_text::push_compact;

/// What a parameter holds that takes an object.
pub enum ObjectValue {
    /// An object, or a string that holds one, which models tend to send.
    Object(Message),
    /// An empty string.
    Nothing,
    /// Something else.
    Other,
}

/// The object that `given` stands for.
pub fn object_value(given: &Bytes) -> ObjectValue {
    let text = match string_content(given) {
        Some(content) if content.trim_ascii().is_empty() => return ObjectValue::Nothing,
        Some(content) => content.into_owned().into(),
        None => given.clone(),
    };
    match json::parse(text) {
        Some(object) if is_object(&object, object.root()) => ObjectValue::Object(object),
        _ => ObjectValue::Other,
    }
}

/// A stdio server gets one message a line, and a client may have spread its own over several.
pub fn on_one_line(object: Message) -> Bytes {
    if !object
        .raw()
        .iter()
        .any(|byte| matches!(byte, b'\r' | b'\n'))
    {
        return object.into_raw();
    }
    let mut compact = Vec::new();
    push_compact(&mut compact, object.raw());
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
    if let Some(kind) = value.member(root, "resultType") {
        value.text_at(kind).filter(|kind| kind == "complete")?;
    }
    let array = value.member(root, name)?;
    (value.slice(array).first() == Some(&b'[')).then_some((value, array))
}

/// Whether the value at `span` is an object.
pub fn is_object(value: &Message, span: Span) -> bool {
    value.slice(span).first() == Some(&b'{')
}
