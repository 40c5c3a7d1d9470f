//! Where the time of an entry went: held at the proxy, the server's own time, and the rest of the stream.

use super::plan::HarLine;
use crate::{Error, ProxyMessage, SessionRecord};
use std::time::Duration;

/// The parts of an entry's time. Together they are all of it, as HAR wants it.
pub(super) struct Timings {
    held: Duration,
    wait: Duration,
    receive: Duration,
}

impl Timings {
    /// `total` is the time from the request to the last thing that came.
    pub(super) fn new(
        session: &SessionRecord,
        total: Duration,
        request: Option<&ProxyMessage>,
        response: Option<&ProxyMessage>,
        events: &[HarLine],
    ) -> Result<Timings, Error> {
        let mut answer = response.map(|message| (message.latency, message.request_held));
        if let (None, Some(request)) = (answer, request) {
            answer = first_answer(session, request, events)?;
        }
        let (latency, held) = answer.unwrap_or_default();
        let held = held
            .or_else(|| request.and_then(|request| request.held))
            .unwrap_or_default()
            .min(total);
        let rest = total - held;
        let wait = latency.unwrap_or(rest).min(rest);
        Ok(Timings {
            held,
            wait,
            receive: rest - wait,
        })
    }

    /// The members of the entry. HAR calls time before sending `blocked`.
    pub(super) fn members(&self) -> String {
        let (held, wait, receive) = (millis(self.held), millis(self.wait), millis(self.receive));
        let (blocked, apart) = match self.held.is_zero() {
            true => (String::new(), String::new()),
            false => (
                format!("\"blocked\":{held},"),
                format!(",\"_heldMs\":{held}"),
            ),
        };
        format!(
            ",\"cache\":{{}},\"timings\":{{{blocked}\"send\":0,\"wait\":{wait},\"receive\":{receive}}}{apart}"
        )
    }
}

/// Latency and hold time of the answer among the events of a stream.
fn first_answer(
    session: &SessionRecord,
    request: &ProxyMessage,
    events: &[HarLine],
) -> Result<Option<(Option<Duration>, Option<Duration>)>, Error> {
    for event in events {
        let HarLine::Row(row) = event else { continue };
        let row = *row as usize;
        let has_latency = session.row(row).is_some_and(|row| row.latency().is_some());
        if has_latency {
            let message = session.message(row)?;
            if message.answers == Some(request.sequence) {
                return Ok(Some((message.latency, message.request_held)));
            }
        }
    }
    Ok(None)
}

/// Milliseconds, as JSON.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
