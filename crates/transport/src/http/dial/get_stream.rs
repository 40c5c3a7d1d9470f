//! The GET stream of a legacy session, and streams that are taken up again with `Last-Event-ID`.

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode};
use mcp_proxy_wire::Id;
use mcp_proxy_wire::headers::{self, LAST_EVENT_ID};
use tokio::time::sleep;

use super::super::outgoing_body::OutgoingBody;
use super::HttpLink;
use super::answers::{StreamEnd, http_failure};

const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// A POST's stream is taken up again this often before its request is given up.
const RESUMES_MAX: usize = 10;

/// What became of a GET.
enum GetOutcome {
    /// The stream was open and has ended.
    Ended(StreamEnd),
    /// The server offers no stream (now).
    Refused(StatusCode),
    /// There is no server (now).
    Unreachable,
}

impl HttpLink {
    /// Opens the GET stream in a task of its own. A server that has none answers 405, which is fine.
    pub(super) fn open_get(self: &Arc<Self>) {
        let link = Arc::clone(self);
        let task = tokio::spawn(async move { link.run_get().await });
        self.state.set_get(task.abort_handle());
    }

    async fn run_get(self: Arc<Self>) {
        let mut last_event_id: Option<String> = None;
        let mut pause = RETRY_FIRST;
        let mut was_open = false;
        loop {
            let generation = self.state.generation();
            match self
                .get(last_event_id.as_deref(), None, &mut Vec::new())
                .await
            {
                GetOutcome::Ended(end) => {
                    was_open = true;
                    pause = end
                        .retry_ms
                        .map_or(RETRY_FIRST, Duration::from_millis)
                        .min(RETRY_MAX);
                    last_event_id = end.last_event_id.or(last_event_id);
                }
                GetOutcome::Refused(StatusCode::NOT_FOUND) if was_open && self.can_reopen() => {
                    // If it cannot be opened again, the client's next message hears of it.
                    if self.reopen(generation).await.is_err() {
                        return;
                    }
                    (last_event_id, pause, was_open) = (None, RETRY_FIRST, false);
                    continue;
                }
                GetOutcome::Refused(_) if !was_open => return,
                GetOutcome::Refused(_) | GetOutcome::Unreachable => {
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
            sleep(pause).await;
        }
    }

    /// One GET, read to its end; answered ids leave `open`.
    async fn get(
        &self,
        last_event_id: Option<&str>,
        method: Option<&str>,
        open: &mut Vec<Id>,
    ) -> GetOutcome {
        let mut headers = self.headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let url = self.client.remote.url().clone();
        let sent = self
            .client
            .send(Method::GET, url, headers, OutgoingBody::empty());
        let Ok(response) = sent.await else {
            return GetOutcome::Unreachable;
        };
        if !response.status().is_success() || !headers::is_sse(response.headers()) {
            return GetOutcome::Refused(response.status());
        }
        let body = response.into_body();
        GetOutcome::Ended(self.read_events(body, method, open).await)
    }

    /// A POST's stream ended before its answers came: take it up where it stood, if the server gave event ids.
    pub(super) async fn resume(&self, mut end: StreamEnd, method: Option<&str>, mut open: Vec<Id>) {
        for _ in 0..RESUMES_MAX {
            let Some(id) = end.last_event_id.clone() else {
                break;
            };
            let pause = end.retry_ms.map_or(RETRY_FIRST, Duration::from_millis);
            sleep(pause.min(RETRY_MAX)).await;
            let next = match self.get(Some(&id), method, &mut open).await {
                GetOutcome::Ended(next) => next,
                GetOutcome::Refused(_) => break,
                GetOutcome::Unreachable => continue,
            };
            if open.is_empty() {
                return;
            }
            end.last_event_id = next.last_event_id.or(end.last_event_id);
            end.retry_ms = next.retry_ms.or(end.retry_ms);
        }
        let text = "the server's stream ended before the answer came".to_owned();
        self.answers.fail(&open, &http_failure(text)).await;
    }
}
