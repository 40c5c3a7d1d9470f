//! The user's sign-ins, shared by all processes of the user.
//!
//! `sign-ins.json` has what is not secret, and `tokens.json` or the keychain has the rest. Tokens are written first, so a reader
//! of `sign-ins.json` then finds tokens that are at least as new. Tokens leave the keychain first: as long as it is
//! locked, it is known that there are some.

mod document;
mod keychain;
mod private_folder;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, Stat, flock};
use rustix::io::Errno;
use url::Url;

use crate::server_key::ServerKey;
use crate::{AuthError, SignInState};
pub(crate) use document::{AuthorizationServer, SecretsPlace, SignIn, SignInSecrets, StoredSignIn};
use document::{SignInsDocument, TokensDocument};
use keychain::Keychain;
use private_folder::PrivateFolder;

const SIGN_INS: &str = "sign-ins.json";
const TOKENS: &str = "tokens.json";
/// Held while the files are changed.
const WRITE_LOCK: &str = "sign-ins.lock";

/// Where new tokens are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenStoreChoice {
    /// In the system's keychain if there is one, otherwise in a private file.
    #[default]
    Keychain,
    /// In a private file.
    File,
}

/// Changes whenever somebody signs in or out or tokens are renewed, in whatever process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generation {
    inode: u64,
    length: i64,
    modified: (i64, i64),
}

impl Generation {
    fn of(facts: &Stat) -> Generation {
        Generation {
            inode: facts.st_ino,
            length: facts.st_size,
            modified: (facts.st_mtime, facts.st_mtime_nsec as i64),
        }
    }
}

/// All sign-ins of the user.
#[derive(Debug)]
pub struct SignIns {
    folder: PrivateFolder,
    choice: TokenStoreChoice,
    keychain: Keychain,
    /// The file as it was when it was last read.
    read: Mutex<(Generation, Arc<SignInsDocument>)>,
}

impl SignIns {
    /// Opens the folder, and creates it if need be. Nothing is read yet.
    pub fn open(folder: PathBuf, choice: TokenStoreChoice) -> Result<Arc<SignIns>, AuthError> {
        let folder = PrivateFolder::open_or_create(&folder).map_err(|error| AuthError::Folder {
            why: error.to_string(),
        })?;
        Ok(Arc::new(SignIns {
            folder,
            choice,
            keychain: Keychain::default(),
            read: Mutex::default(),
        }))
    }

    /// Changes whenever another process, or this one, signs in or out or renews tokens. Costs one system call.
    pub fn generation(&self) -> Generation {
        self.folder.generation(SIGN_INS)
    }

    /// Whether there is a sign-in for `server`. A file that cannot be read has none.
    pub fn state(&self, server: &Url) -> SignInState {
        match self.sign_in(&ServerKey::new(server)) {
            Ok(Some(sign_in)) => sign_in.state(),
            Ok(None) | Err(_) => SignInState::SignedOut,
        }
    }

    /// Everything about a server that is not secret.
    fn sign_in(&self, key: &ServerKey) -> Result<Option<SignIn>, AuthError> {
        let document = self.document()?;
        Ok(document.sign_ins.get(key.as_str()).cloned())
    }

    /// Everything about a server. Without a sign-in, that is nothing.
    pub(crate) fn load(&self, key: &ServerKey) -> Result<StoredSignIn, AuthError> {
        let sign_in = self.sign_in(key)?.unwrap_or_default();
        let secrets = self.secrets(key, sign_in.secrets)?;
        Ok(StoredSignIn { sign_in, secrets })
    }

    /// A server's secrets, wherever they are.
    fn secrets(&self, key: &ServerKey, place: SecretsPlace) -> Result<SignInSecrets, AuthError> {
        match place {
            SecretsPlace::None => Ok(SignInSecrets::default()),
            SecretsPlace::Keychain => match self.keychain.get(key) {
                Ok(secrets) => Ok(secrets.unwrap_or_default()),
                Err(_) => Err(AuthError::Keychain),
            },
            SecretsPlace::File => {
                let mut document: TokensDocument = self.parsed(TOKENS)?;
                Ok(document.tokens.remove(key.as_str()).unwrap_or_default())
            }
        }
    }

    /// Stores a sign-in and its secrets, whatever there was.
    pub(crate) fn store(
        &self,
        key: &ServerKey,
        sign_in: SignIn,
        secrets: SignInSecrets,
    ) -> Result<(), AuthError> {
        self.store_after(key, None, sign_in, secrets).map(drop)
    }

    /// Stores a renewed sign-in, but only if `old` is still there. Returns whether it was.
    pub(crate) fn renew(
        &self,
        key: &ServerKey,
        old: &SignIn,
        sign_in: SignIn,
        secrets: SignInSecrets,
    ) -> Result<bool, AuthError> {
        self.store_after(key, Some(old), sign_in, secrets)
    }

    fn store_after(
        &self,
        key: &ServerKey,
        old: Option<&SignIn>,
        mut sign_in: SignIn,
        secrets: SignInSecrets,
    ) -> Result<bool, AuthError> {
        if old.is_some_and(|old| !self.is_there(key, old)) {
            return Ok(false);
        }
        // A keychain may ask its person, so nobody's lock is held meanwhile.
        let is_in_keychain =
            self.choice == TokenStoreChoice::Keychain && self.keychain.set(key, &secrets).is_ok();
        sign_in.secrets = match is_in_keychain {
            true => SecretsPlace::Keychain,
            false => SecretsPlace::File,
        };
        let lock = self.write_lock()?;
        let there = self.sign_in(key)?.unwrap_or_default();
        if let Some(old) = old {
            if !there.has_tokens_of(old) {
                return Ok(false);
            }
            // Others may have been missing meanwhile.
            let is_missing = |scope: &String| !sign_in.scopes.contains(scope);
            let missing = there.missing_scopes.iter();
            sign_in.missing_scopes = missing.filter(|scope| is_missing(scope)).cloned().collect();
        }
        let in_file = (!is_in_keychain).then_some(secrets);
        self.put_tokens(key, in_file)?;
        self.put(key, sign_in)?;
        drop(lock);
        if !is_in_keychain && there.secrets == SecretsPlace::Keychain {
            // The old tokens are of no more use. A keychain that is not there cannot remove them.
            let _ = self.keychain.remove(key);
        }
        Ok(true)
    }

    /// Removes the secrets of a sign-in that has ended, but not those of another one. What the next login needs stays.
    pub(crate) fn end(&self, key: &ServerKey, old: &SignIn) -> Result<(), AuthError> {
        if !self.is_there(key, old) {
            return Ok(());
        }
        self.remove_from_keychain(key)?;
        let _lock = self.write_lock()?;
        let mut there = self.sign_in(key)?.unwrap_or_default();
        if !there.has_tokens_of(old) {
            return Ok(());
        }
        there.secrets = SecretsPlace::None;
        self.put(key, there)?;
        self.put_tokens(key, None)
    }

    /// Whether nobody has signed in or out or renewed the tokens since. What cannot be read is not there.
    fn is_there(&self, key: &ServerKey, old: &SignIn) -> bool {
        let there = self.sign_in(key);
        there.is_ok_and(|there| there.unwrap_or_default().has_tokens_of(old))
    }

    /// Remembers scopes for the next login, up to `max`. Returns all that are missing.
    pub(crate) fn add_missing_scopes(
        &self,
        key: &ServerKey,
        scopes: Vec<String>,
        max: usize,
    ) -> Result<Vec<String>, AuthError> {
        let _lock = self.write_lock()?;
        let mut sign_in = self.sign_in(key)?.unwrap_or_default();
        let known = sign_in.missing_scopes.len();
        for scope in scopes {
            let missing = &mut sign_in.missing_scopes;
            if missing.len() < max && !missing.contains(&scope) {
                missing.push(scope);
            }
        }
        let missing = sign_in.missing_scopes.clone();
        if missing.len() > known {
            self.put_scopes(key, sign_in)?;
        }
        Ok(missing)
    }

    /// Forgets scopes that the authorization server does not grant. Those of a sign-in that has not ended are granted.
    pub(crate) fn drop_scopes(&self, key: &ServerKey, refused: &[String]) -> Result<(), AuthError> {
        let _lock = self.write_lock()?;
        let Some(old) = self.sign_in(key)? else {
            return Ok(());
        };
        let mut sign_in = old.clone();
        sign_in
            .missing_scopes
            .retain(|scope| !refused.contains(scope));
        if sign_in.secrets == SecretsPlace::None {
            sign_in.scopes.retain(|scope| !refused.contains(scope));
        }
        match sign_in == old {
            true => Ok(()),
            false => self.put_scopes(key, sign_in),
        }
    }

    /// Locks a server's tokens for their renewal. `None`: another one has the lock.
    pub(crate) fn try_lock(&self, key: &ServerKey) -> Result<Option<std::fs::File>, AuthError> {
        let digest = ring::digest::digest(&ring::digest::SHA256, key.as_str().as_bytes());
        let name: String = digest.as_ref()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let locked = self
            .folder
            .lock_file(&format!("{name}.lock"))
            .and_then(
                |file| match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => Ok(Some(file)),
                    Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
                    Err(error) => Err(error.into()),
                },
            );
        locked.map_err(|error| file_error("of a lock", "locked", &error))
    }

    /// Removes a sign-in and its secrets. Nothing changes as long as the keychain does not remove them.
    pub(crate) fn forget(&self, key: &ServerKey) -> Result<(), AuthError> {
        self.remove_from_keychain(key)?;
        let _lock = self.write_lock()?;
        let mut document: SignInsDocument = self.parsed(SIGN_INS)?;
        if document.sign_ins.remove(key.as_str()).is_some() {
            self.write(SIGN_INS, &document)?;
        }
        // A process that was killed between its two writes has left tokens that no sign-in names.
        self.put_tokens(key, None)
    }

    fn place(&self, key: &ServerKey) -> Result<SecretsPlace, AuthError> {
        Ok(self.sign_in(key)?.unwrap_or_default().secrets)
    }

    /// With another number, as the tokens are others.
    fn put(&self, key: &ServerKey, mut sign_in: SignIn) -> Result<(), AuthError> {
        let newest = self.document()?;
        let newest = newest.sign_ins.values().map(|sign_in| sign_in.changes);
        sign_in.changes = newest.max().unwrap_or(0) + 1;
        self.put_scopes(key, sign_in)
    }

    /// With the same number, as the tokens are the same.
    fn put_scopes(&self, key: &ServerKey, sign_in: SignIn) -> Result<(), AuthError> {
        let mut document: SignInsDocument = self.parsed(SIGN_INS)?;
        document.sign_ins.insert(key.to_string(), sign_in);
        self.write(SIGN_INS, &document)
    }

    /// Replaces a server's secrets in the file.
    fn put_tokens(&self, key: &ServerKey, secrets: Option<SignInSecrets>) -> Result<(), AuthError> {
        let mut document: TokensDocument = self.parsed(TOKENS)?;
        let old = match secrets.clone() {
            Some(secrets) => document.tokens.insert(key.to_string(), secrets),
            None => document.tokens.remove(key.as_str()),
        };
        match old == secrets {
            true => Ok(()),
            false => self.write(TOKENS, &document),
        }
    }

    fn remove_from_keychain(&self, key: &ServerKey) -> Result<(), AuthError> {
        match self.place(key)? {
            SecretsPlace::Keychain => self.keychain.remove(key).map_err(|_| AuthError::Keychain),
            SecretsPlace::None | SecretsPlace::File => Ok(()),
        }
    }

    fn document(&self) -> Result<Arc<SignInsDocument>, AuthError> {
        // Before the file is read: if it changes in between, it is read once more, not once too few.
        let generation = self.generation();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != generation {
            *read = (generation, Arc::new(self.parsed(SIGN_INS)?));
        }
        Ok(Arc::clone(&read.1))
    }

    fn parsed<T: Default + serde::de::DeserializeOwned>(
        &self,
        file: &'static str,
    ) -> Result<T, AuthError> {
        match self.folder.read(file) {
            Ok(Some(bytes)) => {
                serde_json::from_slice(&bytes).map_err(|_| AuthError::Damaged { file })
            }
            Ok(None) => Ok(T::default()),
            Err(error) => Err(file_error(file, "read", &error)),
        }
    }

    fn write(&self, file: &'static str, value: &impl serde::Serialize) -> Result<(), AuthError> {
        serde_json::to_vec_pretty(value)
            .map_err(io::Error::from)
            .and_then(|bytes| self.folder.replace(file, &bytes))
            .map_err(|error| file_error(file, "written", &error))
    }

    fn write_lock(&self) -> Result<std::fs::File, AuthError> {
        // Its holder writes two small files and waits for nobody.
        self.folder
            .lock_file(WRITE_LOCK)
            .and_then(|file| {
                while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
                    if error != Errno::INTR {
                        return Err(error.into());
                    }
                }
                for name in [SIGN_INS, TOKENS] {
                    self.folder.remove_leftovers(name)?;
                }
                Ok(file)
            })
            .map_err(|error| file_error(WRITE_LOCK, "locked", &error))
    }
}

fn file_error(file: &'static str, what: &'static str, error: &io::Error) -> AuthError {
    AuthError::File {
        file,
        what,
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
