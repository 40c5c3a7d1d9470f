//! From clients to the server: requests get our numbers, and what names a request gets the number of that request.

use std::hash::Hash;

use mcp_proxy_wire::{ErrorCode, Field, Id, Kind, Message, Span, error_response};

use super::references::{is_cancel, renumber, splice};
use super::table::PendingRequest;
use super::{GoneRequest, MultiplexerError, RequestMultiplexer};

/// Ids of closed clients that are remembered.
const CLOSED_MAX: usize = 64;

const CLOSED_REASON: &str = "the client closed its stream";

impl<K: Clone + Eq + Hash> RequestMultiplexer<K> {
    /// A client's message with the ids that the server knows. A request is open from now on; an answer must belong to
    /// a request that the server sent to this client.
    pub fn to_server(
        &mut self,
        client: &K,
        message: &Message,
    ) -> Result<Message, MultiplexerError> {
        match message.kind() {
            Kind::Request => {
                let (request, token) = PendingRequest::new(client, message)?;
                let number = self.open.insert(request)?;
                Ok(renumber(message, token, number.to_string().as_bytes()))
            }
            Kind::Notification => self.notify_server(client, message),
            Kind::Response | Kind::Error => self
                .answer_from_client(client, message)
                .ok_or(MultiplexerError::UnknownRequest),
            kind @ (Kind::Batch | Kind::Other | Kind::Malformed) => {
                Err(MultiplexerError::WrongKind(kind))
            }
        }
    }

    /// A cancel of which the caller does not know the client: modern HTTP clients POST it on an exchange of its own. It means
    /// the only open request under that id; if there are several, it is not guessed which. Notifications
    /// that name no request pass unchanged.
    pub fn cancel_any(&mut self, message: &Message) -> Result<Message, MultiplexerError> {
        let Some(span) = message.span(Field::RequestId) else {
            return Ok(message.clone());
        };
        let id = Id::from_token(message.slice(span));
        let key = id.key();
        if let Some(place) = self.closed.iter().position(|closed| *closed == key) {
            self.closed.remove(place);
            return Err(MultiplexerError::UnknownRequest);
        }
        let number = self.open.find_only(&id);
        self.cancel(message, span, number)
    }

    /// The request that [`cancel_any`](Self::cancel_any) would cancel with this message: its client, and its id there.
    pub fn cancelled_by(&self, message: &Message) -> Option<(K, Id)> {
        let span = message.span(Field::RequestId)?;
        let id = Id::from_token(message.slice(span));
        if !is_cancel(message) || self.closed.contains(&id.key()) {
            return None;
        }
        let request = self.open.get(self.open.find_only(&id)?)?;
        Some((request.client.clone(), request.id.clone()))
    }

    /// A client's answer under the id that the server gave its request. `None`: the server did not ask this client, or
    /// has its answer.
    pub fn answer_from_client(&mut self, client: &K, message: &Message) -> Option<Message> {
        if !matches!(message.kind(), Kind::Response | Kind::Error) {
            return None;
        }
        let span = message.span(Field::Id)?;
        let number = self.asked_ids.number(message.slice(span))?;
        self.asked
            .get(number)
            .filter(|request| request.client == *client)?;
        let request = self.asked.remove(number)?;
        Some(splice(message, &mut [(span, request.id.token())]))
    }

    /// Forgets a client that has gone. Returns what the server must be told: a cancel for each of the client's open requests
    /// that is not cancelled yet, and an error answer to each request that the client will not answer any more.
    pub fn close(&mut self, client: &K) -> Vec<Message> {
        let mut told = Vec::new();
        for (number, request) in self.open.remove_client(client) {
            if !request.cancelled {
                told.push(cancel_of(number));
            }
            self.closed.push_back(request.id.key());
            self.gone.push_back(GoneRequest {
                number,
                client: request.client,
                id: request.id,
            });
        }
        let surplus = self.closed.len().saturating_sub(CLOSED_MAX);
        self.closed.drain(..surplus);
        let surplus = self.gone.len().saturating_sub(CLOSED_MAX);
        self.gone.drain(..surplus);
        let unanswered = self.asked.remove_client(client);
        told.extend(unanswered.iter().map(|(_, request)| {
            let code = ErrorCode::CANNOT_CARRY;
            error_response(Some(&request.id), code, CLOSED_REASON, None)
        }));
        told
    }

    fn notify_server(
        &mut self,
        client: &K,
        message: &Message,
    ) -> Result<Message, MultiplexerError> {
        if let Some(span) = message.span(Field::RequestId) {
            let id = Id::from_token(message.slice(span));
            let number = self.open.find(client, &id);
            return self.cancel(message, span, number);
        }
        let Some(span) = message.span(Field::ProgressToken) else {
            return Ok(message.clone());
        };
        let number = self.asked_ids.number(message.slice(span));
        let request = number.and_then(|number| self.asked.get(number));
        let token = request
            .filter(|request| request.client == *client)
            .and_then(|request| request.token.as_deref())
            .ok_or(MultiplexerError::UnknownRequest)?;
        Ok(splice(message, &mut [(span, token)]))
    }

    /// Puts the number of the request into a notification that names it at `span`.
    fn cancel(
        &mut self,
        message: &Message,
        span: Span,
        number: Option<u64>,
    ) -> Result<Message, MultiplexerError> {
        let number = number.ok_or(MultiplexerError::UnknownRequest)?;
        if is_cancel(message) {
            self.open.note_cancelled(number);
        }
        let ours = number.to_string();
        Ok(splice(message, &mut [(span, ours.as_bytes())]))
    }
}

fn cancel_of(number: u64) -> Message {
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":"{CLOSED_REASON}"}}}}"#
    ))
}
