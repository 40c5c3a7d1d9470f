//! The hub's own `subscriptions/listen` at a modern server: changes of its lists, and all resources that somebody
//! subscribed to.

use std::collections::BTreeSet;
use std::time::Instant;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{ErrorCode, Field, Message, Span, json_string};

use super::opening::is_own;
use super::{HubRequest, LinkNews, Requester, ServerLink};
use crate::backoff::{RECOVERED, wait_after};
use crate::json::{elements, member_cuts};

/// One of the listen requests of a link. Later ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListenNumber(u32);

/// What a link listens to.
#[derive(Debug, Default)]
pub(super) struct Listening {
    uris: BTreeSet<Box<str>>,
    last: u32,
    open: Vec<OpenListen>,
    /// How often in a row a listen request has ended soon.
    failures: u32,
    reopen_at: Option<Instant>,
}

#[derive(Debug)]
struct OpenListen {
    number: ListenNumber,
    uris: BTreeSet<Box<str>>,
    /// When the server said the first thing on it.
    taken_up: Option<Instant>,
    gap: ListenGap,
}

/// Whether changes may have been missed before a listen request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenGap {
    None,
    Possible,
}

impl Listening {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.reopen_at
    }
}

impl ServerLink {
    /// Listens to these resources. What a listen request is about cannot be changed, so there is a new one, and the old one
    /// stays open until the server has taken it up: nothing is missed in between.
    pub(crate) fn listen_to(&mut self, uris: BTreeSet<Box<str>>) {
        if self.listening.uris == uris {
            return;
        }
        self.listening.uris = uris;
        if self.is_ready() {
            self.listen();
        }
    }

    /// Asks a modern server to tell about its changes.
    pub(super) fn listen(&mut self) {
        let meta = self.client.meta();
        let offers = self.description.offers;
        let lists = [
            (offers.tools, "toolsListChanged"),
            (offers.prompts, "promptsListChanged"),
            (offers.resources, "resourcesListChanged"),
        ];
        let mut wanted: Vec<String> = lists
            .iter()
            .filter(|(offered, _)| *offered)
            .map(|(_, name)| format!("\"{name}\":true"))
            .collect();
        if !self.listening.uris.is_empty() {
            let uris: Vec<String> = self
                .listening
                .uris
                .iter()
                .map(|uri| json_string(uri))
                .collect();
            wanted.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        let message = Message::parse(format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"subscriptions/listen","params":{{"notifications":{{{}}},"_meta":{{{meta}}}}}}}"#,
            wanted.join(",")
        ));
        self.listening.last += 1;
        let number = ListenNumber(self.listening.last);
        let gap = match self.listening.reopen_at.take() {
            Some(_) => ListenGap::Possible,
            None => ListenGap::None,
        };
        self.listening.open.push(OpenListen {
            number,
            uris: self.listening.uris.clone(),
            taken_up: None,
            gap,
        });
        self.request(HubRequest::Listen(number), &message);
    }

    /// Listens again, if it is time for that.
    pub(super) fn reopen_listening(&mut self, now: Instant) {
        if self.listening.reopen_at.is_some_and(|at| at <= now) {
            self.listen();
        }
    }

    /// The server has told something on a listen request. Returns the message without our request's id, which means nothing
    /// to clients, and what it means that the request was taken up.
    pub(super) fn told_on_listen(
        &mut self,
        number: ListenNumber,
        message: Message,
        now: Instant,
    ) -> (Message, Vec<LinkNews>) {
        if message.method().as_deref() == Some("notifications/cancelled") {
            let news = self.listen_ended(number, &message, now);
            return (message, news);
        }
        let news = self.listen_taken_up(number, &message, now);
        (without_subscription_id(message), news)
    }

    /// The listen requests before one that the server has taken up are not needed any more, and their messages would come
    /// twice.
    fn listen_taken_up(
        &mut self,
        number: ListenNumber,
        message: &Message,
        now: Instant,
    ) -> Vec<LinkNews> {
        let mut open = self.listening.open.iter_mut();
        let Some(listen) = open.find(|open| open.number == number && open.taken_up.is_none())
        else {
            return Vec::new();
        };
        listen.taken_up = Some(now);
        let gap = listen.gap;
        let (agreed, refused) = agreed_resources(&listen.uris, message);
        listen.uris.clone_from(&agreed);
        if number.0 == self.listening.last {
            self.listening.uris.clone_from(&agreed);
        }
        let is_replaced = |open: &OpenListen| open.number < number;
        for old in self.listening.open.extract_if(.., |open| is_replaced(open)) {
            let requester = Requester::Hub(HubRequest::Listen(old.number));
            self.to_server.extend(self.multiplexer.close(&requester));
        }
        if gap == ListenGap::Possible {
            self.list_all(now);
        }
        vec![LinkNews::ListenAgreed { agreed, refused }]
    }

    /// The server has refused or ended a listen request. One that it ended is made again after a while, if no other is open.
    pub(super) fn listen_ended(
        &mut self,
        number: ListenNumber,
        last: &Message,
        now: Instant,
    ) -> Vec<LinkNews> {
        let open = &mut self.listening.open;
        let Some(place) = open.iter().position(|open| open.number == number) else {
            return Vec::new();
        };
        let ended = open.remove(place);
        let code = last.error_code().map(ErrorCode);
        if let Some(code) = code.filter(|code| ended.taken_up.is_none() && !is_own(*code)) {
            return self.listen_refused(ended, code, last).into_iter().collect();
        }
        if self.listening.open.is_empty() {
            let lasted = ended.taken_up.map(|since| now.duration_since(since));
            if lasted.is_some_and(|lasted| lasted >= RECOVERED) {
                self.listening.failures = 0;
            }
            self.listening.reopen_at = Some(now + wait_after(self.listening.failures));
            self.listening.failures += 1;
        }
        Vec::new()
    }

    /// The resources that are new in a refused request are what was refused. If none has been taken up before, the server is
    /// asked for the changes of its lists alone. A server that never said that it tells about changes may refuse that.
    fn listen_refused(
        &mut self,
        ended: OpenListen,
        code: ErrorCode,
        answer: &Message,
    ) -> Option<LinkNews> {
        let newest = self.listening.open.last();
        let kept = newest.map_or_else(BTreeSet::new, |open| open.uris.clone());
        let refused: BTreeSet<Box<str>> = ended.uris.difference(&kept).cloned().collect();
        if ended.number.0 == self.listening.last {
            self.listening.uris = kept;
        }
        if self.listening.open.is_empty() && !ended.uris.is_empty() {
            self.listen();
        }
        let offers = self.description.offers;
        if refused.is_empty() && !offers.list_changes && !offers.subscriptions {
            return None;
        }
        let error = answer.error();
        let text = error.and_then(|error| answer.text_at(answer.member(error, "message")?));
        Some(LinkNews::ListenRefused {
            uris: refused,
            code,
            reason: text.map_or_else(|| "no reason given".to_owned(), |text| text.into_owned()),
        })
    }
}

/// Which of these resources the first message on a listen request agrees to, and which it does not. A server that says
/// nothing about them has agreed to all.
fn agreed_resources(
    uris: &BTreeSet<Box<str>>,
    message: &Message,
) -> (BTreeSet<Box<str>>, BTreeSet<Box<str>>) {
    let is_acknowledgement =
        message.method().as_deref() == Some("notifications/subscriptions/acknowledged");
    let filter = message.span(Field::Param("notifications"));
    let Some(filter) = filter.filter(|_| is_acknowledgement) else {
        return (uris.clone(), BTreeSet::new());
    };
    let named = message.member(filter, "resourceSubscriptions");
    let named: BTreeSet<Box<str>> = named
        .into_iter()
        .flat_map(|array| elements(message, array))
        .filter_map(|span| Some(message.text_at(span)?.into()))
        .collect();
    uris.iter().cloned().partition(|uri| named.contains(uri))
}

fn without_subscription_id(message: Message) -> Message {
    let Some(object) = message.span(Field::Param("_meta")) else {
        return message;
    };
    let cuts = member_cuts(&message, object, |name| name == meta::SUBSCRIPTION_ID);
    let edits: Vec<(Span, &[u8])> = cuts.into_iter().map(|cut| (cut, &b""[..])).collect();
    message.splice(&edits).unwrap_or(message)
}
