//! What a server's HTTP answer means to rmcp.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
    StreamableHttpPostResponse,
};

use super::super::MAX_MESSAGE;
use super::super::answers::{read_answer, undecodable};
use super::{EventStream, HttpError, HttpResult, events};

/// How much of a body that is not a message is repeated in an error.
const SHOWN_BODY: usize = 256;

/// The answer to a POST of `message`.
pub(super) async fn to_post(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<Incoming>,
) -> HttpResult<StreamableHttpPostResponse> {
    let status = response.status();
    refuse_unauthorized(&response)?;
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let session_id = header(response.headers(), HEADER_SESSION_ID);
    if !status.is_success() {
        return failure(message, has_session, response, session_id).await;
    }
    if is_of_type(response.headers(), EVENT_STREAM_MIME_TYPE) {
        let events = events::stream(response.into_body());
        return Ok(StreamableHttpPostResponse::Sse(events, session_id));
    }
    let type_error = refuse_other_type(response.headers());
    let body = collect(response).await?;
    let ClientJsonRpcMessage::Request(request) = message else {
        // Only 202 is right, but servers answer notifications with anything.
        return Ok(StreamableHttpPostResponse::Accepted);
    };
    type_error?;
    let answer = match read_answer(&body) {
        Some(answer) => answer.message,
        None => match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => answer_to(&request.id, error),
            Ok(message) => message,
            Err(_) => {
                let reason = format!("it is not a message: {}", shown(&body));
                undecodable(request.id.clone(), reason).message
            }
        },
    };
    Ok(StreamableHttpPostResponse::Json(answer, session_id))
}

/// An error in the body of a response is that of its request, even if the server does not say so.
fn answer_to(id: &RequestId, mut error: JsonRpcError) -> ServerJsonRpcMessage {
    error.id.get_or_insert_with(|| id.clone());
    ServerJsonRpcMessage::Error(error)
}

fn refuse_other_type(headers: &HeaderMap) -> HttpResult<()> {
    if is_of_type(headers, JSON_MIME_TYPE) {
        return Ok(());
    }
    Err(StreamableHttpError::Client(
        match is_of_type(headers, "text/html") {
            true => HttpError::WebPage,
            false => HttpError::ContentType(header(headers, CONTENT_TYPE.as_str())),
        },
    ))
}

/// The answer to a GET.
pub(super) fn to_get(response: Response<Incoming>) -> HttpResult<EventStream> {
    let status = response.status();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        return Err(StreamableHttpError::ServerDoesNotSupportSse);
    }
    refuse_unauthorized(&response)?;
    if !status.is_success() {
        return Err(status_error(&response).into());
    }
    if !is_of_type(response.headers(), EVENT_STREAM_MIME_TYPE) {
        let content_type = header(response.headers(), CONTENT_TYPE.as_str());
        return Err(StreamableHttpError::UnexpectedContentType(content_type));
    }
    Ok(events::stream(response.into_body()))
}

/// A status that says no. Its body may be a JSON-RPC error, which says more.
async fn failure(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<Incoming>,
    session_id: Option<String>,
) -> HttpResult<StreamableHttpPostResponse> {
    let status = response.status();
    let status_error = status_error(&response);
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(status_error.into());
    }
    let body = collect(response).await?;
    let error = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !is_refusal
        && !has_session
    {
        // A legacy server has not heard of `server/discover` and refuses it in its own way, often without the
        // request's id. rmcp falls back to `initialize` if it gets an error with that id.
        let error = error.map_or_else(
            || ErrorData::invalid_request(format!("HTTP {status}"), None),
            |error| error.error,
        );
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match (error, message) {
        (Some(error), ClientJsonRpcMessage::Request(request)) if !is_refusal => {
            let answer = answer_to(&request.id, error);
            Ok(StreamableHttpPostResponse::Json(answer, session_id))
        }
        _ if status.is_server_error() => Err(status_error.into()),
        _ => Err(StreamableHttpError::Client(HttpError::Status(status))),
    }
}

/// A 401 or 403 that says what is missing.
fn refuse_unauthorized(response: &Response<Incoming>) -> HttpResult<()> {
    let Some(challenge) = header(response.headers(), WWW_AUTHENTICATE.as_str()) else {
        return Ok(());
    };
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            challenge,
        ))),
        StatusCode::FORBIDDEN => Err(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(challenge, None),
        )),
        _ => Ok(()),
    }
}

async fn collect(response: Response<Incoming>) -> HttpResult<Bytes> {
    let body = Limited::new(response.into_body(), MAX_MESSAGE)
        .collect()
        .await;
    match body {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(StreamableHttpError::Client(HttpError::Body(error))),
    }
}

fn status_error(response: &Response<Incoming>) -> HttpStatusError {
    let retry_after = header(response.headers(), RETRY_AFTER.as_str());
    HttpStatusError::new(response.status().as_u16(), retry_after)
}

fn is_of_type(headers: &HeaderMap, mime_type: &str) -> bool {
    header(headers, CONTENT_TYPE.as_str()).is_some_and(|value| {
        let value = value.split(';').next().unwrap_or_default();
        value.trim().eq_ignore_ascii_case(mime_type)
    })
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return "an empty body".to_owned();
    }
    text.chars().take(SHOWN_BODY).collect()
}
