//! The HTTP head of a held message as text above its body: one header on a line, and an empty line below them.

use mcp_proxy_control::HeaderPatch;
use mcp_proxy_session::HttpHead;
use mcp_proxy_wire::terminal_text::sanitize;

use super::JsonSyntaxError;

/// A head that can be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadText {
    /// `POST /mcp` or `200`: shown, and not to be changed.
    first_line: String,
    headers: Vec<(String, String)>,
}

impl HeadText {
    /// A head as it was recorded.
    pub fn of(head: &HttpHead) -> HeadText {
        let first_line = match (&head.method, head.status) {
            (Some(method), _) => {
                format!("{method} {}", head.target.as_deref().unwrap_or_default())
            }
            (None, Some(status)) => status.to_string(),
            (None, None) => "HTTP".to_owned(),
        };
        let headers = head.headers.iter();
        HeadText {
            first_line: sanitize(&first_line),
            headers: headers
                .map(|(name, value)| (name.clone(), sanitize(value)))
                .collect(),
        }
    }

    /// The head of a request that the proxy makes, whose own headers are not known here: others can be set.
    pub fn of_made_request() -> HeadText {
        HeadText {
            first_line: "POST (made by the proxy; set headers below, as `name: value`)".to_owned(),
            headers: Vec::new(),
        }
    }

    /// The head and a body, to be edited.
    pub fn above(&self, body: &str) -> String {
        let headers = self.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        format!("{}\n{headers}\n{body}", self.first_line)
    }

    /// How an edited head differs. `lines` are those above the empty line.
    pub(super) fn patch(&self, lines: &[String]) -> Result<HeaderPatch, JsonSyntaxError> {
        let fault = |line: usize, why: &str| JsonSyntaxError {
            line: line + 1,
            column: 1,
            why: why.to_owned(),
        };
        if lines.first() != Some(&self.first_line) {
            return Err(fault(0, "the first line of the head cannot be changed"));
        }
        let mut edited = Vec::new();
        for (index, line) in lines.iter().enumerate().skip(1) {
            let header = line.split_once(':');
            let header = header.filter(|(name, _)| !name.is_empty() && !name.contains(' '));
            let Some((name, value)) = header else {
                return Err(fault(index, "not a header: write `name: value`"));
            };
            edited.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(HeaderPatch::between(&self.headers, &edited))
    }
}

/// Where the body begins: after the first empty line.
pub(super) fn body_start(lines: &[String]) -> usize {
    let empty = lines.iter().position(|line| line.trim().is_empty());
    empty.map_or(lines.len(), |line| line + 1)
}
