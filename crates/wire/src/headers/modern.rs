//! The headers and status codes of revision 2026-07-28.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, MCP_PROTOCOL_VERSION, ParamHeader, decode_value,
    encode_value, remove_in_order,
};
use crate::message::whole_number;
use crate::revision::{meta, names_version};
use crate::{ErrorCode, Field, Kind, Message, Span, text};

/// Why the headers of a request do not fit its body. The answer is HTTP 400 and [`HeaderFault::CODE`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderFault {
    /// A header that the request needs is not there.
    Missing(HeaderName),
    /// A header is there more than once.
    Repeated(HeaderName),
    /// A header value is not text.
    Unreadable(HeaderName),
    /// Header and body say different things.
    Different {
        /// The header.
        header: HeaderName,
        /// What it says.
        found: String,
        /// What the body says.
        body: String,
    },
}

impl HeaderFault {
    /// The error code that answers it.
    pub const CODE: ErrorCode = ErrorCode::HEADER_MISMATCH;
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderFault::Missing(header) => write!(f, "the header {header} is missing"),
            HeaderFault::Repeated(header) => {
                write!(f, "the header {header} is given more than once")
            }
            HeaderFault::Unreadable(header) => {
                write!(f, "the value of the header {header} cannot be read")
            }
            HeaderFault::Different {
                header,
                found,
                body,
            } => {
                write!(
                    f,
                    "the header {header} says `{found}` and the body says `{body}`"
                )
            }
        }
    }
}

impl std::error::Error for HeaderFault {}

/// The field that `Mcp-Name` repeats for a method.
fn name_field(method: &str) -> Option<Field<'static>> {
    match method {
        "tools/call" | "prompts/get" => Some(Field::Name),
        "resources/read" | "resources/subscribe" => Some(Field::Uri),
        // tasks/result and tasks/list are gone: the server's own -32601 is the better answer.
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Field::Param("taskId")),
        _ => None,
    }
}

/// The headers that go with `message` when it is sent to a modern server: the version from its `_meta`, its method,
/// its name, and the arguments that `params` lists.
pub fn modern_request_headers(
    message: &Message,
    params: &[ParamHeader],
) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::new();
    if let Some(version) = message.text(Field::Meta(meta::PROTOCOL_VERSION)) {
        headers.push((MCP_PROTOCOL_VERSION, encode_value(&version)));
    }
    let Some(method) = message.method() else {
        return headers;
    };
    headers.push((MCP_METHOD, encode_value(&method)));
    if let Some(name) = name_field(&method).and_then(|field| message.text(field)) {
        headers.push((MCP_NAME, encode_value(&name)));
    }
    if method != "tools/call" || params.is_empty() {
        return headers;
    }
    let Some(arguments) = message.span(Field::Param("arguments")) else {
        return headers;
    };
    for param in params {
        let name = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{}", param.name).as_bytes());
        if let (Ok(name), Some(value)) = (name, argument(message, arguments, &param.path)) {
            headers.push((name, encode_value(&value)));
        }
    }
    headers
}

/// Makes the headers of a modern request say of `after` what they said of `before`, whose place it takes. Nothing happens
/// to those of a legacy request. Where `params` are not known, an edit of the same call leaves the header arguments alone.
pub fn update_headers_for_edit(
    headers: &mut HeaderMap,
    before: &Message,
    after: &Message,
    params: &[ParamHeader],
) {
    if !headers.contains_key(MCP_METHOD) && !names_version(after) {
        return;
    }
    let is_same_call =
        before.method() == after.method() && before.text(Field::Name) == after.text(Field::Name);
    let changes_params = !params.is_empty() || !is_same_call;
    let new = modern_request_headers(after, params);
    // What has a new value keeps its place.
    remove_in_order(headers, |name| {
        let is_param = || changes_params && name.as_str().starts_with(MCP_PARAM_PREFIX);
        let repeats_message = *name == MCP_METHOD || *name == MCP_NAME || is_param();
        repeats_message && !new.iter().any(|(it, _)| it == name)
    });
    for (name, value) in new {
        headers.insert(name, value);
    }
}

/// The scalar at `path` as header text. Nothing if it is absent, null or no scalar.
pub(super) fn argument(message: &Message, arguments: Span, path: &[String]) -> Option<String> {
    let place = path
        .iter()
        .try_fold(arguments, |object, key| message.member(object, key))?;
    let token = message.slice(place);
    if let Some(raw) = text::quoted(token) {
        return Some(text::text(raw).into_owned());
    }
    match token {
        b"true" | b"false" => String::from_utf8(token.to_vec()).ok(),
        // Servers compare with the plain decimal form.
        [b'-' | b'0'..=b'9', ..] => match whole_number(token) {
            Some(number) => Some(number.to_string()),
            None => String::from_utf8(token.to_vec()).ok(),
        },
        _ => None,
    }
}

/// Checks the headers of a request against its body. A notification may come without `Mcp-Method`, as real clients
/// send them, but what it carries must be right. `params` are the header arguments of the tool, as far as known.
pub fn check_modern_headers(
    headers: &HeaderMap,
    message: &Message,
    params: &[ParamHeader],
) -> Result<(), HeaderFault> {
    let needed = match message.kind() {
        Kind::Request => true,
        Kind::Notification => false,
        _ => return Ok(()),
    };
    // A request without the version in `_meta` is wrong as well, but that is for the server to say (-32602).
    let version = message.text(Field::Meta(meta::PROTOCOL_VERSION));
    check(headers, MCP_PROTOCOL_VERSION, version.as_deref(), needed)?;
    let Some(method) = message.method() else {
        return Ok(());
    };
    check(headers, MCP_METHOD, Some(&method), needed)?;
    if let Some(field) = name_field(&method) {
        let name = message.text(field);
        check(headers, MCP_NAME, name.as_deref(), needed && name.is_some())?;
    }
    if method == "tools/call"
        && let Some(arguments) = message.span(Field::Param("arguments"))
    {
        for param in params {
            check_param(headers, message, arguments, param)?;
        }
    }
    Ok(())
}

fn check_param(
    headers: &HeaderMap,
    message: &Message,
    arguments: Span,
    param: &ParamHeader,
) -> Result<(), HeaderFault> {
    let name = format!("{MCP_PARAM_PREFIX}{}", param.name);
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        return Ok(());
    };
    let value = argument(message, arguments, &param.path);
    check(headers, name, value.as_deref(), value.is_some())
}

fn check(
    headers: &HeaderMap,
    header: HeaderName,
    body: Option<&str>,
    needed: bool,
) -> Result<(), HeaderFault> {
    let mut values = headers.get_all(&header).iter();
    let Some(value) = values.next() else {
        return if needed {
            Err(HeaderFault::Missing(header))
        } else {
            Ok(())
        };
    };
    if values.next().is_some() {
        return Err(HeaderFault::Repeated(header));
    }
    let Some(found) = decode_value(value.as_bytes().trim_ascii()) else {
        return Err(HeaderFault::Unreadable(header));
    };
    match body {
        Some(body) if body != found => Err(HeaderFault::Different {
            header,
            found,
            body: body.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The HTTP status of a JSON-RPC answer. Bad parameters are 200 here: only the server knows whether its -32602 was
/// about `_meta`, which alone would make it 400.
pub fn modern_status(message: &Message) -> u16 {
    if message.kind() != Kind::Error {
        return 200;
    }
    match message.error_code().map(ErrorCode) {
        Some(ErrorCode::METHOD_NOT_FOUND) => 404,
        Some(
            ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CAPABILITY
            | ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::PARSE_ERROR
            | ErrorCode::INVALID_REQUEST,
        ) => 400,
        _ => 200,
    }
}
