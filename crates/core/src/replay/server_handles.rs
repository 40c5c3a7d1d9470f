//! Values that a server makes for its client to hand back: the state of a request that needs input, the next page, a task.
//!
//! Another run of the server makes others. So a recorded client hands back what it was given now in the place of what it was
//! given then, and answers do not differ because of them.

use mcp_proxy_wire::{Field, Message, Span};
use rustc_hash::FxHashMap;

/// Where answers have them.
pub(super) const HANDLE_PATHS: [&str; 4] = [
    "$.result.requestState",
    "$.result.nextCursor",
    "$.result.taskId",
    "$.result.task.taskId",
];
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// What was given then and now, as tokens with their quotes.
#[derive(Default)]
pub(super) struct ServerHandles(FxHashMap<Vec<u8>, Vec<u8>>);

impl ServerHandles {
    /// Notes what another answer gives in the place of the recorded one.
    pub(super) fn learn(&mut self, then: &Message, now: &Message) {
        for (then_span, now_span) in given_spans(then).into_iter().zip(given_spans(now)) {
            if let (Some(old), Some(new)) = (then_span, now_span)
                && then.slice(old) != now.slice(new)
            {
                let (old, new) = (then.slice(old).to_vec(), now.slice(new).to_vec());
                self.0.insert(old, new);
            }
        }
    }

    /// What has to be replaced in a recorded message.
    pub(super) fn edits(&self, message: &Message) -> Vec<(Span, Vec<u8>)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let known = handed_back_spans(message).into_iter().flatten();
        known
            .filter_map(|span| Some((span, self.0.get(message.slice(span))?.clone())))
            .collect()
    }
}

/// What an answer gives.
pub(super) fn issued_handles(answer: &Message) -> impl Iterator<Item = &[u8]> {
    let spans = given_spans(answer).into_iter().flatten();
    spans.map(|span| answer.slice(span))
}

/// What a request hands back.
pub(super) fn returned_handles(request: &Message) -> impl Iterator<Item = &[u8]> {
    let spans = handed_back_spans(request).into_iter().flatten();
    spans.map(|span| request.slice(span))
}

/// In the order of [`HANDLE_PATHS`].
fn given_spans(answer: &Message) -> [Option<Span>; 4] {
    let task = answer.span(Field::ResultField("task"));
    [
        answer.span(Field::ResultField("requestState")),
        answer.span(Field::ResultField("nextCursor")),
        answer.span(Field::ResultField("taskId")),
        task.and_then(|task| answer.member(task, "taskId")),
    ]
}

fn handed_back_spans(request: &Message) -> [Option<Span>; 4] {
    let related = request.span(Field::Meta(RELATED_TASK));
    [
        request.span(Field::Param("requestState")),
        request.span(Field::Param("cursor")),
        request.span(Field::Param("taskId")),
        related.and_then(|task| request.member(task, "taskId")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_now_is_handed_back() {
        let message = |text: &str| Message::parse(text.to_owned());
        let mut handles = ServerHandles::default();
        handles.learn(
            &message(r#"{"id":1,"result":{"task":{"taskId":"a"},"nextCursor":"p"}}"#),
            &message(r#"{"id":9,"result":{"nextCursor":"q","task":{"taskId":"b"}}}"#),
        );
        let edited = |text: &str| {
            let message = message(text);
            let edits = handles.edits(&message);
            let mut edits: Vec<_> = edits.iter().map(|(span, to)| (*span, &to[..])).collect();
            edits.sort_by_key(|(span, _)| span.start);
            let edited = message.splice(&edits).unwrap();
            String::from_utf8(edited.raw().to_vec()).unwrap()
        };
        assert_eq!(
            edited(r#"{"method":"tasks/get","params":{"taskId":"a"}}"#),
            r#"{"method":"tasks/get","params":{"taskId":"b"}}"#
        );
        assert_eq!(
            edited(
                r#"{"method":"m","params":{"cursor":"p","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}}"#
            ),
            r#"{"method":"m","params":{"cursor":"q","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"b"}}}}"#
        );
        let other = r#"{"method":"m","params":{"cursor":"x","name":"a"}}"#;
        assert_eq!(edited(other), other);
    }
}
