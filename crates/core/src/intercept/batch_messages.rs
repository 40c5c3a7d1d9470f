//! What is decided about a message is decided about all messages of a batch.

use mcp_proxy_wire::{ErrorCode, IdKey, Kind, Message, error_response};

/// The messages of a batch, or the one.
pub(super) fn parts(message: &Message) -> Vec<Message> {
    message.parts().unwrap_or_else(|| vec![message.clone()])
}

/// The ids that route a message to its waiting peer: those of its requests, and those of its answers.
pub(super) fn ids(message: &Message) -> Vec<(bool, Option<IdKey>)> {
    let all = parts(message).into_iter();
    let named = all.filter(|part| {
        part.expects_answer()
            || matches!(part.kind(), Kind::Response | Kind::Error | Kind::Malformed)
    });
    named
        .map(|part| (part.expects_answer(), part.id().map(|id| id.key())))
        .collect()
}

/// What an error does to a message.
pub(super) enum ErrorEffect {
    /// It answers it.
    Answer(Message),
    /// It takes its place.
    Replacement(Message),
    /// Nobody waits for anything.
    Nothing,
}

/// The error for a request, for each request of a batch, or in the place of each answer.
pub(super) fn refusal(message: &Message, code: ErrorCode, text: &str) -> ErrorEffect {
    let error = |part: &Message| error_response(part.id().as_ref(), code, text, None);
    let is_answer = |part: &Message| matches!(part.kind(), Kind::Response | Kind::Error);
    match message.kind() {
        Kind::Request => ErrorEffect::Answer(error(message)),
        Kind::Response | Kind::Error => ErrorEffect::Replacement(error(message)),
        Kind::Batch => {
            let all = parts(message);
            if all.iter().any(is_answer) {
                let instead = all.iter().map(|part| match is_answer(part) {
                    true => error(part),
                    false => part.clone(),
                });
                return ErrorEffect::Replacement(batch(instead));
            }
            let asking = all.iter().filter(|part| part.kind() == Kind::Request);
            let mut errors = asking.map(error).peekable();
            match errors.peek() {
                Some(_) => ErrorEffect::Answer(batch(errors)),
                None => ErrorEffect::Nothing,
            }
        }
        _ => ErrorEffect::Nothing,
    }
}

fn batch(parts: impl Iterator<Item = Message>) -> Message {
    let parts: Vec<_> = parts.map(Message::into_raw).collect();
    let mut text = vec![b'['];
    text.extend(parts.join(&b','));
    text.push(b']');
    Message::parse(text)
}
