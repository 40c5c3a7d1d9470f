//! From the server to clients: what a message is about decides whose it is, and its ids become those of that client.

use std::hash::Hash;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Field, Id, Kind, Message};

use super::references::{is_cancel, named_number, number, references, renumber, splice};
use super::table::PendingRequest;
use super::{Delivery, MultiplexerError, Recipient, RequestMultiplexer};

/// What a server's message is about.
enum Subject {
    /// It answers the request under this number.
    Answer(u64),
    /// It is about the open request under this number.
    OpenRequest(u64),
    /// It cancels the server's own request, which a client knows by this number.
    AskedRequest(u64),
    NewRequest,
    NoRequest,
    UnknownRequest,
}

impl<K: Clone + Eq + Hash> RequestMultiplexer<K> {
    /// The clients that a server's message is for. Nothing changes.
    pub fn recipient(&self, message: &Message) -> Recipient<K> {
        let found = match self.subject(message) {
            Subject::Answer(number) | Subject::OpenRequest(number) => {
                let request = self.open.get(number);
                request.map(|request| (request.client.clone(), request.id.clone()))
            }
            Subject::AskedRequest(number) => self.asked.get(number).map(|request| {
                let id = Id::from_token(self.asked_ids.token(number).as_bytes());
                (request.client.clone(), id)
            }),
            Subject::NewRequest => return Recipient::AnyClient,
            Subject::NoRequest => return Recipient::Everyone,
            Subject::UnknownRequest => None,
        };
        match found {
            Some((client, id)) => Recipient::Client(client, id),
            None => Recipient::Nobody,
        }
    }

    /// The request that a server's answer belongs to, although its client has gone: the client, and its id there.
    pub fn gone_request(&self, answer: &Message) -> Option<(K, Id)> {
        let Subject::Answer(number) = self.subject(answer) else {
            return None;
        };
        let request = self.gone.iter().find(|gone| gone.number == number)?;
        Some((request.client.clone(), request.id.clone()))
    }

    /// A server's message with the client's ids, and where it goes. An answer closes its request.
    pub fn to_client(&mut self, message: &Message) -> Delivery<K> {
        let delivered = match self.subject(message) {
            Subject::Answer(number) => self.open.remove(number).map(|request| {
                let message = match request.listens {
                    true => subscription_end(message, &request.id),
                    false => answer_under(message.clone(), &request.id),
                };
                (request.client, message)
            }),
            Subject::OpenRequest(number) => self.report(number, message),
            Subject::AskedRequest(number) => self.withdraw(number, message),
            Subject::NewRequest => return Delivery::ToAny(message.clone()),
            Subject::NoRequest => return Delivery::Everyone(message.clone()),
            Subject::UnknownRequest => None,
        };
        match delivered {
            Some((client, message)) => Delivery::To(client, message),
            None => Delivery::Nobody,
        }
    }

    /// Closes the request that a server's answer belongs to, and tells whose it was and under which id. The answer stays as it
    /// is: a caller that forwards it uses [`answer_under`], where it can take its time over a large one.
    pub fn take_answered(&mut self, answer: &Message) -> Option<(K, Id)> {
        match self.subject(answer) {
            Subject::Answer(number) => {
                let request = self.open.remove(number)?;
                Some((request.client, request.id))
            }
            _ => None,
        }
    }

    /// A server's request (sampling, elicitation, roots) as this client shall see it, under an id that none of the
    /// server's other open requests has.
    pub fn ask_client(
        &mut self,
        client: &K,
        message: &Message,
    ) -> Result<Message, MultiplexerError> {
        let (request, token) = PendingRequest::new(client, message)?;
        let number = self.asked.insert(request)?;
        let ours = self.asked_ids.token(number);
        Ok(renumber(message, token, ours.as_bytes()))
    }

    fn subject(&self, message: &Message) -> Subject {
        match message.kind() {
            Kind::Response | Kind::Error => {
                let number = message.id_token().and_then(number);
                number.map_or(Subject::UnknownRequest, Subject::Answer)
            }
            Kind::Notification => self.subject_of_notification(message),
            Kind::Request => Subject::NewRequest,
            Kind::Batch | Kind::Other | Kind::Malformed => Subject::UnknownRequest,
        }
    }

    /// A notification that names a request goes to the owner of that request or to nobody. Another client could have
    /// a request of its own under the same id or token.
    fn subject_of_notification(&self, message: &Message) -> Subject {
        if self.asked.was_used()
            && is_cancel(message)
            && let Some(span) = message.span(Field::RequestId)
        {
            // Only legacy servers send requests, and their cancels name those.
            let number = self.asked.find_oldest(&Id::from_token(message.slice(span)));
            return number.map_or(Subject::UnknownRequest, Subject::AskedRequest);
        }
        let references = references(message);
        if references.is_empty() {
            return Subject::NoRequest;
        }
        let number = named_number(message, &references);
        number.map_or(Subject::UnknownRequest, Subject::OpenRequest)
    }

    /// A notification about an open request. A server may end a subscription with a cancel instead of a result (spec
    /// 2026-07-28, cancellation).
    fn report(&mut self, number: u64, message: &Message) -> Option<(K, Message)> {
        let request = self.open.get(number)?;
        let references = references(message);
        let mut edits: Vec<_> = references
            .iter()
            .map(|(field, span)| match (field, &request.token) {
                (Field::ProgressToken, Some(token)) => (*span, &**token),
                _ => (*span, request.id.token()),
            })
            .collect();
        let delivered = (request.client.clone(), splice(message, &mut edits));
        if request.listens && is_cancel(message) {
            self.open.remove(number);
        }
        Some(delivered)
    }

    /// A cancel of the server's own request. Nobody waits for its answer then.
    fn withdraw(&mut self, number: u64, message: &Message) -> Option<(K, Message)> {
        let request = self.asked.remove(number)?;
        let span = message.span(Field::RequestId)?;
        let token = self.asked_ids.token(number);
        Some((
            request.client,
            splice(message, &mut [(span, token.as_bytes())]),
        ))
    }
}

/// A server's answer under the id that its client knows the request by.
pub fn answer_under(answer: Message, id: &Id) -> Message {
    match answer.span(Field::Id) {
        Some(span) if answer.slice(span) != id.token() => {
            splice(&answer, &mut [(span, id.token())])
        }
        _ => answer,
    }
}

/// The same for the end of a subscription, which is named in the result too.
fn subscription_end(answer: &Message, id: &Id) -> Message {
    let fields = [Field::Id, Field::ResultMeta(meta::SUBSCRIPTION_ID)];
    let spans = fields.into_iter().filter_map(|field| answer.span(field));
    let mut edits: Vec<_> = spans.map(|span| (span, id.token())).collect();
    splice(answer, &mut edits)
}
