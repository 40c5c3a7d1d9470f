//! The events of an answer.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sse_stream::{Sse, SseStream};

use super::super::MAX_MESSAGE;
use super::super::answers::read_answer;
use super::EventStream;

/// Counts the bytes of the current event, which ends with an empty line.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line: usize,
}

/// The events in `body`, each of at most [`MAX_MESSAGE`] bytes.
pub(super) fn stream(body: Incoming) -> EventStream {
    let mut size = EventSize::default();
    let chunks = body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        if size.add(&chunk) > MAX_MESSAGE {
            return Err(io::Error::other(format!(
                "an event is larger than {MAX_MESSAGE} bytes"
            )));
        }
        Ok::<Bytes, io::Error>(chunk)
    });
    SseStream::from_bytes_stream(chunks)
        .map(|event| event.map(with_readable_answer))
        .boxed()
}

impl EventSize {
    /// The largest size that the current event, or one that ends in `chunk`, has reached.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.bytes;
        let mut rest = chunk;
        loop {
            let end = memchr::memchr(b'\n', rest);
            let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let length = line.strip_suffix(b"\r").unwrap_or(line).len();
            self.line += length;
            self.bytes += length;
            largest = largest.max(self.bytes);
            let Some((_, next)) = behind.split_first() else {
                return largest;
            };
            if self.line == 0 {
                self.bytes = 0;
            }
            self.line = 0;
            rest = next;
        }
    }
}

/// The event with an answer that rmcp, which parses it again, takes.
fn with_readable_answer(mut event: Sse) -> Sse {
    if let Some(data) = &event.data
        && let Some(answer) = read_answer(data.as_bytes())
        && answer.is_repaired
        && let Ok(data) = serde_json::to_string(&answer.message)
    {
        event.data = Some(data);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_event_starts_again_after_an_empty_line() {
        let mut size = EventSize::default();
        assert_eq!(size.add(b"data: 12345\r\n\r\ndata: 1\n\n"), 11);
        assert_eq!(size.add(b"data: 1"), 7);
        assert_eq!(size.add(b"23"), 9);
        assert_eq!(size.add(b"\n\n:"), 9);
    }
}
