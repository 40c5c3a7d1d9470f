//! Requests of one direction that wait for their answers, under numbers that are used once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Field, Id, Kind, Message, Span};
use rustc_hash::FxHashMap;

use super::MultiplexerError;

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct PendingRequest<K> {
    /// The client that sent it, or that was asked.
    pub client: K,
    /// Its id as the sender wrote it.
    pub id: Id,
    /// Its progress token as the sender wrote it.
    pub token: Option<Box<[u8]>>,
    pub wants_logs: bool,
    /// It is `subscriptions/listen`, which the server may end with a cancel.
    pub listens: bool,
    /// Its sender does not want the answer any more. Whether one comes is up to the other side.
    pub cancelled: bool,
}

/// Numbered requests, oldest first.
#[derive(Debug)]
pub(super) struct RequestTable<K> {
    limit: usize,
    limit_per_client: usize,
    last_number: u64,
    requests: BTreeMap<u64, PendingRequest<K>>,
    /// The numbers of each client's requests, oldest first.
    by_client: FxHashMap<K, Vec<u64>>,
    /// The numbers of cancelled requests: they make room when the table is full.
    cancelled: BTreeSet<u64>,
}

impl<K: Clone> PendingRequest<K> {
    /// A request, and where its progress token stands.
    pub(super) fn new(
        client: &K,
        message: &Message,
    ) -> Result<(PendingRequest<K>, Option<Span>), MultiplexerError> {
        let kind = message.kind();
        let id = message.id().filter(|_| kind == Kind::Request);
        let meta = message.span(Field::Param("_meta"));
        let in_meta = |name: &str| message.member(meta?, name);
        let token = in_meta("progressToken");
        let request = PendingRequest {
            client: client.clone(),
            id: id.ok_or(MultiplexerError::WrongKind(kind))?,
            token: token.map(|span| message.slice(span).into()),
            wants_logs: in_meta(meta::LOG_LEVEL).is_some(),
            listens: message.method().as_deref() == Some("subscriptions/listen"),
            cancelled: false,
        };
        Ok((request, token))
    }
}

impl<K> PendingRequest<K> {
    /// Whether `id` names this request. Two spellings of one string are the same id.
    fn has_id(&self, id: &Id) -> bool {
        let escaped = |id: &Id| id.token().contains(&b'\\');
        self.id == *id || ((escaped(&self.id) || escaped(id)) && self.id.key() == id.key())
    }
}

impl<K: Clone + Eq + Hash> RequestTable<K> {
    pub(super) fn new(limit: usize, limit_per_client: usize) -> RequestTable<K> {
        RequestTable {
            limit,
            limit_per_client,
            last_number: 0,
            requests: BTreeMap::new(),
            by_client: FxHashMap::default(),
            cancelled: BTreeSet::new(),
        }
    }

    /// Gives a request its number. If the table is full, the oldest cancelled request is forgotten for it.
    pub(super) fn insert(&mut self, request: PendingRequest<K>) -> Result<u64, MultiplexerError> {
        let of_client = self.by_client.get(&request.client).map_or(0, Vec::len);
        if of_client >= self.limit_per_client {
            let is_of_client = |other: &PendingRequest<K>| other.client == request.client;
            self.forget_cancelled(is_of_client)
                .ok_or(MultiplexerError::ClientLimit(self.limit_per_client))?;
        }
        if self.requests.len() >= self.limit {
            self.forget_cancelled(|_| true)
                .ok_or(MultiplexerError::TotalLimit(self.limit))?;
        }
        self.last_number += 1;
        let number = self.last_number;
        match self.by_client.get_mut(&request.client) {
            Some(numbers) => numbers.push(number),
            None => {
                self.by_client.insert(request.client.clone(), vec![number]);
            }
        }
        self.requests.insert(number, request);
        Ok(number)
    }

    pub(super) fn get(&self, number: u64) -> Option<&PendingRequest<K>> {
        self.requests.get(&number)
    }

    /// The oldest request of a client.
    pub(super) fn first_of(&self, client: &K) -> Option<&PendingRequest<K>> {
        let numbers = self.by_client.get(client)?;
        self.requests.get(numbers.first()?)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<PendingRequest<K>> {
        let request = self.requests.remove(&number)?;
        self.cancelled.remove(&number);
        if let Some(numbers) = self.by_client.get_mut(&request.client) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_client.remove(&request.client);
            }
        }
        Some(request)
    }

    /// Takes all requests of a client, oldest first.
    pub(super) fn remove_client(&mut self, client: &K) -> Vec<(u64, PendingRequest<K>)> {
        let numbers = self.by_client.remove(client).unwrap_or_default();
        let taken = numbers.into_iter().filter_map(|number| {
            self.cancelled.remove(&number);
            Some((number, self.requests.remove(&number)?))
        });
        taken.collect()
    }

    pub(super) fn note_cancelled(&mut self, number: u64) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.cancelled = true;
            self.cancelled.insert(number);
        }
    }

    /// The client's request under this id. A client that uses an id twice at once means the oldest one that is not
    /// cancelled yet.
    pub(super) fn find(&self, client: &K, id: &Id) -> Option<u64> {
        let of_client = self.by_client.get(client)?;
        let mut found = of_client.iter().copied().filter_map(|number| {
            let request = self.requests.get(&number)?;
            request.has_id(id).then_some((number, request.cancelled))
        });
        let oldest = found.next()?;
        let open = std::iter::once(oldest)
            .chain(found)
            .find(|(_, cancelled)| !cancelled);
        Some(open.unwrap_or(oldest).0)
    }

    /// The request under this id if there is one only, of whichever client.
    pub(super) fn find_only(&self, id: &Id) -> Option<u64> {
        let mut found = self.find_all(id);
        let number = found.next()?;
        found.next().is_none().then_some(number)
    }

    /// The oldest request under this id, of whichever client.
    pub(super) fn find_oldest(&self, id: &Id) -> Option<u64> {
        self.find_all(id).next()
    }

    pub(super) fn has_client(&self, client: &K) -> bool {
        self.by_client.contains_key(client)
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether it ever had a request.
    pub(super) fn was_used(&self) -> bool {
        self.last_number > 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PendingRequest<K>> {
        self.requests.values()
    }

    fn find_all(&self, id: &Id) -> impl Iterator<Item = u64> {
        let matching = self
            .requests
            .iter()
            .filter(|(_, request)| request.has_id(id));
        matching.map(|(number, _)| *number)
    }

    fn forget_cancelled(
        &mut self,
        is_wanted: impl Fn(&PendingRequest<K>) -> bool,
    ) -> Option<PendingRequest<K>> {
        let oldest = self
            .cancelled
            .iter()
            .copied()
            .find(|number| self.requests.get(number).is_some_and(&is_wanted));
        self.remove(oldest?)
    }
}
