//! Which stream of a legacy session does a server's message go to? Pure state, no I/O.
//!
//! stdio has one stream for everything, HTTP one for each POST and one GET. Progress goes to the POST whose token
//! it names; an answer to the POST that asked; everything else to the only open POST if there is exactly one,
//! else to the GET stream, else to the oldest open POST, else it waits until a stream opens.

use std::collections::{BTreeMap, VecDeque};

use mcp_proxy_wire::{ExchangeId, Field, Id, IdKey, Kind, Message};

/// Messages that wait for a stream may take this much.
const WAITING_MAX: usize = 1024 * 1024;
/// Notifications may take this much of it: what a server asks must find room.
const WAITING_NOTIFICATIONS_MAX: usize = WAITING_MAX / 4 * 3;
/// Cancelled requests that are remembered.
const CANCELLED_MAX: usize = 256;

/// The streams of one session.
#[derive(Default)]
pub(crate) struct StreamRouter {
    posts: BTreeMap<ExchangeId, RoutedPost>,
    get: bool,
    waiting: VecDeque<WaitingMessage>,
    waiting_bytes: usize,
    /// Requests that the client cancelled, newest last: answers to them reach nobody.
    cancelled: VecDeque<IdKey>,
}

/// Why a message is not kept until a stream opens.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CannotWait {
    /// It alone is too large.
    #[error(
        "no stream of the client is open, and a message of {size} bytes is larger than the 1 MiB that may wait for one"
    )]
    TooLarge { size: usize },
    /// There is no room for it.
    #[error(
        "no stream of the client is open, {waiting} bytes already wait for one, and {size} more do not fit (1 MiB in all)"
    )]
    Full { size: usize, waiting: usize },
}

/// A message that no stream was open for.
#[derive(Debug)]
pub(crate) struct WaitingMessage {
    /// Its number in the record, where it is known.
    pub sequence: Option<u64>,
    /// What waits.
    pub message: Message,
}

#[derive(Default)]
struct RoutedPost {
    open: Vec<IdKey>,
    tokens: Vec<IdKey>,
    /// We could not read the body as JSON-RPC: an error without an id can be its answer.
    unparsed_body: bool,
    /// Its client has gone; it may come back, but only for what is this POST's own.
    disconnected: bool,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRoute {
    /// To a POST's stream; `last` when it has all its answers now.
    Post {
        /// The POST.
        exchange: ExchangeId,
        /// Nothing more is awaited on it.
        last: bool,
    },
    /// To the GET stream.
    Get,
    /// Nowhere yet: [`StreamRouter::wait`] puts it aside.
    Waiting,
    /// Nowhere: it answers a request that the client cancelled.
    Cancelled,
}

/// What a POST waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostExpectation {
    /// The answers to its requests.
    Answers,
    /// Perhaps an error without id, for what could not be read.
    UnparsedBody,
    /// Nothing: it is accepted.
    Nothing,
}

impl StreamRouter {
    /// A POST has come.
    pub(crate) fn post(&mut self, exchange: ExchangeId, message: &Message) -> PostExpectation {
        let mut post = RoutedPost::default();
        let batch;
        let parts = match message.kind() {
            Kind::Batch => {
                batch = message.parts().unwrap_or_default();
                &*batch
            }
            Kind::Malformed | Kind::Other => {
                post.unparsed_body = true;
                if !message.expects_answer() {
                    self.posts.insert(exchange, post);
                    return PostExpectation::UnparsedBody;
                }
                std::slice::from_ref(message)
            }
            _ => std::slice::from_ref(message),
        };
        for part in parts.iter().filter(|part| part.expects_answer()) {
            post.open.extend(part.id().map(|id| id.key()));
            let token = part.span(Field::Meta("progressToken"));
            post.tokens
                .extend(token.map(|span| Id::from_token(part.slice(span)).key()));
        }
        if post.open.is_empty() {
            return PostExpectation::Nothing;
        }
        self.posts.insert(exchange, post);
        PostExpectation::Answers
    }

    /// The GET stream is open (a second one has replaced the first). Returns what waited for it.
    pub(crate) fn get_opened(&mut self) -> Vec<WaitingMessage> {
        self.get = true;
        self.take_waiting()
    }

    /// The GET stream is gone.
    pub(crate) fn get_closed(&mut self) {
        self.get = false;
    }

    /// A POST's client has gone.
    pub(crate) fn post_left(&mut self, exchange: ExchangeId) {
        if let Some(post) = self.posts.get_mut(&exchange) {
            post.disconnected = true;
        }
    }

    /// A POST's client is back.
    pub(crate) fn post_back(&mut self, exchange: ExchangeId) {
        if let Some(post) = self.posts.get_mut(&exchange) {
            post.disconnected = false;
        }
    }

    /// A POST will take nothing more.
    pub(crate) fn post_closed(&mut self, exchange: ExchangeId) {
        self.posts.remove(&exchange);
    }

    /// The client cancelled a request: no answer to it is awaited. Returns its POST, if that awaits nothing more.
    pub(crate) fn cancel(&mut self, id: &Id) -> Option<ExchangeId> {
        let StreamRoute::Post { exchange, last } = self.route_to_request(id)? else {
            return None;
        };
        if self.cancelled.len() == CANCELLED_MAX {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(id.key());
        last.then_some(exchange)
    }

    /// Whether a request is open, even if its client has left.
    pub(crate) fn has_open_posts(&self) -> bool {
        !self.posts.is_empty()
    }

    /// What waited, for a POST that has just opened.
    pub(crate) fn take_waiting(&mut self) -> Vec<WaitingMessage> {
        self.waiting_bytes = 0;
        self.waiting.drain(..).collect()
    }

    /// An answer of our own to a POST that could not be read.
    pub(crate) fn refuse(&mut self, exchange: ExchangeId) -> Option<StreamRoute> {
        if !self.posts.get(&exchange)?.unparsed_body {
            return None;
        }
        self.posts.remove(&exchange);
        Some(StreamRoute::Post {
            exchange,
            last: true,
        })
    }

    /// Where a server's message goes.
    pub(crate) fn route(&mut self, message: &Message) -> StreamRoute {
        match message.kind() {
            _ if message.is_answer() => self.route_answer(message),
            // The parts of a batch are answers to one POST, as a rule; the first known id decides.
            Kind::Batch => self.route_batch(message),
            Kind::Notification => self
                .route_progress(message)
                .unwrap_or_else(|| self.default_route()),
            _ => self.default_route(),
        }
    }

    fn route_answer(&mut self, message: &Message) -> StreamRoute {
        let id = message.id();
        if id.as_ref().is_none_or(Id::is_null)
            && let Some((exchange, _)) = self.posts.iter().find(|(_, post)| post.unparsed_body)
        {
            let exchange = *exchange;
            self.posts.remove(&exchange);
            return StreamRoute::Post {
                exchange,
                last: true,
            };
        }
        let Some(id) = id else {
            return self.default_route();
        };
        let found = self.route_to_request(&id);
        found.unwrap_or_else(|| match self.forget_cancelled(&id) {
            true => StreamRoute::Cancelled,
            false => self.default_route(),
        })
    }

    /// Whether a request was cancelled; its answer comes once.
    fn forget_cancelled(&mut self, id: &Id) -> bool {
        let key = id.key();
        let place = self.cancelled.iter().position(|known| *known == key);
        place.is_some_and(|place| self.cancelled.remove(place).is_some())
    }

    fn route_batch(&mut self, message: &Message) -> StreamRoute {
        let mut way = None;
        for id in message
            .parts()
            .unwrap_or_default()
            .iter()
            .filter_map(Message::id)
        {
            way = self.route_to_request(&id).or(way);
        }
        way.unwrap_or_else(|| self.default_route())
    }

    /// Marks a request as answered and names its POST.
    fn route_to_request(&mut self, id: &Id) -> Option<StreamRoute> {
        let key = id.key();
        let (exchange, post) = self
            .posts
            .iter_mut()
            .find(|(_, post)| post.open.contains(&key))?;
        let exchange = *exchange;
        post.open.retain(|open| *open != key);
        let last = post.open.is_empty();
        if last {
            self.posts.remove(&exchange);
        }
        Some(StreamRoute::Post { exchange, last })
    }

    fn route_progress(&self, message: &Message) -> Option<StreamRoute> {
        let span = message.span(Field::ProgressToken)?;
        let token = Id::from_token(message.slice(span)).key();
        let (exchange, _) = self
            .posts
            .iter()
            .find(|(_, post)| post.tokens.contains(&token))?;
        Some(StreamRoute::Post {
            exchange: *exchange,
            last: false,
        })
    }

    fn default_route(&self) -> StreamRoute {
        let takes = |post: &RoutedPost| {
            !post.disconnected && (!post.unparsed_body || !post.open.is_empty())
        };
        let mut open = self.posts.iter().filter(|(_, post)| takes(post));
        let oldest = open.next().map(|(exchange, _)| *exchange);
        let only = open.next().is_none();
        match oldest {
            Some(exchange) if only || !self.get => StreamRoute::Post {
                exchange,
                last: false,
            },
            _ if self.get => StreamRoute::Get,
            _ => StreamRoute::Waiting,
        }
    }

    /// Whether a message waits until a stream opens.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Puts a message aside until a stream opens.
    pub(crate) fn wait(
        &mut self,
        sequence: Option<u64>,
        message: &Message,
    ) -> Result<(), CannotWait> {
        let (size, waiting) = (message.len(), self.waiting_bytes);
        if size > WAITING_MAX {
            return Err(CannotWait::TooLarge { size });
        }
        let most = match message.kind() {
            Kind::Notification => WAITING_NOTIFICATIONS_MAX,
            _ => WAITING_MAX,
        };
        if waiting + size > most {
            return Err(CannotWait::Full { size, waiting });
        }
        self.waiting_bytes += size;
        let message = message.clone();
        self.waiting.push_back(WaitingMessage { sequence, message });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ExchangeId = ExchangeId(1);
    const B: ExchangeId = ExchangeId(2);

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned())
    }

    fn call(id: u32, token: &str) -> Message {
        message(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"progressToken":{token}}}}}}}"#
        ))
    }

    fn post(exchange: ExchangeId, last: bool) -> StreamRoute {
        StreamRoute::Post { exchange, last }
    }

    #[test]
    fn answers_go_to_the_post_that_asked() {
        let mut router = StreamRouter::default();
        router.post(A, &call(1, "1"));
        router.post(B, &call(2, "2"));
        assert_eq!(
            router.route(&message(r#"{"id":2,"result":{}}"#)),
            post(B, true)
        );
        assert_eq!(
            router.route(&message(r#"{"id":1,"result":{}}"#)),
            post(A, true)
        );
    }

    #[test]
    fn a_cancelled_request_awaits_no_answer() {
        let mut router = StreamRouter::default();
        router.post(A, &call(1, "1"));
        let id = |token: &'static str| Id::from_token(token.as_bytes());
        assert_eq!(router.cancel(&id("2")), None, "it is not open");
        assert_eq!(router.cancel(&id("1")), Some(A));
        router.get_opened();
        let late = message(r#"{"id":1,"result":{}}"#);
        assert_eq!(router.route(&late), StreamRoute::Cancelled);
        let batch = message(r#"[{"id":1,"method":"a"},{"id":2,"method":"b"}]"#);
        router.post(B, &batch);
        assert_eq!(router.cancel(&id("1")), None, "the other is open");
        assert_eq!(
            router.route(&message(r#"{"id":2,"result":{}}"#)),
            post(B, true)
        );
        assert_eq!(router.route(&late), StreamRoute::Cancelled);
    }

    #[test]
    fn progress_goes_to_its_token_and_a_string_token_is_another_one() {
        let mut router = StreamRouter::default();
        router.post(A, &call(1, "7"));
        router.post(B, &call(2, r#""7""#));
        let progress = |token: &str| {
            message(&format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
            ))
        };
        assert_eq!(router.route(&progress("7")), post(A, false));
        assert_eq!(router.route(&progress(r#""7""#)), post(B, false));
    }

    #[test]
    fn others_go_to_the_only_post_then_get_then_oldest_then_wait() {
        let mut router = StreamRouter::default();
        let log = message(r#"{"method":"notifications/message","params":{}}"#);
        assert_eq!(router.route(&log), StreamRoute::Waiting);
        router.wait(Some(1), &log).unwrap();
        assert_eq!(router.get_opened().len(), 1);
        assert_eq!(router.route(&log), StreamRoute::Get);
        router.post(A, &call(1, "1"));
        assert_eq!(router.route(&log), post(A, false));
        router.post(B, &call(2, "2"));
        assert_eq!(router.route(&log), StreamRoute::Get);
        router.get_closed();
        assert_eq!(router.route(&log), post(A, false));
    }

    #[test]
    fn a_batch_ends_with_its_last_answer() {
        let mut router = StreamRouter::default();
        let batch = message(r#"[{"id":1,"method":"a"},{"id":2,"method":"b"},{"method":"n"}]"#);
        assert_eq!(router.post(A, &batch), PostExpectation::Answers);
        assert_eq!(
            router.route(&message(r#"{"id":2,"result":1}"#)),
            post(A, false)
        );
        assert_eq!(
            router.route(&message(r#"{"id":1,"result":1}"#)),
            post(A, true)
        );
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut router = StreamRouter::default();
        let text = format!(r#"{{"method":"n","params":"{}"}}"#, "x".repeat(600 * 1024));
        router.wait(Some(1), &message(&text)).unwrap();
        let size = text.len();
        let full = router.wait(Some(2), &message(&text));
        let waiting = size;
        assert_eq!(full, Err(CannotWait::Full { size, waiting }));
        assert_eq!(router.take_waiting().len(), 1);
        router.wait(Some(3), &message(&text)).unwrap();
        let large = router.wait(Some(4), &message(&text.repeat(2)));
        assert_eq!(large, Err(CannotWait::TooLarge { size: 2 * size }));
    }

    #[test]
    fn a_post_whose_client_left_gets_only_what_is_its_own() {
        let mut router = StreamRouter::default();
        let log = message(r#"{"method":"notifications/message","params":{}}"#);
        router.post(A, &call(1, "1"));
        router.post_left(A);
        assert_eq!(router.route(&log), StreamRoute::Waiting);
        router.post_back(A);
        assert_eq!(router.route(&log), post(A, false));
        router.post_left(A);
        let answer = message(r#"{"id":1,"result":{}}"#);
        assert_eq!(router.route(&answer), post(A, true));
    }

    #[test]
    fn broken_json_is_answered_by_an_error_without_id() {
        let mut router = StreamRouter::default();
        assert_eq!(
            router.post(A, &message("{nonsense")),
            PostExpectation::UnparsedBody
        );
        let error = message(r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#);
        assert_eq!(router.route(&error), post(A, true));
    }

    #[test]
    fn an_answer_that_only_we_cannot_read_finds_its_request() {
        let mut router = StreamRouter::default();
        router.post(A, &call(1, "1"));
        router.post(B, &call(2, "2"));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{}"#, "[".repeat(5000));
        assert_eq!(router.route(&message(&deep)), post(B, true));
    }

    #[test]
    fn what_only_we_cannot_read_is_answered_by_its_id_or_without() {
        let deep = format!(r#"{{"id":7,"method":"m","params":{}"#, "[".repeat(5000));
        let mut router = StreamRouter::default();
        assert_eq!(router.post(A, &message(&deep)), PostExpectation::Answers);
        let answer = message(r#"{"id":7,"result":{}}"#);
        assert_eq!(router.route(&answer), post(A, true));
        assert_eq!(router.post(A, &message(&deep)), PostExpectation::Answers);
        let error = message(r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#);
        assert_eq!(router.route(&error), post(A, true));
    }
}
