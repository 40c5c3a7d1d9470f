//! Header values that stand for text that a header cannot hold.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// `text` as a header value: as it is if it is printable ASCII without blanks at its ends, else as `=?base64?…?=`.
/// Text that looks like that form is encoded too, so that it reads back as what it is.
pub fn encode_value(text: &str) -> HeaderValue {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    if printable
        && !padded
        && !encoded
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    let wrapped = format!("{OPEN}{}{CLOSE}", STANDARD.encode(text));
    // Only printable ASCII was put together, which any header value may hold.
    HeaderValue::from_str(&wrapped).unwrap_or(HeaderValue::from_static(""))
}

/// The text that a header value stands for. Nothing if it is not text or its base64 is broken.
pub fn decode_value(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    match text
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}
