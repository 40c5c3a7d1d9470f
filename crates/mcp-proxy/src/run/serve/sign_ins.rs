//! The user's sign-ins to the servers of a hub: what `status` shows of them, and what the hub does when they change.
//!
//! Any process of the user may sign in or out. So the hub looks now and then whether the store has changed, which costs one
//! system call.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_proxy_auth::{PendingLogin, ServerSignIn, SignInFacts, SignInState};
use mcp_proxy_control::SignInHealth;
use mcp_proxy_hub::{BeginSignIn, SignInChange, SignInPage};

use crate::config::{Config, HubServerKind, HubServerTarget, HubTarget};
use crate::run::sessions::formatting::day_and_time;
use crate::run::sign_in::{beginning_failed, server_sign_in};

/// How often the store is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The sign-in to a server, if tokens can be sent to it.
fn sign_in_of(config: &Config, server: &HubServerTarget) -> Option<ServerSignIn> {
    match &server.target {
        Some(HubServerKind::Target(target)) => server_sign_in(config, target),
        Some(HubServerKind::Builtin(_)) | None => None,
    }
}

/// What `status` shows, if somebody has signed in.
pub fn health(config: &Config, server: &HubServerTarget) -> Option<SignInHealth> {
    match sign_in_of(config, server)?.state() {
        SignInState::SignedIn(facts) => Some(SignInHealth {
            account: facts.account,
            until: facts.until.map(second_text),
            renews: facts.can_refresh,
            scopes: facts.scopes,
            missing_scopes: facts.missing_scopes,
        }),
        SignInState::SignedOut => None,
    }
}

/// `2026-11-18T14:05:00Z`
fn second_text(time: SystemTime) -> String {
    day_and_time(time).replace(' ', "T") + "Z"
}

/// How clients are helped to sign in to a server in the middle of a call.
pub fn begin(config: &Config, hub: &HubTarget, server: &HubServerTarget) -> Option<BeginSignIn> {
    let sign_in = sign_in_of(config, server)?;
    if sign_in.needs_no_person() {
        return None;
    }
    let (config, hub) = (config.clone(), hub.clone());
    Some(Arc::new(move || {
        let (sign_in, config, hub) = (sign_in.clone(), config.clone(), hub.clone());
        Box::pin(async move {
            let pending = sign_in.begin(&[]).await;
            let pending = pending.map_err(|error| beginning_failed(&error))?;
            Ok(SignInPage {
                url: pending.url().to_string(),
                signed_in: Box::pin(signed_in(pending, config, hub)),
            })
        })
    }))
}

/// Waits for the person. The hub knows of the sign-in before the call continues.
async fn signed_in(
    mut pending: PendingLogin,
    config: Config,
    hub: HubTarget,
) -> Result<(), String> {
    let facts = pending.redirected().await;
    facts.map_err(|error| error.to_string())?;
    tell_changes(&config, &hub).await;
    Ok(())
}

/// Remembers the sign-ins of servers that are new in the configuration, so that the next login to one is noticed.
pub fn note_new_servers(config: &Config, hub: &HubTarget) {
    let servers = hub.servers();
    let mut seen = (hub.seen_sign_ins.lock()).unwrap_or_else(PoisonError::into_inner);
    for server in servers {
        if let Some(sign_in) = sign_in_of(config, &server) {
            let key = (server.name().to_owned(), sign_in.server().to_owned());
            seen.entry(key).or_insert_with(|| sign_in.state());
        }
    }
}

/// Tells the hub about logins and logouts, wherever they were made.
pub async fn follow(config: Config, hub: HubTarget) {
    let first = (config.clone(), hub.clone());
    let _ = tokio::task::spawn_blocking(move || note_new_servers(&first.0, &first.1)).await;
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let is_used = hub.servers().iter().any(is_remote);
        let store = is_used.then(|| config.sign_ins.open().ok()).flatten();
        let now = store.map(|store| store.generation());
        if now != seen {
            seen = now;
            tell_changes(&config, &hub).await;
        }
    }
}

/// Tells the hub now what has changed in its sign-ins.
async fn tell_changes(config: &Config, hub: &HubTarget) {
    let driver = hub.driver.clone();
    look_aside(config, hub, move |name, change| {
        if let Some(driver) = driver.get() {
            driver.sign_in_changed(name, change);
        }
    })
    .await;
}

/// Compares the sign-ins with those that were seen last, on a thread that may wait for the disk.
async fn look_aside(
    config: &Config,
    hub: &HubTarget,
    tell: impl Fn(&str, SignInChange) + Send + 'static,
) {
    let (config, hub) = (config.clone(), hub.clone());
    let _ = tokio::task::spawn_blocking(move || look(&config, &hub, tell)).await;
}

fn look(config: &Config, hub: &HubTarget, tell: impl Fn(&str, SignInChange)) {
    let servers = hub.servers();
    let used = config.sign_ins.take_used();
    let mut seen = (hub.seen_sign_ins.lock()).unwrap_or_else(PoisonError::into_inner);
    for server in servers {
        let Some(sign_in) = sign_in_of(config, &server) else {
            continue;
        };
        let now = sign_in.state();
        let key = (server.name().to_owned(), sign_in.server().to_owned());
        let before = seen.insert(key, now.clone());
        // Somebody may have signed in and out again since the last look.
        let is_over = now == SignInState::SignedOut && used.contains(sign_in.server());
        let change = match is_over {
            true => Some(SignInChange::SignedOut),
            false => change(before, &now),
        };
        if let Some(change) = change {
            tell(server.name(), change);
        }
    }
}

/// What has happened to a sign-in: every login has a number of its own. What changes without one (other tokens, a later expiry,
/// scopes that a call has lacked) is no change.
fn change(before: Option<SignInState>, now: &SignInState) -> Option<SignInChange> {
    let before = match before {
        Some(SignInState::SignedIn(facts)) => Some(facts),
        Some(SignInState::SignedOut) | None => None,
    };
    match (before, now) {
        (None, SignInState::SignedOut) => None,
        (Some(_), SignInState::SignedOut) => Some(SignInChange::SignedOut),
        // The first token of a client that needs no person.
        (None, SignInState::SignedIn(now)) if now.login == 0 => None,
        (None, SignInState::SignedIn(_)) => Some(SignInChange::Account),
        (Some(before), SignInState::SignedIn(now)) if before.login == now.login => None,
        (Some(before), SignInState::SignedIn(now)) => Some(match is_same_with_more(&before, now) {
            true => SignInChange::Scopes,
            false => SignInChange::Account,
        }),
    }
}

/// Whether it is certainly the same account, which may do more than before.
fn is_same_with_more(before: &SignInFacts, now: &SignInFacts) -> bool {
    let is_same = before.account.is_some()
        && (&before.issuer, &before.account) == (&now.issuer, &now.account);
    let has_all = before.scopes.iter().all(|scope| now.scopes.contains(scope));
    is_same && has_all && before.scopes.len() < now.scopes.len()
}

fn is_remote(server: &HubServerTarget) -> bool {
    server.settings.is_remote
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn signed_in() -> SignInFacts {
        SignInFacts {
            issuer: "https://as.example".to_owned(),
            account: Some("ada".to_owned()),
            until: None,
            can_refresh: true,
            scopes: vec!["read".to_owned()],
            missing_scopes: Vec::new(),
            login: 1,
        }
    }

    fn with(edit: fn(&mut SignInFacts)) -> SignInState {
        let mut facts = signed_in();
        edit(&mut facts);
        SignInState::SignedIn(facts)
    }

    #[test]
    fn a_renewed_token_is_no_change() {
        let same = SignInState::SignedIn(signed_in());
        let renewed = with(|facts| facts.until = Some(SystemTime::UNIX_EPOCH));
        let fewer = with(|facts| facts.scopes.clear());
        let lacking = with(|facts| facts.missing_scopes.push("write".to_owned()));
        let no_refresh = with(|facts| facts.can_refresh = false);
        for now in [&same, &renewed, &fewer, &lacking, &no_refresh] {
            assert_eq!(change(Some(same.clone()), now), None, "{now:?}");
        }
    }

    #[test]
    fn each_login_is_a_change_even_if_it_looks_the_same() {
        let same = SignInState::SignedIn(signed_in());
        let again = with(|facts| facts.login = 2);
        let other = with(|facts| (facts.login, facts.account) = (2, Some("bob".to_owned())));
        let unknown = with(|facts| (facts.login, facts.account) = (2, None));
        let more = with(|facts| {
            facts.login = 2;
            facts.scopes.push("write".to_owned());
        });
        let others = with(|facts| (facts.login, facts.scopes) = (2, vec!["write".to_owned()]));
        let machine = with(|facts| facts.login = 0);
        let out = SignInState::SignedOut;
        for (before, now, expected) in [
            (&out, &same, Some(SignInChange::Account)),
            (&out, &machine, None),
            (&same, &out, Some(SignInChange::SignedOut)),
            (&same, &again, Some(SignInChange::Account)),
            (&same, &other, Some(SignInChange::Account)),
            (&same, &unknown, Some(SignInChange::Account)),
            (&same, &more, Some(SignInChange::Scopes)),
            (&same, &others, Some(SignInChange::Account)),
            (&out, &out, None),
        ] {
            assert_eq!(change(Some(before.clone()), now), expected, "{now:?}");
        }
        let unknown_with_more = with(|facts| {
            (facts.login, facts.account) = (3, None);
            facts.scopes.push("write".to_owned());
        });
        let change = change(Some(unknown), &unknown_with_more);
        assert_eq!(change, Some(SignInChange::Account));
    }
}
