//! Several clients on one server connection.
//!
//! Every client chooses its own ids, so on a shared connection requests go out under ids of ours, and answers
//! come back under the client's. The same holds for progress tokens, `cancelled.requestId` and `subscriptionId`
//! (which is the id of the listen request): all four change together, each as a splice of that span only.
//! Pure state: frames carry the exchange of their owner, and the writer of the client side goes by that.

use std::collections::VecDeque;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{ExchangeId, Field, Frame, Id, IdKey, Kind, Message, Span};
use rustc_hash::FxHashMap;

/// Closed streams that are remembered.
const CLOSED_MAX: usize = 64;

/// Who asked, and under which ids.
#[derive(Clone, Debug)]
struct Owner {
    exchange: ExchangeId,
    id: Id,
    token: Option<Vec<u8>>,
    wants_log: bool,
    /// It is `subscriptions/listen`: the server may end it with a cancel of its own.
    listens: bool,
}

/// The open requests of all clients, by the number they carry on the server's side.
#[derive(Default)]
pub struct Share {
    next: u64,
    open: FxHashMap<u64, Owner>,
    by_exchange: FxHashMap<ExchangeId, u64>,
    /// Ids whose stream was closed: real clients also POST a cancel then, which must hit nobody else.
    closed: VecDeque<IdKey>,
}

/// Whose a server's message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It belongs to this exchange, under this id of the client's.
    Owned(ExchangeId, Id),
    /// It belongs to no single client.
    Everyone,
    /// It answers something that is no longer open.
    Nobody,
}

impl Share {
    /// Replaces the client's ids by ours. What is no request passes, with `requestId` translated. `None`: a cancel
    /// of something that is cancelled already, or of which it is not clear whose it is.
    pub fn to_server(&mut self, exchange: ExchangeId, message: &Message) -> Option<Message> {
        match message.kind() {
            Kind::Request => Some(self.request(exchange, message)),
            Kind::Notification => self.cancelled_by_client(message),
            _ => Some(message.clone()),
        }
    }

    /// Whose message this is, before anything is changed (the record keeps what the server wrote).
    pub fn whose(&self, message: &Message) -> Whose {
        let number = match message.kind() {
            Kind::Response | Kind::Error => message.id().and_then(|id| number(id.token())),
            Kind::Notification => {
                let Some((_, number)) = reference(message) else {
                    return self.for_unowned();
                };
                Some(number)
            }
            _ => return Whose::Everyone,
        };
        match number.and_then(|number| self.open.get(&number)) {
            Some(owner) => Whose::Owned(owner.exchange, owner.id.clone()),
            None => Whose::Nobody,
        }
    }

    /// Gives a server's message the client's ids and the exchange it belongs to. `None`: nobody waits for it.
    pub fn to_client(&mut self, mut frame: Frame, message: &Message) -> Option<Frame> {
        let whose = self.whose(message);
        let Whose::Owned(exchange, _) = whose else {
            return None;
        };
        frame.stream = exchange.into();
        let spliced = match message.kind() {
            Kind::Response | Kind::Error => self.answer(message)?,
            Kind::Notification => self.notification(message),
            _ => message.clone(),
        };
        frame.body = mcp_proxy_wire::Body::Whole(spliced);
        Some(frame)
    }

    /// Whether a request of this exchange waits for its answer.
    pub fn is_open(&self, exchange: ExchangeId) -> bool {
        self.by_exchange.contains_key(&exchange)
    }

    /// The client closed its stream: forget the request and tell the server (spec 2026-07-28, cancellation).
    pub fn closed(&mut self, exchange: ExchangeId) -> Option<Message> {
        let number = self.by_exchange.remove(&exchange)?;
        let owner = self.open.remove(&number)?;
        self.closed.push_back(owner.id.key());
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":"the client closed its stream"}}}}"#
        );
        Some(Message::parse(text))
    }

    fn request(&mut self, exchange: ExchangeId, message: &Message) -> Message {
        let Some(id) = message.id() else {
            return message.clone();
        };
        self.next += 1;
        let number = self.next;
        let ours = number.to_string();
        let token = message.span(Field::Meta("progressToken"));
        let mut edits: Vec<(Span, &[u8])> = Vec::with_capacity(2);
        edits.extend(message.span(Field::Id).map(|span| (span, ours.as_bytes())));
        edits.extend(token.map(|span| (span, ours.as_bytes())));
        let spliced = splice(message, &mut edits);
        self.open.insert(
            number,
            Owner {
                exchange,
                id,
                token: token.map(|span| message.slice(span).to_vec()),
                wants_log: message.span(Field::Meta(meta::LOG_LEVEL)).is_some(),
                listens: message.method().as_deref() == Some("subscriptions/listen"),
            },
        );
        self.by_exchange.insert(exchange, number);
        spliced
    }

    /// A client names its own id; the one open request under it is meant. `None`: nobody's, or not clear whose.
    fn cancelled_by_client(&mut self, message: &Message) -> Option<Message> {
        let Some(span) = message.span(Field::RequestId) else {
            return Some(message.clone());
        };
        let wanted = Id::from_token(message.slice(span)).key();
        if let Some(place) = self.closed.iter().position(|id| *id == wanted) {
            self.closed.remove(place);
            return None;
        }
        let mut found = self
            .open
            .iter()
            .filter(|(_, owner)| owner.id.key() == wanted);
        let (number, _) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        Some(splice(
            message,
            &mut [(span, number.to_string().as_bytes())],
        ))
    }

    fn answer(&mut self, message: &Message) -> Option<Message> {
        let number = message.id().and_then(|id| number(id.token()))?;
        let owner = self.open.remove(&number)?;
        self.by_exchange.remove(&owner.exchange);
        let mut edits: Vec<(Span, &[u8])> = Vec::with_capacity(2);
        edits.extend(message.span(Field::Id).map(|span| (span, owner.id.token())));
        edits.extend(
            message
                .span(Field::ResultMeta(meta::SUBSCRIPTION_ID))
                .map(|span| (span, owner.id.token())),
        );
        Some(splice(message, &mut edits))
    }

    /// A subscription may end by the server's cancel instead of a result (spec 2026-07-28, cancellation): it is over then.
    fn notification(&mut self, message: &Message) -> Message {
        let Some((span, number)) = reference(message) else {
            return message.clone();
        };
        let Some(owner) = self.open.get(&number) else {
            return message.clone();
        };
        let is_token = message.span(Field::ProgressToken) == Some(span);
        let theirs = match &owner.token {
            Some(token) if is_token => token.as_slice(),
            _ => owner.id.token(),
        };
        let spliced = splice(message, &mut [(span, theirs)]);
        let is_cancel = message.method().as_deref() == Some("notifications/cancelled");
        if is_cancel && owner.listens {
            let exchange = owner.exchange;
            self.open.remove(&number);
            self.by_exchange.remove(&exchange);
        }
        spliced
    }

    /// A log line or another notification without an owner goes to one who asked for logs, the oldest first.
    fn for_unowned(&self) -> Whose {
        let oldest = |log: bool| {
            self.open
                .iter()
                .filter(|(_, owner)| owner.wants_log || !log)
                .min_by_key(|(number, _)| **number)
        };
        match oldest(true).or_else(|| oldest(false)) {
            Some((_, owner)) => Whose::Owned(owner.exchange, owner.id.clone()),
            None => Whose::Nobody,
        }
    }
}

/// The number of ours that a server's notification refers to, and where it stands.
fn reference(message: &Message) -> Option<(Span, u64)> {
    [
        Field::ProgressToken,
        Field::Meta(meta::SUBSCRIPTION_ID),
        Field::RequestId,
    ]
    .into_iter()
    .find_map(|field| {
        let span = message.span(field)?;
        Some((span, number(message.slice(span))?))
    })
}

fn number(token: &[u8]) -> Option<u64> {
    // Some servers hand a subscription id back as a string.
    let text = std::str::from_utf8(token).ok()?;
    text.trim_matches('"').parse().ok()
}

fn splice(message: &Message, edits: &mut [(Span, &[u8])]) -> Message {
    edits.sort_by_key(|(span, _)| span.start);
    // The spans were read from this very message; if they do not fit it passes as it is.
    message
        .splice_scalars(edits)
        .unwrap_or_else(|_| message.clone())
}
