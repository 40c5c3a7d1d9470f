//! The system's keychain: Secret Service on Linux, Keychain on macOS.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use keyring_core::{CredentialStore, Entry, Error};

use super::SignInSecrets;
use crate::server_key::ServerKey;

/// What our entries are called.
const SERVICE: &str = "mcp-proxy";
/// A locked keychain asks its person, who may be away.
const DEADLINE: Duration = Duration::from_secs(30);

/// The keychain, opened when it is first needed. Without one, every call fails.
#[derive(Default)]
pub(crate) struct Keychain {
    opened: Mutex<Option<Arc<CredentialStore>>>,
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
        Keychain {
            opened: Mutex::new(Some(store)),
        }
    }

    pub(crate) fn get(&self, key: &ServerKey) -> Result<Option<SignInSecrets>, NoKeychain> {
        let json = self.with_entry(key, |entry| match entry.get_secret() {
            Ok(json) => Ok(Some(json)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        })?;
        json.map(|json| serde_json::from_slice(&json).map_err(|_| NoKeychain))
            .transpose()
    }

    pub(crate) fn set(&self, key: &ServerKey, secrets: &SignInSecrets) -> Result<(), NoKeychain> {
        let json = serde_json::to_vec(secrets).map_err(|_| NoKeychain)?;
        self.with_entry(key, move |entry| entry.set_secret(&json))
    }

    pub(crate) fn remove(&self, key: &ServerKey) -> Result<(), NoKeychain> {
        self.with_entry(key, |entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// Works with a server's entry on a thread of its own: a keychain that asks its person gives no sign until then.
    fn with_entry<T: Send + 'static>(
        &self,
        key: &ServerKey,
        work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
    ) -> Result<T, NoKeychain> {
        let known = self.opened().clone();
        let user = key.to_string();
        let (sender, done) = mpsc::sync_channel(1);
        let worker = std::thread::Builder::new().name("keychain".to_owned());
        let started = worker.spawn(move || {
            let worked = known.map_or_else(system_keychain, Ok).and_then(|store| {
                let entry = store.build(SERVICE, &user, None)?;
                Ok((work(&entry)?, store))
            });
            // Nobody waits any more if it took too long.
            let _ = sender.send(worked);
        });
        started.map_err(|_| NoKeychain)?;
        match done.recv_timeout(DEADLINE) {
            Ok(Ok((value, store))) => {
                *self.opened() = Some(store);
                Ok(value)
            }
            Ok(Err(_)) | Err(_) => Err(NoKeychain),
        }
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Option<Arc<CredentialStore>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "macos")]
fn system_keychain() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(not(target_os = "macos"))]
fn system_keychain() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(dbus_secret_service_keyring_store::Store::new()?)
}
