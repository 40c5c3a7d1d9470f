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
        let answer = match (response, request) {
            (Some(response), _) => AnswerTime::of(response),
            (None, Some(request)) => first_answer(session, request, events)?,
            (None, None) => AnswerTime::default(),
        };
        let held = answer
            .request_held
            .or_else(|| request.and_then(|request| request.held))
            .unwrap_or_default()
            .min(total);
        let rest = total - held;
        let wait = answer.latency.unwrap_or(rest).min(rest);
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

/// What an answer tells about its time.
#[derive(Default)]
struct AnswerTime {
    latency: Option<Duration>,
    request_held: Option<Duration>,
}

impl AnswerTime {
    fn of(answer: &ProxyMessage) -> AnswerTime {
        AnswerTime {
            latency: answer.latency,
            request_held: answer.request_held,
        }
    }
}

/// The answer to a request among the events of its stream.
fn first_answer(
    session: &SessionRecord,
    request: &ProxyMessage,
    events: &[HarLine],
) -> Result<AnswerTime, Error> {
    for event in events {
        let HarLine::Row(row) = event else { continue };
        let row = *row as usize;
        let has_latency = session.row(row).is_some_and(|row| row.latency().is_some());
        if has_latency {
            let message = session.message(row)?;
            if message.answers == Some(request.sequence) {
                return Ok(AnswerTime::of(&message));
            }
        }
    }
    Ok(AnswerTime::default())
}

/// Milliseconds, as JSON.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
