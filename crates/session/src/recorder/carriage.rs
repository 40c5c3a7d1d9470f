//! How a message was carried, as part of its line: HTTP heads and SSE fields, credentials masked.

use super::line::LineWriter;
use crate::json::{push_octets, push_string, push_u64};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use mcp_proxy_wire::frame::LineEnd;
use mcp_proxy_wire::{Carriage, SseEvent};

impl LineWriter {
    /// HTTP or SSE facts. Says whether the body is encoded (compressed), so that it is no text whatever it looks like.
    pub(super) fn carriage(&mut self, carriage: &Carriage) -> bool {
        match carriage {
            Carriage::Line(LineEnd::Lf) | Carriage::Message => false,
            Carriage::Line(end) => {
                self.word(
                    "eol",
                    if *end == LineEnd::CrLf {
                        "crlf"
                    } else {
                        "none"
                    },
                );
                false
            }
            Carriage::Request(parts) => {
                self.out.extend_from_slice(b",\"http\":{\"method\":");
                push_string(&mut self.out, parts.method.as_str());
                self.out.extend_from_slice(b",\"target\":");
                self.target(&parts.uri);
                self.version_and_headers(parts.version, &parts.headers);
                is_encoded(&parts.headers)
            }
            Carriage::Response(parts) => {
                self.out.extend_from_slice(b",\"http\":{\"status\":");
                push_u64(&mut self.out, u64::from(parts.status.as_u16()));
                self.version_and_headers(parts.version, &parts.headers);
                is_encoded(&parts.headers)
            }
            Carriage::Event(event) => {
                self.event(event);
                false
            }
        }
    }

    fn event(&mut self, event: &SseEvent) {
        self.out.extend_from_slice(b",\"sse\":{");
        let start = self.out.len();
        if let Some(id) = &event.id {
            self.key("id");
            push_string(&mut self.out, id);
        }
        if let Some(name) = &event.event {
            self.key("event");
            push_string(&mut self.out, name);
        }
        if let Some(retry) = event.retry {
            self.number("retry", retry);
        }
        if event.partial {
            self.out.extend_from_slice(b",\"partial\":true");
        }
        if self.out.len() > start {
            self.out.remove(start);
        }
        self.out.push(b'}');
    }

    fn target(&mut self, uri: &http::Uri) {
        if uri.query().is_none() && uri.authority().is_none() {
            push_string(&mut self.out, uri.path());
        } else {
            push_string(&mut self.out, &self.masks.url(&uri.to_string()));
        }
    }

    fn version_and_headers(&mut self, version: http::Version, headers: &HeaderMap) {
        self.out.extend_from_slice(match version {
            http::Version::HTTP_10 => b",\"version\":\"HTTP/1.0\",\"headers\":[",
            http::Version::HTTP_2 => b",\"version\":\"HTTP/2.0\",\"headers\":[",
            _ => b",\"version\":\"HTTP/1.1\",\"headers\":[",
        });
        for (index, (name, value)) in headers.iter().enumerate() {
            self.out
                .extend_from_slice(if index == 0 { b"[\"" } else { b",[\"" });
            // A header name is a token: nothing in it needs an escape.
            self.out.extend_from_slice(name.as_str().as_bytes());
            self.out.extend_from_slice(b"\",");
            match self.masks.header(name.as_str(), value.as_bytes()) {
                Some(masked) => push_string(&mut self.out, &masked),
                None => push_octets(&mut self.out, value.as_bytes()),
            }
            self.out.push(b']');
        }
        self.out.extend_from_slice(b"]}");
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
