//! How a message was carried, as part of its line: HTTP heads and SSE fields, credentials masked.

use super::line::RecordLineWriter;
use crate::credential_redaction::REDACTED_CREDENTIAL;
use crate::json::{push_octets, push_string, push_u64};
use crate::redact::repeats_body;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use mcp_proxy_wire::LineEnd;
use mcp_proxy_wire::{SseEvent, TransportEnvelope};

impl RecordLineWriter {
    /// HTTP or SSE facts. Says whether the body is encoded (compressed), so that it is not text whatever it looks like.
    pub(super) fn envelope(&mut self, envelope: &TransportEnvelope) -> bool {
        match envelope {
            TransportEnvelope::Line(LineEnd::Lf) | TransportEnvelope::Bare => false,
            TransportEnvelope::Line(end) => {
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
            TransportEnvelope::Request(parts) => {
                self.out.extend_from_slice(b",\"http\":{\"method\":");
                push_string(&mut self.out, parts.method.as_str());
                self.out.extend_from_slice(b",\"target\":");
                self.target(&parts.uri);
                self.version_and_headers(parts.version, &parts.headers);
                is_encoded(envelope)
            }
            TransportEnvelope::Response(parts) => {
                self.out.extend_from_slice(b",\"http\":{\"status\":");
                push_u64(&mut self.out, u64::from(parts.status.as_u16()));
                self.version_and_headers(parts.version, &parts.headers);
                is_encoded(envelope)
            }
            TransportEnvelope::Event(event) => {
                self.event(event);
                false
            }
        }
    }

    fn event(&mut self, event: &SseEvent) {
        self.out.extend_from_slice(b",\"sse\":{");
        let start = self.out.len();
        for (key, value) in [("id", &event.id), ("event", &event.event)] {
            if let Some(value) = value {
                self.key(key);
                self.masked(value.as_bytes());
            }
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
        if uri.query().is_none() && uri.authority().is_none() && self.redaction.is_none() {
            push_string(&mut self.out, uri.path());
        } else {
            let text = uri.to_string();
            let shown = self.masks.url(&text);
            self.masked(shown.as_bytes());
        }
    }

    /// A header's value that holds no credential by its name.
    fn header_value(&mut self, name: &str, value: &[u8]) {
        let Some(redaction) = &self.redaction else {
            return push_octets(&mut self.out, value);
        };
        if (self.body_hidden && repeats_body(name)) || redaction.names_header(name) {
            push_string(&mut self.out, REDACTED_CREDENTIAL);
        } else {
            self.masked(value);
        }
    }

    /// A string from outside the body. What redaction hides there reads as other masked credentials do.
    fn masked(&mut self, text: &[u8]) {
        let masked = self
            .redaction
            .as_ref()
            .and_then(|redaction| redaction.masked(text));
        push_octets(&mut self.out, masked.as_deref().unwrap_or(text));
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
                None => self.header_value(name.as_str(), value.as_bytes()),
            }
            self.out.push(b']');
        }
        self.out.extend_from_slice(b"]}");
    }
}

/// Whether the body is compressed.
pub(super) fn is_encoded(envelope: &TransportEnvelope) -> bool {
    let headers = match envelope {
        TransportEnvelope::Request(parts) => &parts.headers,
        TransportEnvelope::Response(parts) => &parts.headers,
        TransportEnvelope::Line(_) | TransportEnvelope::Bare | TransportEnvelope::Event(_) => {
            return false;
        }
    };
    headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
