//! The store with a keychain and without, in one process and in several.

use std::sync::Arc;
use std::time::{Duration, Instant};

use keyring_core::api::CredentialStoreApi as _;
use keyring_core::mock;
use url::Url;

use super::keychain::Keychain;
use super::{SecretsPlace, SignIn, SignInSecrets, SignIns, TokenStoreChoice};
use crate::server_key::ServerKey;
use crate::{AuthError, Secret, SignInState};

fn key() -> ServerKey {
    ServerKey::new(&Url::parse("https://mcp.example.com/mcp").unwrap())
}

fn secrets(token: &str) -> SignInSecrets {
    SignInSecrets {
        access_token: Some(Secret::new(token)),
        ..SignInSecrets::default()
    }
}

/// What another process with the same keychain would open.
fn open(
    folder: &tempfile::TempDir,
    keychain: &Arc<mock::Store>,
    choice: TokenStoreChoice,
) -> SignIns {
    let sign_ins = SignIns::open(folder.path().join("mcp-proxy"), choice).unwrap();
    let mut sign_ins = Arc::into_inner(sign_ins).unwrap();
    sign_ins.keychain = Keychain::of(Arc::clone(keychain) as _);
    sign_ins
}

fn token_of(sign_ins: &SignIns) -> Option<String> {
    let stored = sign_ins.load(&key()).unwrap();
    let token = stored.secrets.access_token?;
    Some(token.expose().to_owned())
}

#[test]
fn tokens_are_in_the_keychain_and_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    let other = open(&folder, &keychain, TokenStoreChoice::Keychain);
    assert_eq!(token_of(&other).as_deref(), Some("canary"));
    assert!(!folder.path().join("mcp-proxy/tokens.json").exists());
    let file = std::fs::read_to_string(folder.path().join("mcp-proxy/sign-ins.json")).unwrap();
    assert!(!file.contains("canary"));
    sign_ins.forget(&key()).unwrap();
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    assert!(matches!(
        entry.get_secret(),
        Err(keyring_core::Error::NoEntry)
    ));
    assert_eq!(token_of(&other), None);
}

#[test]
fn a_keychain_that_fails_leaves_the_tokens_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    mock.set_error(keyring_core::Error::NoDefaultStore);
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    assert_eq!(
        sign_ins.load(&key()).unwrap().sign_in.secrets,
        SecretsPlace::File
    );
    assert_eq!(token_of(&sign_ins).as_deref(), Some("canary"));
    assert!(entry.get_secret().is_err());
}

#[test]
fn a_locked_keychain_keeps_a_sign_in_that_a_later_logout_removes() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    let remove = |ends: bool| match ends {
        true => sign_ins.end(&key(), &sign_ins.sign_in(&key()).unwrap().unwrap()),
        false => sign_ins.forget(&key()),
    };
    for ends in [true, false] {
        sign_ins
            .store(&key(), SignIn::default(), secrets("canary"))
            .unwrap();
        mock.set_error(keyring_core::Error::NoDefaultStore);
        assert_eq!(remove(ends), Err(AuthError::Keychain));
        assert_eq!(token_of(&sign_ins).as_deref(), Some("canary"));
        remove(ends).unwrap();
        assert!(entry.get_secret().is_err());
        assert_eq!(token_of(&sign_ins), None);
    }
}

#[test]
fn what_a_keychain_stores_too_late_is_removed_again() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let mut sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    let impatient = Keychain::of(Arc::clone(&keychain) as _);
    let (short, long) = (Duration::from_millis(50), Duration::from_secs(60));
    sign_ins.keychain = impatient.with_patience(short, long);
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    // It asks its person.
    let asking = mock.inner.lock().unwrap();
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    assert_eq!(token_of(&sign_ins).as_deref(), Some("canary"));
    // Nobody else asks meanwhile.
    assert!(sign_ins.keychain.get(&key()).is_err());
    drop(asking);
    let deadline = Instant::now() + Duration::from_secs(60);
    let late = loop {
        match sign_ins.keychain.get(&key()) {
            Err(_) if Instant::now() < deadline => std::thread::yield_now(),
            late => break late.unwrap(),
        }
    };
    assert_eq!(late, None);
}

#[test]
fn a_person_who_refuses_the_keychain_is_not_asked_at_once_again() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let mut sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    let refuse = || mock.set_error(keyring_core::Error::NoDefaultStore);
    // What fails at once has asked nobody.
    refuse();
    assert!(sign_ins.load(&key()).is_err());
    assert!(sign_ins.load(&key()).is_ok());
    let keychain = Keychain::of(keychain as _);
    sign_ins.keychain = keychain.with_patience(Duration::from_secs(60), Duration::ZERO);
    refuse();
    assert!(sign_ins.load(&key()).is_err());
    assert_eq!(sign_ins.load(&key()).unwrap_err(), AuthError::Keychain);
    assert!(entry.get_secret().is_ok());
}

#[test]
fn a_file_can_be_chosen_and_nothing_stays_in_the_keychain() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::Keychain);
    sign_ins
        .store(&key(), SignIn::default(), secrets("old"))
        .unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::File);
    assert_eq!(token_of(&sign_ins).as_deref(), Some("old"));
    sign_ins
        .store(&key(), SignIn::default(), secrets("new"))
        .unwrap();
    assert_eq!(token_of(&sign_ins).as_deref(), Some("new"));
    let entry = keychain.build("mcp-proxy", key().as_str(), None).unwrap();
    assert!(entry.get_secret().is_err());
}

#[test]
fn folder_and_files_are_private_and_links_are_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-proxy");
    let sign_ins = SignIns::open(path.clone(), TokenStoreChoice::File).unwrap();
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("tokens.json")), 0o600);
    assert_eq!(mode(&path.join("sign-ins.json")), 0o600);
    std::fs::rename(path.join("tokens.json"), folder.path().join("elsewhere")).unwrap();
    symlink(folder.path().join("elsewhere"), path.join("tokens.json")).unwrap();
    assert!(sign_ins.load(&key()).is_err());
}

#[test]
fn a_folder_that_was_deleted_is_empty_and_may_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let hub = SignIns::open(path.clone(), TokenStoreChoice::File).unwrap();
    hub.store(&key(), SignIn::default(), secrets("old"))
        .unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(token_of(&hub), None);
    assert!(!path.exists());
    let login = SignIns::open(path.clone(), TokenStoreChoice::File).unwrap();
    login
        .store(&key(), SignIn::default(), secrets("new"))
        .unwrap();
    assert_eq!(token_of(&hub).as_deref(), Some("new"));
    std::fs::remove_dir_all(&path).unwrap();
    hub.store(&key(), SignIn::default(), secrets("newer"))
        .unwrap();
    assert_eq!(token_of(&login).as_deref(), Some("newer"));
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let sign_ins = SignIns::open(path.clone(), TokenStoreChoice::File).unwrap();
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    std::fs::remove_file(path.join("sign-ins.json")).unwrap();
    for left in ["tokens.json.1.tmp", "sign-ins.json.2.tmp", "other.1.tmp"] {
        std::fs::write(path.join(left), b"canary").unwrap();
    }
    sign_ins.forget(&key()).unwrap();
    assert!(!path.join("tokens.json.1.tmp").exists());
    assert!(!path.join("sign-ins.json.2.tmp").exists());
    assert!(path.join("other.1.tmp").exists());
    let tokens = std::fs::read_to_string(path.join("tokens.json")).unwrap();
    assert!(!tokens.contains("canary"));
}

#[test]
fn every_change_is_another_generation() {
    let folder = tempfile::tempdir().unwrap();
    let sign_ins = SignIns::open(folder.path().join("a"), TokenStoreChoice::File).unwrap();
    let none = sign_ins.generation();
    sign_ins
        .store(&key(), SignIn::default(), secrets("a"))
        .unwrap();
    let signed_in = sign_ins.generation();
    sign_ins
        .store(&key(), SignIn::default(), secrets("b"))
        .unwrap();
    let renewed = sign_ins.generation();
    sign_ins.forget(&key()).unwrap();
    let forgotten = sign_ins.generation();
    assert!(none != signed_in && signed_in != renewed && renewed != forgotten);
}

#[test]
fn a_damaged_file_is_an_error_and_nobody_is_signed_in() {
    let folder = tempfile::tempdir().unwrap();
    let sign_ins = SignIns::open(folder.path().join("a"), TokenStoreChoice::File).unwrap();
    std::fs::write(folder.path().join("a/sign-ins.json"), b"{").unwrap();
    assert!(sign_ins.load(&key()).is_err());
    assert_eq!(sign_ins.state(key().url()), SignInState::SignedOut);
}

#[test]
fn what_would_make_a_file_too_large_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    let sign_ins = open(&folder, &keychain, TokenStoreChoice::File);
    sign_ins
        .store(&key(), SignIn::default(), secrets("canary"))
        .unwrap();
    let huge = SignIn {
        scopes: vec!["x".repeat(16 * 1024 * 1024)],
        ..SignIn::default()
    };
    let other = ServerKey::new(&Url::parse("https://other.example.com").unwrap());
    let refused = sign_ins.store(&other, huge, secrets("other"));
    assert!(matches!(refused, Err(AuthError::File { .. })));
    assert_eq!(token_of(&sign_ins).as_deref(), Some("canary"));
}

#[test]
fn a_renewal_that_ends_after_a_login_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = mock::Store::new().unwrap();
    for choice in [TokenStoreChoice::File, TokenStoreChoice::Keychain] {
        let sign_ins = open(&folder, &keychain, choice);
        let login = |number| SignIn {
            login: number,
            ..SignIn::default()
        };
        sign_ins.store(&key(), login(1), secrets("old")).unwrap();
        let old = sign_ins.load(&key()).unwrap().sign_in;
        sign_ins.store(&key(), login(2), secrets("new")).unwrap();
        let is_kept = sign_ins.renew(&key(), &old, login(1), secrets("late"));
        assert_eq!(is_kept, Ok(false));
        sign_ins.end(&key(), &old).unwrap();
        assert_eq!(token_of(&sign_ins).as_deref(), Some("new"));
        // A logout is not undone either, nor by a login that looks the same.
        let newer = sign_ins.load(&key()).unwrap().sign_in;
        sign_ins.forget(&key()).unwrap();
        let is_kept = sign_ins.renew(&key(), &newer, login(2), secrets("late"));
        assert_eq!(is_kept, Ok(false));
        assert_eq!(token_of(&sign_ins), None);
    }
}

#[test]
fn scopes_that_are_missing_since_survive_a_renewal() {
    let folder = tempfile::tempdir().unwrap();
    let sign_ins = SignIns::open(folder.path().join("a"), TokenStoreChoice::File).unwrap();
    sign_ins
        .store(&key(), SignIn::default(), secrets("old"))
        .unwrap();
    let old = sign_ins.load(&key()).unwrap().sign_in;
    let generation = sign_ins.generation();
    let missing = vec!["read".to_owned(), "write".to_owned()];
    sign_ins.add_missing_scopes(&key(), missing, 2).unwrap();
    assert_ne!(sign_ins.generation(), generation);
    let renewed = SignIn {
        scopes: vec!["read".to_owned()],
        ..SignIn::default()
    };
    assert_eq!(
        sign_ins.renew(&key(), &old, renewed, secrets("new")),
        Ok(true)
    );
    assert_eq!(token_of(&sign_ins).as_deref(), Some("new"));
    assert_eq!(
        sign_ins.load(&key()).unwrap().sign_in.missing_scopes,
        ["write"]
    );
}

#[test]
fn one_process_at_a_time_renews_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let one = SignIns::open(folder.path().join("a"), TokenStoreChoice::File).unwrap();
    let other = SignIns::open(folder.path().join("a"), TokenStoreChoice::File).unwrap();
    let lock = one.try_lock(&key()).unwrap();
    assert!(lock.is_some());
    assert!(other.try_lock(&key()).unwrap().is_none());
    drop(lock);
    assert!(other.try_lock(&key()).unwrap().is_some());
}
