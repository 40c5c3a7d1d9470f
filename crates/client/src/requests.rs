//! One request and its answer: deadlines, progress, cancellation, and the rounds in which a server asks back.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ClientResult, GetExtensions, GetMeta, InputRequest,
    InputRequiredResult, InputResponses, NumberOrString, RequestId, ServerRequest, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{Peer, RoleClient, Service, ServiceError};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::error::ClientError;
use crate::transport::ProgressWatch;

/// How often a server may ask back before it answers.
const MAX_ROUNDS: usize = 32;

/// The pause before a round in which the server asks for nothing but time.
const ROUND_PAUSE: Duration = Duration::from_millis(100);

/// Tells the server when nobody waits for the answer any more.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    /// `None` once the answer is here.
    id: Option<RequestId>,
}

impl ProxyClient {
    /// Sends a request until the server answers it, which it may do with questions first. `build` makes the request
    /// from the answers to those.
    pub(crate) async fn exchange(
        &self,
        build: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
        options: &CallOptions,
    ) -> Result<ServerResult, ClientError> {
        let options = options.or(&self.options);
        let rounds = self.exchange_in_rounds(build, &options);
        within(options.max_time, rounds).await
    }

    async fn exchange_in_rounds(
        &self,
        build: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
        options: &CallOptions,
    ) -> Result<ServerResult, ClientError> {
        let (mut responses, mut state) = (None, None);
        for _ in 0..MAX_ROUNDS {
            let required = match self.request(build(responses, state), options).await? {
                ServerResult::InputRequiredResult(required) => required,
                result => return Ok(result),
            };
            responses = self.answer_questions(&required).await?;
            if responses.is_none() {
                tokio::time::sleep(ROUND_PAUSE).await;
            }
            state = required.request_state;
        }
        Err(ClientError::decode(
            "the server's answer",
            format!("it has asked for input {MAX_ROUNDS} times"),
        ))
    }

    /// Sends one request and waits for its answer.
    pub(crate) async fn request(
        &self,
        mut request: ClientRequest,
        options: &CallOptions,
    ) -> Result<ServerResult, ClientError> {
        let options = options.or(&self.options);
        let timeout = options.timeout.unwrap_or(self.inner.settings.timeout);
        let arrived = Arc::new(Notify::new());
        request.extensions_mut().insert(ProgressWatch {
            handler: options.progress,
            arrived: Arc::downgrade(&arrived),
        });
        if let Some(level) = self.inner.settings.log_level {
            request.get_meta_mut().set_log_level(level);
        }
        let peer = &self.inner.peer;
        let mut handle = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await?;
        let mut cancel = CancelOnDrop {
            peer,
            id: Some(handle.id.clone()),
        };
        let mut deadline = after(timeout);
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    cancel.id = None;
                    return answer.map_err(|_| ServiceError::TransportClosed)?.map_err(Into::into);
                }
                () = arrived.notified() => deadline = after(timeout),
                () = tokio::time::sleep_until(deadline) => {
                    if !self.inner.server_requests.is_answering() {
                        return Err(ClientError::Timeout { after: timeout });
                    }
                    // A person takes the time that a person takes.
                    deadline = after(timeout);
                }
            }
        }
    }

    async fn answer_questions(
        &self,
        required: &InputRequiredResult,
    ) -> Result<Option<InputResponses>, ClientError> {
        let questions = required.input_requests.clone().unwrap_or_default();
        if questions.is_empty() && required.request_state.is_none() {
            return Err(ClientError::decode(
                "the server's answer",
                "it asks for input but says not which",
            ));
        }
        let mut responses = InputResponses::new();
        for (key, question) in questions {
            let answer = self.answer_question(&key, question).await?;
            responses.insert(key, answer);
        }
        Ok(Some(responses).filter(|responses| !responses.is_empty()))
    }

    async fn answer_question(
        &self,
        key: &str,
        question: InputRequest,
    ) -> Result<Value, ClientError> {
        let request = match question {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => {
                return Err(ClientError::decode(
                    "the server's question",
                    "it is of an unknown kind",
                ));
            }
        };
        let id = NumberOrString::String(Arc::from(key));
        let context = RequestContext::new(id, self.inner.peer.clone());
        let handler = self.inner.server_requests.as_ref();
        let answer: ClientResult = handler
            .handle_request(request, context)
            .await
            .map_err(ServiceError::McpError)?;
        serde_json::to_value(answer).map_err(|error| ClientError::decode("our answer", error))
    }
}

/// The outcome of `work`, if it takes no longer than `max_time`.
pub(crate) async fn within<T>(
    max_time: Option<Duration>,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let Some(max_time) = max_time else {
        return work.await;
    };
    let in_time = tokio::time::timeout(max_time, work).await;
    in_time.unwrap_or(Err(ClientError::Timeout { after: max_time }))
}

/// The end of `timeout`. One that is too long to add up never ends.
fn after(timeout: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + YEARS)
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        // Without a runtime the connection has ended too.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), None);
            let _ = peer.notify_cancelled(params).await;
        });
    }
}
