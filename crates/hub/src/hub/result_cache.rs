//! Results of tools that only read, kept for as long as the server's `cache-ttl` says.
//!
//! A result belongs to the link that it came by. So clients that share a link share its results, a link of one client has its
//! own, and a server that was restarted starts with none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Field, Message, Span};
use rustc_hash::FxHashMap;

use super::Hub;
use super::calls::{Call, NewCall};
use crate::catalog::ServerIndex;
use crate::server_link::LinkId;
use mcp_proxy_wire::json::compact;

/// Bytes of all results together. The least recently used go first.
const BYTES_MAX: usize = 64 * 1024 * 1024;

const ENTRIES_MAX: usize = 1_000;

/// A larger result is not kept.
const ENTRY_BYTES_MAX: usize = 1024 * 1024;

/// With this member of `_meta` set to true, a call is answered by its server.
const NO_CACHE: &str = "mcp-proxy/no-cache";

/// What a call has to do with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheUse {
    Nothing,
    /// Its result is kept, but it is not answered with one.
    StoreOnly,
    LookUpAndStore,
}

/// The results that are kept.
#[derive(Debug, Default)]
pub(super) struct ResultCache {
    results: FxHashMap<Arc<CacheKey>, CachedResult>,
    least_recent_first: BTreeMap<u64, Arc<CacheKey>>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    link: LinkId,
    /// As the server knows it.
    tool: Box<str>,
    /// Without white space, but otherwise the bytes that the server gets: numbers are not read, so that no two of them become
    /// the same.
    arguments: Vec<u8>,
}

#[derive(Debug)]
struct CachedResult {
    result: Bytes,
    good_until: Instant,
    last_use: u64,
}

impl CacheKey {
    fn new(link: LinkId, call: &Message) -> Option<CacheKey> {
        let arguments = call.span(Field::Param("arguments"));
        Some(CacheKey {
            link,
            tool: call.text(Field::Name)?.into(),
            arguments: arguments.map_or_else(Vec::new, |span| compact(call.slice(span))),
        })
    }

    fn size(&self, result: &Bytes) -> usize {
        self.tool.len() + self.arguments.len() + result.len()
    }
}

impl ResultCache {
    /// The result of an earlier call like this one by the same link.
    pub(super) fn find(&mut self, link: LinkId, call: &Message, now: Instant) -> Option<Bytes> {
        if self.results.is_empty() {
            return None;
        }
        let key = CacheKey::new(link, call)?;
        let (key, found) = self.results.get_key_value(&key)?;
        let (key, is_good) = (Arc::clone(key), now < found.good_until);
        if !is_good {
            self.remove(&key);
            return None;
        }
        self.uses += 1;
        let found = self.results.get_mut(&key)?;
        self.least_recent_first.remove(&found.last_use);
        found.last_use = self.uses;
        self.least_recent_first.insert(self.uses, key);
        Some(found.result.clone())
    }

    fn keep(&mut self, key: CacheKey, result: Bytes, good_until: Instant) {
        let size = key.size(&result);
        if size > ENTRY_BYTES_MAX {
            return;
        }
        self.remove(&key);
        while (self.bytes + size > BYTES_MAX || self.results.len() >= ENTRIES_MAX)
            && let Some((_, oldest)) = self.least_recent_first.pop_first()
        {
            self.remove(&oldest);
        }
        self.uses += 1;
        self.bytes += size;
        let key = Arc::new(key);
        self.least_recent_first.insert(self.uses, Arc::clone(&key));
        let last_use = self.uses;
        self.results.insert(
            key,
            CachedResult {
                result,
                good_until,
                last_use,
            },
        );
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(removed) = self.results.remove(key) {
            self.bytes -= key.size(&removed.result);
            self.least_recent_first.remove(&removed.last_use);
        }
    }

    /// Forgets the results of a link.
    pub(super) fn forget(&mut self, link: LinkId) {
        let keys = self.results.keys().filter(|key| key.link == link);
        let keys: Vec<Arc<CacheKey>> = keys.cloned().collect();
        keys.iter().for_each(|key| self.remove(key));
    }
}

impl Hub {
    /// What a new call has to do with the cache.
    pub(super) fn cache_use(&self, new: &NewCall<'_>) -> CacheUse {
        let sent = &new.sent;
        let has = |param| sent.span(Field::Param(param)).is_some();
        let is_cached = self.server(new.server).settings.cache_ttl.is_some()
            && new.hints.read_only
            && sent.method().as_deref() == Some("tools/call")
            // A task, or the second half of a call that asked for input, is more than its arguments.
            && !has("task")
            && !has("inputResponses")
            && !has("requestState");
        if !is_cached {
            return CacheUse::Nothing;
        }
        let has_no_cache = |message: &Message| {
            let span = message.span(Field::Meta(NO_CACHE));
            span.is_some_and(|span| message.slice(span) == b"true")
        };
        // The parts of a batch have no `_meta` of their own, and a dispatched call may have more than the request.
        match has_no_cache(new.request.message) || has_no_cache(sent) {
            true => CacheUse::StoreOnly,
            false => CacheUse::LookUpAndStore,
        }
    }

    /// Keeps a server's answer, if it is one that may be given again.
    pub(super) fn keep_result(
        cache: &mut ResultCache,
        call: &Call,
        answer: &Message,
        good_until: Instant,
    ) {
        if call.cache == CacheUse::Nothing {
            return;
        }
        let (Some(link), Some(result)) = (call.link, complete_result(answer)) else {
            return;
        };
        if let Some(key) = CacheKey::new(link, &call.message) {
            // A copy: the answer may be a small part of the buffer that it was read into.
            let result = Bytes::copy_from_slice(answer.slice(result));
            cache.keep(key, result, good_until);
        }
    }

    /// The tools of a server may have changed.
    pub(super) fn forget_results(&mut self, server: ServerIndex) {
        let links = self.links.iter().filter(|(_, link)| link.server == server);
        for link in links.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forget_results_of(link);
        }
    }

    /// What a server said until now may be different from now on. That is true of calls that it is working on too.
    pub(super) fn forget_results_of(&mut self, link: LinkId) {
        self.cache.forget(link);
        let calls = self.calls.values_mut();
        for call in calls.filter(|call| call.is_sent && call.link == Some(link)) {
            call.cache = CacheUse::Nothing;
        }
    }
}

/// The result of a tool that has done its work: not an error, a task or a question.
fn complete_result(answer: &Message) -> Option<Span> {
    let result = answer.result()?;
    let field = |name| answer.span(Field::ResultField(name));
    let failed = field("isError").is_some_and(|span| answer.slice(span) != b"false");
    let is_task = field("task").is_some() || field("taskId").is_some();
    let kind = answer.text(Field::ResultField("resultType"));
    let is_complete = kind.is_none_or(|kind| kind == "complete");
    (!failed && !is_task && is_complete).then_some(result)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(number: usize) -> CacheKey {
        CacheKey {
            link: LinkId(1),
            tool: "look".into(),
            arguments: number.to_string().into_bytes(),
        }
    }

    fn call(number: usize) -> Message {
        Message::parse(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"look","arguments":{number}}}}}"#
        ))
    }

    #[test]
    fn the_least_recently_used_result_goes_first() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut cache = ResultCache::default();
        for number in 0..ENTRIES_MAX {
            cache.keep(key(number), Bytes::from_static(b"{}"), later);
        }
        assert!(cache.find(LinkId(1), &call(0), now).is_some());
        cache.keep(key(ENTRIES_MAX), Bytes::from_static(b"{}"), later);
        assert_eq!(cache.results.len(), ENTRIES_MAX);
        assert!(cache.find(LinkId(1), &call(0), now).is_some());
        assert!(cache.find(LinkId(1), &call(1), now).is_none());
    }

    #[test]
    fn results_have_room_only_for_so_many_bytes() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut cache = ResultCache::default();
        let large = Bytes::from(vec![b' '; ENTRY_BYTES_MAX - 100]);
        for number in 0..100 {
            cache.keep(key(number), large.clone(), later);
            assert!(cache.bytes <= BYTES_MAX);
        }
        assert_eq!(cache.results.len(), cache.least_recent_first.len());
        assert!(cache.results.len() >= 60);
        cache.keep(key(1_000), Bytes::from(vec![b' '; ENTRY_BYTES_MAX]), later);
        assert!(cache.find(LinkId(1), &call(1_000), now).is_none());
        cache.forget(LinkId(1));
        assert_eq!((cache.bytes, cache.results.len()), (0, 0));
    }
}
