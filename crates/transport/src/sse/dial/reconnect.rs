//! The event stream has ended: another one is opened, and on it a session as the client opened the first.

use std::time::Duration;

use http::Uri;
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::{Body, Direction, ErrorCode, Id, Message, Side};
use tokio::time::{timeout, timeout_at};

use super::SseSession;
use super::stream::SseServerStream;
use crate::http::dial::status_text;
use crate::reopen_attempts::{ReopenAttempts, ReopenError};
use crate::session_opening::check_reopened;

/// The answer to `initialize` and the like.
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);

impl SseSession {
    /// Opens another stream and another session in place of those that ended like this. `Err`: how the link ends.
    pub(super) async fn reconnect(
        &self,
        end: LinkEnd,
        attempts: &mut ReopenAttempts,
    ) -> Result<SseServerStream, LinkEnd> {
        let is_closed =
            matches!(&end, LinkEnd::Failed(failure) if failure.code == ErrorCode::SERVER_EXITED);
        let can_open = self
            .memory()
            .is_some_and(|memory| memory.opening.is_complete());
        if !(is_closed && can_open) {
            return Err(end);
        }
        // What the client sends meanwhile waits for the new endpoint.
        let mut endpoint = self.endpoint.write().await;
        self.client
            .connection
            .warn("the server closed its event stream; the proxy connects again");
        self.fail_unanswered().await;
        let deadline = attempts.deadline();
        let mut last = "it keeps closing its streams, or does not answer".to_owned();
        while attempts.wait().await {
            match timeout_at(deadline, Box::pin(self.open_again())).await {
                Ok(Ok((stream, opened))) => {
                    *endpoint = opened;
                    self.client
                        .connection
                        .warn("the proxy opened the session again");
                    return Ok(stream);
                }
                Ok(Err(ReopenError::Later(why))) => last = why,
                Ok(Err(ReopenError::Never(why))) => return Err(gone(&why)),
                Err(_) => break,
            }
        }
        Err(gone(&last))
    }

    /// The server may have carried these out or not: they are not sent again.
    async fn fail_unanswered(&self) {
        let lost: Vec<Id> = match self.memory() {
            Some(mut memory) => memory.unanswered.drain().map(|(_, id)| id).collect(),
            None => return,
        };
        let open = self
            .client
            .connection
            .open_requests(Direction::ClientToServer);
        let mut lost: Vec<_> = open
            .iter()
            .filter(|asked| lost.contains(&asked.id))
            .collect();
        lost.sort_by_key(|asked| asked.sequence);
        let lost: Vec<Id> = lost.into_iter().map(|asked| asked.id.clone()).collect();
        let text =
            "the server closed its event stream before it answered; it may have carried this out";
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, text);
        self.answers.fail(&lost, &end).await;
    }

    async fn open_again(&self) -> Result<(SseServerStream, Uri), ReopenError> {
        let later = |end: LinkEnd| ReopenError::Later(end.to_string());
        let opened = SseServerStream::open(&self.client, self.max).await;
        let (mut stream, endpoint) = opened.map_err(later)?;
        let (initialize, initialized, settings, agreed) = {
            let gone = || ReopenError::Never("its options are gone".to_owned());
            let mut memory = self.memory().ok_or_else(gone)?;
            let initialize = memory.opening.initialize();
            let initialized = memory.opening.initialized();
            let settings = memory.opening.settings();
            (
                initialize.ok_or_else(gone)?,
                initialized,
                settings,
                memory.agreed.clone(),
            )
        };
        let answer = self.ask(&mut stream, &endpoint, &initialize).await?;
        check_reopened(&answer, agreed.as_deref()).map_err(ReopenError::Never)?;
        if let Some(initialized) = initialized {
            self.answers
                .tell(initialized.clone(), self.deliver(&endpoint, initialized))
                .await?;
        }
        for message in settings {
            if let Err(error) = self.ask(&mut stream, &endpoint, &message).await {
                self.answers.warn_unset(&message, &error);
            }
        }
        Ok((stream, endpoint))
    }

    /// Sends a request of the proxy's own and reads on until its answer comes. What else comes is for the client.
    async fn ask(
        &self,
        stream: &mut SseServerStream,
        endpoint: &Uri,
        message: &Message,
    ) -> Result<Message, ReopenError> {
        let _counted = self.count_own();
        let id = message.id().unwrap_or_else(|| Id::from_token(b"null"));
        let asked = async {
            self.deliver(endpoint, message.clone()).await?;
            loop {
                let frame = stream.next().await.map_err(|end| end.to_string())?;
                if let Body::Message(message) = frame.body
                    && let Some(answer) = self.answers.take_own(&id, frame.envelope, message).await
                {
                    return Ok(answer);
                }
            }
        };
        let answer = async {
            let asked = timeout(ANSWER_DEADLINE, asked).await;
            let asked = asked.unwrap_or_else(|_| Err("the server did not answer".to_owned()));
            asked.map_err(ReopenError::Later)
        };
        self.answers.ask(message.clone(), answer).await
    }

    async fn deliver(&self, endpoint: &Uri, message: Message) -> Result<(), String> {
        let sent = self.post(endpoint.clone(), message, None).await;
        let status = sent.map_err(|end| end.to_string())?.status();
        match status.is_success() {
            true => Ok(()),
            false => Err(status_text(status)),
        }
    }

    fn count_own(&self) -> CountedOwn<'_> {
        if let Some(mut memory) = self.memory() {
            memory.own += 1;
        }
        CountedOwn(self)
    }
}

/// Counts a request of the proxy's own as open until it is dropped.
struct CountedOwn<'a>(&'a SseSession);

impl Drop for CountedOwn<'_> {
    fn drop(&mut self) {
        if let Some(mut memory) = self.0.memory() {
            memory.own -= 1;
        }
    }
}

fn gone(why: &str) -> LinkEnd {
    let text =
        format!("the server closed its event stream, and no new session could be opened: {why}");
    LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, text)
}
