//! A recorded message as a `curl` command line, to send it once more from any shell.
//!
//! The command is text to be copied, nothing is run here. What `curl` would add or read in by itself is ruled out: a body that
//! begins with `@` is a body and no file's name, and no header comes along that was not there.

use super::shell::quote;
use mcp_proxy_session::{HttpHead, ProxyMessage, REDACTED_CREDENTIAL, RawBody};
use mcp_proxy_wire::headers::modern_request_headers;
use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{Direction, Message};

/// Headers that are about the connection of that time (RFC 9110 section 7.6.1), or that `curl` makes itself.
const NOT_AGAIN: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Linux takes no longer argument than 128 KiB.
const LONGEST: usize = 120 * 1024;

/// The command that sends a client's message to `url` again, as it was forwarded to the server. A comment above it counts the values that
/// the record masks. An error says in a few words why there is no such command.
pub(crate) fn curl(message: &ProxyMessage, url: &str) -> Result<String, String> {
    if message.direction == Direction::ServerToClient {
        return Err(
            "this message is from the server; curl can only send messages from a client".to_owned(),
        );
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("curl needs an http:// or https:// URL to send to".to_owned());
    }
    let mut command = CurlCommand::to(url)?;
    match &message.http {
        Some(http) => command.request(http, !message.raw.is_empty())?,
        None => command.posting(&message.raw)?,
    }
    command.body(&message.raw)?;
    Ok(command.with_comment(message.redacted))
}

/// The options of a command, one a line.
struct CurlCommand(Vec<String>);

impl CurlCommand {
    fn to(url: &str) -> Result<CurlCommand, String> {
        let word = quote(url).map_err(|why| format!("the URL: {why}"))?;
        let mut options = vec![format!("curl --no-buffer {word}")];
        if url.contains(['[', ']', '{', '}']) {
            options.push("--globoff".to_owned());
        }
        Ok(CurlCommand(options))
    }

    /// The head of a request that came over HTTP.
    fn request(&mut self, http: &HttpHead, has_body: bool) -> Result<(), String> {
        let method = http.method.as_deref().unwrap_or("POST");
        let by_itself = if has_body { "POST" } else { "GET" };
        if method != by_itself {
            self.0.push(format!("--request {}", quote(method)?));
        }
        let of_connection = http.header("connection").unwrap_or_default();
        let is_left_out = |name: &str| {
            let named = of_connection.split(',').map(str::trim);
            NOT_AGAIN.contains(&name) || named.clone().any(|named| named.eq_ignore_ascii_case(name))
        };
        for (name, value) in &http.headers {
            match name.as_str() {
                // It would come back compressed and be shown like that.
                "accept-encoding" => self.0.push("--compressed".to_owned()),
                name if is_left_out(name) || !is_header_name(name) => {}
                name => self.header(name, value)?,
            }
        }
        for added in ["accept", "content-type"] {
            let would_be = added == "accept" || has_body;
            if would_be && http.header(added).is_none() {
                self.0.push(format!("--header '{added}:'"));
            }
        }
        Ok(())
    }

    /// The head of a request for a message that came some other way, as a client of Streamable HTTP would write it.
    fn posting(&mut self, raw: &RawBody) -> Result<(), String> {
        self.header("accept", "application/json, text/event-stream")?;
        self.header("content-type", "application/json")?;
        let Some(bytes) = raw.bytes() else {
            return Ok(());
        };
        let message = Message::parse(bytes.to_vec());
        if names_version(&message) {
            for (name, value) in modern_request_headers(&message, &[]) {
                self.header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))?;
            }
        }
        Ok(())
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), String> {
        // `name:` would take a header away; `name;` is how curl writes one without a value.
        let line = if value.is_empty() {
            format!("{name};")
        } else {
            format!("{name}: {value}")
        };
        let word = quote(&line).map_err(|why| format!("the header {name}: {why}"))?;
        self.0.push(format!("--header {word}"));
        Ok(())
    }

    fn body(&mut self, raw: &RawBody) -> Result<(), String> {
        let text = match raw {
            RawBody::NotStored { .. } => return Err("the body is not in the record".to_owned()),
            RawBody::Binary(_) => return Err("the body is not text".to_owned()),
            RawBody::Text(text) => text,
            RawBody::Json(bytes) => {
                std::str::from_utf8(bytes).map_err(|_| "the body is not text")?
            }
        };
        if text.is_empty() {
            return Ok(());
        }
        let word = quote(text).map_err(|why| format!("the body: {why}"))?;
        if word.len() > LONGEST {
            let len = text.len();
            return Err(format!(
                "the body of {len} bytes is too long for a command line"
            ));
        }
        let option = if text.starts_with('@') {
            "--data-raw"
        } else {
            "--data-binary"
        };
        self.0.push(format!("{option} {word}"));
        Ok(())
    }

    fn with_comment(self, redacted: u32) -> String {
        let command = self.0.join(" \\\n  ");
        let masked = command.matches(REDACTED_CREDENTIAL).count();
        match masked + redacted as usize {
            0 => command,
            1 => format!("# 1 value is masked in the record: put it in first\n{command}"),
            more => {
                format!("# {more} values are masked in the record: put them in first\n{command}")
            }
        }
    }
}

/// Whether it can be the name of a header at all: a record that was imported can say anything.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}
