//! The requests that rmcp makes, and what became of them: its errors are free text that may quote a peer.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use http::{Method, Response, StatusCode};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use url::Url;

use super::SafeClient;
use crate::AuthError;
use crate::oauth_error::refusal_of;
use crate::server_key::host_of;

/// A client for one operation, which remembers why it failed.
#[derive(Debug)]
pub(crate) struct ObservedClient {
    client: SafeClient,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Why the last request has no usable answer.
    failure: Option<AuthError>,
    /// Whether the server refused a request without a token.
    is_challenged: bool,
}

impl ObservedClient {
    pub(crate) fn new(client: SafeClient) -> ObservedClient {
        ObservedClient {
            client,
            seen: Mutex::default(),
        }
    }

    /// Why the last request failed, if it did.
    pub(crate) fn failure(&self) -> Option<AuthError> {
        self.seen().failure.clone()
    }

    /// Whether any request was answered with 401.
    pub(crate) fn is_challenged(&self) -> bool {
        self.seen().is_challenged
    }

    pub(crate) async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, AuthError> {
        let url = Url::parse(&request.uri().to_string()).ok();
        let is_post = *request.method() == Method::POST;
        let answer = self.client.send(request).await;
        let mut seen = self.seen();
        seen.failure = match &answer {
            Err(error) => Some(error.clone()),
            Ok(response) if is_post => {
                url.and_then(|url| refusal_of(&url, response.status(), response.body()))
            }
            // rmcp takes the same ones for failures of the authorization server.
            Ok(response) if is_down(response.status()) => url.map(|url| AuthError::Status {
                host: host_of(&url),
                status: response.status().as_u16(),
            }),
            Ok(_) => None,
        };
        if let Ok(response) = &answer
            && response.status() == StatusCode::UNAUTHORIZED
        {
            seen.is_challenged = true;
        }
        answer
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_down(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

impl OAuthHttpClient for ObservedClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let answer = self.send(request.request).await;
            answer.map_err(|error| {
                Box::<dyn Error + Send + Sync>::from(error) as OAuthHttpClientError
            })
        })
    }
}
