//! The HTTP head that carried a message, laid out above its body: one header on a line, all of them folded together.

use mcp_proxy_session::{HttpHead, SseFields};

use super::pieces::push_plain;
use super::{BodyLine, TextPieceKind};

/// The lines of a head. The first one folds all others, and the last one is empty.
pub(super) fn lay_out(http: Option<&HttpHead>, sse: Option<&SseFields>) -> Vec<BodyLine> {
    let mut lines = Vec::new();
    if let Some(http) = http {
        lines.push(first_line(http));
        let headers = http.headers.iter();
        lines.extend(headers.map(|(name, value)| field(name, value)));
    }
    lines.extend(sse.and_then(event_line));
    if lines.is_empty() {
        return lines;
    }
    lines.push(BodyLine::default());
    let last = lines.len() - 1;
    if let Some(http) = http
        && last > 1
    {
        lines[0].opens = Some(last);
        lines[0].members = u32::try_from(http.headers.len()).unwrap_or(u32::MAX);
    }
    lines
}

/// `POST /mcp HTTP/1.1` or `HTTP/1.1 200`.
fn first_line(http: &HttpHead) -> BodyLine {
    let version = match http.version.as_str() {
        "" => "HTTP",
        version => version,
    };
    let text = match (&http.method, http.status) {
        (Some(method), _) => {
            let target = http.target.as_deref().unwrap_or_default();
            format!("{method} {target} {version}")
        }
        (None, Some(status)) => format!("{version} {status}"),
        (None, None) => version.to_owned(),
    };
    text_line(&text, TextPieceKind::Word)
}

fn field(name: &str, value: &str) -> BodyLine {
    let mut line = BodyLine {
        indent: 2,
        ..BodyLine::default()
    };
    push_plain(&mut line.pieces, name, TextPieceKind::Key);
    push_plain(&mut line.pieces, ": ", TextPieceKind::Punctuation);
    push_plain(&mut line.pieces, value, TextPieceKind::Text);
    line
}

/// `event: message, id: 7`, if the event has such fields.
fn event_line(sse: &SseFields) -> Option<BodyLine> {
    let fields = [
        ("event", sse.event.clone()),
        ("id", sse.id.clone()),
        ("retry", sse.retry.map(|retry| retry.to_string())),
        (
            "partial",
            sse.partial.then(|| "the stream ended in it".to_owned()),
        ),
    ];
    let fields = fields.into_iter();
    let fields: Vec<String> = fields
        .filter_map(|(name, value)| Some(format!("{name} {}", value?)))
        .collect();
    if fields.is_empty() {
        return None;
    }
    Some(field("(SSE event)", &fields.join(", ")))
}

fn text_line(text: &str, kind: TextPieceKind) -> BodyLine {
    let mut line = BodyLine::default();
    push_plain(&mut line.pieces, text, kind);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{BodyLayout, Folds, plain};

    fn response() -> HttpHead {
        HttpHead {
            status: Some(200),
            version: "HTTP/1.1".to_owned(),
            headers: vec![
                ("content-type".to_owned(), "text/event-stream".to_owned()),
                ("x-note".to_owned(), "a\u{1b}b".to_owned()),
            ],
            ..HttpHead::default()
        }
    }

    #[test]
    fn a_head_folds_is_searched_and_is_not_part_of_the_body() {
        let sse = SseFields {
            id: Some("7".to_owned()),
            ..SseFields::default()
        };
        let body = BodyLayout::of(b"{\"a\":[1]}");
        let whole = body.clone().below_head(Some(&response()), Some(&sse));
        assert_eq!(plain(&whole), plain(&body));
        assert!(whole.is_whole());
        assert_eq!(whole.find("event-stream", 0), Some(1));
        // Hostile text is shown as everywhere.
        assert!(!whole.lines()[2].text().contains('\u{1b}'));
        let mut folds = Folds::default();
        folds.toggle(0);
        let shown = whole.shown(&folds);
        assert_eq!(shown[..2], [0, 5]);
        assert_eq!(whole.summary(0), " … 2 headers");
        assert_eq!(whole.opener(2), Some(0));
        // The brackets of the body are where they are now.
        assert_eq!(whole.lines()[5].opens, Some(9));
    }

    #[test]
    fn no_head_no_lines() {
        let body = BodyLayout::of(b"{}");
        assert_eq!(body.clone().below_head(None, None), body);
    }
}
