//! The events of an answer.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sse_stream::{Sse, SseStream};

use super::super::kept_facts::keep_facts;
use super::EventStream;

/// Counts the bytes of the current event, which ends with an empty line.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line: usize,
}

/// The events in `body`, each of at most `max_event` bytes.
pub(super) fn stream(body: Incoming, max_event: usize) -> EventStream {
    let mut size = EventSize::default();
    let chunks = body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        if size.add(&chunk) > max_event {
            return Err(io::Error::other(format!(
                "an event is larger than {max_event} bytes"
            )));
        }
        Ok::<Bytes, io::Error>(chunk)
    });
    SseStream::from_bytes_stream(chunks)
        .map(|event| event.map(keep_facts_of_event))
        .boxed()
}

impl EventSize {
    /// The largest size that the current event, or one that ends in `chunk`, has reached.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.bytes;
        for byte in chunk {
            match byte {
                b'\n' if self.line == 0 => self.bytes = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => {
                    self.line += 1;
                    self.bytes += 1;
                    largest = largest.max(self.bytes);
                }
            }
        }
        largest
    }
}

fn keep_facts_of_event(mut event: Sse) -> Sse {
    if let Some(data) = &event.data
        && let std::borrow::Cow::Owned(kept) = keep_facts(data.as_bytes())
        && let Ok(kept) = String::from_utf8(kept)
    {
        event.data = Some(kept);
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
