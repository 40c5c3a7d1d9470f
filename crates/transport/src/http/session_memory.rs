//! What a listener remembers of its legacy sessions, so that the next run of the program knows them again: some clients go on
//! with a session for ever, and never open another.
//!
//! A session is remembered by a hash of its id, of the token that opened it and of its path. So whoever reads what is kept
//! cannot use a session, and a client must show what it showed before. What the server needs to know about the client, it
//! said in `initialize`. Where this is kept is the user's decision.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_proxy_core::Caller;
use mcp_proxy_wire::{Field, Kind, Message};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Bytes of what is kept of one client. One that says more about itself is not remembered.
const OPENING_MAX: usize = 4 * 1024;
/// The use of a session is worth keeping again after this time, or after a quarter of the time that a session may be idle.
const USE_MATTERS: Duration = Duration::from_secs(2 * 60);

/// A session of an earlier run, or one that the next run should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedSession {
    key: String,
    opening: SavedOpening,
    /// When it was last used, in seconds since 1970.
    used: u64,
}

/// What a client said about itself when it opened its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedOpening {
    protocol_version: String,
    capabilities: Value,
    client_info: ClientInfo,
}

/// What a client calls itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ClientInfo {
    name: String,
    version: String,
}

/// By what a session is known again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey(String);

/// The sessions that the next run should know, among them those of the last run that have not been used in this one.
pub struct SessionMemory {
    max: usize,
    idle: Duration,
    state: Mutex<MemoryState>,
    changed: Notify,
}

#[derive(Default)]
struct MemoryState {
    sessions: BTreeMap<SessionKey, RememberedSession>,
    /// The program ends, and with it all sessions. The next run knows those that there were.
    is_final: bool,
}

struct RememberedSession {
    opening: SavedOpening,
    used: SystemTime,
}

impl SavedOpening {
    /// What this `initialize` says. `None`: it is something else, or too long to be kept.
    pub(super) fn of(message: &Message) -> Option<SavedOpening> {
        if message.kind() != Kind::Request || message.method()? != "initialize" {
            return None;
        }
        let json = |name| {
            let span = message.span(Field::Param(name))?;
            serde_json::from_slice::<Value>(message.slice(span)).ok()
        };
        let info = json("clientInfo").unwrap_or_default();
        let text = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
        let opening = SavedOpening {
            protocol_version: message.text(Field::Param("protocolVersion"))?.into_owned(),
            capabilities: json("capabilities").unwrap_or_else(|| json!({})),
            client_info: ClientInfo {
                name: text("name"),
                version: text("version"),
            },
        };
        let size = serde_json::to_vec(&opening).ok()?.len();
        (size <= OPENING_MAX).then_some(opening)
    }

    /// The `params` that say it again.
    pub(super) fn params(&self) -> Value {
        json!({
            "protocolVersion": self.protocol_version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.client_info.name, "version": self.client_info.version},
        })
    }
}

impl SessionKey {
    /// For the session of this id, as this caller uses it.
    pub(super) fn new(id: &str, caller: &Caller) -> SessionKey {
        let token = caller.token.as_deref();
        let path = caller.path.trim_end_matches('/');
        let mut hash = Context::new(&SHA256);
        for part in [id, path, token.unwrap_or_default()] {
            hash.update(&part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(&[u8::from(token.is_some())]);
        let bytes = hash.finish();
        let hex = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
        SessionKey(hex.collect())
    }
}

impl SessionMemory {
    /// Remembers at most `max` sessions, each until it has not been used for `idle`.
    pub fn new(saved: Vec<SavedSession>, max: usize, idle: Duration) -> SessionMemory {
        let memory = SessionMemory {
            max,
            idle,
            state: Mutex::default(),
            changed: Notify::new(),
        };
        let mut state = memory.state();
        for SavedSession { key, opening, used } in saved {
            // A damaged file may name a time that there is not.
            let used = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(used));
            let Some(used) = used else {
                continue;
            };
            // A time to come is a clock that was set back.
            let used = used.min(SystemTime::now());
            let session = RememberedSession { opening, used };
            if memory.is_alive(&session) {
                state.sessions.insert(SessionKey(key), session);
            }
        }
        state.keep(max);
        drop(state);
        memory
    }

    /// What should be kept now.
    pub fn saved(&self) -> Vec<SavedSession> {
        let state = self.state();
        let sessions = state.sessions.iter();
        let alive = sessions.filter(|(_, session)| self.is_alive(session));
        alive
            .map(|(key, session)| SavedSession {
                key: key.0.clone(),
                opening: session.opening.clone(),
                used: seconds(session.used),
            })
            .collect()
    }

    /// Waits until something else should be kept.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Nothing is remembered or forgotten any more: the program ends, and the sessions go on in its next run.
    pub fn finish(&self) {
        self.state().is_final = true;
    }

    pub(super) fn remember(&self, key: SessionKey, opening: SavedOpening) {
        let used = SystemTime::now();
        let session = RememberedSession { opening, used };
        self.change(|sessions| {
            sessions.insert(key, session);
            true
        });
    }

    /// A session of this key, if there was one.
    pub(super) fn find(&self, key: &SessionKey) -> Option<SavedOpening> {
        let state = self.state();
        let session = state.sessions.get(key)?;
        self.is_alive(session).then(|| session.opening.clone())
    }

    /// A session has not been used for this long. That is noted only if it makes a difference.
    pub(super) fn note_idle(&self, key: &SessionKey, idle: Duration) {
        let used = SystemTime::now() - idle;
        let matters = USE_MATTERS.min(self.idle / 4);
        self.change(|sessions| {
            let Some(session) = sessions.get_mut(key) else {
                return false;
            };
            let moved = used.duration_since(session.used);
            let is_worth_telling = moved.unwrap_or_else(|error| error.duration()) >= matters;
            if is_worth_telling {
                session.used = used;
            }
            is_worth_telling
        });
    }

    pub(super) fn forget(&self, key: &SessionKey) {
        self.change(|sessions| sessions.remove(key).is_some());
    }

    /// Makes a change, and tells it if `change` says so.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<SessionKey, RememberedSession>) -> bool) {
        let mut state = self.state();
        if state.is_final {
            return;
        }
        let is_worth_telling = change(&mut state.sessions);
        state.keep(self.max);
        drop(state);
        if is_worth_telling {
            self.changed.notify_one();
        }
    }

    fn is_alive(&self, session: &RememberedSession) -> bool {
        let idle = session.used.elapsed().unwrap_or_default();
        idle < self.idle
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryState {
    /// Forgets those that have not been used for longest, until there are this many.
    fn keep(&mut self, max: usize) {
        while self.sessions.len() > max {
            let oldest = self.sessions.iter().min_by_key(|(_, it)| it.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.sessions.remove(&oldest);
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn caller(token: Option<&str>, path: &str) -> Caller {
        Caller {
            token: token.map(Into::into),
            path: path.to_owned(),
            ..Caller::default()
        }
    }

    fn opening(capabilities: &Value) -> Option<SavedOpening> {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1", "icons": ["x"]}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        SavedOpening::of(&Message::parse(request.to_string()))
    }

    #[test]
    fn g7_a_session_is_known_by_its_id_token_and_path_together() {
        let key = |id, token, path| SessionKey::new(id, &caller(token, path));
        let own = key("s", Some("t"), "/mcp");
        assert_eq!(own, key("s", Some("t"), "/mcp/"));
        for other in [
            key("s2", Some("t"), "/mcp"),
            key("s", Some("t2"), "/mcp"),
            key("s", Some(""), "/mcp"),
            key("s", None, "/mcp"),
            key("s", Some("t"), "/mcp/p/work"),
            key("st", Some(""), "/mcp"),
        ] {
            assert_ne!(own, other);
        }
    }

    #[test]
    fn g7_what_is_kept_names_neither_session_nor_token() {
        let memory = SessionMemory::new(Vec::new(), 2, DAY);
        let key = SessionKey::new("the-session", &caller(Some("the-token"), "/mcp"));
        let said = opening(&json!({"roots": {"listChanged": true}})).unwrap();
        memory.remember(key.clone(), said.clone());
        let text = serde_json::to_string(&memory.saved()).unwrap();
        assert!(
            !text.contains("the-session") && !text.contains("the-token"),
            "{text}"
        );
        let next = SessionMemory::new(serde_json::from_str(&text).unwrap(), 2, DAY);
        assert_eq!(next.find(&key), Some(said.clone()));
        assert_eq!(said.params()["capabilities"]["roots"]["listChanged"], true);
        assert_eq!(
            said.params()["clientInfo"],
            json!({"name": "c", "version": "1"})
        );
    }

    #[test]
    fn g7_the_memory_is_bounded_and_forgets() {
        let memory = SessionMemory::new(Vec::new(), 2, DAY);
        let key = |id: &str| SessionKey::new(id, &caller(None, "/mcp"));
        let said = opening(&json!({})).unwrap();
        for id in ["a", "b", "c"] {
            memory.remember(key(id), said.clone());
            memory.note_idle(
                &key(id),
                Duration::from_secs(match id {
                    "a" => 50,
                    _ => 10,
                }),
            );
        }
        assert_eq!(memory.find(&key("a")), None, "it was idle for longest");
        memory.note_idle(&key("b"), DAY);
        assert_eq!(memory.find(&key("b")), None, "its time is over");
        assert_eq!(memory.saved().len(), 1);
        memory.finish();
        memory.forget(&key("c"));
        assert_eq!(memory.saved().len(), 1, "the next run knows it");
        assert_eq!(
            opening(&json!({"experimental": "x".repeat(OPENING_MAX)})),
            None
        );
    }

    #[test]
    fn a_use_is_told_again_after_minutes() {
        let memory = SessionMemory::new(Vec::new(), 2, DAY);
        let is_told = || {
            let told = std::pin::pin!(memory.wait_for_change());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            told.poll(&mut context).is_ready()
        };
        let key = SessionKey::new("a", &caller(None, "/mcp"));
        memory.remember(key.clone(), opening(&json!({})).unwrap());
        assert!(is_told());
        let minute = Duration::from_secs(60);
        for (idle, expected) in [(0, false), (1, false), (10, true), (9, false), (0, true)] {
            memory.note_idle(&key, minute * idle);
            assert_eq!(is_told(), expected, "{idle}");
        }
        memory.forget(&key);
        assert!(is_told());
        memory.forget(&key);
        assert!(!is_told(), "nothing has changed");
    }

    #[test]
    fn a_time_that_there_is_not_is_left_out() {
        let memory = SessionMemory::new(Vec::new(), 2, DAY);
        let key = |id: &str| SessionKey::new(id, &caller(None, "/mcp"));
        for id in ["a", "b"] {
            memory.remember(key(id), opening(&json!({})).unwrap());
        }
        let mut saved = memory.saved();
        let damaged = SessionKey(saved[0].key.clone());
        saved[0].used = u64::MAX;
        let next = SessionMemory::new(saved, 2, DAY);
        assert_eq!(next.find(&damaged), None);
        assert_eq!(next.saved().len(), 1);
    }
}
