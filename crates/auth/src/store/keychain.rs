//! The system's keychain: Secret Service on Linux, Keychain on macOS.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keyring_core::{CredentialStore, Entry, Error};

use super::SignInSecrets;
use crate::server_key::ServerKey;

/// What our entries are called.
const SERVICE: &str = "mcp-proxy";
/// A locked keychain asks its person, who may be away.
const DEADLINE: Duration = Duration::from_secs(30);
/// A failure that took longer was a person's.
const ASKED: Duration = Duration::from_secs(1);
/// A person who has said no is not asked again for so long.
const PEACE: Duration = Duration::from_secs(30);

/// The keychain, opened when it is first needed. Without one, every call fails. So do calls while an earlier one still waits
/// for the person: there is one question at a time, and one thread.
pub(crate) struct Keychain {
    /// Held by the caller who waits for a worker.
    turn: Mutex<()>,
    shared: Arc<Shared>,
    deadline: Duration,
    asked: Duration,
}

/// What the workers have, one at a time.
#[derive(Default)]
struct Shared {
    opened: Mutex<Option<Arc<CredentialStore>>>,
    refused: Mutex<Option<Instant>>,
}

impl Default for Keychain {
    fn default() -> Keychain {
        Keychain {
            turn: Mutex::default(),
            shared: Arc::default(),
            deadline: DEADLINE,
            asked: ASKED,
        }
    }
}

/// The keychain does not do what it was asked to. Why makes no difference: there are files.
#[derive(Debug)]
pub(crate) struct NoKeychain;

impl std::fmt::Debug for Keychain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keychain").finish_non_exhaustive()
    }
}

impl Keychain {
    /// A keychain of a test.
    #[cfg(test)]
    pub(crate) fn of(store: Arc<CredentialStore>) -> Keychain {
        let keychain = Keychain::default();
        *lock(&keychain.shared.opened) = Some(store);
        keychain
    }

    /// One with less patience.
    #[cfg(test)]
    pub(crate) fn with_patience(self, deadline: Duration, asked: Duration) -> Keychain {
        Keychain {
            deadline,
            asked,
            ..self
        }
    }

    pub(crate) fn get(&self, key: &ServerKey) -> Result<Option<SignInSecrets>, NoKeychain> {
        let get = |entry: &Entry| match entry.get_secret() {
            Ok(json) => Ok(Some(json)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        };
        let json = self.with_entry(key, get, |_| {})?;
        json.map(|json| serde_json::from_slice(&json).map_err(|_| NoKeychain))
            .transpose()
    }

    pub(crate) fn set(&self, key: &ServerKey, secrets: &SignInSecrets) -> Result<(), NoKeychain> {
        let json = serde_json::to_vec(secrets).map_err(|_| NoKeychain)?;
        let set = move |entry: &Entry| entry.set_secret(&json);
        // Who does not wait any more has put them elsewhere.
        self.with_entry(key, set, |entry| drop(entry.delete_credential()))
    }

    pub(crate) fn remove(&self, key: &ServerKey) -> Result<(), NoKeychain> {
        let remove = |entry: &Entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        };
        self.with_entry(key, remove, |_| {})
    }

    /// Works with a server's entry on a thread of its own: a keychain that asks its person gives no sign until then. If that
    /// takes too long, the thread undoes what it did.
    fn with_entry<T: Send + 'static>(
        &self,
        key: &ServerKey,
        work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
        undo: impl FnOnce(&Entry) + Send + 'static,
    ) -> Result<T, NoKeychain> {
        let _turn = lock(&self.turn);
        let is_busy = Arc::strong_count(&self.shared) > 1;
        let refused = *lock(&self.shared.refused);
        if is_busy || refused.is_some_and(|refused| refused.elapsed() < PEACE) {
            return Err(NoKeychain);
        }
        let shared = Arc::clone(&self.shared);
        let (user, asked) = (key.to_string(), self.asked);
        // Without a buffer, it is certain whether the answer arrived.
        let (sender, done) = mpsc::sync_channel(0);
        let worker = std::thread::Builder::new().name("keychain".to_owned());
        let worker = worker.spawn(move || {
            let begun = Instant::now();
            let known = lock(&shared.opened).clone();
            let opened = known.map_or_else(system_keychain, Ok);
            let entry = opened.and_then(|store| {
                let entry = store.build(SERVICE, &user, None)?;
                *lock(&shared.opened) = Some(store);
                Ok(entry)
            });
            let (entry, worked) = match entry {
                Ok(entry) => {
                    let worked = work(&entry);
                    (Some(entry), worked)
                }
                Err(error) => (None, Err(error)),
            };
            if worked.is_err() && begun.elapsed() >= asked {
                *lock(&shared.refused) = Some(Instant::now());
            }
            let is_late = sender.send(worked.ok()).is_err();
            if let (Some(entry), true) = (entry, is_late) {
                undo(&entry);
            }
        });
        let worker = worker.map_err(|_| NoKeychain)?;
        match done.recv_timeout(self.deadline) {
            Err(RecvTimeoutError::Timeout) => Err(NoKeychain),
            answer => {
                // The worker has finished, so joining it is quick. A worker that panicked has sent nothing.
                let _ = worker.join();
                answer.ok().flatten().ok_or(NoKeychain)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "macos")]
fn system_keychain() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(not(target_os = "macos"))]
fn system_keychain() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(dbus_secret_service_keyring_store::Store::new()?)
}
