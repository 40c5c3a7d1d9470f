//! What a recorded client answered to the server's own requests.
//!
//! A server that asks the same again gets the same answer. One that asks something else, or in another order, gets the answer
//! to the request that is most like it: with the same parameters, else of the same method, each in the order in which they were
//! asked, and the last again when there are no more.

use mcp_proxy_wire::Message;

use crate::mock::params_key;

/// The answers, in the order of the requests.
#[derive(Default)]
pub struct ClientReplies(Vec<ClientReply>);

struct ClientReply {
    /// The request's number.
    asked: u64,
    method: String,
    /// Of the request: its method and its parameters.
    key: u64,
    /// Where the answer is.
    row: usize,
    used: bool,
}

/// A request of the server that was recorded.
pub struct ServerRequest {
    sequence: u64,
    method: String,
    key: u64,
}

impl ServerRequest {
    /// What is to be known of it.
    pub fn of(sequence: u64, request: &Message) -> ServerRequest {
        ServerRequest {
            sequence,
            method: request.method().unwrap_or_default().into_owned(),
            key: params_key(request),
        }
    }
}

impl ClientReplies {
    /// The client answered this request by what is in this row.
    pub fn add(&mut self, question: &ServerRequest, row: usize) {
        let place = self
            .0
            .partition_point(|reply| reply.asked <= question.sequence);
        let reply = ClientReply {
            asked: question.sequence,
            method: question.method.clone(),
            key: question.key,
            row,
            used: false,
        };
        self.0.insert(place, reply);
    }

    /// Where the answer to a request is.
    pub fn take(&mut self, request: &Message) -> Option<usize> {
        let (method, key) = (request.method().unwrap_or_default(), params_key(request));
        let of_method = |reply: &ClientReply| reply.method == method;
        let same = |reply: &ClientReply| of_method(reply) && reply.key == key;
        let all = &self.0;
        let place = all
            .iter()
            .position(|reply| same(reply) && !reply.used)
            .or_else(|| all.iter().rposition(same))
            .or_else(|| all.iter().position(|reply| of_method(reply) && !reply.used))
            .or_else(|| all.iter().rposition(of_method))?;
        let reply = &mut self.0[place];
        reply.used = true;
        Some(reply.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_the_request_that_is_most_like_it() {
        let ask = |what: &str| {
            let text = format!(
                r#"{{"id":1,"method":"sampling/createMessage","params":{{"_meta":{{"n":{}}},"p":"{what}"}}}}"#,
                what.len()
            );
            Message::parse(text)
        };
        let mut replies = ClientReplies::default();
        // Answered in another order than asked.
        for (sequence, what, row) in [(7, "b", 8), (6, "a", 10), (12, "b", 13)] {
            replies.add(&ServerRequest::of(sequence, &ask(what)), row);
        }
        let taken = ["a", "b", "b", "b", "new", "a"].map(|what| replies.take(&ask(what)));
        assert_eq!(taken, [10, 8, 13, 13, 13, 10].map(Some));
        let other = Message::parse(r#"{"id":1,"method":"roots/list"}"#);
        assert_eq!(replies.take(&other), None);
    }
}
