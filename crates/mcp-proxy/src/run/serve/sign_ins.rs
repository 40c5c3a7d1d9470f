//! The user's sign-ins to the servers of a hub: what `status` shows of them, and what the hub does when they change.
//!
//! Any process of the user may sign in or out. So the hub looks now and then whether the store has changed, which costs one
//! system call.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mcp_proxy_auth::{PendingLogin, ServerSignIn, SignInFacts, SignInState};
use mcp_proxy_control::SignInHealth;
use mcp_proxy_hub::{BeginSignIn, SignInChange, SignInPage};
use mcp_proxy_session::time_text;

use crate::config::{Config, HubServerKind, HubServerTarget, HubTarget};
use crate::run::sign_in::server_sign_in;

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
            until: facts.until.map(time_text),
            renews: facts.can_refresh,
            scopes: facts.scopes,
            missing_scopes: facts.missing_scopes,
        }),
        SignInState::SignedOut => None,
    }
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
            let pending = pending.map_err(|error| error.to_string())?;
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

/// Tells the hub about logins and logouts, wherever they were made.
pub async fn follow(config: Config, hub: HubTarget) {
    look_aside(&config, &hub, |_, _| ()).await;
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let is_used = hub.current_servers().iter().any(is_remote);
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
    let servers = hub.current_servers();
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
            true => Some(SignInChange::Account),
            false => change(before, &now),
        };
        if let Some(change) = change {
            tell(server.name(), change);
        }
    }
}

/// What has happened to a sign-in. Scopes that a call has lacked since are no change.
fn change(before: Option<SignInState>, now: &SignInState) -> Option<SignInChange> {
    let (before, now) = match (before, now) {
        (Some(SignInState::SignedIn(before)), SignInState::SignedIn(now)) => (before, now),
        (Some(SignInState::SignedOut) | None, SignInState::SignedOut) => return None,
        // The server is new.
        (None, SignInState::SignedIn(_)) => return Some(SignInChange::Renewed),
        (Some(_), _) => return Some(SignInChange::Account),
    };
    let who = |facts: &SignInFacts| (facts.issuer.clone(), facts.account.clone());
    if who(&before) != who(now) {
        Some(SignInChange::Account)
    } else if before.scopes != now.scopes {
        Some(SignInChange::Scopes)
    } else if (before.until, before.can_refresh) != (now.until, now.can_refresh) {
        Some(SignInChange::Renewed)
    } else {
        None
    }
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
        }
    }

    #[test]
    fn only_what_matters_to_a_server_is_a_change() {
        let same = SignInState::SignedIn(signed_in());
        let with = |edit: fn(&mut SignInFacts)| {
            let mut facts = signed_in();
            edit(&mut facts);
            SignInState::SignedIn(facts)
        };
        let other = with(|facts| facts.account = None);
        let more = with(|facts| facts.scopes.push("write".to_owned()));
        let renewed = with(|facts| facts.until = Some(SystemTime::UNIX_EPOCH));
        let lacking = with(|facts| facts.missing_scopes.push("write".to_owned()));
        let out = SignInState::SignedOut;
        for (before, now, expected) in [
            (&out, &same, Some(SignInChange::Account)),
            (&same, &out, Some(SignInChange::Account)),
            (&same, &other, Some(SignInChange::Account)),
            (&same, &more, Some(SignInChange::Scopes)),
            (&same, &renewed, Some(SignInChange::Renewed)),
            (&same, &lacking, None),
            (&same, &same, None),
            (&out, &out, None),
        ] {
            assert_eq!(change(Some(before.clone()), now), expected, "{now:?}");
        }
        assert_eq!(change(None, &same), Some(SignInChange::Renewed));
        assert_eq!(change(None, &out), None);
    }
}
