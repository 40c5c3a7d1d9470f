//! Answers of rmcp's HTTP service with the annotations that its types have no room for.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Response};
use hyper::body::{Body, Frame};
use mcp_proxy_tool::META_KEY;
use memchr::memmem;
use serde_json::{Map, Value};

/// Facts that are only in `_meta`, in the hub's answers too.
const ONLY_IN_META: [&str; 2] = ["nextOffset", "unavailable"];

/// A body that [`write_annotations`] made of another.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use mcp_proxy_client::{AnnotatedBody, write_annotations};
///
/// let answer: http::Response<AnnotatedBody<Full<Bytes>>> = write_annotations(http::Response::default());
/// assert!(answer.status().is_success());
/// ```
#[derive(Debug)]
pub struct AnnotatedBody<B> {
    inner: Pin<Box<B>>,
}

/// Puts the facts of the `proxy` tool into the annotations of an answer of rmcp's HTTP service.
///
/// [`ProxyToolHandler`](crate::ProxyToolHandler) can write them only into `_meta`, and clients of the pattern that look
/// for annotations, such as Magg's, need this. Other answers pass as they are.
///
/// ```
/// use http_body_util::Full;
/// use mcp_proxy_client::write_annotations;
///
/// let answer = http::Response::new(Full::new(bytes::Bytes::from_static(b"{}")));
/// let _answer = write_annotations(answer);
/// ```
pub fn write_annotations<B>(response: Response<B>) -> Response<AnnotatedBody<B>>
where
    B: Body<Data = Bytes>,
{
    let mut response = response.map(|body| AnnotatedBody {
        inner: Box::pin(body),
    });
    let headers = response.headers_mut();
    // An answer may become longer.
    if headers.get(CONTENT_LENGTH) != Some(&HeaderValue::from_static("0")) {
        headers.remove(CONTENT_LENGTH);
    }
    response
}

impl<B: Body<Data = Bytes>> Body for AnnotatedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = self.inner.as_mut().poll_frame(context);
        frame.map_ok(|frame| frame.map_data(rewrite))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}

/// One frame: a JSON body, or an event. rmcp writes each in one piece.
fn rewrite(data: Bytes) -> Bytes {
    if memmem::find(&data, META_KEY.as_bytes()).is_none() {
        return data;
    }
    if data.first() == Some(&b'{') {
        return annotate(&data).map_or(data, Bytes::from);
    }
    const FIELD: &[u8] = b"data: ";
    let mut out = Vec::with_capacity(data.len() * 2);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let message = line.strip_prefix(FIELD).map(<[u8]>::trim_ascii_end);
        match message.and_then(annotate) {
            Some(message) => {
                out.extend_from_slice(FIELD);
                out.extend_from_slice(&message);
                out.push(b'\n');
            }
            None => out.extend_from_slice(line),
        }
    }
    out.into()
}

/// The message with annotations, if it is a result that has facts.
fn annotate(message: &[u8]) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(message).ok()?;
    let items = message
        .get_mut("result")?
        .get_mut("content")?
        .as_array_mut()?;
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(facts) = facts_of(item) {
            let annotations = item
                .entry("annotations")
                .or_insert_with(|| Map::new().into());
            if let Some(annotations) = annotations.as_object_mut() {
                let shown = facts
                    .into_iter()
                    .filter(|(name, _)| !ONLY_IN_META.contains(&name.as_str()));
                annotations.extend(shown);
            }
        }
        if let Some(resource) = item.get_mut("resource").and_then(Value::as_object_mut)
            && let Some(facts) = facts_of(resource)
        {
            resource.extend(facts);
        }
    }
    serde_json::to_vec(&message).ok()
}

fn facts_of(holder: &Map<String, Value>) -> Option<Map<String, Value>> {
    holder.get("_meta")?.get(META_KEY)?.as_object().cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_become_annotations_in_bodies_and_events() {
        let facts = json!({"proxyAction": "list", "totalCount": 3, "nextOffset": 1});
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "resource",
            "resource": {"uri": "a:b", "text": "", "_meta": {META_KEY: {"contentType": "text/plain"}}},
            "_meta": {META_KEY: facts}}]}});
        let event = format!("id: 1\ndata: {message}\n\n");
        let event = rewrite(Bytes::from(event));
        let event = std::str::from_utf8(&event).unwrap();
        let data = event
            .strip_prefix("id: 1\ndata: ")
            .unwrap()
            .strip_suffix("\n\n")
            .unwrap();
        let body = rewrite(Bytes::from(message.to_string()));
        assert_eq!(data.as_bytes(), &body[..]);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        let item = &answer["result"]["content"][0];
        assert_eq!(
            item["annotations"],
            json!({"proxyAction": "list", "totalCount": 3})
        );
        assert_eq!(item["resource"]["contentType"], "text/plain");
    }

    #[test]
    fn other_frames_pass_as_they_are() {
        for data in ["{}", ": mcp-proxy/proxy\n\n", "{ \"mcp-proxy/proxy\": 1 }"] {
            assert_eq!(rewrite(Bytes::from(data)), data);
        }
    }
}
