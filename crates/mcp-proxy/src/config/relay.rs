//! What the flags of `relay` mean.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use mcp_proxy_relay::{
    CheckedToken, PolicyList, RelayDriver, RelayPolicy, RelayRates, RelaySettings,
};
use mcp_proxy_token::{RevocationList, TokenVerifier, VerifiedToken};
use mcp_proxy_transport::http::{Admission, BrowserExtensions, LegacyClients};
use mcp_proxy_wire::Transport;

use super::{ClientEndpoint, Config, RelayFile, Target, is_loopback};
use crate::cli::proxy::{ClientKind, DEFAULT_HOST};
use crate::cli::relay::{RELAY_PORT, RelayArgs};

/// How much longer than it says a token is accepted.
const LEEWAY_SECONDS: i64 = 5;

/// Clients and extensions in place of a server.
#[derive(Clone)]
pub struct RelayTarget {
    /// Limits, times and policy.
    pub settings: RelaySettings,
    /// Checks the signatures of tokens.
    pub verifier: Arc<TokenVerifier>,
    /// Where revoked tokens are listed.
    pub revoked_file: PathBuf,
    /// `--threads`
    pub threads: Option<std::num::NonZeroUsize>,
    /// Set once it runs.
    pub driver: Arc<OnceLock<Arc<RelayDriver>>>,
}

impl Config {
    /// Checks the flags of `relay` and reads its keys.
    pub fn relay(args: &RelayArgs) -> Result<Config> {
        refuse_other_flags(args)?;
        let target = RelayTarget {
            settings: settings(args)?,
            verifier: Arc::new(verifier(args)?),
            revoked_file: RelayFile::Revoked.path(args.revoked_file.as_deref())?,
            threads: args.threads,
            driver: Arc::default(),
        };
        // A file that cannot be read would let revoked tokens in.
        RevocationList::open(&target.revoked_file).with_context(|| {
            format!(
                "--revoked-file: cannot read {}",
                target.revoked_file.display()
            )
        })?;
        let listen = endpoint(args)?;
        let mut proxy = args.proxy.clone();
        proxy.listen = Some(ClientKind::Http);
        proxy.listen_host = None;
        let mut config = Config::with_target(&proxy, Target::Relay(target))?;
        config.listen = listen;
        Ok(config)
    }
}

fn refuse_other_flags(args: &RelayArgs) -> Result<()> {
    let proxy = &args.proxy;
    let given = [
        (proxy.names_server(), "a server"),
        (!proxy.header.is_empty(), "--header"),
        (!proxy.env.is_empty() || proxy.env_mode.is_some(), "--env"),
        (proxy.cwd.is_some(), "--cwd"),
        (proxy.transport.is_some(), "--transport"),
        (proxy.listen.is_some(), "--listen"),
        (proxy.auth_token_file.is_some(), "--auth-token-file"),
        (proxy.stateless, "--stateless"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, what)) => {
            bail!(
                "{what} means nothing to relay: clients and extensions connect to it over WebSocket"
            )
        }
        None => Ok(()),
    }
}

fn settings(args: &RelayArgs) -> Result<RelaySettings> {
    let lists = [
        (PolicyList::Methods, &args.allow_method, &args.deny_method),
        (PolicyList::Cdp, &args.allow_cdp, &args.deny_cdp),
        (PolicyList::Urls, &args.allow_url, &args.deny_url),
    ];
    let mut policy = RelayPolicy::default();
    for (list, allowed, denied) in lists {
        let given = |names: &'_ Vec<String>| (!names.is_empty()).then(|| names.clone());
        policy = policy
            .with(list, given(allowed).as_deref(), given(denied).as_deref())
            .map_err(|error| anyhow::anyhow!("the pattern {error}"))?;
    }
    Ok(RelaySettings {
        command_timeout: args.command_timeout,
        resume_window: args.resume_window,
        max_connections: args.max_connections.get(),
        max_command: usize::try_from(args.max_command).unwrap_or(usize::MAX),
        max_answer: usize::try_from(args.max_answer).unwrap_or(usize::MAX),
        rates: RelayRates {
            per_user: args.user_rate.get(),
            per_connection: args.connection_rate.get(),
            ..RelayRates::default()
        },
        policy,
        ..RelaySettings::default()
    })
}

fn verifier(args: &RelayArgs) -> Result<TokenVerifier> {
    if let Some(path) = &args.jwt_public_key {
        return TokenVerifier::from_public_key_file(path).context("--jwt-public-key");
    }
    if let Some(path) = &args.jwks {
        let keys = std::fs::read(path)
            .with_context(|| format!("--jwks: cannot read {}", path.display()))?;
        return TokenVerifier::from_jwks(&keys).context("--jwks");
    }
    if let Some(path) = &args.jwt_secret_file {
        return TokenVerifier::from_secret_file(path).context("--jwt-secret-file");
    }
    let path = RelayFile::Secret.path(None)?;
    if !path.exists() {
        bail!(
            "no key to check tokens with: run `mcp-proxy relay init` once, or give --jwt-secret-file, --jwt-public-key or --jwks"
        );
    }
    TokenVerifier::from_secret_file(&path).context("the secret of `relay init`")
}

fn endpoint(args: &RelayArgs) -> Result<ClientEndpoint> {
    let proxy = &args.proxy;
    let host = proxy.listen_host.as_deref().unwrap_or(DEFAULT_HOST);
    let tls = proxy.tls_cert.clone().zip(proxy.tls_key.clone());
    if !is_loopback(host) && tls.is_none() && !proxy.behind_tls_proxy {
        bail!(
            "--listen-host {host}: others can reach this address; give --tls-cert and --tls-key, or \
             --behind-tls-proxy if TLS is terminated in front of this relay"
        );
    }
    let pinned = args.extension_id.iter();
    let pinned = pinned.map(|id| format!("chrome-extension://{id}"));
    Ok(ClientEndpoint::Port {
        kind: Transport::WebSocket,
        host: host.to_owned(),
        port: proxy.listen_port.unwrap_or(RELAY_PORT),
        admission: Admission {
            token: None,
            hosts: proxy.allow_host.clone(),
            origins: proxy.allow_origin.iter().cloned().chain(pinned).collect(),
            extensions: match args.extension_id.is_empty() {
                true => BrowserExtensions::Any,
                false => BrowserExtensions::Named,
            },
        },
        token_file: None,
        tls,
        legacy: LegacyClients::Sessions,
    })
}

impl RelayTarget {
    /// Checks a token as it is shown.
    pub fn check(
        &self,
        token: &str,
        revoked: &Mutex<RevocationList>,
    ) -> Result<CheckedToken, &'static str> {
        let verified = self.verifier.verify(token, SystemTime::now());
        let verified = verified.map_err(|error| error.peer_text())?;
        revoked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .check(&verified)
            .map_err(|error| error.peer_text())?;
        Ok(CheckedToken {
            // As long as it is accepted.
            expires_at: seconds(verified.expires_at).saturating_add(LEEWAY_SECONDS),
            issued_at: verified.issued_at.map(seconds),
            token_id: verified.token_id,
            user: verified.user,
        })
    }

    /// A token that was checked before, as the list of revoked tokens wants it.
    pub fn verified(token: &CheckedToken) -> VerifiedToken {
        VerifiedToken {
            user: token.user.clone(),
            expires_at: time(token.expires_at),
            issued_at: token.issued_at.map(time),
            token_id: token.token_id.clone(),
            connection_url: None,
        }
    }
}

/// Since 1970. Tokens have no times before that.
fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn time(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
