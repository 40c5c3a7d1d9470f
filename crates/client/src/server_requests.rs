//! What servers ask of a client: a person's answer, a model's answer, the folders it may use.

// Sampling and roots are deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    Implementation, ListRootsResult, Root,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send>>;

/// Answers a server's question to the user.
pub(crate) type ElicitationHandler =
    Arc<dyn Fn(ElicitRequestParams) -> Answer<ElicitResult> + Send + Sync>;

/// Answers a server's request to the model.
pub(crate) type SamplingHandler =
    Arc<dyn Fn(CreateMessageRequestParams) -> Answer<CreateMessageResult> + Send + Sync>;

/// What the client says about itself, and who answers the server's requests.
pub(crate) struct ServerRequests {
    pub(crate) implementation: Implementation,
    pub(crate) elicitation: Option<ElicitationHandler>,
    pub(crate) sampling: Option<SamplingHandler>,
    pub(crate) roots: Option<Vec<Root>>,
    /// How many requests are being answered.
    pub(crate) open: AtomicUsize,
}

/// Counts a request as open.
struct OpenRequest<'a>(&'a AtomicUsize);

impl ServerRequests {
    /// Whether the server waits for an answer of ours. Its own answer cannot come before that.
    pub(crate) fn is_answering(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    fn open(&self) -> OpenRequest<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(&self.open)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for `answer` until the server cancels its request.
async fn unless_cancelled<T>(
    answer: Answer<T>,
    context: &RequestContext<RoleClient>,
) -> Result<T, ErrorData> {
    tokio::select! {
        answer = answer => answer,
        () = context.ct.cancelled() => {
            Err(ErrorData::internal_error("the request was cancelled", None))
        }
    }
}

impl ClientHandler for ServerRequests {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let _open = self.open();
        match &self.elicitation {
            Some(handler) => unless_cancelled(handler(request), &context).await,
            None => Ok(ElicitResult::new(ElicitationAction::Decline)),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let _open = self.open();
        match &self.sampling {
            Some(handler) => unless_cancelled(handler(params), &context).await,
            None => Err(ErrorData::method_not_found::<CreateMessageRequestMethod>()),
        }
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.clone().unwrap_or_default()))
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.elicitation.is_some() {
            capabilities.elicitation = Some(Default::default());
        }
        if self.sampling.is_some() {
            capabilities.sampling = Some(Default::default());
        }
        if self.roots.is_some() {
            capabilities.roots = Some(Default::default());
        }
        ClientConfig::new(capabilities, self.implementation.clone())
    }
}
