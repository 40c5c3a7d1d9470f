//! Answers that are made again and again, and differ only in their id.

use bytes::Bytes;

use super::splice::is_scalar;
use super::{Kind, Message, MessageHead};

/// What a scan found in an answer. An equal one with another id need not be scanned again.
#[derive(Clone, Copy, Debug)]
pub struct ResponseShape {
    head: MessageHead,
    length: usize,
    id_length: usize,
}

impl Message {
    /// The shape of an answer that has an id.
    pub fn response_shape(&self) -> Option<ResponseShape> {
        let id = self.head.members.id?;
        (self.head.kind == Kind::Response).then_some(ResponseShape {
            head: self.head,
            length: self.raw.len(),
            id_length: id.len(),
        })
    }

    /// An answer with the same bytes as the one that `shape` was taken from, but for its id. If the length shows that it is
    /// another one, or if the id is not a number or a string, it is scanned.
    pub fn of_shape(raw: impl Into<Bytes>, shape: &ResponseShape, id: &[u8]) -> Message {
        let raw = raw.into();
        let (id_length, id_end) = (id.len(), shape.head.members.id.map_or(0, |id| id.end));
        if raw.len() + shape.id_length != shape.length + id_length || !is_scalar(id) {
            return Message::parse(raw);
        }
        let head = shape.head.moved(|at| match at < id_end {
            true => at,
            false => at + id_length - shape.id_length,
        });
        Message::with_head(raw, head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_another_id_has_the_same_shape() {
        let answer =
            |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[1]}} }}"#);
        let first = Message::parse(answer("7"));
        let shape = first.response_shape().unwrap();
        for id in ["1", "12345", r#""a""#, r#""""#, "[\n1]"] {
            let (scanned, made) = (
                Message::parse(answer(id)),
                Message::of_shape(answer(id), &shape, id.as_bytes()),
            );
            assert_eq!(made.id_token(), scanned.id_token(), "{id}");
            assert_eq!(made.result(), scanned.result(), "{id}");
            assert_eq!(made.has_line_break(), scanned.has_line_break(), "{id}");
            assert_eq!(made.kind(), Kind::Response);
        }
        let other = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(
            Message::of_shape(other, &shape, b"1").result(),
            Message::parse(other).result()
        );
        assert!(
            Message::parse(r#"{"method":"x","id":1}"#)
                .response_shape()
                .is_none()
        );
    }
}
